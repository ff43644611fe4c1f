#include "apiserver/seed.h"

#include "apiserver/definition.h"
#include "apiserver/op.h"
#include "net/addr.h"

#include <stdio.h>
#include <string.h>

#define RBAC "rbac.authorization.k8s.io"

/* A row: the object as JSON, in the place that group, plural and namespace name. */
struct given {
    const char *group, *plural, *namespace, *text;
};

#define READ  "\"get\",\"list\",\"watch\""
#define WRITE "\"create\",\"delete\",\"deletecollection\",\"patch\",\"update\""
#define ROLE(name, rules)                                                                          \
    "{\"metadata\":{\"name\":\"" name                                                              \
    "\",\"labels\":{\"kubernetes.io/bootstrapping\":\"rbac-defaults\"}},\"rules\":[" rules "]}"
#define RULE(groups, resources, verbs)                                                             \
    "{\"apiGroups\":[" groups "],\"resources\":[" resources "],\"verbs\":[" verbs "]}"
#define BINDING(name, groups)                                                                       \
    "{\"metadata\":{\"name\":\"" name                                                               \
    "\",\"labels\":{\"kubernetes.io/bootstrapping\":\"rbac-defaults\"}},\"roleRef\":{\"apiGroup\":" \
    "\"" RBAC "\",\"kind\":\"ClusterRole\",\"name\":\"" name "\"},\"subjects\":[" groups "]}"
#define GROUP(name) "{\"apiGroup\":\"" RBAC "\",\"kind\":\"Group\",\"name\":\"" name "\"}"

/* What people who use a namespace read, what they change, and what only its owner may. Secrets and the ways into a Pod are
 * not for those who only look. A status is read, and written by controllers and nodes alone: what it says is believed by
 * parts that have more rights than who may write it. */
#define VIEWED VIEWED_ONCE ",\"resourcequotas\",\"resourcequotas/status\""
#define VIEWED_ONCE                                                                                               \
    "\"configmaps\",\"endpoints\",\"events\",\"namespaces\",\"persistentvolumeclaims\",\"persistentvolumeclaims/" \
    "status\",\"pods\",\"pods/log\",\"pods/status\",\"serviceaccounts\",\"services\",\"services/status\""
#define EDITED                                                                                                       \
    "\"configmaps\",\"events\",\"persistentvolumeclaims\",\"pods\",\"pods/attach\",\"pods/eviction\",\"pods/exec\"," \
    "\"pods/portforward\",\"pods/proxy\",\"secrets\",\"serviceaccounts\",\"serviceaccounts/token\",\"services\""
/* clang-format off */
#define OURS_WRITTEN "\"sandboxes\",\"sandboxes/scale\",\"sandboxtemplates\",\"sandboxclaims\",\"sandboxwarmpools\",\"sandboxwarmpools/scale\""
#define OURS         "\"sandboxes\",\"sandboxes/status\",\"sandboxes/scale\",\"sandboxtemplates\",\"sandboxclaims\",\"sandboxclaims/status\",\"sandboxwarmpools\",\"sandboxwarmpools/status\",\"sandboxwarmpools/scale\""
#define OUR_GROUPS   "\"agents.x-k8s.io\",\"extensions.agents.x-k8s.io\""
#define APPS_WRITTEN "\"deployments\",\"deployments/scale\",\"replicasets\",\"replicasets/scale\""
#define APPS         "\"deployments\",\"deployments/scale\",\"deployments/status\",\"replicasets\",\"replicasets/scale\",\"replicasets/status\""
#define VIEW_RULES_OF(viewed) \
    RULE("\"\"", viewed, READ) "," RULE("\"apps\"", APPS, READ) "," RULE(OUR_GROUPS, OURS, READ) "," \
    RULE("\"networking.k8s.io\",\"gateway.networking.k8s.io\",\"discovery.k8s.io\",\"policy\"", \
         "\"networkpolicies\",\"gateways\",\"httproutes\",\"endpointslices\",\"poddisruptionbudgets\"", READ)
/* A Gateway has a listener on port 80 made, for the whole machine: that is the operator's, as in Kubernetes. */
#define NETWORK_WRITTEN "\"networkpolicies\",\"httproutes\",\"poddisruptionbudgets\""
#define NETWORK         "\"networkpolicies\",\"gateways\",\"httproutes\",\"poddisruptionbudgets\""
#define EDIT_RULES_OF(viewed, apps, ours, network) \
    VIEW_RULES_OF(viewed) "," RULE("\"\"", EDITED, READ "," WRITE) "," RULE("\"apps\"", apps, WRITE) "," RULE(OUR_GROUPS, ours, WRITE) "," \
    RULE("\"networking.k8s.io\",\"gateway.networking.k8s.io\",\"policy\"", network, WRITE) "," \
    RULE("\"coordination.k8s.io\"", "\"leases\"", READ "," WRITE)
