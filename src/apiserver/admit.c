#include "apiserver/admit.h"

#include "kube/check.h"
#include "kube/convert.h"
#include "kube/default.h"
#include "kube/time.h"
#include "kube/validate.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#define SUFFIX_LETTERS "bcdfghjklmnpqrstvwxz2456789" /* no vowels: no words */
#define BASE_MAX       (63 - ADMIT_SUFFIX_LENGTH)

static void random_bytes(uint8_t *p, size_t n)
{
    ssize_t got = TEMP_FAILURE_RETRY(getrandom(p, n, 0));

    if (got != (ssize_t)n)
        abort(); /* up to 256 bytes are always given whole */
}

void admit_uuid(char text[37])
{
    static const char hex[] = "0123456789abcdef";
    uint8_t b[16];
    char *p = text;

    random_bytes(b, sizeof b);
    b[6] = (uint8_t)((b[6] & 0x0f) | 0x40);
    b[8] = (uint8_t)((b[8] & 0x3f) | 0x80);
    for (size_t i = 0; i < sizeof b; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *p++ = '-';
        *p++ = hex[b[i] >> 4];
        *p++ = hex[b[i] & 15];
    }
    *p = '\0';
}

void admit_suffix(char text[ADMIT_SUFFIX_LENGTH + 1])
{
    uint8_t random[ADMIT_SUFFIX_LENGTH];

    random_bytes(random, sizeof random);
    for (size_t i = 0; i < sizeof random; i++)
        text[i] = SUFFIX_LETTERS[random[i] % (sizeof SUFFIX_LETTERS - 1)];
    text[sizeof random] = '\0';
}

const char *admit_now(char text[TIME_TEXT_BYTES])
{
    return kube_time_text(text, time(NULL));
}

/* ---- the envelope ---- */

int admit_type(struct op *op, struct json_node *body, struct status *st)
{
    struct span api = json_node_str(json_node_get(body, "apiVersion"));
    struct span kind = json_node_str(json_node_get(body, "kind"));
    const char *want = kind_api_version(op->kind, op->version);

    if (json_node_type(body) != JSON_OBJECT)
        return status_bad_request(st, "the body of the request is %s, not an object",
                                  json_node_type_name(body));
    if (!api.n &&
        !kind.n) { /* custom kinds must say what they are, the others are known by their path */
        if (!(op->kind->traits & KIND_CUSTOM))
            return 0;
        return status_bad_request(st, "Object 'Kind' is missing in the body of the request");
    }
    if (kind.n && !span_is(kind, op->kind->name) && op->kind->traits & KIND_CUSTOM &&
        span_is(api, want)) {
        const char *name = json_node_cstr(json_node_get(json_node_get(body, "metadata"), "name"));

        causes_add_text(&st->causes, CAUSE_INVALID, AT(NULL, "kind"), kind, "must be %s",
                        op->kind->name);
        return status_invalid(st, op->kind, name ? name : "");
    }
    if (kind.n && !span_is(kind, op->kind->name))
        return status_bad_request(
            st, "the kind in the data (%.*s) does not match the expected kind (%s)", SPAN_ARG(kind),
            op->kind->name);
    if (api.n && !span_is(api, want))
        return status_bad_request(
            st, "the API version in the data (%.*s) does not match the expected API version (%s)",
            SPAN_ARG(api), want);
    return 0;
}

int admit_envelope(struct op *op, struct json_node *body, struct status *st)
{
    struct json_edit *ed = json_node_edit(body);
    struct json_node *meta;
    struct span name, namespace;

    meta = json_node_get(body, "metadata");
    if (!meta || json_node_type(meta) == JSON_NULL)
        meta = json_node_set(body, "metadata", json_edit_object(ed));
    if (json_node_type(meta) != JSON_OBJECT)
        return status_bad_request(st, "metadata of the object is %s, not an object",
                                  json_node_type_name(meta));
    name = json_node_str(json_node_get(meta, "name"));
    namespace = json_node_str(json_node_get(meta, "namespace"));
    if (namespace.n && !span_is(namespace, op->namespace))
        return status_bad_request(
            st,
            "the namespace of the provided object does not match the namespace sent on the request");
    if (*op->namespace && !namespace.n)
        json_node_set(meta, "namespace", json_edit_cstr(ed, op->namespace));
    if (*op->name && !name.n)
        json_node_set(meta, "name", json_edit_cstr(ed, op->name));
    else if (*op->name && !span_is(name, op->name))
        return status_bad_request(
            st, "the name of the object (%.*s) does not match the name on the URL (%s)",
            SPAN_ARG(name), op->name);
    return 0;
}

