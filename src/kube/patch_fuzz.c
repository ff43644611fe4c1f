/* An object and a patch, on a line each. Whatever they are, each kind of patch is applied or refused; what
 * comes out can be written and read again. A merge patch says the same when it is said twice. */
#include "kube/kind.h"
#include "kube/patch.h"

#define TEXT_MAX_BYTES (16 * 1024 * 1024)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum how { BY_JSON, BY_MERGE, BY_STRATEGIC, HOW_COUNT };

static int apply(enum how how, struct json_node **root, const struct json *patch, struct err *e)
{
    if (how == BY_JSON)
        return patch_json(root, patch, e);
    if (how == BY_MERGE)
        return patch_merge(*root, patch, e);
    return patch_strategic(*root, kind_find("", "v1", "pods")->versions[0].type, patch, e);
}

/* The result as a document, or NULL when it was refused. */
static struct json_doc *result(enum how how, struct json_doc *object, struct json_doc *patch)
{
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(4 * 1024 * 1024);
    struct json_node *root = json_edit_doc(ed, object);
    struct json_doc *made = NULL;
    struct err e = { 0 };

    if (apply(how, &root, json_doc_root(json_edit_hold(ed, patch)), &e) < 0) {
        assert(e.code == ERR_PROTOCOL || e.code == ERR_INVALID || e.code == ERR_LIMIT);
        return NULL;
    }
    assert(!json_node_is_deeper(root, JSON_DEPTH_MAX));
    if (json_node_freeze(root, &made, &e) < 0)
        assert(e.code == ERR_LIMIT);
    return made;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct json_limits refuse = { .flags = JSON_REFUSE_DUPLICATES };
    OWN(json_doc_done) struct json_doc *object = NULL, *patch = NULL;
    struct span text = span_of(data, size);
    size_t line = span_find(text, '\n');
    struct err e;

    if (line == SIZE_MAX || json_parse(span_slice(text, 0, line), &refuse, &object, &e) < 0 ||
        json_parse(span_skip(text, line + 1), &refuse, &patch, &e) < 0 ||
        json_type(json_doc_root(object)) != JSON_OBJECT)
        return 0;
    for (int how = 0; how < HOW_COUNT; how++) {
        OWN(json_doc_done) struct json_doc *once = result((enum how)how, object, patch);
        OWN(json_doc_done) struct json_doc *twice = NULL;

        if (!once || how != BY_MERGE)
            continue;
        twice = result((enum how)how, once, patch);
        assert(twice && span_eq(json_doc_bytes(once), json_doc_bytes(twice)));
    }
    return 0;
}
