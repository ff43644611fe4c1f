#include "kube/cause.h"

#include <stdio.h>
#include <string.h>

#define SHOWN_MAX_BYTES 4096 /* of one wrong value; a whole PodSpec helps nobody */

/* Writes the path backwards, from its end, so that no second walk is needed. */
struct tail {
    char *start; /* of the buffer */
    char *p;     /* first byte written */
};

static void put_front(struct tail *t, const void *bytes, size_t n)
{
    size_t room = (size_t)(t->p - t->start);

    if (n > room) {
        bytes = (const char *)bytes + (n - room);
        n = room;
    }
    t->p -= n;
    memcpy(t->p, bytes, n);
}

const char *field_path_text(const struct field_path *p, char text[CAUSE_PATH_MAX_BYTES])
{
    struct tail t = { text, text + CAUSE_PATH_MAX_BYTES - 1 };
    char number[24];

    if (!p)
        return "<nil>";
    *t.p = '\0';
    for (; p; p = p->parent) {
        switch (p->step) {
        case FIELD_NAME:
            put_front(&t, p->name.p, p->name.n);
            if (p->parent)
                put_front(&t, ".", 1);
            break;
        case FIELD_INDEX:
            put_front(&t, number, (size_t)snprintf(number, sizeof number, "[%zu]", p->index));
            break;
        case FIELD_KEY:
            put_front(&t, "]", 1);
            put_front(&t, p->name.p, p->name.n);
            put_front(&t, "[", 1);
            break;
        }
    }
    if (t.p == text)
        memcpy(text, "...", 3);
    return t.p;
}

static const struct {
    const char *reason, *words;
} types[] = {
    [CAUSE_NOT_FOUND] = { "FieldValueNotFound", "Not found" },
    [CAUSE_REQUIRED] = { "FieldValueRequired", "Required value" },
    [CAUSE_DUPLICATE] = { "FieldValueDuplicate", "Duplicate value" },
    [CAUSE_INVALID] = { "FieldValueInvalid", "Invalid value" },
    [CAUSE_TYPE_INVALID] = { "FieldValueTypeInvalid", "Invalid value" },
    [CAUSE_NOT_SUPPORTED] = { "FieldValueNotSupported", "Unsupported value" },
    [CAUSE_FORBIDDEN] = { "FieldValueForbidden", "Forbidden" },
    [CAUSE_TOO_LONG] = { "FieldValueTooLong", "Too long" },
    [CAUSE_TOO_MANY] = { "FieldValueTooMany", "Too many" },
    [CAUSE_TOO_FEW] = { "FieldValueTooFew", "Too few" },
    [CAUSE_INTERNAL] = { "InternalError", "Internal error" },
    [CAUSE_CONFLICT] = { "FieldManagerConflict", NULL },
    [CAUSE_TERMINATING] = { "NamespaceTerminating", NULL },
    [CAUSE_VERSION_TOO_LARGE] = { "ResourceVersionTooLarge", NULL },
};

const char *cause_reason(enum cause_type type)
{
    return types[type].reason;
}

void causes_done(struct causes *c)
{
    buf_done(&c->text);
    c->n = c->dropped = 0;
}

/* "Invalid value: <shown>: <detail>"; -1 when it does not fit. */
static int write_message(struct buf *out, enum cause_type type, const char *shown,
                         const char *detail, struct err *e)
{
    const char *words = types[type].words;

    if (!words)
        return buf_addf(out, e, "%s", detail);
    return buf_addf(out, e, "%s%s%s%s%s", words, shown ? ": " : "", shown ? shown : "",
                    detail[0] ? ": " : "", detail);
}

/* Both texts, each behind the other and NUL-terminated, or none of them. */
static void add_row(struct causes *c, enum cause_type type, const char *field, struct span message)
{
    size_t start = c->text.n;
    struct cause row = { .type = type, .field_at = start };
    struct err e;

    if (c->n < CAUSES_MAX && buf_addf(&c->text, &e, "%s", field) == 0 &&
        buf_addc(&c->text, '\0', &e) == 0) {
        row.message_at = c->text.n;
        if (buf_add(&c->text, message, &e) == 0 && buf_addc(&c->text, '\0', &e) == 0) {
            c->rows[c->n++] = row;
            return;
        }
    }
    buf_truncate(&c->text, start);
    c->dropped++;
}