static int refuse_fields(struct op *op, const struct err *e, struct status *st)
{
    if (e->code == ERR_LIMIT)
        return status_of_err(st, e);
    return status_bad_request(st, "%s in version \"%s\" cannot be handled as a %s: %s",
                              op->kind->name, op->version->name, op->kind->name, e->msg);
}

/* What is not in the schema: told, refused or left alone, as the client asked; a member of the wrong type is always refused. */
static int check_fields(struct op *op, const struct json *root, struct status *st)
{
    OWN(check_issues_done) struct check_issues issues = CHECK_ISSUES_INIT;
    OWN(buf_done) struct buf text = BUF_INIT(CHECK_TEXT_MAX_BYTES * 2);
    struct err e;

    if (check_object(op->version->type, root, op->fields == CHECK_IGNORE ? NULL : &issues, &e) < 0)
        return refuse_fields(op, &e, st);
    if (op->fields == CHECK_STRICT && issues.n) {
        if (check_issues_summary(&issues, &text, &e) < 0)
            return status_of_err(st, &e);
        return status_bad_request(st, "%s in version \"%s\" cannot be handled as a %s: %s",
                                  op->kind->name, op->version->name, op->kind->name,
                                  buf_cstr(&text));
    }
    for (size_t i = 0; op->fields == CHECK_WARN && i < issues.n; i++)
        op_warn(op, "%s", check_issue(&issues, i));
    return 0;
}

/* sent: the body before a look inside dropped what is there twice; NULL: it was made here. */
static int check_body(struct op *op, struct json_node *body, const struct json *sent,
                      const struct object *was, struct status *st)
{
    OWN(json_doc_done) struct json_doc *doc = NULL;
    struct err e;

    if (sent)
        return check_fields(op, sent, st);
    if (op->fields == CHECK_IGNORE)
        return check_tree(op->version->type, body, was, &e) < 0 ? refuse_fields(op, &e, st) : 0;
    if (json_node_freeze(body, &doc, &e) < 0)
        return status_of_err(st, &e);
    return check_fields(op, json_doc_root(doc), st);
}

int admit_fields(struct op *op, struct json_node *body, const struct object *was, struct status *st)
{
    return check_body(op, body, json_node_view(body), was, st);
}

static struct json_node *merged(struct json_edit *ed, const struct json *v);

/* A member that is there already: maps become one, of anything else the last counts. */
static void merge_into(struct json_node *object, const struct json *v)
{
    struct json_edit *ed = json_node_edit(object);

    JSON_MEMBERS(name, value, v)
    {
        struct json_node *there = json_node_get_span(object, json_str(name));

        if (json_node_type(there) == JSON_OBJECT && json_type(value) == JSON_OBJECT)
            merge_into(there, value);
        else
            json_node_set_span(object, json_str(name), merged(ed, value));
    }
}

static struct json_node *merged(struct json_edit *ed, const struct json *v)
{
    struct json_node *out;

    if (json_type(v) == JSON_ARRAY) {
        out = json_edit_array(ed);
        JSON_EACH(item, v)
        {
            json_node_append(out, merged(ed, item));
        }
        return out;
    }
    if (json_type(v) != JSON_OBJECT)
        return json_edit_view(ed, v);
    out = json_edit_object(ed);
    merge_into(out, v);
    return out;
}

/* Members that were given twice. The public server reads core kinds into structures, where a second map adds to the
 * first, and custom kinds into maps, where the last one wins. */
static void settle_repeats(struct op *op, struct json_node *body, const struct json *sent)
{
    if (json_node_dedupe(body) && sent && !(op->kind->traits & KIND_CUSTOM))
        merge_into(body, sent);
}

int admit_body(struct op *op, struct json_node *body, const struct object *was, struct status *st)
{
    const struct json *sent = json_node_view(body);

    if (admit_type(op, body, st) < 0 || check_body(op, body, sent, was, st) < 0)
        return -1;
    settle_repeats(op, body, sent);
    return admit_envelope(op, body, st);
}

/* ---- new objects ---- */

static void make_up_name(struct json_edit *ed, struct json_node *meta, struct span base)
{
    char text[BASE_MAX + ADMIT_SUFFIX_LENGTH + 1];
    size_t n = MIN(base.n, (size_t)BASE_MAX);

    memcpy(text, base.p, n);
    admit_suffix(text + n);
    json_node_set(meta, "name", json_edit_cstr(ed, text));
}

