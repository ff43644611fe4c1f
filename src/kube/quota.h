/* quota: what a ResourceQuota counts: how much of a resource one object has.
 *
 *     quota_measure_of("requests.cpu") -> a measure -> quota_amount(measure, pod)
 *
 * Owns:     nothing. A measure borrows its texts from the name it was made of.
 * Used by:  the rules of the kind (validate_quota.c), and the API server, which adds up what a namespace has.
 */
#ifndef SILICA_KUBE_QUOTA_H
#define SILICA_KUBE_QUOTA_H

#include "kube/kind.h"
#include "kube/object.h"
#include "kube/quantity.h"

enum quota_what {
    QUOTA_NOTHING,    /* a name of the API of which nothing is here */
    QUOTA_OBJECTS,    /* count/pods, secrets: each object */
    QUOTA_PODS,       /* pods: those that have not ended */
    QUOTA_COMPUTE,    /* limits.cpu: what such Pods ask for */
    QUOTA_CLAIMS,     /* claims of one storage class */
    QUOTA_STORAGE,    /* what claims ask for */
    QUOTA_NODE_PORTS, /* of Services */
    QUOTA_BALANCERS,
};

struct quota_measure {
    enum quota_what what;
    const struct kind *kind; /* whose objects have it; NULL: nothing has */
    struct span class;       /* only claims of this storage class */
    struct span name;        /* compute: "cpu" */
    bool is_limit;           /* compute: of limits, else of requests */
};

/* False: a quota of this name is never used up, as nothing served here can have it. */
bool quota_measure_of(struct span resource, struct quota_measure *ret);
struct quantity quota_amount(const struct quota_measure *m, const struct object *o);
/* The object is one that the quota's scopes speak of. */
bool quota_matches(const struct json *spec, const struct object *o);
/* Each container of a Pod has to say this one, as else nobody would know what it takes. */
bool quota_must_be_said(const struct quota_measure *m);
/* What a container, or the whole Pod, says of it; NULL: nothing. */
const struct json *quota_said(const struct quota_measure *m, const struct json *resources);

#endif
