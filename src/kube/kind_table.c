/* The rows of kind.h, by group. Facts of the public API; our four kinds by their contract. */
#include "kube/kind.h"

#include "kube/schema_tables.h"

#define NAMES(...) ((const char *const[]){ __VA_ARGS__ __VA_OPT__(, ) NULL })
#define ROWS(r)    r, LEN(r)
#define ONE(...)   ((const struct kind_version[]){ __VA_ARGS__ }), 1
#define TWO(...)   ((const struct kind_version[]){ __VA_ARGS__ }), 2
#define READ_WRITE (KIND_GET | KIND_PATCH | KIND_UPDATE)

static const struct kind_subresource status_only[] = {
    { KIND_SUB_STATUS, "status", NULL, NULL, NULL, READ_WRITE },
};
static const struct kind_subresource status_and_scale[] = {
    { KIND_SUB_SCALE, "scale", "autoscaling", "v1", "Scale", READ_WRITE },
    { KIND_SUB_STATUS, "status", NULL, NULL, NULL, READ_WRITE },
};
static const struct kind_subresource namespace_subs[] = {
    { KIND_SUB_FINALIZE, "finalize", NULL, NULL, NULL, KIND_UPDATE },
    { KIND_SUB_STATUS, "status", NULL, NULL, NULL, READ_WRITE },
};
static const struct kind_subresource pod_subs[] = {
    { KIND_SUB_ATTACH, "attach", NULL, NULL, "PodAttachOptions", KIND_CREATE | KIND_GET },
    { KIND_SUB_BINDING, "binding", NULL, NULL, "Binding", KIND_CREATE },
    { KIND_SUB_EPHEMERAL, "ephemeralcontainers", NULL, NULL, NULL, READ_WRITE },
    { KIND_SUB_EVICTION, "eviction", "policy", "v1", "Eviction", KIND_CREATE },
    { KIND_SUB_EXEC, "exec", NULL, NULL, "PodExecOptions", KIND_CREATE | KIND_GET },
    { KIND_SUB_LOG, "log", NULL, NULL, NULL, KIND_GET },
    { KIND_SUB_PORTFORWARD, "portforward", NULL, NULL, "PodPortForwardOptions",
      KIND_CREATE | KIND_GET },
    { KIND_SUB_RESIZE, "resize", NULL, NULL, NULL, READ_WRITE },
    { KIND_SUB_STATUS, "status", NULL, NULL, NULL, READ_WRITE },
};
static const struct kind_subresource service_account_subs[] = {
    { KIND_SUB_TOKEN, "token", "authentication.k8s.io", "v1", "TokenRequest", KIND_CREATE },
};

static const struct kind_scale replica_scale = { "spec.replicas", "status.replicas",
                                                 "spec.selector", true };
static const struct kind_scale custom_scale = { "spec.replicas", "status.replicas",
                                                "status.selector", false };

#define READY_PATH(member) ".status.conditions[?(@.type=='Ready')]." member
#define AGE                                                                                        \
    {                                                                                              \
        "Age", "date", ".metadata.creationTimestamp"                                               \
    }

static const struct kind_column sandbox_columns[] = {
    { "Ready", "string", READY_PATH("status") },
    { "Reason", "string", READY_PATH("reason") },
    AGE,
};
static const struct kind_column claim_columns[] = {
    { "Ready", "string", READY_PATH("status") },
    { "Sandbox", "string", ".status.sandbox.name" },
    { "Reason", "string", READY_PATH("reason") },
    AGE,
};
static const struct kind_column pool_columns[] = {
    { "Ready", "integer", ".status.readyReplicas" },
    { "Desired", "integer", ".spec.replicas" },
    AGE,
};
static const struct kind_column gateway_columns[] = {
    { "Class", "string", ".spec.gatewayClassName" },
    { "Address", "string", ".status.addresses[*].value" },
    { "Programmed", "string", ".status.conditions[?(@.type==\"Programmed\")].status" },
    AGE,
};
static const struct kind_column route_columns[] = {
    { "Hostnames", "string", ".spec.hostnames" },
    AGE,
};

#define AGENTS     "agents.x-k8s.io"
#define EXTENSIONS "extensions.agents.x-k8s.io"
#define OLD(group, kind)                                                                           \
    group "/v1alpha1 " kind " is deprecated; use " group "/v1beta1 " kind " instead"

