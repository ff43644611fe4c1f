#include "kubeclient/request.h"

#include "base/str.h"
#include "kubeclient/limits.h"

#include <string.h>

void rest_request_done(struct rest_request *r)
{
    buf_done(&r->path);
    buf_done(&r->query);
    buf_done(&r->body);
}

const struct kind_version *rest_version(const struct kind *kind, const char *version)
{
    return version ? kind_version(kind, version) : &kind->versions[0];
}

/* ---- the path ---- */

/* One step of the path. What Kubernetes refuses in names is refused here: it would name something else. */
static int add_step(struct rest_request *r, const char *what, const char *name, struct err *e)
{
    if (!name[0])
        return err_set(e, ERR_INVALID, "the %s is empty", what);
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strpbrk(name, "/%"))
        return err_set(e, ERR_INVALID, "'%s' cannot be a %s", name, what);
    return buf_addc(&r->path, '/', e) < 0 ? -1
                                          : str_percent_encode(span_cstr(name), ":", &r->path, e);
}

struct place {
    const struct kind *kind;
    const char *version, *namespace, *name, *sub;
};

static int make_path(struct rest_request *r, const struct place *at, struct err *e)
{
    const struct kind_version *v = rest_version(at->kind, at->version);
    bool is_core = !at->kind->group[0];

    if (!v)
        return err_set(e, ERR_INVALID, "%s has no version '%s'", at->kind->name, at->version);
    if (buf_addf(&r->path, e, is_core ? "/api%s" : "/apis/%s", at->kind->group) < 0 ||
        add_step(r, "version", v->name, e) < 0)
        return -1;
    if (at->namespace && kind_is_namespaced(at->kind) &&
        (buf_addf(&r->path, e, "/namespaces") < 0 ||
         add_step(r, "namespace", at->namespace, e) < 0))
        return -1;
    if (add_step(r, "kind", at->kind->plural, e) < 0 ||
        (at->name && add_step(r, "name", at->name, e) < 0))
        return -1;
    return at->sub ? add_step(r, "subresource", at->sub, e) : 0;
}

/* ---- the query ---- */

/* NULL and "" are left out. */
static int add_query(struct rest_request *r, const char *name, const char *value, struct err *e)
{
    if (!value || !value[0])
        return 0;
    if (buf_addf(&r->query, e, "%c%s=", r->query.n ? '&' : '?', name) < 0)
        return -1;
    return str_percent_encode(span_cstr(value), "", &r->query, e);
}

static int add_number(struct rest_request *r, const char *name, uint64_t value, struct err *e)
{
    return value ? buf_addf(&r->query, e, "%c%s=%llu", r->query.n ? '&' : '?', name,
                            (unsigned long long)value)
                 : 0;
}

static int make_query(struct rest_request *r, const struct kube_request *rq, struct err *e)
{
    bool is_write = rq->verb == KUBE_CREATE || rq->verb == KUBE_UPDATE || rq->verb == KUBE_PATCH;
    bool is_many = rq->verb == KUBE_LIST || rq->verb == KUBE_DELETE_COLLECTION;

    if (is_write && (add_query(r, "fieldManager", rq->manager, e) < 0 ||
                     add_query(r, "fieldValidation", rq->is_lax ? "Ignore" : NULL, e) < 0 ||
                     add_query(r, "dryRun", rq->is_dry_run ? "All" : NULL, e) < 0))
        return -1;
    if (rq->verb == KUBE_PATCH && rq->is_forced && add_query(r, "force", "true", e) < 0)
        return -1;
    if (is_many &&
        (add_query(r, "labelSelector", rq->labels, e) < 0 ||
         add_query(r, "fieldSelector", rq->fields, e) < 0 ||
         add_number(r, "limit", rq->limit, e) < 0 || add_query(r, "continue", rq->next, e) < 0))
        return -1;
    r->version_at = r->query.n;
    /* A continue token has its version inside, and a second one beside it is refused. */
    if ((rq->verb == KUBE_GET || rq->verb == KUBE_LIST) && !rq->next)
        return add_query(r, "resourceVersion", rq->at_version, e);
    return 0;
}

/* ---- the body ---- */

static int write_delete_options(const struct kube_request *rq, struct buf *out, struct err *e)
{
    static const char *const policies[] = { NULL, "Orphan", "Background", "Foreground" };
    char version[24];
    struct json_out o;

    json_out_init(&o, out, 0);
    json_out_object_begin(&o);
    json_out_key(&o, "kind"), json_out_cstr(&o, "DeleteOptions");
    json_out_key(&o, "apiVersion"), json_out_cstr(&o, "v1");
    if (rq->grace_s)
        json_out_key(&o, "gracePeriodSeconds"), json_out_i64(&o, *rq->grace_s);
    if (rq->uid || rq->only_version) {
        json_out_key(&o, "preconditions");
        json_out_object_begin(&o);
        if (rq->uid)
            json_out_key(&o, "uid"), json_out_cstr(&o, rq->uid);
        (void)snprintf(version, sizeof version, "%llu", (unsigned long long)rq->only_version);
        if (rq->only_version)
            json_out_key(&o, "resourceVersion"), json_out_cstr(&o, version);
        json_out_object_end(&o);
    }
    if (policies[rq->propagation])
        json_out_key(&o, "propagationPolicy"), json_out_cstr(&o, policies[rq->propagation]);
    if (rq->is_dry_run) {
        json_out_key(&o, "dryRun");
        json_out_array_begin(&o);
        json_out_cstr(&o, "All");
        json_out_array_end(&o);
    }
    json_out_object_end(&o);
    return json_out_end(&o, e);
}

