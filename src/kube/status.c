#include "kube/status.h"

#include "kube/kind.h"

#include <string.h>

void status_done(struct status *st)
{
    buf_done(&st->message);
    buf_done(&st->name);
    buf_done(&st->uid);
    causes_done(&st->causes);
}

void status_clear(struct status *st)
{
    buf_clear(&st->message);
    buf_clear(&st->name);
    buf_clear(&st->uid);
    buf_clear(&st->causes.text);
    st->causes.n = st->causes.dropped = 0;
    st->code = st->retry_after_s = 0;
    st->reason = st->group = st->kind = NULL;
}

/* What fits of a text is enough: ceilings of names and messages are far above what is real. */
static void set_text(struct buf *b, const char *text)
{
    buf_clear(b);
    (void)buf_add_capped(b, span_cstr(text));
}

static int set(struct status *st, int code, const char *reason)
{
    struct causes causes = st->causes;

    st->causes = (struct causes)CAUSES_INIT;
    status_clear(st);
    st->causes = causes;
    st->code = code;
    st->reason = reason;
    return -1;
}

static void set_resource(struct status *st, const struct kind *k, const char *name)
{
    st->group = k->group;
    st->kind = k->plural;
    set_text(&st->name, name);
}

/* "pods", or "sandboxes.agents.x-k8s.io" outside core. */
static void add_qualified(struct status *st, const char *what, const char *group)
{
    buf_addf_capped(&st->message, "%s%s%s", what, group[0] ? "." : "", group);
}

static void add_quoted(struct status *st, const char *before, const char *name)
{
    struct json_out o;
    struct err e;

    buf_addf_capped(&st->message, "%s", before);
    json_out_init(&o, &st->message, 0);
    json_out_cstr(&o, name);
    (void)json_out_end(&o, &e);
}

/* `<before>pods "x"<after>` */
static void say_named(struct status *st, const struct kind *k, const char *name, const char *after)
{
    add_qualified(st, k->plural, k->group);
    add_quoted(st, " ", name);
    buf_addf_capped(&st->message, "%s", after);
}

static void say(struct status *st, const char *fmt, va_list ap)
{
    buf_vaddf_capped(&st->message, fmt, ap);
}

#define SAY(st, fmt)                                                                               \
    do {                                                                                           \
        va_list ap_;                                                                               \
        va_start(ap_, fmt);                                                                        \
        say(st, fmt, ap_);                                                                         \
        va_end(ap_);                                                                               \
    } while (0)

int status_not_found(struct status *st, const struct kind *k, const char *name)
{
    set(st, 404, "NotFound");
    set_resource(st, k, name);
    say_named(st, k, name, " not found");
    return -1;
}

int status_no_resource(struct status *st)
{
    set(st, 404, "NotFound");
    st->kind = "";
    set_text(&st->message, "the server could not find the requested resource");
    return -1;
}

int status_exists(struct status *st, const struct kind *k, const char *name)
{
    set(st, 409, "AlreadyExists");
    set_resource(st, k, name);
    say_named(st, k, name, " already exists");
    return -1;
}

int status_conflict(struct status *st, const struct kind *k, const char *name, const char *fmt, ...)
{
    set(st, 409, "Conflict");
    set_resource(st, k, name);
    set_text(&st->message, "Operation cannot be fulfilled on ");
    say_named(st, k, name, ": ");
    SAY(st, fmt);
    return -1;
}

int status_modified(struct status *st, const struct kind *k, const char *name)
{
    return status_conflict(st, k, name,
                           "the object has been modified; please apply your changes to the latest "
                           "version and try again");
}

int status_apply_conflict(struct status *st, const char *fmt, ...)
{
    set(st, 409, "Conflict");
    st->kind = "";
    SAY(st, fmt);
    return -1;
}

int status_invalid(struct status *st, const struct kind *k, const char *name)
{
    const char *group = k->storage_kind ? "" : k->group; /* it is judged as what it is stored as */
    struct err e;

    set(st, 422, "Invalid");
    st->group = group;
    st->kind = k->name;
    set_text(&st->name, name);
    add_qualified(st, k->name, group);
    add_quoted(st, " ", name);
    buf_addf_capped(&st->message, " is invalid%s", st->causes.n ? ": " : "");
    (void)causes_summary(&st->causes, &st->message, &e);
    return -1;
}

