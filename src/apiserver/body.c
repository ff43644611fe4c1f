#include "apiserver/body.h"

struct span body_type(const struct http_exchange *x)
{
    struct span field = http_field(x, "content-type"), type;

    return span_cut(&field, ';', &type) ? span_trim(type) : SPAN_NONE;
}

int body_read(struct call *c, struct span bytes, const struct schema_type *schema,
              struct json_edit *ed, struct json_node **ret)
{
    struct span type = body_type(c->x);
    OWN(json_doc_done) struct json_doc *doc = NULL;
    struct err e;

    (void)schema;
    if (type.n && !span_is_nocase(type, "application/json"))
        return status_media_type(
            &c->status, "the body of the request was in an unknown format - accepted media types "
                        "include: application/json, application/yaml, "
                        "application/vnd.kubernetes.protobuf");
    if (json_parse(bytes, NULL, &doc, &e) < 0)
        return e.code == ERR_LIMIT
                   ? status_of_err(&c->status, &e)
                   : status_bad_request(&c->status,
                                        "couldn't get version/kind; json parse error: %s", e.msg);
    *ret = json_edit_doc(ed, doc);
    return 0;
}