int admit_new(struct op *op, struct json_edit *ed, struct json_node *body, struct status *st)
{
    static const char *const given_by_us[] = {
        "uid",        "creationTimestamp", "deletionTimestamp",
        "generation", "selfLink",          "deletionGracePeriodSeconds"
    };
    struct json_node *meta = json_node_get(body, "metadata");
    struct span base = json_node_str(json_node_get(meta, "generateName"));

    if (json_node_str(json_node_get(meta, "resourceVersion")).n)
        return status_bare(st, "resourceVersion should not be set on objects to be created");
    (void)json_node_remove(meta, "resourceVersion");
    EACH(name, given_by_us) {
        (void)json_node_remove(meta, *name);
    }
    if (!json_node_str(json_node_get(meta, "name")).n && base.n)
        make_up_name(ed, meta, base);
    if (kind_subresource(op->version, "status"))
        (void)json_node_remove(body, "status");
    if (admit_defaults(op, body, NULL, st) < 0)
        return -1;
    default_created(op->kind, body);
    return admit_kind(op, ed, body, st);
}

int admit_namespace(struct op *op, const char *namespace, const char *name, struct status *st)
{
    const struct kind *kind = kind_find("", "v1", "namespaces");
    struct shelf_key key = { op_number(kind), "", namespace };
    const struct object *there = store_get(op->store, STORE_HEAD, &key);

    if (!there)
        return status_not_found(st, kind, namespace);
    if (!object_is_deleting(there))
        return 0;
    causes_add(&st->causes, CAUSE_TERMINATING, AT(AT(NULL, "metadata"), "namespace"), NULL,
               "namespace %s is being terminated", namespace);
    return status_forbidden(
        st, op->kind, name,
        "unable to create new content in namespace %s because it is being terminated", namespace);
}

int admit_rules(struct op *op, struct json_node *body, const struct object *old,
                struct object **ret, struct status *st)
{
    OWN(object_done) struct object *o = NULL;
    struct validation v = {
        .kind = op->kind, .version = op->version, .old = old, .sub = op->sub ? op->sub->name : NULL
    };
    struct err e;

    if (object_freeze(op->kind, old, body, &o, &e) < 0)
        return status_of_err(st, &e);
    v.object = o;
    validate_object(&v, &st->causes);
    if (st->causes.n)
        return status_invalid(st, op->kind, object_name(o));
    *ret = take_ptr(&o);
    return 0;
}

int admit_defaults(struct op *op, struct json_node *body, struct json_node *was, struct status *st)
{
    struct err e;

    return default_changed(op->kind, op->version, body, was, &e) < 0 ? status_of_err(st, &e) : 0;
}

struct apply_by admit_by(const struct op *op, const char *now)
{
    return (struct apply_by){ .kind = op->kind,
                              .version = op->version->name,
                              .subresource = op->sub ? op->sub->name : "",
                              .manager = op->manager,
                              .now = now,
                              .is_forced = op->is_forced };
}

int admit_track(struct op *op, struct json_node *old, struct json_node *body, struct status *st)
{
    char now[TIME_TEXT_BYTES];
    struct apply_by by = admit_by(op, admit_now(now));
    struct err e;

    if (op->is_tracked)
        return 0;
    return apply_track(&by, old, body, &e) < 0 ? status_of_err(st, &e) : 0;
}

/* ---- versions ---- */

int admit_show(struct op *op, struct object *stored, struct object **ret, struct status *st)
{
    struct err e;

    if (convert_object(stored, op->kind, op->version->name, ret, &e) == 0)
        return 0;
    return status_internal(st, "conversion of %s \"%s\" failed: %s", op->kind->name,
                           object_name(stored), e.msg);
}

int admit_store(struct op *op, struct object *o, const struct object *base, struct object **ret,
                struct status *st)
{
    const struct kind *stored = op_storage(op->kind);
    OWN(json_edit_done) struct json_edit *ed = NULL;
    struct json_node *root;
    struct err e;

    if (stored != op->kind)
        return convert_object(o, stored, stored->versions[0].name, ret, &e) < 0
                   ? status_of_err(st, &e)
                   : 0;
    if (op->version == &stored->versions[0]) {
        *ret = object_ref(o);
        return 0;
    }
    ed = json_edit_new(0);
    root = object_thaw(o, kind_api_version(op->kind, op->version), ed);
    if (convert_tree(stored, op->version->name, stored->versions[0].name, root, &e) < 0)
        return status_internal(st, "conversion of %s failed: %s", op->kind->name, e.msg);
    return object_freeze(stored, base, root, ret, &e) < 0 ? status_of_err(st, &e) : 0;
}