static int write_object(const struct kube_request *rq, struct rest_request *r, struct err *e)
{
    const struct kind_version *v = rest_version(rq->kind, rq->version);

    r->content_type = "application/json";
    if (rq->object)
        return object_write(rq->object, kind_api_version(rq->kind, v), &r->body, e);
    if (!rq->body.n)
        return err_set(e, ERR_INVALID, "there is no object to send");
    return buf_add(&r->body, rq->body, e);
}

static int make_body(struct rest_request *r, const struct kube_request *rq, struct err *e)
{
    static const char *const patches[] = {
        [KUBE_PATCH_JSON] = "application/json-patch+json",
        [KUBE_PATCH_MERGE] = "application/merge-patch+json",
        [KUBE_PATCH_STRATEGIC] = "application/strategic-merge-patch+json",
        [KUBE_PATCH_APPLY] = "application/apply-patch+yaml", /* JSON is YAML */
    };

    switch (rq->verb) {
    case KUBE_GET:
    case KUBE_LIST:
        return 0;
    case KUBE_CREATE:
    case KUBE_UPDATE:
        return write_object(rq, r, e);
    case KUBE_PATCH:
        if (!rq->body.n && rq->object && rq->patch == KUBE_PATCH_APPLY) {
            if (write_object(rq, r, e) < 0)
                return -1;
        } else if (buf_add(&r->body, rq->body, e) < 0) {
            return -1;
        }
        r->content_type = patches[rq->patch];
        return 0;
    case KUBE_DELETE:
    case KUBE_DELETE_COLLECTION:
        if (!rq->grace_s && !rq->uid && !rq->only_version && !rq->propagation && !rq->is_dry_run)
            return 0;
        r->content_type = "application/json";
        return write_delete_options(rq, &r->body, e);
    }
    return 0;
}

/* ---- all of it ---- */

static const char *const methods[] = {
    [KUBE_GET] = "GET",
    [KUBE_LIST] = "GET",
    [KUBE_CREATE] = "POST",
    [KUBE_UPDATE] = "PUT",
    [KUBE_PATCH] = "PATCH",
    [KUBE_DELETE] = "DELETE",
    [KUBE_DELETE_COLLECTION] = "DELETE",
};

/* Names come from the object where the request does not say them. */
static int find_place(const struct kube_request *rq, struct place *at, struct err *e)
{
    bool is_many = rq->verb == KUBE_LIST || rq->verb == KUBE_DELETE_COLLECTION;
    bool is_named = !is_many && (rq->verb != KUBE_CREATE || rq->sub);

    *at = (struct place){ rq->kind, rq->version, rq->namespace, NULL, rq->sub };
    if (!at->namespace && rq->object && object_namespace(rq->object)[0])
        at->namespace = object_namespace(rq->object);
    if (is_named)
        at->name = rq->name ? rq->name : rq->object ? object_name(rq->object) : "";
    if (kind_is_namespaced(rq->kind) && !at->namespace && rq->verb != KUBE_LIST &&
        rq->verb != KUBE_DELETE_COLLECTION)
        return err_set(e, ERR_INVALID, "a %s is in a namespace, and none is given", rq->kind->name);
    return 0;
}

int rest_request_make(const struct kube_request *rq, struct rest_request *ret, struct err *e)
{
    struct rest_request r = REST_REQUEST_INIT;
    struct place at;

    r.method = methods[rq->verb];
    r.is_read = rq->verb == KUBE_GET || rq->verb == KUBE_LIST;
    if (find_place(rq, &at, e) < 0 || make_path(&r, &at, e) < 0 || make_query(&r, rq, e) < 0 ||
        make_body(&r, rq, e) < 0) {
        rest_request_done(&r);
        return -1;
    }
    *ret = r;
    return 0;
}

int rest_request_page(const struct rest_request *r, uint64_t limit, const char *next,
                      struct buf *target, struct err *e)
{
    struct rest_request page = { .query = BUF_INIT(REST_TARGET_MAX_BYTES) };
    struct span query = span_slice(buf_span(&r->query), 0, next ? r->version_at : r->query.n);
    int failed = buf_add(&page.query, query, e) < 0 || add_number(&page, "limit", limit, e) < 0 ||
                 add_query(&page, "continue", next, e) < 0 ||
                 buf_add(target, buf_span(&r->path), e) < 0 ||
                 buf_add(target, buf_span(&page.query), e) < 0;

    buf_done(&page.query);
    return failed ? -1 : 0;
}

int rest_request_watch(const struct kube_watch_spec *spec, uint64_t version, unsigned seconds,
                       struct rest_request *ret, struct err *e)
{
    struct rest_request r = REST_REQUEST_INIT;
    const struct place at = { spec->kind, spec->version, spec->namespace, NULL, NULL };

    r.method = "GET";
    r.is_read = true;
    if (make_path(&r, &at, e) < 0 || add_query(&r, "watch", "true", e) < 0 ||
        add_query(&r, "allowWatchBookmarks", "true", e) < 0 ||
        add_query(&r, "labelSelector", spec->labels, e) < 0 ||
        add_query(&r, "fieldSelector", spec->fields, e) < 0 ||
        buf_addf(&r.query, e, "&resourceVersion=%llu", (unsigned long long)version) < 0 ||
        add_number(&r, "timeoutSeconds", seconds, e) < 0) {
        rest_request_done(&r);
        return -1;
    }
    *ret = r;
    return 0;
}