#define ADMIN_RULES_OF(viewed, apps, ours, network) \
    EDIT_RULES_OF(viewed, apps, ours, network) "," RULE("\"" RBAC "\"", "\"roles\",\"rolebindings\"", READ "," WRITE) "," \
    RULE("\"authorization.k8s.io\"", "\"localsubjectaccessreviews\"", "\"create\"")
#define VIEW_RULES  VIEW_RULES_OF(VIEWED)
#define EDIT_RULES  EDIT_RULES_OF(VIEWED, APPS_WRITTEN, OURS_WRITTEN, NETWORK_WRITTEN)
#define ADMIN_RULES ADMIN_RULES_OF(VIEWED, APPS_WRITTEN, OURS_WRITTEN, NETWORK_WRITTEN)

static const struct given rows[] = {
    { RBAC, "clusterroles", "", ROLE("cluster-admin", RULE("\"*\"", "\"*\"", "\"*\"") ",{\"nonResourceURLs\":[\"*\"],\"verbs\":[\"*\"]}") },
    { RBAC, "clusterroles", "", ROLE("view", VIEW_RULES) },
    { RBAC, "clusterroles", "", ROLE("edit", EDIT_RULES) },
    { RBAC, "clusterroles", "", ROLE("admin", ADMIN_RULES) },
    { RBAC, "clusterroles", "", ROLE("system:basic-user", RULE("\"authorization.k8s.io\"", "\"selfsubjectaccessreviews\",\"selfsubjectrulesreviews\"", "\"create\"") "," RULE("\"authentication.k8s.io\"", "\"selfsubjectreviews\"", "\"create\"")) },
    { RBAC, "clusterroles", "", ROLE("system:discovery", "{\"nonResourceURLs\":[\"/api\",\"/api/*\",\"/apis\",\"/apis/*\",\"/healthz\",\"/livez\",\"/openapi\",\"/openapi/*\",\"/readyz\",\"/version\",\"/version/\"],\"verbs\":[\"get\"]}") },
    { RBAC, "clusterroles", "", ROLE("system:public-info-viewer", "{\"nonResourceURLs\":[\"/healthz\",\"/livez\",\"/readyz\",\"/version\",\"/version/\"],\"verbs\":[\"get\"]}") },
    { RBAC, "clusterrolebindings", "", BINDING("cluster-admin", GROUP("system:masters")) },
    { RBAC, "clusterrolebindings", "", BINDING("system:basic-user", GROUP("system:authenticated")) },
    { RBAC, "clusterrolebindings", "", BINDING("system:discovery", GROUP("system:authenticated")) },
    { RBAC, "clusterrolebindings", "", BINDING("system:public-info-viewer", GROUP("system:authenticated") "," GROUP("system:unauthenticated")) },
    { "storage.k8s.io", "storageclasses", "", "{\"metadata\":{\"name\":\"standard\",\"annotations\":{\"storageclass.kubernetes.io/is-default-class\":\"true\"}},\"provisioner\":\"silica.dev/directory\",\"reclaimPolicy\":\"Delete\",\"volumeBindingMode\":\"Immediate\"}" },
    { "", "services", "default", "{\"metadata\":{\"name\":\"kubernetes\",\"labels\":{\"component\":\"apiserver\",\"provider\":\"kubernetes\"}},\"spec\":{\"type\":\"ClusterIP\",\"clusterIP\":\"10.96.0.1\",\"clusterIPs\":[\"10.96.0.1\"],\"ipFamilies\":[\"IPv4\"],\"ipFamilyPolicy\":\"SingleStack\",\"ports\":[{\"name\":\"https\",\"port\":443,\"protocol\":\"TCP\",\"targetPort\":6443}]}}" },
};

