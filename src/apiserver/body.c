#include "apiserver/body.h"

#include "kube/proto.h"
#include "kube/yaml.h"

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

int body_read_json(struct span bytes, struct json_doc **ret, struct status *st)
{
    struct err e;

    if (json_parse(bytes, NULL, ret, &e) == 0)
        return 0;
    return e.code == ERR_LIMIT
               ? status_of_err(st, &e)
               : status_bad_request(st, "couldn't get version/kind; json parse error: %s", e.msg);
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
        rc = body_read_json(bytes, &doc, &c->status);
    else if (span_is_nocase(type, "application/yaml"))
        rc = read_yaml(c, bytes, &doc);
    else
        rc = status_media_type(
            &c->status, "the body of the request was in an unknown format - accepted media types "
                        "include: application/json, application/yaml, "
                        "application/vnd.kubernetes.protobuf");
    if (rc < 0)
        return -1;
    *ret = json_edit_doc(ed, doc);
    if (json_node_type(*ret) == JSON_NULL) /* nothing is said of any member */
        *ret = json_edit_object(ed);
    return 0;
}
