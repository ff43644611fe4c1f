#include "kube/kind.h"

#include "kube/schema_tables.h"

#include <string.h>

static bool is_served(const struct kind *k, const char *group, const char *version)
{
    return strcmp(k->group, group) == 0 && (!version || kind_version(k, version));
}

const struct kind *kind_find(const char *group, const char *version, const char *plural)
{
    size_t n;
    const struct kind *k = kinds_all(&n);

    for (size_t i = 0; i < n; i++)
        if (strcmp(k[i].plural, plural) == 0 && is_served(&k[i], group, version))
            return &k[i];
    return NULL;
}

const struct kind *kind_find_kind(const char *group, const char *version, const char *name)
{
    size_t n;
    const struct kind *k = kinds_all(&n);

    for (size_t i = 0; i < n; i++)
        if (strcmp(k[i].name, name) == 0 && is_served(&k[i], group, version))
            return &k[i];
    return NULL;
}

const struct kind *kind_of(struct span api_version, struct span name)
{
    size_t n;
    const struct kind *k = kinds_all(&n);

    for (size_t i = 0; i < n; i++)
        for (size_t v = 0; v < k[i].version_count; v++)
            if (span_is(name, k[i].name) &&
                span_is(api_version, kind_api_version(&k[i], &k[i].versions[v])))
                return &k[i];
    return NULL;
}

const struct kind_version *kind_version(const struct kind *k, const char *version)
{
    for (size_t i = 0; i < k->version_count; i++)
        if (strcmp(k->versions[i].name, version) == 0)
            return &k->versions[i];
    return NULL;
}

const struct kind_subresource *kind_subresource(const struct kind_version *v, const char *name)
{
    for (size_t i = 0; i < v->sub_count; i++)
        if (strcmp(v->subs[i].name, name) == 0)
            return &v->subs[i];
    return NULL;
}

/* Every group and version that is served, so that the joined text is a constant. */
#define GV(group, version)                                                                         \
    {                                                                                              \
        group, version, group "/" version                                                          \
    }
static const struct {
    const char *group, *version, *text;
} api_versions[] = {
    { "", "v1", "v1" },
    GV("apps", "v1"),
    GV("autoscaling", "v1"), /* a subresource's */
    GV("events.k8s.io", "v1"),
    GV("authentication.k8s.io", "v1"),
    GV("authorization.k8s.io", "v1"),
    GV("coordination.k8s.io", "v1"),
    GV("discovery.k8s.io", "v1"),
    GV("networking.k8s.io", "v1"),
    GV("node.k8s.io", "v1"),
    GV("policy", "v1"),
    GV("rbac.authorization.k8s.io", "v1"),
    GV("storage.k8s.io", "v1"),
    GV("apiextensions.k8s.io", "v1"),
    GV("gateway.networking.k8s.io", "v1"),
    GV("agents.x-k8s.io", "v1beta1"),
    GV("agents.x-k8s.io", "v1alpha1"),
    GV("extensions.agents.x-k8s.io", "v1beta1"),
    GV("extensions.agents.x-k8s.io", "v1alpha1"),
};

const char *kind_api_version(const struct kind *k, const struct kind_version *v)
{
    EACH(r, api_versions) {
        if (strcmp(r->group, k->group) == 0 && strcmp(r->version, v->name) == 0)
            return r->text;
    }
    assert(false && "a served group and version without a row");
}

static const struct body {
    const char *group, *version, *name;
    const struct schema_type *type;
} bodies[] = {
    { NULL, NULL, "DeleteOptions", &schema_meta_v1_DeleteOptions },
    { NULL, "v1", "Status", &schema_meta_v1_Status },
    { "autoscaling", "v1", "Scale", &schema_autoscaling_v1_Scale },
    { "policy", "v1", "Eviction", &schema_policy_v1_Eviction },
    { "", "v1", "Binding", &schema_core_v1_Binding },
    { "authentication.k8s.io", "v1", "TokenRequest", &schema_authentication_v1_TokenRequest },
};

const struct schema_type *kind_body_type(const char *group, const char *version, const char *name)
{
    EACH(r, bodies) {
        if (strcmp(r->name, name) == 0 && (!r->group || strcmp(r->group, group) == 0) &&
            (!r->version || strcmp(r->version, version) == 0))
            return r->type;
    }
    return NULL;
}
