#include "kube/proto.h"

#include "base/str.h"
#include "kube/time.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum wire {
    WIRE_VARINT = 0,
    WIRE_FIXED64 = 1,
    WIRE_BYTES = 2,
    WIRE_FIXED32 = 5,
};

/* One field of a message as it is on the wire. */
struct part {
    uint64_t number;
    enum wire wire;
    uint64_t value;    /* WIRE_VARINT, WIRE_FIXED64, WIRE_FIXED32 */
    struct span bytes; /* WIRE_BYTES */
};

static bool read_varint(struct span *s, uint64_t *ret)
{
    uint64_t v = 0;

    for (size_t i = 0; i < s->n && i < 10; i++) {
        /* The tenth byte has one bit left. */
        if (i == 9 && s->p[i] > 1)
            return false;
        v |= (uint64_t)(s->p[i] & 0x7f) << (7 * i);
        if (!(s->p[i] & 0x80)) {
            *s = span_skip(*s, i + 1);
            *ret = v;
            return true;
        }
    }
    return false;
}

static bool read_fixed(struct span *s, size_t n, uint64_t *ret)
{
    uint64_t v = 0;

    if (s->n < n)
        return false;
    for (size_t i = n; i-- > 0;)
        v = v << 8 | s->p[i];
    *s = span_skip(*s, n);
    *ret = v;
    return true;
}

/* The next field of a message: 1, 0 at its end, -1 when it is none. */
static int next_part(struct span *rest, struct part *p, struct err *e)
{
    uint64_t tag, n;
    bool is_good;

    if (!rest->n)
        return 0;
    if (!read_varint(rest, &tag) || tag >> 3 == 0 || tag >> 3 > 536870911)
        return err_set(e, ERR_INVALID, "proto: illegal tag");
    *p = (struct part){ .number = tag >> 3, .wire = (enum wire)(tag & 7) };
    switch (tag & 7) {
    case WIRE_VARINT:
        is_good = read_varint(rest, &p->value);
        break;
    case WIRE_FIXED64:
        is_good = read_fixed(rest, 8, &p->value);
        break;
    case WIRE_FIXED32:
        is_good = read_fixed(rest, 4, &p->value);
        break;
    case WIRE_BYTES:
        is_good = read_varint(rest, &n) && n <= rest->n;
        if (is_good) {
            p->bytes = span_slice(*rest, 0, n);
            *rest = span_skip(*rest, n);
        }
        break;
    default:
        return err_set(e, ERR_INVALID, "proto: illegal wireType %d", (int)(tag & 7));
    }
    return is_good ? 1 : err_set(e, ERR_INVALID, "proto: unexpected end of the message");
}

static int read_type_meta(struct span message, struct proto_envelope *env, struct err *e)
{
    struct part p;
    int got;

    while ((got = next_part(&message, &p, e)) > 0) {
        if (p.number == 1 && p.wire == WIRE_BYTES)
            env->api_version = p.bytes;
        else if (p.number == 2 && p.wire == WIRE_BYTES)
            env->kind = p.bytes;
    }
    return got;
}

int proto_envelope_read(struct span body, struct proto_envelope *ret, struct err *e)
{
    struct proto_envelope env = { BYTES(""), BYTES(""), BYTES("") };
    struct span encoding = SPAN_NONE, type = SPAN_NONE;
    struct part p;
    int got;

    if (body.n < 4 || memcmp(body.p, "k8s\0", 4) != 0)
        return err_set(e, ERR_INVALID,
                       "provided data does not appear to be a protobuf message, expected prefix "
                       "[107 56 115 0]");
    body = span_skip(body, 4);
    while ((got = next_part(&body, &p, e)) > 0) {
        if (p.wire != WIRE_BYTES)
            continue;
        if (p.number == 1 && read_type_meta(p.bytes, &env, e) < 0)
            return err_wrap(e, "envelope, apiVersion and kind");
        if (p.number == 2)
            env.raw = p.bytes;
        if (p.number == 3)
            encoding = p.bytes;
        if (p.number == 4)
            type = p.bytes;
    }
    if (got < 0)
        return err_wrap(e, "envelope");
    if (encoding.n || (type.n && !span_is(type, "application/vnd.kubernetes.protobuf")))
        return err_set(e, ERR_INVALID, "proto: content in another encoding than protobuf");
    *ret = env;
    return 0;
}

