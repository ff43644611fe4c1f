#include "apiserver/body.h"

#include "kube/check.h"
#include "kube/proto.h"
#include "kube/yaml.h"

#include <string.h>

struct span body_type(const struct http_exchange *x)
{
    struct span field = http_field(x, "content-type"), type;

    return span_cut(&field, ';', &type) ? span_trim(type) : SPAN_NONE;
}

static int read_yaml(struct call *c, struct span bytes, struct json_doc **ret)
{
    OWN(buf_done) struct buf repeats = BUF_INIT(YAML_REPEATS_MAX_BYTES);
    struct err e;

    if (kube_yaml_to_doc(bytes, &repeats, ret, &e) == 0)
        return 0;
    return e.code == ERR_LIMIT
               ? status_of_err(&c->status, &e)
               : status_bad_request(&c->status, "error converting YAML to JSON: %s", e.msg);
}

static int read_json(struct span bytes, struct json_doc **ret, struct status *st)
{
    struct err e;

    if (json_parse(bytes, NULL, ret, &e) == 0)
        return 0;
    return e.code == ERR_LIMIT
               ? status_of_err(st, &e)
               : status_bad_request(st, "couldn't get version/kind; json parse error: %s", e.msg);
}

/* Nothing at all is an object of which nothing is said. */
static int take_tree(struct json_doc *doc, struct json_edit *ed, struct json_node **ret,
                     struct status *st)
{
    *ret = json_edit_doc(ed, doc);
    if (json_node_type(*ret) == JSON_NULL)
        *ret = json_edit_object(ed);
    if (json_node_type(*ret) == JSON_OBJECT)
        return 0;
    return status_bad_request(st, "the body of the request is %s, not an object",
                              json_node_type_name(*ret));
}

/* What it is it says itself; the path's own check comes later. */
static int read_protobuf(struct call *c, struct span bytes, const struct schema_type *type,
                         struct json_edit *ed, struct json_node **ret)
{
    struct proto_envelope envelope;
    struct err e;

    if (proto_envelope_read(bytes, &envelope, &e) == 0 &&
        proto_object_read(type, &envelope, ed, ret, &e) == 0)
        return 0;
    if (e.code == ERR_UNSUPPORTED)
        return status_media_type(&c->status, "the body of the request was in an unknown format - "
                                             "accepted media types include: application/json, "
                                             "application/yaml");
    return e.code == ERR_LIMIT ? status_of_err(&c->status, &e)
                               : status_bad_request(&c->status, "%s", e.msg);
}

int body_read(struct call *c, struct span bytes, const struct schema_type *schema,
              struct json_edit *ed, struct json_node **ret)
{
    struct span type = body_type(c->x);
    OWN(json_doc_done) struct json_doc *doc = NULL;
    int rc;

    if (span_is_nocase(type, "application/vnd.kubernetes.protobuf"))
        return read_protobuf(c, bytes, schema, ed, ret);
    if (!type.n || span_is_nocase(type, "application/json"))
        rc = read_json(bytes, &doc, &c->status);
    else if (span_is_nocase(type, "application/yaml"))
        rc = read_yaml(c, bytes, &doc);
    else
        rc = status_media_type(
            &c->status, "the body of the request was in an unknown format - accepted media types "
                        "include: application/json, application/yaml, "
                        "application/vnd.kubernetes.protobuf");
    return rc < 0 ? -1 : take_tree(doc, ed, ret, &c->status);
}

int body_check(const struct schema_type *type, struct json_node *body, struct status *st)
{
    OWN(json_doc_done) struct json_doc *doc = NULL;
    const struct json *root = json_node_view(body);
    const char *version = strchr(type->package, '/');
    struct err e;

    if (!root) {
        if (json_node_freeze(body, &doc, &e) < 0)
            return status_of_err(st, &e);
        root = json_doc_root(doc);
    }
    if (check_object(type, root, NULL, &e) == 0)
        return 0;
    if (strcmp(type->name, "DeleteOptions") == 0) /* no kind of the path's: told without one */
        return status_bad_request(st, "%s", e.msg);
    return status_bad_request(st, "%s in version \"%s\" cannot be handled as a %s: %s", type->name,
                              version ? version + 1 : "", type->name, e.msg);
}

int body_read_as(struct call *c, struct span bytes, const struct schema_type *type,
                 struct json_edit *ed, struct json_node **ret)
{
    return body_read(c, bytes, type, ed, ret) < 0 ? -1 : body_check(type, *ret, &c->status);
}

int body_read_json(struct span bytes, const struct schema_type *type, struct json_edit *ed,
                   struct json_node **ret, struct status *st)
{
    OWN(json_doc_done) struct json_doc *doc = NULL;

    if (read_json(bytes, &doc, st) < 0 || take_tree(doc, ed, ret, st) < 0)
        return -1;
    return body_check(type, *ret, st);
}

bool body_is_bad(struct call *c, const struct err *e)
{
    if (e->code == ERR_LIMIT)
        (void)status_too_large(&c->status, CALL_BODY_MAX_BYTES);
    else
        (void)status_of_err(&c->status, e);
    return true;
}
