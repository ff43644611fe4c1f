#include "kube/kind.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* Every kind the API promises. */
static const struct row {
    const char *group, *version, *plural, *name;
    bool is_namespaced;
} rows[] = {
    { "", "v1", "namespaces", "Namespace", false },
    { "", "v1", "pods", "Pod", true },
    { "", "v1", "services", "Service", true },
    { "", "v1", "events", "Event", true },
    { "", "v1", "configmaps", "ConfigMap", true },
    { "", "v1", "secrets", "Secret", true },
    { "", "v1", "resourcequotas", "ResourceQuota", true },
    { "", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", true },
    { "", "v1", "serviceaccounts", "ServiceAccount", true },
    { "", "v1", "nodes", "Node", false },
    { "apps", "v1", "deployments", "Deployment", true },
    { "apps", "v1", "replicasets", "ReplicaSet", true },
    { "events.k8s.io", "v1", "events", "Event", true },
    { "discovery.k8s.io", "v1", "endpointslices", "EndpointSlice", true },
    { "storage.k8s.io", "v1", "storageclasses", "StorageClass", false },
    { "networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy", true },
    { "coordination.k8s.io", "v1", "leases", "Lease", true },
    { "node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", false },
    { "policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", true },
    { "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition",
      false },
    { "gateway.networking.k8s.io", "v1", "gateways", "Gateway", true },
    { "gateway.networking.k8s.io", "v1", "httproutes", "HTTPRoute", true },
    { "rbac.authorization.k8s.io", "v1", "roles", "Role", true },
    { "rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding", true },
    { "rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", false },
    { "rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", false },
    { "authentication.k8s.io", "v1", "tokenreviews", "TokenReview", false },
    { "authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", false },
    { "authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", false },
    { "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", false },
    { "authorization.k8s.io", "v1", "selfsubjectrulesreviews", "SelfSubjectRulesReview", false },
    { "agents.x-k8s.io", "v1beta1", "sandboxes", "Sandbox", true },
    { "agents.x-k8s.io", "v1alpha1", "sandboxes", "Sandbox", true },
    { "extensions.agents.x-k8s.io", "v1beta1", "sandboxclaims", "SandboxClaim", true },
    { "extensions.agents.x-k8s.io", "v1alpha1", "sandboxclaims", "SandboxClaim", true },
    { "extensions.agents.x-k8s.io", "v1beta1", "sandboxtemplates", "SandboxTemplate", true },
    { "extensions.agents.x-k8s.io", "v1alpha1", "sandboxtemplates", "SandboxTemplate", true },
    { "extensions.agents.x-k8s.io", "v1beta1", "sandboxwarmpools", "SandboxWarmPool", true },
    { "extensions.agents.x-k8s.io", "v1alpha1", "sandboxwarmpools", "SandboxWarmPool", true },
};

static void kinds_are_found(void **state)
{
    EACH(r, rows) {
        const struct kind *k = kind_find(r->group, r->version, r->plural);
        const char *api_version;

        if (!k)
            fail_msg("%s/%s %s is not served", r->group, r->version, r->plural);
        assert_string_equal(k->name, r->name);
        assert_int_equal(kind_is_namespaced(k), r->is_namespaced);
        assert_ptr_equal(kind_find_kind(r->group, r->version, r->name), k);
        api_version = kind_api_version(k, kind_version(k, r->version));
        assert_ptr_equal(kind_of(span_cstr(api_version), span_cstr(r->name)), k);
        assert_string_equal(kind_version(k, r->version)->type->name, r->name);
        assert_true(kind_version(k, r->version)->type->has_type_meta);
    }
    assert_null(kind_find("", "v2", "pods"));
    assert_null(kind_find("apps", "v1", "pods"));
    assert_null(kind_of(SPAN("v1"), SPAN("Deployment")));
}

static void every_row_is_whole(void **state)
{
    size_t n;
    const struct kind *k = kinds_all(&n);

    for (size_t i = 0; i < n; i++) {
        assert_non_null(k[i].short_names);
        assert_non_null(k[i].categories);
        for (size_t v = 0; v < k[i].version_count; v++) {
            const struct kind_version *version = &k[i].versions[v];

            assert_non_null(kind_api_version(&k[i], version));
            assert_non_null(version->type);
            assert_int_equal(version->type->is_custom, (k[i].traits & KIND_CUSTOM) != 0);
            assert_int_equal(kind_subresource(version, "scale") != NULL, version->scale != NULL);
        }
    }
}

static void fields_are_found(void **state)
{
    const struct schema_type *pod = kind_find("", "v1", "pods")->versions[0].type;
    const struct schema_field *spec = schema_field(pod, SPAN("spec"));
    const struct schema_field *containers = schema_field(spec->ref, SPAN("containers"));
    const struct schema_type *volume = schema_type("core/v1", "Volume");

    assert_int_equal(spec->pb, 2);
    assert_string_equal(spec->ref->openapi, "io.k8s.api.core.v1.PodSpec");
    assert_int_equal(containers->list, SCHEMA_LIST_MAP);
    assert_string_equal(containers->keys[0], "name");
    assert_string_equal(containers->merge_key, "name");
    assert_null(schema_field(pod, SPAN("kind")));
    /* Inlined messages are members in JSON and a message in protobuf. */
    assert_non_null(schema_field(volume, SPAN("emptyDir")));
    assert_int_equal(schema_field(volume, SPAN("emptyDir"))->pb, 0);
    assert_int_equal(volume->inlines[0].pb, 2);
    assert_null(schema_type("core/v1", "Nothing"));
}

static void bodies_are_known(void **state)
{
    assert_non_null(kind_body_type("apps", "v1", "DeleteOptions"));
    assert_non_null(kind_body_type("policy", "v1", "Eviction"));
    assert_null(kind_body_type("policy", "v1beta1", "Eviction"));
    assert_null(kind_body_type("", "v1", "Pod"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds_are_found),
        cmocka_unit_test(every_row_is_whole),
        cmocka_unit_test(fields_are_found),
        cmocka_unit_test(bodies_are_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
