/* Any text as YAML: it is refused, or it becomes JSON that parses to the same again. */
#include "kube/yaml.h"

#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    OWN(kube_yaml_done) struct kube_yaml *y = kube_yaml_new(span_of(data, size));
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(1024 * 1024);
    struct json_node *node = NULL;
    struct err e;

    while (kube_yaml_next(y, ed, &node, &e) > 0) {
        OWN(json_doc_done) struct json_doc *doc = NULL, *again = NULL;

        if (json_node_freeze(node, &doc, &e) < 0)
            continue; /* the edit is full */
        if (json_parse(json_doc_bytes(doc), NULL, &again, &e) < 0 ||
            !json_node_equal_value(json_edit_doc(ed, doc), json_doc_root(again))) {
            if (json_edit_is_full(ed))
                continue;
            fprintf(stderr, "%s\n", (const char *)json_doc_bytes(doc).p);
            abort();
        }
    }
    return 0;
}
