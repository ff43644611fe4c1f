#include "controller/blueprint.h"

#include "controller/keys.h"
#include "controller/limits.h"
#include "controller/step.h"
#include "kube/check.h"
#include "kube/default.h"

#include <string.h>

static const char *const members[] = { "podTemplate", "volumeClaimTemplates", "service" };

static const char *hash_of(char text[NAME_HASH_BYTES], const struct json *spec,
                           const char *const *names, size_t n)
{
    OWN(buf_done) struct buf bytes = BUF_INIT(BODY_MAX_BYTES);
    struct err e;

    for (size_t i = 0; i < n; i++) {
        const struct json *v = json_get(spec, names[i]);

        if (v && json_write(v, &bytes, &e) < 0)
            break; /* beyond the ceiling it counts no more; no object of the API is */
        (void)buf_addc(&bytes, '\n', &e);
    }
    return name_hash(text, buf_span(&bytes));
}

const char *blueprint_hash(char text[NAME_HASH_BYTES], const struct object *template)
{
    return hash_of(text, object_member(template, "spec"), members, LEN(members));
}

const char *blueprint_pod_hash(char text[NAME_HASH_BYTES], const struct object *template)
{
    return hash_of(text, object_member(template, "spec"), members, 1);
}

/* ---- secure defaults ---- */

static bool has_default_policy(const struct object *template)
{
    const char *management = object_text(template, "spec.networkPolicyManagement");
    const struct json *policy = object_at(template, "spec.networkPolicy");

    return (!management || strcmp(management, "Unmanaged") != 0) &&
           json_type(policy) != JSON_OBJECT;
}

/* The default policy lets nobody reach the cluster's DNS, so names are resolved by public servers. */
static void put_dns(struct json_node *pod_spec)
{
    static const char *const servers[] = { "8.8.8.8", "1.1.1.1" };
    struct json_edit *ed = json_node_edit(pod_spec);
    struct json_node *list = json_edit_array(ed);

    EACH(server, servers)
        json_node_append(list, json_edit_cstr(ed, *server));
    tree_text(pod_spec, "dnsPolicy", "None");
    json_node_set(tree_object(pod_spec, "dnsConfig"), "nameservers", list);
}

static void secure(struct json_node *pod_spec, const struct object *template)
{
    static const char *const automount = "automountServiceAccountToken";

    if (json_node_type(json_node_get(pod_spec, automount)) != JSON_BOOL)
        json_node_set(pod_spec, automount, json_edit_bool(json_node_edit(pod_spec), false));
    if (has_default_policy(template) && !json_node_str(json_node_get(pod_spec, "dnsPolicy")).n)
        put_dns(pod_spec);
}

struct json_node *blueprint_spec(struct json_edit *ed, const struct object *template)
{
    const struct json *from = object_member(template, "spec");
    struct json_node *spec = json_edit_object(ed);

    EACH(name, members) {
        const struct json *v = json_get(from, *name);

        if (v && !json_is_null(v))
            json_node_set(spec, *name, json_edit_view(ed, v));
    }
    secure(tree_object(tree_object(spec, "podTemplate"), "spec"), template);
    return spec;
}

/* ---- comparing ---- */

/* As the API would store it: empty values gone, amounts in one spelling, defaults filled in. A spec that the API would
 * not read stays as it is. */
static struct json_node *normal(struct json_edit *ed, const struct kind *kind,
                                struct json_node *spec)
{
    OWN(check_issues_done) struct check_issues issues = CHECK_ISSUES_INIT;
    OWN(json_doc_done) struct json_doc *doc = NULL;
    const struct kind_version *version = &kind->versions[0];
    struct json_node *root = json_edit_object(ed), *checked;
    struct err e;

    tree_text(root, "apiVersion", kind_api_version(kind, version));
    tree_text(root, "kind", kind->name);
    (void)tree_object(root, "metadata");
    json_node_set(root, "spec", json_node_copy(ed, spec));
    if (json_node_freeze(root, &doc, &e) < 0 ||
        check_object(version->type, json_doc_root(doc), &issues, &e) < 0)
        return spec;
    checked = json_edit_doc(ed, doc);
    if (default_object(kind, version, checked, &e) < 0)
        return spec;
    return json_node_get(checked, "spec");
}

static bool is_same_spec(struct json_edit *ed, const struct kind *kind, struct json_node *a,
                         struct json_node *b)
{
    if (json_node_equal(a, b))
        return true;
    if (!a || !b)
        return false;
    return json_node_equal(normal(ed, kind, a), normal(ed, kind, b));
}

static bool are_same_volumes(struct json_edit *ed, struct json_node *a, struct json_node *b)
{
    const struct kind *kind = known_kinds()->volume_claim;

    if (json_node_count(a) != json_node_count(b))
        return false;
    for (size_t i = 0; i < json_node_count(a); i++) {
        struct json_node *x = json_node_at(a, i), *y = json_node_at(b, i);
        struct span name = json_node_str(json_node_get(json_node_get(x, "metadata"), "name"));

        if (!span_eq(name, json_node_str(json_node_get(json_node_get(y, "metadata"), "name"))) ||
            !is_same_spec(ed, kind, json_node_get(x, "spec"), json_node_get(y, "spec")))
            return false;
    }
    return true;
}

bool blueprint_is_same(const struct object *sandbox, const struct object *template)
{
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(PASS_MAX_BYTES);
    struct json_node *want = blueprint_spec(ed, template);
    struct json_node *have = json_edit_view(ed, object_member(sandbox, "spec"));

    return json_node_equal(json_node_get(have, "service"), json_node_get(want, "service")) &&
           are_same_volumes(ed, json_node_get(have, "volumeClaimTemplates"),
                            json_node_get(want, "volumeClaimTemplates")) &&
           is_same_spec(ed, known_kinds()->pod,
                        json_node_get(json_node_get(have, "podTemplate"), "spec"),
                        json_node_get(json_node_get(want, "podTemplate"), "spec"));
}

static bool has_label(const struct object *o, const char *key, const char *value)
{
    const char *have = object_label(o, key);

    return have && strcmp(have, value) == 0;
}

bool blueprint_is_stale(const struct object *sandbox, const struct object *template)
{
    char hash[NAME_HASH_BYTES];
    struct object_owner owner;

    if (!has_label(sandbox, LABEL_TEMPLATE_REF, name_hash(hash, span_cstr(object_name(template)))))
        return true;
    if (object_owner_controller(sandbox, &owner) &&
        has_label(sandbox, LABEL_TEMPLATE_HASH, blueprint_hash(hash, template)))
        return false;
    return !blueprint_is_same(sandbox, template);
}
