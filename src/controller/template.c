#include "controller/template.h"

#include "controller/keys.h"
#include "controller/names.h"
#include "kube/default.h"

#include <string.h>

/* What sandboxes may do where the template says nothing: be reached by the router, and reach the public internet; no
 * other Pod, no node, no metadata service, and not the cluster's DNS. */
#define DEFAULT_INGRESS                                                                            \
    "[{\"from\":[{\"namespaceSelector\":{\"matchLabels\":{\"kubernetes.io/metadata.name\":"        \
    "\"agent-sandbox-system\"}},\"podSelector\":{\"matchLabels\":{\"app\":\"sandbox-router\"}}}]}]"
#define DEFAULT_EGRESS                                                                             \
    "[{\"to\":[{\"ipBlock\":{\"cidr\":\"0.0.0.0/0\",\"except\":[\"10.0.0.0/8\",\"172.16.0.0/12\"," \
    "\"192.168.0.0/16\",\"169.254.0.0/16\"]}},{\"ipBlock\":{\"cidr\":\"::/0\",\"except\":["        \
    "\"fc00::/7\",\"fe80::/10\"]}}]}]"

const char *template_policy_name(struct json_edit *ed, const struct object *template)
{
    struct span name = span_cstr(object_name(template));

    return (const char *)json_edit_join(ed, name, SPAN("-network-policy")).p;
}

struct step template_decide_label(const struct object *template, struct json_edit *ed)
{
    const char *have = object_label(template, LABEL_TEMPLATE_REF);
    char hash[NAME_HASH_BYTES];
    struct step step = { 0 };

    (void)name_hash(hash, span_cstr(object_name(template)));
    if (object_is_deleting(template) || (have && strcmp(have, hash) == 0))
        return step;
    step = step_patch(ed, template);
    tree_text(tree_object(tree_object(step.body, "metadata"), "labels"), LABEL_TEMPLATE_REF, hash);
    return step;
}

static void put_rules(struct json_node *spec, const struct object *template)
{
    const struct json *policy = object_at(template, "spec.networkPolicy");
    struct json_edit *ed = json_node_edit(spec);

    if (json_type(policy) != JSON_OBJECT) {
        json_node_set(spec, "ingress", default_text_node(ed, DEFAULT_INGRESS));
        json_node_set(spec, "egress", default_text_node(ed, DEFAULT_EGRESS));
        return;
    }
    if (json_count(json_get(policy, "ingress")))
        json_node_set(spec, "ingress", json_edit_view(ed, json_get(policy, "ingress")));
    if (json_count(json_get(policy, "egress")))
        json_node_set(spec, "egress", json_edit_view(ed, json_get(policy, "egress")));
}

static struct step make(const struct object *template, struct json_edit *ed)
{
    struct step step = step_create(ed, known_kinds()->policy, object_namespace(template),
                                   template_policy_name(ed, template));
    struct json_node *owners = json_edit_array(ed), *types = json_edit_array(ed), *spec, *labels;
    char hash[NAME_HASH_BYTES];

    json_node_append(owners, owner_reference(ed, template));
    json_node_set(tree_object(step.body, "metadata"), "ownerReferences", owners);
    spec = tree_object(step.body, "spec");
    labels = tree_object(tree_object(spec, "podSelector"), "matchLabels");
    tree_text(labels, LABEL_TEMPLATE_REF, name_hash(hash, span_cstr(object_name(template))));
    json_node_append(types, json_edit_cstr(ed, "Ingress"));
    json_node_append(types, json_edit_cstr(ed, "Egress"));
    json_node_set(spec, "policyTypes", types);
    put_rules(spec, template);
    return step;
}

/* The server fills in defaults: what we want is compared as it would store it. */
static bool is_same_policy(struct step *want, const struct object *have, struct json_edit *ed)
{
    const struct kind *kind = object_kind(have);
    struct json_node *root = json_node_copy(ed, want->body);
    struct err e;

    if (default_object(kind, &kind->versions[0], root, &e) < 0)
        return false;
    return json_node_equal_value(json_node_get(root, "spec"), object_member(have, "spec"));
}

static struct step replace(struct step *want, const struct object *have, struct json_edit *ed)
{
    struct step step = step_update(ed, have);

    json_node_set(step.body, "spec", json_node_copy(ed, json_node_get(want->body, "spec")));
    return step;
}

int template_decide_policy(const struct object *template, const struct object *have,
                           struct json_edit *ed, struct step *ret, struct err *e)
{
    const char *management = object_text(template, "spec.networkPolicyManagement");
    enum ownership owner = have ? ownership_of(have, template) : UNOWNED;
    struct step want;

    *ret = (struct step){ 0 };
    if (management && strcmp(management, "Unmanaged") == 0) {
        if (owner == OWNED && !object_is_deleting(have))
            *ret = step_delete(have);
        return 0;
    }
    want = make(template, ed);
    if (!have) {
        *ret = want;
        return 0;
    }
    if (owner != OWNED)
        return err_set(e, ERR_CONFLICT,
                       "NetworkPolicy \"%s\" exists and is not controlled by SandboxTemplate "
                       "\"%s\": it is left alone",
                       object_name(have), object_name(template));
    if (!object_is_deleting(have) && !is_same_policy(&want, have, ed))
        *ret = replace(&want, have, ed);
    return 0;
}
