/* Any bytes as a Kubernetes protobuf body: refused, or an object whose stored form is stable. */
#include "kube/proto.h"

#include "kube/default.h"

#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_stable(const struct kind *k, struct json_node *root)
{
    OWN(json_doc_done) struct json_doc *first = NULL, *second = NULL;
    struct err e;

    if (default_object(k, &k->versions[0], root, &e) < 0 || json_node_freeze(root, &first, &e) < 0)
        return;
    if (default_object(k, &k->versions[0], root, &e) < 0 || json_node_freeze(root, &second, &e) < 0)
        return;
    if (!span_eq(json_doc_bytes(first), json_doc_bytes(second))) {
        fprintf(stderr, "%s\n%s\n", (const char *)json_doc_bytes(first).p,
                (const char *)json_doc_bytes(second).p);
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(4 * 1024 * 1024);
    struct json_node *root = NULL;
    struct proto_envelope env;
    const struct kind *k;
    struct err e;

    if (proto_envelope_read(span_of(data, size), &env, &e) < 0)
        return 0;
    k = kind_of(env.api_version, env.kind);
    if (!k)
        k = kind_find("", "v1", "pods");
    if (proto_object_read(k->versions[0].type, &env, ed, &root, &e) == 0)
        check_stable(k, root);
    return 0;
}
