#include "apiserver/seed.h"

#include "apiserver/op.h"

#include <stdio.h>

static int put(struct apiserver *s, const char *group, const char *plural, const char *namespace,
               const char *text, struct err *e)
{
    OWN(status_done) struct status st = STATUS_INIT;
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
    OWN(json_doc_done) struct json_doc *doc = NULL;
    OWN(object_done) struct object *o = NULL;
    const struct kind *kind = kind_find(group, NULL, plural);
    struct op op = { .store = s->store,
                     .kind = kind,
                     .version = &kind->versions[0],
                     .namespace = namespace,
                     .name = "",
                     .manager = "silica" };

    if (json_parse(span_cstr(text), NULL, &doc, e) < 0)
        return -1;
    if (op_create(&op, ed, json_edit_doc(ed, doc), &o, &st) == 0 || st.code == 409)
        return 0;
    return err_set(e, ERR_INTERNAL, "cannot make %s: %s", plural, buf_cstr(&st.message));
}

int seed(struct apiserver *s, struct err *e)
{
    static const char *const namespaces[] = { "default", "kube-system", "kube-public",
                                              "kube-node-lease", "agent-sandbox-system" };
    char text[512];

    EACH(name, namespaces) {
        (void)snprintf(text, sizeof text, "{\"metadata\":{\"name\":\"%s\"}}", *name);
        if (put(s, "", "namespaces", "", text, e) < 0)
            return -1;
    }
    return 0;
}
