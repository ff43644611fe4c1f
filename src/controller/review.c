#include "controller/review.h"

#include "controller/limits.h"
#include "kube/convert.h"

#include <stdio.h>

#define REVIEW_GROUP     "apiextensions.k8s.io/"
#define EXTENSIONS_GROUP "extensions.agents.x-k8s.io"

struct review {
    const struct review_config *config;
    const struct json *request;
    struct span wanted; /* desiredAPIVersion */
    struct json_out *out;
    size_t i; /* the object that is looked at */
    const struct json *object;
};

/* ---- one object ---- */

/* Says which one it is: its place, and what it says of itself. */
static int fail(const struct review *r, struct err *e)
{
    const struct json *meta = json_get(r->object, "metadata");
    struct span kind = json_str(json_get(r->object, "kind")),
                space = json_str(json_get(meta, "namespace")),
                name = json_str(json_get(meta, "name"));
    size_t n = json_count(json_get(r->request, "objects"));

    return err_wrap(e, "cannot convert object %zu of %zu, %.*s '%.*s%s%.*s', to '%.*s'", r->i + 1,
                    n, (int)MIN(kind.n, (size_t)63), (const char *)kind.p,
                    (int)MIN(space.n, (size_t)63), (const char *)space.p, space.n ? "/" : "",
                    (int)MIN(name.n, (size_t)253), (const char *)name.p,
                    (int)MIN(r->wanted.n, (size_t)80), (const char *)r->wanted.p);
}

static const char *version_of(const struct kind *k, struct span api_version)
{
    for (size_t i = 0; i < k->version_count; i++)
        if (span_is(api_version, kind_api_version(k, &k->versions[i])))
            return k->versions[i].name;
    return NULL;
}

static int find_versions(const struct review *r, const struct kind **ret_kind,
                         const char **ret_from, const char **ret_to, struct err *e)
{
    struct span has = json_str(json_get(r->object, "apiVersion")),
                name = json_str(json_get(r->object, "kind"));
    const struct kind *k = has.n && name.n ? kind_of(has, name) : NULL;

    if (!k || !(k->traits & KIND_CUSTOM))
        return err_set(e, ERR_INVALID, "version '%.*s' of this kind is not one of ours",
                       (int)MIN(has.n, (size_t)80), (const char *)has.p);
    if (!r->config->has_extensions && strcmp(k->group, EXTENSIONS_GROUP) == 0)
        return err_set(e, ERR_INVALID, "this controller runs without --extensions");
    *ret_kind = k;
    *ret_from = version_of(k, has);
    *ret_to = version_of(k, r->wanted);
    return *ret_to ? 0 : err_set(e, ERR_INVALID, "there is no such version of this kind");
}

static int convert_one(const struct review *r, struct err *e)
{
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(REVIEW_OBJECT_MAX_BYTES);
    OWN(buf_done) struct buf text = BUF_INIT(REVIEW_OBJECT_MAX_BYTES);
    const char *from, *to;
    const struct kind *k;
    struct json_node *root;

    if (json_type(r->object) != JSON_OBJECT)
        return err_set(e, ERR_INVALID, "it is no object");
    if (find_versions(r, &k, &from, &to, e) < 0)
        return -1;
    root = json_edit_view(ed, r->object);
    if (convert_tree(k, from, to, root, e) < 0 || json_node_write(root, &text, e) < 0)
        return -1;
    json_out_raw(r->out, buf_span(&text));
    return 0;
}

static int convert_all(struct review *r, struct err *e)
{
    const struct json *objects = json_get(r->request, "objects");

    JSON_EACH(object, objects)
    {
        r->object = object;
        if (convert_one(r, e) < 0)
            return fail(r, e);
        r->i++;
    }
    return 0;
}

/* ---- the review ---- */

static void add_result(struct json_out *out, const char *why)
{
    json_out_key(out, "result"), json_out_object_begin(out);
    if (why)
        json_out_key(out, "message"), json_out_cstr(out, why);
    json_out_key(out, "status"), json_out_cstr(out, why ? "Failure" : "Success");
    json_out_object_end(out);
}

static void begin(struct json_out *out, struct buf *text, const struct json *root)
{
    json_out_init(out, text, 0);
    json_out_object_begin(out);
    json_out_key(out, "kind"), json_out_cstr(out, "ConversionReview");
    json_out_key(out, "apiVersion"), json_out_value(out, json_get(root, "apiVersion"));
    json_out_key(out, "response"), json_out_object_begin(out);
    json_out_key(out, "uid"),
        json_out_str(out, json_str(json_get(json_get(root, "request"), "uid")));
    json_out_key(out, "convertedObjects"), json_out_array_begin(out);
}

static int end(struct json_out *out, const char *why, struct err *e)
{
    json_out_array_end(out);
    add_result(out, why);
    json_out_object_end(out);
    json_out_object_end(out);
    return json_out_end(out, e);
}

static int check(const struct json *root, struct err *e)
{
    struct span version = json_str(json_get(root, "apiVersion"));

    if (!span_is(json_str(json_get(root, "kind")), "ConversionReview") ||
        (!span_is(version, REVIEW_GROUP "v1") && !span_is(version, REVIEW_GROUP "v1beta1")))
        return err_set(e, ERR_INVALID,
                       "the body is no ConversionReview of " REVIEW_GROUP "v1 or v1beta1");
    if (json_type(json_get(root, "request")) != JSON_OBJECT)
        return err_set(e, ERR_INVALID, "the ConversionReview has no request");
    return 0;
}

int review_answer(struct span body, const struct review_config *config, struct buf *out,
                  struct review_verdict *ret, struct err *e)
{
    static const struct json_limits limits = { .max_bytes = REVIEW_MAX_BYTES,
                                               .max_nodes = REVIEW_NODES_MAX };
    OWN(json_doc_done) struct json_doc *doc = NULL;
    size_t start = out->n;
    struct json_out text;
    struct review r = { .config = config, .out = &text };
    struct err why;

    if (json_parse(body, &limits, &doc, e) < 0 || check(json_doc_root(doc), e) < 0)
        return -1;
    r.request = json_get(json_doc_root(doc), "request");
    r.wanted = json_str(json_get(r.request, "desiredAPIVersion"));
    begin(&text, out, json_doc_root(doc));
    *ret = (struct review_verdict){ 0 };
    if (convert_all(&r, &why) == 0) {
        ret->objects = r.i;
        return end(&text, NULL, e);
    }
    ret->is_failure = true;
    (void)snprintf(ret->why, sizeof ret->why, "%s", why.msg);
    buf_truncate(out, start); /* a failure has no objects, not even those that could be converted */
    begin(&text, out, json_doc_root(doc));
    return end(&text, ret->why, e);
}
