/* openapi_impl: parts of the writer. Private to kube/openapi*.c. */
#ifndef SILICA_KUBE_OPENAPI_IMPL_H
#define SILICA_KUBE_OPENAPI_IMPL_H

#include "base/json.h"
#include "kube/kind.h"

struct openapi_writer {
    struct json_out *o;
    bool is_v3;
    bool is_custom; /* inside a custom kind: scalars are told in place */
};

/* Types that a document needs: those given, and what they refer to. */
struct openapi_types {
    bool *is_wanted; /* one per type of the tables */
    size_t count;
};

void openapi_types_init(struct openapi_types *t);
void openapi_types_done(struct openapi_types *t);
void openapi_types_add(struct openapi_types *t, const struct schema_type *type);

void openapi_text(const struct openapi_writer *w, const char *name, const char *text);
/* {"$ref":"..."} to a type by its name in OpenAPI. */
void openapi_ref(const struct openapi_writer *w, const char *name);
/* "group", "kind", "version" as members of an object. */
void openapi_gvk(const struct openapi_writer *w, const char *group, const char *version,
                 const char *kind);
/* Definitions of all wanted types, of the lists of the kinds given, and of the scalars they use. */
void openapi_schemas(const struct openapi_writer *w, const struct openapi_types *t,
                     const struct kind *const *kinds, const char *const *versions, size_t n);
/* The paths of one kind in one version, as members of "paths". */
void openapi_paths(const struct openapi_writer *w, const struct kind *k,
                   const struct kind_version *v);
/* "io.k8s.api.core.v1.PodList" */
const char *openapi_list_name(const struct kind_version *v, char text[256]);

#endif