#define LEGACY KIND_NAMESPACED
#define SPECED (KIND_NAMESPACED | KIND_GENERATION)
#define OURS   (KIND_NAMESPACED | KIND_GENERATION | KIND_CUSTOM)
#define REVIEW KIND_REVIEW

/* clang-format off */
static const struct kind rows[] = {
    { "", "ConfigMap", "ConfigMapList", "configmaps", "configmap", NAMES("cm"), NAMES(), LEGACY, KIND_ALL_VERBS,
      ONE({ .name = "v1", .type = &schema_core_v1_ConfigMap }) },
    { "", "Event", "EventList", "events", "event", NAMES("ev"), NAMES(), LEGACY, KIND_ALL_VERBS,
      ONE({ .name = "v1", .type = &schema_core_v1_Event }) },
    { "", "Namespace", "NamespaceList", "namespaces", "namespace", NAMES("ns"), NAMES(), KIND_DNS_LABEL,
      KIND_ALL_VERBS & ~KIND_DELETE_COLLECTION,
      ONE({ .name = "v1", .type = &schema_core_v1_Namespace, .subs = ROWS(namespace_subs) }) },
    { "", "Node", "NodeList", "nodes", "node", NAMES("no"), NAMES(), 0, KIND_ALL_VERBS,
      ONE({ .name = "v1", .type = &schema_core_v1_Node, .subs = ROWS(status_only) }) },
    { "", "PersistentVolumeClaim", "PersistentVolumeClaimList", "persistentvolumeclaims", "persistentvolumeclaim",
      NAMES("pvc"), NAMES(), LEGACY, KIND_ALL_VERBS,
      ONE({ .name = "v1", .type = &schema_core_v1_PersistentVolumeClaim, .subs = ROWS(status_only) }) },
    { "", "Pod", "PodList", "pods", "pod", NAMES("po"), NAMES("all"), SPECED, KIND_ALL_VERBS,
      ONE({ .name = "v1", .type = &schema_core_v1_Pod, .subs = ROWS(pod_subs) }) },
    { "", "ResourceQuota", "ResourceQuotaList", "resourcequotas", "resourcequota", NAMES("quota"), NAMES(), LEGACY,
      KIND_ALL_VERBS, ONE({ .name = "v1", .type = &schema_core_v1_ResourceQuota, .subs = ROWS(status_only) }) },
    { "", "Secret", "SecretList", "secrets", "secret", NAMES(), NAMES(), LEGACY, KIND_ALL_VERBS,
      ONE({ .name = "v1", .type = &schema_core_v1_Secret }) },
    { "", "Service", "ServiceList", "services", "service", NAMES("svc"), NAMES("all"), LEGACY | KIND_DNS_1035,
      KIND_ALL_VERBS, ONE({ .name = "v1", .type = &schema_core_v1_Service, .subs = ROWS(status_only) }) },
    { "", "ServiceAccount", "ServiceAccountList", "serviceaccounts", "serviceaccount", NAMES("sa"), NAMES(), LEGACY,
      KIND_ALL_VERBS, ONE({ .name = "v1", .type = &schema_core_v1_ServiceAccount, .subs = ROWS(service_account_subs) }) },
    { "", "Binding", "", "bindings", "binding", NAMES(), NAMES(), REVIEW | KIND_NAMESPACED, KIND_CREATE,
      ONE({ .name = "v1", .type = &schema_core_v1_Binding }) },

    { "apps", "Deployment", "DeploymentList", "deployments", "deployment", NAMES("deploy"), NAMES("all"), SPECED,
      KIND_ALL_VERBS, ONE({ .name = "v1", .type = &schema_apps_v1_Deployment, .subs = ROWS(status_and_scale),
                            .scale = &replica_scale }) },
    { "apps", "ReplicaSet", "ReplicaSetList", "replicasets", "replicaset", NAMES("rs"), NAMES("all"), SPECED,
      KIND_ALL_VERBS, ONE({ .name = "v1", .type = &schema_apps_v1_ReplicaSet, .subs = ROWS(status_and_scale),
                            .scale = &replica_scale }) },

    { "events.k8s.io", "Event", "EventList", "events", "event", NAMES("ev"), NAMES(), LEGACY, KIND_ALL_VERBS,
      ONE({ .name = "v1", .type = &schema_events_v1_Event }), .storage_kind = "Event" },

    { "authentication.k8s.io", "SelfSubjectReview", "", "selfsubjectreviews", "selfsubjectreview", NAMES(), NAMES(), REVIEW,
      KIND_CREATE, ONE({ .name = "v1", .type = &schema_authentication_v1_SelfSubjectReview }) },
    { "authentication.k8s.io", "TokenReview", "", "tokenreviews", "tokenreview", NAMES(), NAMES(), REVIEW, KIND_CREATE,
      ONE({ .name = "v1", .type = &schema_authentication_v1_TokenReview }) },

    { "authorization.k8s.io", "LocalSubjectAccessReview", "", "localsubjectaccessreviews", "localsubjectaccessreview",
      NAMES(), NAMES(), REVIEW | KIND_NAMESPACED, KIND_CREATE,
      ONE({ .name = "v1", .type = &schema_authorization_v1_LocalSubjectAccessReview }) },
    { "authorization.k8s.io", "SelfSubjectAccessReview", "", "selfsubjectaccessreviews", "selfsubjectaccessreview",
      NAMES(), NAMES(), REVIEW, KIND_CREATE,
      ONE({ .name = "v1", .type = &schema_authorization_v1_SelfSubjectAccessReview }) },
    { "authorization.k8s.io", "SelfSubjectRulesReview", "", "selfsubjectrulesreviews", "selfsubjectrulesreview",
      NAMES(), NAMES(), REVIEW, KIND_CREATE,
      ONE({ .name = "v1", .type = &schema_authorization_v1_SelfSubjectRulesReview }) },
    { "authorization.k8s.io", "SubjectAccessReview", "", "subjectaccessreviews", "subjectaccessreview", NAMES(), NAMES(),
      REVIEW, KIND_CREATE, ONE({ .name = "v1", .type = &schema_authorization_v1_SubjectAccessReview }) },

    { "coordination.k8s.io", "Lease", "LeaseList", "leases", "lease", NAMES(), NAMES(), LEGACY, KIND_ALL_VERBS,
      ONE({ .name = "v1", .type = &schema_coordination_v1_Lease }) },
    { "discovery.k8s.io", "EndpointSlice", "EndpointSliceList", "endpointslices", "endpointslice", NAMES(), NAMES(), SPECED,
      KIND_ALL_VERBS, ONE({ .name = "v1", .type = &schema_discovery_v1_EndpointSlice }) },
    { "networking.k8s.io", "NetworkPolicy", "NetworkPolicyList", "networkpolicies", "networkpolicy", NAMES("netpol"),
      NAMES(), SPECED, KIND_ALL_VERBS, ONE({ .name = "v1", .type = &schema_networking_v1_NetworkPolicy }) },
    { "node.k8s.io", "RuntimeClass", "RuntimeClassList", "runtimeclasses", "runtimeclass", NAMES(), NAMES(), 0,
      KIND_ALL_VERBS, ONE({ .name = "v1", .type = &schema_node_v1_RuntimeClass }) },
    { "policy", "PodDisruptionBudget", "PodDisruptionBudgetList", "poddisruptionbudgets", "poddisruptionbudget",
      NAMES("pdb"), NAMES(), SPECED, KIND_ALL_VERBS,
      ONE({ .name = "v1", .type = &schema_policy_v1_PodDisruptionBudget, .subs = ROWS(status_only) }) },

    { "rbac.authorization.k8s.io", "ClusterRole", "ClusterRoleList", "clusterroles", "clusterrole", NAMES(), NAMES(),
      KIND_PATH_NAME, KIND_ALL_VERBS, ONE({ .name = "v1", .type = &schema_rbac_v1_ClusterRole }) },
    { "rbac.authorization.k8s.io", "ClusterRoleBinding", "ClusterRoleBindingList", "clusterrolebindings",
      "clusterrolebinding", NAMES(), NAMES(), KIND_PATH_NAME, KIND_ALL_VERBS,
      ONE({ .name = "v1", .type = &schema_rbac_v1_ClusterRoleBinding }) },
    { "rbac.authorization.k8s.io", "Role", "RoleList", "roles", "role", NAMES(), NAMES(),
      KIND_NAMESPACED | KIND_PATH_NAME, KIND_ALL_VERBS, ONE({ .name = "v1", .type = &schema_rbac_v1_Role }) },
    { "rbac.authorization.k8s.io", "RoleBinding", "RoleBindingList", "rolebindings", "rolebinding", NAMES(), NAMES(),
      KIND_NAMESPACED | KIND_PATH_NAME, KIND_ALL_VERBS, ONE({ .name = "v1", .type = &schema_rbac_v1_RoleBinding }) },

    { "storage.k8s.io", "StorageClass", "StorageClassList", "storageclasses", "storageclass", NAMES("sc"), NAMES(), 0,
      KIND_ALL_VERBS, ONE({ .name = "v1", .type = &schema_storage_v1_StorageClass }) },

    { "apiextensions.k8s.io", "CustomResourceDefinition", "CustomResourceDefinitionList", "customresourcedefinitions",
      "customresourcedefinition", NAMES("crd", "crds"), NAMES("api-extensions"), KIND_GENERATION, KIND_ALL_VERBS,
      ONE({ .name = "v1", .type = &schema_apiextensions_v1_CustomResourceDefinition, .subs = ROWS(status_only) }) },

    { "gateway.networking.k8s.io", "Gateway", "GatewayList", "gateways", "gateway", NAMES("gtw"), NAMES("gateway-api"),
      OURS, KIND_ALL_VERBS, ONE({ .name = "v1", .type = &schema_gateway_v1_Gateway, .columns = ROWS(gateway_columns),
                                  .subs = ROWS(status_only) }) },
    { "gateway.networking.k8s.io", "HTTPRoute", "HTTPRouteList", "httproutes", "httproute", NAMES(), NAMES("gateway-api"),
      OURS, KIND_ALL_VERBS, ONE({ .name = "v1", .type = &schema_gateway_v1_HTTPRoute, .columns = ROWS(route_columns),
                                  .subs = ROWS(status_only) }) },

    { AGENTS, "Sandbox", "SandboxList", "sandboxes", "sandbox", NAMES("sandbox"), NAMES(), OURS, KIND_ALL_VERBS,
      TWO({ .name = "v1beta1", .type = &schema_agents_v1beta1_Sandbox, .columns = ROWS(sandbox_columns),
            .subs = ROWS(status_only) },
          { .name = "v1alpha1", .type = &schema_agents_v1alpha1_Sandbox, .deprecation = OLD(AGENTS, "Sandbox"),
            .subs = ROWS(status_and_scale), .scale = &custom_scale }) },
    { EXTENSIONS, "SandboxClaim", "SandboxClaimList", "sandboxclaims", "sandboxclaim", NAMES("sandboxclaim"), NAMES(),
      OURS, KIND_ALL_VERBS,
      TWO({ .name = "v1beta1", .type = &schema_extensions_v1beta1_SandboxClaim, .columns = ROWS(claim_columns),
            .subs = ROWS(status_only) },
          { .name = "v1alpha1", .type = &schema_extensions_v1alpha1_SandboxClaim,
            .deprecation = OLD(EXTENSIONS, "SandboxClaim"), .subs = ROWS(status_only) }) },
    { EXTENSIONS, "SandboxTemplate", "SandboxTemplateList", "sandboxtemplates", "sandboxtemplate",
      NAMES("sandboxtemplate"), NAMES(), OURS, KIND_ALL_VERBS,
      TWO({ .name = "v1beta1", .type = &schema_extensions_v1beta1_SandboxTemplate },
          { .name = "v1alpha1", .type = &schema_extensions_v1alpha1_SandboxTemplate,
            .deprecation = OLD(EXTENSIONS, "SandboxTemplate") }) },
    { EXTENSIONS, "SandboxWarmPool", "SandboxWarmPoolList", "sandboxwarmpools", "sandboxwarmpool", NAMES("swp"), NAMES(),
      OURS, KIND_ALL_VERBS,
      TWO({ .name = "v1beta1", .type = &schema_extensions_v1beta1_SandboxWarmPool, .columns = ROWS(pool_columns),
            .subs = ROWS(status_and_scale), .scale = &custom_scale },
          { .name = "v1alpha1", .type = &schema_extensions_v1alpha1_SandboxWarmPool,
            .deprecation = OLD(EXTENSIONS, "SandboxWarmPool"), .columns = ROWS(pool_columns),
            .subs = ROWS(status_and_scale), .scale = &custom_scale }) },
};
/* clang-format on */

const struct kind *kinds_all(size_t *ret_count)
{
    *ret_count = LEN(rows);
    return rows;
}
