#include "controller/volume.h"

#include "controller/keys.h"
#include "controller/names.h"
#include "controller/pod.h"

static struct step make(const struct object *sandbox, const struct json *template, const char *hash,
                        struct json_edit *ed)
{
    const struct json *from = json_get(template, "metadata");
    struct step step = step_create(ed, known_kinds()->volume_claim, object_namespace(sandbox),
                                   volume_claim_name(ed, template, sandbox));
    struct json_node *meta = tree_object(step.body, "metadata"), *owners;

    if (json_count(json_get(from, "annotations")))
        json_node_set(meta, "annotations", json_edit_view(ed, json_get(from, "annotations")));
    if (json_count(json_get(from, "labels")))
        json_node_set(meta, "labels", json_edit_view(ed, json_get(from, "labels")));
    tree_text(tree_object(meta, "labels"), LABEL_TRACKING, hash);
    owners = json_node_set(meta, "ownerReferences", json_edit_array(ed));
    json_node_append(owners, owner_reference(ed, sandbox));
    json_node_set(step.body, "spec", json_edit_view(ed, json_get(template, "spec")));
    return step;
}

int volume_decide(const struct object *sandbox, const struct json *template,
                  const struct object *have, struct json_edit *ed, struct step *ret, struct err *e)
{
    char hash[NAME_HASH_BYTES];

    (void)name_hash(hash, span_cstr(object_name(sandbox)));
    if (!have) {
        *ret = make(sandbox, template, hash, ed);
        return 0;
    }
    switch (ownership_of(have, sandbox)) {
    case OWNED:
        *ret = (struct step){ 0 };
        return 0;
    case FOREIGN:
        return err_foreign(e, "PVC", have, sandbox);
    case UNOWNED:
        if (!may_adopt(have, hash))
            return err_unowned(e, "PVC", have, sandbox);
        *ret = step_patch_locked(ed, have);
        json_node_set(tree_object(ret->body, "metadata"), "ownerReferences",
                      owner_references_with(ed, have, sandbox));
        return 0;
    }
    return err_set(e, ERR_INTERNAL, "an owner that is none of the three");
}