static void add(struct causes *c, enum cause_type type, const struct field_path *at,
                const char *shown, const char *detail)
{
    OWN(buf_done) struct buf message = BUF_INIT(CAUSES_TEXT_MAX_BYTES);
    char path[CAUSE_PATH_MAX_BYTES];
    struct err e;

    if (write_message(&message, type, shown, detail, &e) < 0)
        c->dropped++;
    else
        add_row(c, type, field_path_text(at, path), buf_span(&message));
}

void causes_add_read(struct causes *c, struct span reason, struct span field, struct span message)
{
    OWN_MEM char *name = span_dup(field);
    enum cause_type type = CAUSE_INTERNAL;

    for (size_t i = 0; i < LEN(types); i++) {
        if (span_is(reason, types[i].reason))
            type = (enum cause_type)i;
    }
    add_row(c, type, name, message);
}

/* The detail of a message, cut where it would be no message any more. */
static const char *detail_of(char detail[1024], const char *fmt, va_list ap)
{
    detail[0] = '\0';
    if (fmt)
        vsnprintf(detail, 1024, fmt, ap);
    return detail;
}

/* A value as JSON; a long one keeps its type and loses its middle. */
static const char *shown_of(const struct json *bad, struct buf *out)
{
    struct err e;

    if (json_write(bad, out, &e) < 0)
        return json_type(bad) == JSON_ARRAY    ? "[...]"
               : json_type(bad) == JSON_OBJECT ? "{...}"
                                               : "\"...\"";
    return buf_cstr(out);
}

void causes_add(struct causes *c, enum cause_type type, const struct field_path *at,
                const struct json *bad, const char *fmt, ...)
{
    OWN(buf_done) struct buf shown = BUF_INIT(SHOWN_MAX_BYTES);
    char detail[1024];
    va_list ap;

    va_start(ap, fmt);
    add(c, type, at, bad ? shown_of(bad, &shown) : NULL, detail_of(detail, fmt, ap));
    va_end(ap);
}

void causes_add_text(struct causes *c, enum cause_type type, const struct field_path *at,
                     struct span bad, const char *fmt, ...)
{
    OWN(buf_done) struct buf shown = BUF_INIT(SHOWN_MAX_BYTES);
    struct json_out o;
    char detail[1024];
    struct err e;
    va_list ap;

    json_out_init(&o, &shown, 0);
    json_out_str(&o, bad);
    va_start(ap, fmt);
    add(c, type, at, json_out_end(&o, &e) < 0 ? "\"...\"" : buf_cstr(&shown),
        detail_of(detail, fmt, ap));
    va_end(ap);
}

void causes_add_shown(struct causes *c, enum cause_type type, const struct field_path *at,
                      const char *shown, const char *fmt, ...)
{
    char detail[1024];
    va_list ap;

    va_start(ap, fmt);
    add(c, type, at, shown, detail_of(detail, fmt, ap));
    va_end(ap);
}

void causes_add_unsupported(struct causes *c, const struct field_path *at, const struct json *bad,
                            const char *const *values)
{
    OWN(buf_done) struct buf list = BUF_INIT(960);

    for (size_t i = 0; values[i]; i++)
        buf_addf_capped(&list, "%s\"%s\"", i ? ", " : "", values[i]);
    causes_add(c, CAUSE_NOT_SUPPORTED, at, bad, "supported values: %s", buf_cstr(&list));
}

const char *cause_field(const struct causes *c, size_t i)
{
    return (const char *)c->text.p + c->rows[i].field_at;
}

const char *cause_message(const struct causes *c, size_t i)
{
    return (const char *)c->text.p + c->rows[i].message_at;
}

/* The public server's aggregate says each text once. */
static bool is_said(const struct causes *c, size_t i)
{
    for (size_t j = 0; j < i; j++)
        if (strcmp(cause_field(c, j), cause_field(c, i)) == 0 &&
            strcmp(cause_message(c, j), cause_message(c, i)) == 0)
            return true;
    return false;
}

int causes_summary(const struct causes *c, struct buf *out, struct err *e)
{
    size_t different = 0, start = out->n;

    for (size_t i = 0; i < c->n; i++)
        different += !is_said(c, i);
    if (different > 1 && buf_addc(out, '[', e) < 0)
        return -1;
    for (size_t i = 0; i < c->n; i++) {
        if (is_said(c, i))
            continue;
        if (buf_addf(out, e, "%s%s: %s", i ? ", " : "", cause_field(c, i), cause_message(c, i)) < 0)
            goto full;
    }
    if (different > 1 && buf_addc(out, ']', e) < 0)
        goto full;
    return 0;
full:
    buf_truncate(out, start);
    return -1;
}
