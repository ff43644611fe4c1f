/* Any JSON as the body of any kind: checked, filled and validated. The first byte picks the kind, the second the
 * version. What is stored must be stable, and a body without issues must not change its members' types. */
#include "kube/validate.h"

#include "kube/check.h"
#include "kube/default.h"

#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_stable(const struct kind *k, const struct kind_version *v, const struct object *o)
{
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(4 * 1024 * 1024);
    struct json_node *root = object_thaw(o, NULL, ed);
    OWN(object_done) struct object *again = NULL;
    struct err e;

    if (default_object(k, v, root, &e) < 0 || object_freeze(k, o, root, &again, &e) < 0)
        return;
    if (!object_is_same(o, again)) {
        OWN(buf_done) struct buf a = BUF_INIT(1 << 22), b = BUF_INIT(1 << 22);

        (void)object_write(o, NULL, &a, &e), (void)object_write(again, NULL, &b, &e);
        fprintf(stderr, "%s %s\n%s\n", k->name, buf_cstr(&a), buf_cstr(&b));
        abort();
    }
}

static void judge(const struct kind *k, const struct kind_version *v, const struct json_doc *doc)
{
    OWN(check_issues_done) struct check_issues issues = CHECK_ISSUES_INIT;
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(4 * 1024 * 1024);
    OWN(causes_done) struct causes causes = CAUSES_INIT;
    OWN(buf_done) struct buf text = BUF_INIT(1 << 20);
    OWN(object_done) struct object *o = NULL;
    struct json_node *root = json_edit_view(ed, json_doc_root(doc));
    struct err e;

    if (check_object(v->type, json_doc_root(doc), &issues, &e) < 0)
        return;
    (void)check_issues_summary(&issues, &text, &e);
    json_node_dedupe(root);
    if (default_object(k, v, root, &e) < 0)
        return;
    default_created(k, root);
    if (object_freeze(k, NULL, root, &o, &e) < 0)
        return;
    check_stable(k, v, o);
    validate_object(&(struct validation){ k, v, o, NULL, NULL }, &causes);
    validate_object(&(struct validation){ k, v, o, o, NULL }, &causes);
    (void)causes_summary(&causes, &text, &e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct json_limits limits = { .max_bytes = 1 << 20,
                                        .max_nodes = 1 << 16,
                                        .max_depth = 64 };
    OWN(json_doc_done) struct json_doc *doc = NULL;
    const struct kind *kinds, *k;
    size_t n;
    struct err e;

    if (size < 2)
        return 0;
    kinds = kinds_all(&n);
    k = &kinds[data[0] % n];
    if (json_parse(span_of(data + 2, size - 2), &limits, &doc, &e) == 0)
        judge(k, &k->versions[data[1] % k->version_count], doc);
    return 0;
}