struct reader {
    struct json_edit *ed;
    struct span whole; /* for places */
    struct err *e;
};

static int bad_wire(struct reader *r, const struct schema_type *t, const struct schema_field *f,
                    const struct part *p)
{
    return err_set(r->e, ERR_INVALID, "proto: wrong wireType = %d for field %s of %s", (int)p->wire,
                   f->name, t->name);
}

/* time.Unix: seconds and nanoseconds; nothing at all is no time. */
static int read_time(struct reader *r, bool is_micro, struct span message, struct json_node **ret)
{
    uint64_t seconds = 0, nanos = 0;
    bool is_zero = message.n == 0;
    char text[TIME_TEXT_BYTES];
    struct timespec t;
    struct part p;
    int got;

    while ((got = next_part(&message, &p, r->e)) > 0) {
        if (p.number == 1 && p.wire == WIRE_VARINT)
            seconds = p.value;
        if (p.number == 2 && p.wire == WIRE_VARINT)
            nanos = p.value;
    }
    if (got < 0)
        return -1;
    /* The years 1 to 9999, as RFC 3339 has them. */
    if ((int64_t)seconds < -62135596800 || (int64_t)seconds > 253402300799 || nanos > 999999999)
        return err_set(r->e, ERR_INVALID, "proto: a time outside of the calendar");
    t = (struct timespec){ (time_t)seconds, (long)nanos };
    if (is_zero)
        *ret = json_edit_null(r->ed);
    else
        *ret = json_edit_cstr(r->ed, is_micro ? kube_microtime_text(text, t)
                                              : kube_time_text(text, t.tv_sec));
    return 0;
}

/* A message whose field 1 is the text. */
static int read_text_of(struct reader *r, struct span message, struct span *ret)
{
    struct part p;
    int got;

    *ret = SPAN("");
    while ((got = next_part(&message, &p, r->e)) > 0)
        if (p.number == 1 && p.wire == WIRE_BYTES)
            *ret = p.bytes;
    return got;
}

static int read_raw(struct reader *r, struct span message, struct json_node **ret)
{
    OWN(json_doc_done) struct json_doc *doc = NULL;
    const struct json_limits limits = { .max_depth = 200 };
    struct span text;

    if (read_text_of(r, message, &text) < 0)
        return -1;
    if (!text.n) {
        *ret = json_edit_null(r->ed);
        return 0;
    }
    if (json_parse(text, &limits, &doc, r->e) < 0)
        return err_wrap(r->e, "proto: embedded JSON");
    *ret = json_edit_doc(r->ed, doc);
    return 0;
}

static int read_int_or_string(struct reader *r, struct span message, struct json_node **ret)
{
    uint64_t type = 0, number = 0;
    struct span text = SPAN("");
    struct part p;
    int got;

    while ((got = next_part(&message, &p, r->e)) > 0) {
        if (p.number == 1 && p.wire == WIRE_VARINT)
            type = p.value;
        if (p.number == 2 && p.wire == WIRE_VARINT)
            number = p.value;
        if (p.number == 3 && p.wire == WIRE_BYTES)
            text = p.bytes;
    }
    if (got < 0)
        return -1;
    *ret = type == 1 ? json_edit_str(r->ed, text) : json_edit_i64(r->ed, (int32_t)number);
    return 0;
}

static int read_strings(struct reader *r, struct span message, struct json_node **ret)
{
    struct part p;
    int got;

    *ret = json_edit_array(r->ed);
    while ((got = next_part(&message, &p, r->e)) > 0)
        if (p.number == 1 && p.wire == WIRE_BYTES)
            json_node_append(*ret, json_edit_str(r->ed, p.bytes));
    return got;
}