int status_bad_request(struct status *st, const char *fmt, ...)
{
    set(st, 400, "BadRequest");
    SAY(st, fmt);
    return -1;
}

int status_forbidden(struct status *st, const struct kind *k, const char *name, const char *fmt,
                     ...)
{
    set(st, 403, "Forbidden");
    st->kind = "";
    if (k) {
        set_resource(st, k, name);
        add_qualified(st, k->plural, k->group);
        if (name[0])
            add_quoted(st, " ", name);
        buf_addf_capped(&st->message, " is ");
    }
    buf_addf_capped(&st->message, "forbidden: ");
    SAY(st, fmt);
    return -1;
}

int status_unauthorized(struct status *st)
{
    set(st, 401, "Unauthorized");
    set_text(&st->message, "Unauthorized");
    return -1;
}

int status_method(struct status *st, const struct kind *k, const char *verb)
{
    set(st, 405, "MethodNotAllowed");
    if (!k) {
        st->kind = "";
        (void)buf_add_capped(
            &st->message, SPAN("the server does not allow this method on the requested resource"));
        return -1;
    }
    set_resource(st, k, "");
    buf_addf_capped(&st->message, "%s is not supported on resources of kind \"", verb);
    add_qualified(st, k->plural, k->group);
    buf_addf_capped(&st->message, "\"");
    return -1;
}

int status_expired(struct status *st, const char *fmt, ...)
{
    set(st, 410, "Expired");
    SAY(st, fmt);
    return -1;
}

int status_too_large(struct status *st, size_t limit_bytes)
{
    set(st, 413, "RequestEntityTooLarge");
    buf_addf_capped(&st->message, "Request entity too large: limit is %zu", limit_bytes);
    return -1;
}

int status_media_type(struct status *st, const char *fmt, ...)
{
    set(st, 415, "UnsupportedMediaType");
    SAY(st, fmt);
    return -1;
}

int status_not_acceptable(struct status *st, const char *fmt, ...)
{
    set(st, 406, "NotAcceptable");
    SAY(st, fmt);
    return -1;
}

int status_too_many(struct status *st, int retry_after_s, const char *fmt, ...)
{
    set(st, 429, "TooManyRequests");
    st->kind = "";
    st->retry_after_s = retry_after_s;
    SAY(st, fmt);
    return -1;
}

int status_timeout(struct status *st, const char *fmt, ...)
{
    set(st, 504, "Timeout");
    st->kind = "";
    set_text(&st->message, "Timeout: ");
    SAY(st, fmt);
    return -1;
}

int status_too_new(struct status *st, uint64_t wanted, uint64_t there)
{
    int rc = status_timeout(st, "Too large resource version: %llu, current: %llu",
                            (unsigned long long)wanted, (unsigned long long)there);

    causes_add(&st->causes, CAUSE_VERSION_TOO_LARGE, AT(NULL, ""), NULL,
               "Too large resource version");
    st->retry_after_s = 1;
    return rc;
}

int status_unavailable(struct status *st, int retry_after_s, const char *fmt, ...)
{
    set(st, 503, "ServiceUnavailable");
    st->kind = "";
    st->retry_after_s = retry_after_s;
    SAY(st, fmt);
    return -1;
}

int status_bare(struct status *st, const char *fmt, ...)
{
    set(st, 500, NULL);
    SAY(st, fmt);
    return -1;
}

int status_internal(struct status *st, const char *fmt, ...)
{
    set(st, 500, "InternalError");
    st->kind = "";
    set_text(&st->message, "Internal error occurred: ");
    SAY(st, fmt);
    return -1;
}

int status_of_err(struct status *st, const struct err *e)
{
    const struct err_map *map = err_map(e->code);

    if (e->code == ERR_INVALID || e->code == ERR_USAGE || e->code == ERR_PROTOCOL)
        return status_bad_request(st, "%s", e->msg);
    if (e->code == ERR_INTERNAL || e->code == ERR_NO_SPACE)
        return status_internal(st, "%s", e->msg);
    set(st, map->http, map->kube_reason);
    set_text(&st->message, e->msg);
    return -1;
}

int status_success(struct status *st, const struct kind *k, const char *name, const char *uid)
{
    set(st, 200, NULL);
    set_resource(st, k, name);
    set_text(&st->uid, uid);
    return 0;
}

