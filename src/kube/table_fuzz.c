/* A JSONPath on the first line, any object behind it: the path finds a value of the object or nothing, and every kind makes
 * a row of it with as many cells as it has columns. */
#include "kube/table.h"

#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_row(const struct kind *k, const struct kind_version *v, const struct object *o)
{
    OWN(buf_done) struct buf out = BUF_INIT(1 << 24);
    OWN(json_doc_done) struct json_doc *doc = NULL;
    struct table_view view = { .kind = k, .version = v, .now = 1794836329 };
    const struct json *root;
    struct err e;

    if (table_write_one(&view, o, &out, &e) < 0)
        return; /* too large */
    if (json_parse(buf_span(&out), NULL, &doc, &e) < 0) {
        if (e.code == ERR_LIMIT)
            return;
        fprintf(stderr, "%s: %s\n%s\n", k->plural, e.msg, buf_cstr(&out));
        abort();
    }
    root = json_doc_root(doc);
    assert(json_count(json_get(root, "columnDefinitions")) ==
           json_count(json_get(json_at(json_get(root, "rows"), 0), "cells")));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct json_limits limits = { .max_bytes = 1 << 16, .max_nodes = 1 << 14 };
    OWN(json_doc_done) struct json_doc *doc = NULL;
    OWN_MEM char *path = NULL;
    struct span text = span_of(data, size), line;
    size_t n;
    const struct kind *kinds = kinds_all(&n);
    struct err e;

    if (!span_cut(&text, '\n', &line) || json_parse(text, &limits, &doc, &e) < 0)
        return 0;
    path = span_dup(line);
    for (size_t i = 0; i < n; i++) {
        OWN(object_done) struct object *o = NULL;

        if (object_parse(&kinds[i], json_doc_root(doc), &o, &e) < 0)
            return 0;
        if (i == 0)
            (void)json_type(table_path(o, path));
        for (size_t v = 0; v < kinds[i].version_count; v++)
            check_row(&kinds[i], &kinds[i].versions[v], o);
    }
    return 0;
}
