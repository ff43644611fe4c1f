/* An object and a configuration, on a line each; both kinds of kinds. Whatever they are, the apply
 * succeeds or is refused. What was applied by force is applied again without conflict and without
 * change (but for values that do not survive conversion, where somebody applied in another version);
 * an update to the same object changes nobody's fields. Conversion there and back says the same. */
#include "kube/apply.h"
#include "kube/convert.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct json_node *managed(struct json_node *object)
{
    return json_node_get(json_node_get(object, "metadata"), "managedFields");
}

static void check_again(struct apply_by *by, struct json_node *made, struct json_node *config)
{
    OWN(causes_done) struct causes conflicts = CAUSES_INIT;
    struct json_edit *ed = json_node_edit(made);
    struct json_node *again = NULL, *copy = json_node_copy(ed, made);
    struct err e = { 0 };

    by->is_forced = false;
    if (apply_config(by, made, config, &conflicts, &again, &e) == 0) {
        assert(conflicts.n == 0);
        assert(json_node_equal(again, made));
    } else {
        assert(e.code == ERR_LIMIT);
    }
    by->manager = "two";
    if (apply_track(by, made, copy, &e) == 0)
        assert(json_node_equal(managed(copy), managed(made)));
}

static void check_apply(const struct kind *kind, struct json_doc *live_doc,
                        struct json_doc *config_doc)
{
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(16 * 1024 * 1024);
    OWN(causes_done) struct causes conflicts = CAUSES_INIT;
    struct apply_by by = { .kind = kind,
                           .version = kind->versions[0].name,
                           .subresource = "",
                           .manager = "one",
                           .now = "2026-01-01T00:00:00Z",
                           .is_forced = true };
    struct json_node *live = json_edit_doc(ed, live_doc), *config = json_edit_doc(ed, config_doc),
                     *made = NULL;
    struct err e = { 0 };

    json_node_prune(live); /* what is stored has no nulls */
    if (apply_config(&by, live, config, &conflicts, &made, &e) < 0) {
        assert(e.code == ERR_PROTOCOL || e.code == ERR_INVALID || e.code == ERR_LIMIT);
        return;
    }
    if (span_find_str(json_doc_bytes(live_doc), SPAN("v1alpha1")) == SIZE_MAX)
        check_again(&by, made, json_edit_doc(ed, config_doc));
}

/* A create keeps account in a short way, unless there is an entry already. Both ways say the same. */
static void check_create(const struct kind *kind, struct json_doc *doc)
{
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(16 * 1024 * 1024);
    OWN(json_doc_done) struct json_doc *entry = NULL;
    struct apply_by by = { .kind = kind,
                           .version = kind->versions[0].name,
                           .subresource = "",
                           .manager = "one",
                           .now = "2026-01-01T00:00:00Z" };
    struct json_node *quick = json_edit_doc(ed, doc), *slow = json_edit_doc(ed, doc), *meta;
    OWN(buf_done) struct buf text = BUF_INIT(1000);
    struct err e = { 0 };

    if (json_node_type(json_node_get(quick, "metadata")) != JSON_OBJECT)
        return;
    (void)json_node_remove(json_node_get(quick, "metadata"), "managedFields");
    json_node_prune(quick);
    json_node_prune(slow);
    assert(
        buf_addf(&text, &e,
                 "[{\"manager\":\"zz\",\"operation\":\"Update\",\"apiVersion\":\"%s\",\"time\":"
                 "\"2027-01-01T00:00:00Z\",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":{\"f:\":{}}}]",
                 kind_api_version(kind, &kind->versions[0])) == 0);
    assert(json_parse(buf_span(&text), NULL, &entry, &e) == 0);
    meta = json_node_get(slow, "metadata");
    json_node_set(meta, "managedFields", json_edit_doc(ed, entry));
    if (apply_track(&by, NULL, quick, &e) < 0 || apply_track(&by, NULL, slow, &e) < 0)
        return;
    if (json_node_count(managed(slow)) == 2 || managed(quick))
        assert(json_node_equal(json_node_get(json_node_at(managed(quick), 0), "fieldsV1"),
                               json_node_get(json_node_at(managed(slow), 0), "fieldsV1")));
}

static void check_convert(const struct kind *kind, struct json_doc *doc)
{
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(16 * 1024 * 1024);
    struct json_node *there = json_edit_doc(ed, doc), *once;
    struct err e = { 0 };

    if (convert_tree(kind, "v1alpha1", "v1beta1", there, &e) < 0 ||
        convert_tree(kind, "v1beta1", "v1alpha1", there, &e) < 0)
        return;
    once = json_node_copy(ed, there);
    if (convert_tree(kind, "v1alpha1", "v1beta1", there, &e) < 0 ||
        convert_tree(kind, "v1beta1", "v1alpha1", there, &e) < 0)
        return;
    assert(json_node_equal(json_node_get(once, "spec"), json_node_get(there, "spec")));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct kind *kinds[] = {
        kind_find("", "v1", "pods"), kind_find("agents.x-k8s.io", "v1beta1", "sandboxes"),
        kind_find("extensions.agents.x-k8s.io", "v1beta1", "sandboxclaims"),
        kind_find("extensions.agents.x-k8s.io", "v1beta1", "sandboxtemplates"),
        kind_find("extensions.agents.x-k8s.io", "v1beta1", "sandboxwarmpools")
    };
    const struct json_limits refuse = { .flags = JSON_REFUSE_DUPLICATES };
    OWN(json_doc_done) struct json_doc *live = NULL, *config = NULL;
    struct span text = span_of(data, size);
    size_t line = span_find(text, '\n');
    struct err e;

    if (line == SIZE_MAX || json_parse(span_slice(text, 0, line), &refuse, &live, &e) < 0 ||
        json_parse(span_skip(text, line + 1), &refuse, &config, &e) < 0 ||
        json_type(json_doc_root(live)) != JSON_OBJECT)
        return 0;
    EACH(kind, kinds) {
        if (kind - kinds < 2)
            check_apply(*kind, live, config), check_create(*kind, live);
        else
            check_convert(*kind, live);
    }
    check_convert(kinds[1], live);
    return 0;
}