static int read_bytes(struct reader *r, struct span bytes, struct json_node **ret)
{
    OWN(buf_done) struct buf text = BUF_INIT(bytes.n * 2 + 8);

    if (str_base64_encode(bytes, &text, r->e) < 0)
        return -1;
    *ret = json_edit_str(r->ed, buf_span(&text));
    return 0;
}

static int read_message(struct reader *r, const struct schema_type *t, struct span message,
                        unsigned depth, struct json_node *into);

static int read_duration(struct reader *r, struct span message, struct json_node **ret)
{
    uint64_t ns = 0;
    char text[40];
    struct part p;
    int got;

    while ((got = next_part(&message, &p, r->e)) > 0)
        if (p.number == 1 && p.wire == WIRE_VARINT)
            ns = p.value;
    if (got < 0)
        return -1;
    snprintf(text, sizeof text, "%" PRId64 "ms", (int64_t)ns / 1000000);
    *ret = json_edit_cstr(r->ed, text);
    return 0;
}

/* One value of a field. old: what an earlier part of the same message left there, or NULL. */
static int read_value(struct reader *r, const struct schema_type *t, const struct schema_field *f,
                      const struct part *p, unsigned depth, struct json_node *old,
                      struct json_node **ret)
{
    enum wire want = f->value == SCHEMA_INT32 || f->value == SCHEMA_INT64 || f->value == SCHEMA_BOOL
                         ? WIRE_VARINT
                     : f->value == SCHEMA_DOUBLE ? WIRE_FIXED64
                                                 : WIRE_BYTES;
    struct span text;

    if (p->wire != want)
        return bad_wire(r, t, f, p);
    switch (f->value) {
    case SCHEMA_STRING:
        *ret = json_edit_str(r->ed, p->bytes);
        return 0;
    case SCHEMA_INT32:
        *ret = json_edit_i64(r->ed, (int32_t)p->value);
        return 0;
    case SCHEMA_INT64:
        *ret = json_edit_i64(r->ed, (int64_t)p->value);
        return 0;
    case SCHEMA_BOOL:
        *ret = json_edit_bool(r->ed, p->value != 0);
        return 0;
    case SCHEMA_DOUBLE: /* no type of the table has one in protobuf */
        return bad_wire(r, t, f, p);
    case SCHEMA_BYTES:
        return read_bytes(r, p->bytes, ret);
    case SCHEMA_TIME:
    case SCHEMA_MICROTIME:
        return read_time(r, f->value == SCHEMA_MICROTIME, p->bytes, ret);
    case SCHEMA_DURATION:
        return read_duration(r, p->bytes, ret);
    case SCHEMA_QUANTITY:
        if (read_text_of(r, p->bytes, &text) < 0)
            return -1;
        *ret = json_edit_str(r->ed, text.n ? text : SPAN("0"));
        return 0;
    case SCHEMA_INT_OR_STRING:
        return read_int_or_string(r, p->bytes, ret);
    case SCHEMA_RAW:
        return read_raw(r, p->bytes, ret);
    case SCHEMA_STRINGS:
        return read_strings(r, p->bytes, ret);
    case SCHEMA_OBJECT:
        *ret = json_node_type(old) == JSON_OBJECT ? old : json_edit_object(r->ed);
        return read_message(r, f->ref, p->bytes, depth + 1, *ret);
    }
    return 0;
}

/* One entry of a map: a message of key and value. */
static int read_entry(struct reader *r, const struct schema_type *t, const struct schema_field *f,
                      const struct part *entry, unsigned depth, struct json_node *map)
{
    struct span rest = entry->bytes, key = SPAN("");
    struct part p, value = { .wire = WIRE_BYTES, .bytes = BYTES("") };
    struct json_node *node = NULL;
    int got;

    if (entry->wire != WIRE_BYTES)
        return bad_wire(r, t, f, entry);
    while ((got = next_part(&rest, &p, r->e)) > 0) {
        if (p.number == 1 && p.wire == WIRE_BYTES)
            key = p.bytes;
        if (p.number == 2)
            value = p;
    }
    if (got < 0 || read_value(r, t, f, &value, depth, NULL, &node) < 0)
        return -1;
    json_node_set_span(map, key, node);
    return 0;
}