static void write_causes(const struct causes *c, struct json_out *o)
{
    json_out_key(o, "causes");
    json_out_array_begin(o);
    for (size_t i = 0; i < c->n; i++) {
        json_out_object_begin(o);
        json_out_key(o, "reason"), json_out_cstr(o, cause_reason(c->rows[i].type));
        json_out_key(o, "message"), json_out_cstr(o, cause_message(c, i));
        if (cause_field(c, i)[0])
            json_out_key(o, "field"), json_out_cstr(o, cause_field(c, i));
        json_out_object_end(o);
    }
    json_out_array_end(o);
}

static void write_member(struct json_out *o, const char *name, struct span text)
{
    if (text.n)
        json_out_key(o, name), json_out_str(o, text);
}

static void write_details(const struct status *st, struct json_out *o)
{
    json_out_key(o, "details");
    json_out_object_begin(o);
    write_member(o, "name", buf_span(&st->name));
    write_member(o, "group", span_cstr(st->group));
    write_member(o, "kind", span_cstr(st->kind));
    write_member(o, "uid", buf_span(&st->uid));
    if (st->causes.n)
        write_causes(&st->causes, o);
    if (st->retry_after_s)
        json_out_key(o, "retryAfterSeconds"), json_out_i64(o, st->retry_after_s);
    json_out_object_end(o);
}

int status_write(const struct status *st, struct buf *out, struct err *e)
{
    bool is_failure = st->code >= 300;
    struct json_out o;

    json_out_init(&o, out, 0);
    json_out_object_begin(&o);
    json_out_key(&o, "kind"), json_out_cstr(&o, "Status");
    json_out_key(&o, "apiVersion"), json_out_cstr(&o, "v1");
    json_out_key(&o, "metadata"), json_out_object_begin(&o), json_out_object_end(&o);
    json_out_key(&o, "status"), json_out_cstr(&o, is_failure ? "Failure" : "Success");
    write_member(&o, "message", buf_span(&st->message));
    if (st->reason)
        write_member(&o, "reason", span_cstr(st->reason));
    if (st->kind)
        write_details(st, &o);
    if (is_failure)
        json_out_key(&o, "code"), json_out_i64(&o, st->code);
    json_out_object_end(&o);
    return json_out_end(&o, e);
}

/* Reasons a client of ours branches on; constants, so that a status holds no stranger's pointer. */
static const char *const known_reasons[] = {
    "NotFound",
    "AlreadyExists",
    "Conflict",
    "Invalid",
    "BadRequest",
    "Forbidden",
    "Unauthorized",
    "MethodNotAllowed",
    "Expired",
    "Gone",
    "RequestEntityTooLarge",
    "UnsupportedMediaType",
    "NotAcceptable",
    "TooManyRequests",
    "Timeout",
    "ServerTimeout",
    "ServiceUnavailable",
    "InternalError",
};

bool status_read(const struct json *body, struct status *ret)
{
    const struct json *details = json_get(body, "details");
    int64_t code = 0, retry = 0;
    struct span reason = json_str(json_get(body, "reason"));

    if (!span_is(json_str(json_get(body, "kind")), "Status") ||
        !span_is(json_str(json_get(body, "apiVersion")), "v1"))
        return false;
    status_clear(ret);
    (void)json_i64(json_get(body, "code"), &code);
    (void)json_i64(json_get(details, "retryAfterSeconds"), &retry);
    ret->code = code >= 100 && code < 600 ? (int)code : 0;
    ret->retry_after_s = retry > 0 && retry < 86400 ? (int)retry : 0;
    EACH(r, known_reasons) {
        if (span_is(reason, *r))
            ret->reason = *r;
    }
    (void)buf_add_capped(&ret->message, json_str(json_get(body, "message")));
    (void)buf_add_capped(&ret->name, json_str(json_get(details, "name")));
    (void)buf_add_capped(&ret->uid, json_str(json_get(details, "uid")));
    JSON_EACH(cause, json_get(details, "causes"))
    {
        causes_add_read(&ret->causes, json_str(json_get(cause, "reason")),
                        json_str(json_get(cause, "field")), json_str(json_get(cause, "message")));
    }
    return true;
}
