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
 * not for those who only look. */
#define VIEWED                                                                                                    \
    "\"configmaps\",\"endpoints\",\"events\",\"namespaces\",\"persistentvolumeclaims\",\"persistentvolumeclaims/" \
    "status\",\"pods\",\"pods/log\",\"pods/status\",\"serviceaccounts\",\"services\",\"services/status\""
#define EDITED                                                                                                       \
    "\"configmaps\",\"events\",\"persistentvolumeclaims\",\"pods\",\"pods/attach\",\"pods/eviction\",\"pods/exec\"," \
    "\"pods/portforward\",\"pods/proxy\",\"secrets\",\"serviceaccounts\",\"serviceaccounts/token\",\"services\""
#define OURS                                                                                                         \
    "\"sandboxes\",\"sandboxes/status\",\"sandboxes/scale\",\"sandboxtemplates\",\"sandboxclaims\",\"sandboxclaims/" \
    "status\",\"sandboxwarmpools\",\"sandboxwarmpools/status\",\"sandboxwarmpools/scale\""
#define OUR_GROUPS "\"agents.x-k8s.io\",\"extensions.agents.x-k8s.io\""
#define APPS                                                                                       \
    "\"deployments\",\"deployments/scale\",\"deployments/status\",\"replicasets\",\"replicasets/scale\",\"replicasets/status\""
#define VIEW_RULES                                                                                     \
    RULE("\"\"", VIEWED, READ)                                                                         \
    "," RULE("\"apps\"", APPS, READ) "," RULE(OUR_GROUPS, OURS, READ) "," RULE(                        \
        "\"networking.k8s.io\",\"gateway.networking.k8s.io\",\"discovery.k8s.io\",\"policy\"",         \
        "\"networkpolicies\",\"gateways\",\"httproutes\",\"endpointslices\",\"poddisruptionbudgets\"", \
        READ)
#define EDIT_RULES                                                                                  \
    VIEW_RULES                                                                                      \
    "," RULE("\"\"", EDITED, READ "," WRITE) "," RULE("\"apps\"", APPS, WRITE) "," RULE(            \
        OUR_GROUPS, OURS,                                                                           \
        WRITE) "," RULE("\"networking.k8s.io\",\"gateway.networking.k8s.io\",\"policy\"",           \
                        "\"networkpolicies\",\"gateways\",\"httproutes\",\"poddisruptionbudgets\"", \
                        WRITE) "," RULE("\"coordination.k8s.io\"", "\"leases\"", READ "," WRITE)

/* clang-format off */
static const struct given rows[] = {
    { RBAC, "clusterroles", "", ROLE("cluster-admin", RULE("\"*\"", "\"*\"", "\"*\"") ",{\"nonResourceURLs\":[\"*\"],\"verbs\":[\"*\"]}") },
    { RBAC, "clusterroles", "", ROLE("view", VIEW_RULES) },
    { RBAC, "clusterroles", "", ROLE("edit", EDIT_RULES) },
    { RBAC, "clusterroles", "", ROLE("admin", EDIT_RULES "," RULE("\"" RBAC "\"", "\"roles\",\"rolebindings\"", READ "," WRITE) "," RULE("\"authorization.k8s.io\"", "\"localsubjectaccessreviews\"", "\"create\"")) },
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
    return definition_seed(s->store, e) < 0 ? -1 : put_slice(s, e);
}