/* Numbers of a list may come packed into one part. */
static int read_packed(struct reader *r, const struct schema_type *t, const struct schema_field *f,
                       const struct part *p, struct json_node *list)
{
    struct span rest = p->bytes;

    while (rest.n) {
        struct part one = { .number = p->number, .wire = WIRE_VARINT };
        struct json_node *node = NULL;

        if (!read_varint(&rest, &one.value))
            return err_set(r->e, ERR_INVALID, "proto: unexpected end of the message");
        if (read_value(r, t, f, &one, 0, NULL, &node) < 0)
            return -1;
        json_node_append(list, node);
    }
    return 0;
}

static int read_field(struct reader *r, const struct schema_type *t, const struct schema_field *f,
                      const struct part *p, unsigned depth, struct json_node *into)
{
    struct json_node *old = json_node_get(into, f->name), *node = NULL;
    bool is_number =
        f->value == SCHEMA_INT32 || f->value == SCHEMA_INT64 || f->value == SCHEMA_BOOL;

    if (f->shape == SCHEMA_SINGLE) {
        if (read_value(r, t, f, p, depth, old, &node) < 0)
            return -1;
        if (node != old)
            json_node_set(into, f->name, node);
        return 0;
    }
    if (!old)
        old = json_node_set(into, f->name,
                            f->shape == SCHEMA_LIST ? json_edit_array(r->ed)
                                                    : json_edit_object(r->ed));
    if (f->shape == SCHEMA_MAP)
        return read_entry(r, t, f, p, depth, old);
    if (is_number && p->wire == WIRE_BYTES)
        return read_packed(r, t, f, p, old);
    if (read_value(r, t, f, p, depth, NULL, &node) < 0)
        return -1;
    json_node_append(old, node);
    return 0;
}

static const struct schema_field *field_of(const struct schema_type *t, uint64_t number)
{
    for (size_t i = 0; i < t->field_count; i++)
        if (t->fields[i].pb == number)
            return &t->fields[i];
    return NULL;
}

static const struct schema_inline *inline_of(const struct schema_type *t, uint64_t number)
{
    for (size_t i = 0; i < t->inline_count; i++)
        if (t->inlines[i].pb == number)
            return &t->inlines[i];
    return NULL;
}

/* Fields that are not in the table are left out, as JSON's unknown members are. */
static int read_message(struct reader *r, const struct schema_type *t, struct span message,
                        unsigned depth, struct json_node *into)
{
    const uint8_t *at = message.p;
    struct part p;
    int got;

    if (depth > PROTO_DEPTH_MAX)
        return err_set(r->e, ERR_LIMIT, "proto: messages nested deeper than %d", PROTO_DEPTH_MAX);
    while ((got = next_part(&message, &p, r->e)) > 0) {
        const struct schema_field *f = field_of(t, p.number);
        const struct schema_inline *in = f ? NULL : inline_of(t, p.number);

        if (f && read_field(r, t, f, &p, depth, into) < 0)
            return -1;
        if (in && p.wire == WIRE_BYTES && read_message(r, in->ref, p.bytes, depth + 1, into) < 0)
            return -1;
        if (json_edit_is_full(r->ed))
            return err_set(r->e, ERR_LIMIT, "proto: the object is too large");
        at = message.p;
    }
    return got < 0
               ? err_wrap(r->e, "%s, byte %zu of the object", t->name, (size_t)(at - r->whole.p))
               : 0;
}

int proto_object_read(const struct schema_type *t, const struct proto_envelope *env,
                      struct json_edit *ed, struct json_node **ret, struct err *e)
{
    struct reader r = { ed, env->raw, e };
    struct json_node *root = json_edit_object(ed);

    if (t->is_custom)
        return err_set(e, ERR_UNSUPPORTED, "proto: %s has no protobuf form", t->name);
    if (t->has_type_meta) {
        json_node_set(root, "apiVersion", json_edit_str(ed, env->api_version));
        json_node_set(root, "kind", json_edit_str(ed, env->kind));
    }
    if (read_message(&r, t, env->raw, 0, root) < 0)
        return -1;
    *ret = root;
    return 0;
}