/* Roles that releases gave with rules that let a status, or a Gateway, be written, or no quota be read: one that still says exactly `was` was changed by no user. */
static const struct {
    const char *name, *was, *patch;
} outdated[] = {
    { "view", "{\"rules\":[" VIEW_RULES_OF(VIEWED_ONCE) "]}", "{\"rules\":[" VIEW_RULES "]}" },
    { "edit", "{\"rules\":[" EDIT_RULES_OF(VIEWED_ONCE, APPS, OURS, NETWORK) "]}", "{\"rules\":[" EDIT_RULES "]}" },
    { "edit", "{\"rules\":[" EDIT_RULES_OF(VIEWED_ONCE, APPS_WRITTEN, OURS_WRITTEN, NETWORK) "]}", "{\"rules\":[" EDIT_RULES "]}" },
    { "edit", "{\"rules\":[" EDIT_RULES_OF(VIEWED_ONCE, APPS_WRITTEN, OURS_WRITTEN, NETWORK_WRITTEN) "]}", "{\"rules\":[" EDIT_RULES "]}" },
    { "admin", "{\"rules\":[" ADMIN_RULES_OF(VIEWED_ONCE, APPS, OURS, NETWORK) "]}", "{\"rules\":[" ADMIN_RULES "]}" },
    { "admin", "{\"rules\":[" ADMIN_RULES_OF(VIEWED_ONCE, APPS_WRITTEN, OURS_WRITTEN, NETWORK) "]}", "{\"rules\":[" ADMIN_RULES "]}" },
    { "admin", "{\"rules\":[" ADMIN_RULES_OF(VIEWED_ONCE, APPS_WRITTEN, OURS_WRITTEN, NETWORK_WRITTEN) "]}", "{\"rules\":[" ADMIN_RULES "]}" },
};
/* clang-format on */

static int put(struct apiserver *s, const struct given *g, struct err *e)
{
    OWN(status_done) struct status st = STATUS_INIT;
    const struct kind *kind = kind_find(g->group, NULL, g->plural);

    if (op_create_given(s->store, kind, g->namespace, g->text, &st) == 0 || st.code == 409)
        return 0;
    return err_set(e, ERR_INTERNAL, "cannot make what is there from the start: %s: %s", g->plural,
                   buf_cstr(&st.message));
}

/* A role of an older release is given the rules of this one. */
static int renew_role(struct apiserver *s, const char *name, const char *was, const char *patch,
                      struct err *e)
{
    OWN(status_done) struct status st = STATUS_INIT;
    OWN(json_doc_done) struct json_doc *doc = NULL;
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
    OWN(object_done) struct object *renewed = NULL;
    const struct kind *kind = kind_find(RBAC, NULL, "clusterroles");
    struct shelf_key key = { op_number(kind), "", name };
    const struct object *there = store_get(s->store, STORE_HEAD, &key);
    struct op op = { .store = s->store,
                     .kind = kind,
                     .version = &kind->versions[0],
                     .namespace = "",
                     .name = name,
                     .manager = "silica" };
    struct json_node *rules;
    bool is_created;

    if (json_parse(span_cstr(was), NULL, &doc, e) < 0)
        return -1;
    rules = json_edit_view(ed, json_get(json_doc_root(doc), "rules"));
    if (!there || !json_node_equal_value(rules, object_member(there, "rules")))
        return 0;
    return op_patch(&op, OP_PATCH_MERGE, span_cstr(patch), &renewed, &is_created, &st) == 0
               ? 0
               : err_set(e, ERR_INTERNAL, "cannot bring the role '%s' up to date: %s", name,
                         buf_cstr(&st.message));
}

/* Where the Service leads: this server, as clients on this machine reach it. */
static int put_slice(struct apiserver *s, struct err *e)
{
    OWN_MEM char *host = NULL;
    struct span host_span;
    uint16_t port;
    char text[512];

    if (net_addr_split(s->address, &host_span, &port, e) < 0)
        return -1;
    host = span_dup(host_span);
    (void)snprintf(
        text, sizeof text,
        "{\"metadata\":{\"name\":\"kubernetes\",\"labels\":{\"kubernetes.io/service-name\":\"kubernetes\"}},"
        "\"addressType\":\"%s\",\"endpoints\":[{\"addresses\":[\"%s\"],\"conditions\":{\"ready\":true}}],"
        "\"ports\":[{\"name\":\"https\",\"port\":%u,\"protocol\":\"TCP\"}]}",
        strchr(host, ':') ? "IPv6" : "IPv4", host, port);
    return put(s, &(struct given){ "discovery.k8s.io", "endpointslices", "default", text }, e);
}

int seed(struct apiserver *s, struct err *e)
{
    static const char *const namespaces[] = { "default", "kube-system", "kube-public",
                                              "kube-node-lease", "agent-sandbox-system" };
    char text[512];

    EACH(name, namespaces) {
        (void)snprintf(text, sizeof text, "{\"metadata\":{\"name\":\"%s\"}}", *name);
        if (put(s, &(struct given){ "", "namespaces", "", text }, e) < 0)
            return -1;
    }
    EACH(g, rows) {
        if (put(s, g, e) < 0)
            return -1;
    }
    EACH(role, outdated) {
        if (renew_role(s, role->name, role->was, role->patch, e) < 0)
            return -1;
    }
    return definition_seed(s->store, e) < 0 ? -1 : put_slice(s, e);
}
