/* Any JSON as YAML: what was written reads back equal, alone and as the element of a list. */
#include "kube/yaml_write.h"

#include "kube/yaml.h"

#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct json *v, struct span yaml, bool is_item)
{
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
    OWN(json_doc_done) struct json_doc *back = NULL;
    struct json_node *root;
    struct err e = { .msg = "" };
    bool is_read = kube_yaml_to_doc(yaml, NULL, &back, &e) == 0;

    if (!is_read && (e.code == ERR_LIMIT || span_starts(span_cstr(e.msg), "json: unsupported")))
        return; /* a number beyond every double has no form in YAML's JSON */
    root = is_read ? json_edit_doc(ed, back) : NULL;
    if (is_item)
        root = json_node_at(root, 0);
    if (!root || !json_node_equal_value(root, v)) {
        fprintf(stderr, "%s\n%.*s\n", e.msg, SPAN_ARG(yaml));
        abort();
    }
}

/* A number that a double cannot hold reads back as another. */
static bool has_number(const struct json *v)
{
    for (size_t i = 0; i < json_skip(v); i++)
        if (v[i].type == JSON_NUMBER)
            return true;
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct json_limits limits = { .max_bytes = 1 << 16,
                                        .max_depth = 32,
                                        .flags = JSON_REFUSE_DUPLICATES };
    OWN(buf_done) struct buf out = BUF_INIT(1 << 22);
    OWN(json_doc_done) struct json_doc *doc = NULL;
    const struct json *root;
    struct err e;

    if (json_parse(span_of(data, size), &limits, &doc, &e) < 0)
        return 0;
    root = json_doc_root(doc);
    if (kube_yaml_write(root, &out, &e) < 0)
        return 0;
    if (!has_number(root))
        check(root, buf_span(&out), false);
    buf_clear(&out);
    if (kube_yaml_write_item(root, &out, &e) == 0 && !has_number(root))
        check(root, buf_span(&out), true);
    return 0;
}
