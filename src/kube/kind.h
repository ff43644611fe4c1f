/* kind: every kind the API serves, one row each.
 *
 * Owns:     nothing at run time: constants (kind_table.c).
 * Used by:  routing and discovery (names, verbs, subresources), the store (what is namespaced, what is
 *           kept), tables and OpenAPI. What an object of the kind looks like inside is schema.h.
 * Threads:  constants; a kind is known by its address.
 */
#ifndef SILICA_KUBE_KIND_H
#define SILICA_KUBE_KIND_H

#include "kube/schema.h"

enum kind_verbs {
    KIND_CREATE = 1,
    KIND_DELETE = 2,
    KIND_DELETE_COLLECTION = 4,
    KIND_GET = 8,
    KIND_LIST = 16,
    KIND_PATCH = 32,
    KIND_UPDATE = 64,
    KIND_WATCH = 128,
    KIND_ALL_VERBS = 255,
};

/* A printer column of a custom kind, as its CustomResourceDefinition has it. */
struct kind_column {
    const char *name;
    const char *type; /* "string", "integer", "date" */
    const char *path; /* JSONPath: ".status.conditions[?(@.type=='Ready')].status" */
};

/* Where a kind keeps what autoscaling/v1 Scale shows. */
struct kind_scale {
    const char *spec_replicas;   /* "spec.replicas" */
    const char *status_replicas; /* "status.replicas" */
    const char
        *selector; /* a text member ("status.selector") or a LabelSelector ("spec.selector") */
    bool is_label_selector; /* the latter */
};

enum kind_sub {
    KIND_SUB_STATUS,
    KIND_SUB_SCALE,
    KIND_SUB_LOG,
    KIND_SUB_EXEC,
    KIND_SUB_ATTACH,
    KIND_SUB_PORTFORWARD,
    KIND_SUB_EVICTION,
    KIND_SUB_BINDING,
    KIND_SUB_EPHEMERAL,
    KIND_SUB_RESIZE,
    KIND_SUB_TOKEN,
    KIND_SUB_APPROVE,
    KIND_SUB_FINALIZE,
};

/* A conversation with the Pod itself, of any length. */
static inline bool kind_sub_is_stream(enum kind_sub sub)
{
    return sub == KIND_SUB_LOG || sub == KIND_SUB_EXEC || sub == KIND_SUB_ATTACH ||
           sub == KIND_SUB_PORTFORWARD;
}

struct kind_subresource {
    enum kind_sub sub;
    const char *name;    /* as in the path: "status" */
    const char *group;   /* of the body where it is not the kind's own; else NULL */
    const char *version; /* with group */
    const char *kind;    /* of the body: "Scale", "Eviction"; NULL: the kind itself */
    unsigned verbs;      /* kind_verbs; exec and its like: create and get */
};

struct kind_version {
    const char *name;               /* "v1beta1" */
    const struct schema_type *type; /* of the object */
    const char *deprecation;        /* the text of the Warning header; or NULL */
    const struct kind_column *columns;
    size_t column_count;
    const struct kind_subresource *subs; /* custom kinds differ here by version */
    size_t sub_count;
    const struct kind_scale *scale; /* with KIND_SUB_SCALE */
};

enum kind_traits {
    KIND_NAMESPACED = 1,
    KIND_CUSTOM =
        2, /* a CustomResourceDefinition's: merge patch instead of strategic, rules of the schema */
    KIND_REVIEW = 4,     /* only created, answered, and never kept; Binding too */
    KIND_GENERATION = 8, /* metadata.generation counts changes of the spec */
    KIND_DNS_LABEL = 16, /* the name is one DNS label */
    KIND_DNS_1035 = 32,  /* the name is a DNS label that starts with a letter (Service) */
    KIND_PATH_NAME = 64, /* any name that fits in a path (RBAC) */
    KIND_EXTENSIBLE =
        128, /* names need no check beyond the path: Event's are DNS subdomains all the same */
};

struct kind {
    const char *group;     /* "" is core */
    const char *name;      /* "Pod" */
    const char *list_name; /* "PodList" */
    const char *plural;
    const char *singular;
    const char *const *short_names;      /* NULL-ended; never NULL */
    const char *const *categories;       /* the same: "all" */
    unsigned traits;                     /* kind_traits */
    unsigned verbs;                      /* kind_verbs */
    const struct kind_version *versions; /* the stored one first */
    size_t version_count;
    const char *
        storage_kind; /* another group's kind that keeps these objects (events.k8s.io Event: "Event"); or NULL */
};

/* All of them, grouped by group, core first. */
const struct kind *kinds_all(size_t *ret_count);
/* As in a path. version NULL: any. NULL when it is not served. */
const struct kind *kind_find(const char *group, const char *version, const char *plural);
/* As in an object. */
const struct kind *kind_find_kind(const char *group, const char *version, const char *name);
/* As in an object's apiVersion ("v1", "apps/v1") and kind. */
const struct kind *kind_of(struct span api_version, struct span name);
/* The version of that name, or NULL. */
const struct kind_version *kind_version(const struct kind *k, const char *version);
/* The subresource of that name, or NULL. */
const struct kind_subresource *kind_subresource(const struct kind_version *v, const char *name);
/* "apps/v1", or "v1" for core; the text lives as long as the process. */
const char *kind_api_version(const struct kind *k, const struct kind_version *v);
static inline bool kind_is_namespaced(const struct kind *k)
{
    return k->traits & KIND_NAMESPACED;
}

/* Bodies that are no kind of ours but arrive on the wire: DeleteOptions, Scale, Eviction, Binding, TokenRequest,
 * Status. NULL when unknown; group and version are not compared for DeleteOptions, which any group may send. */
const struct schema_type *kind_body_type(const char *group, const char *version, const char *name);

#endif
