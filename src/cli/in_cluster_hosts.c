#include "cli/in_cluster_hosts.h"

#include "kube/names.h"
#include "net/addr.h"
#include "node/address.h"
#include "up/names.h"

#include <string.h>

#define GROUP_SANDBOX "agents.x-k8s.io/"

/* Two parts of names that end in one: the session's own services keep theirs. */
static bool is_taken(const char *name, const char *namespace)
{
    return strcmp(name, UP_ROUTER_SVC) == 0 ||
           (strcmp(name, "kubernetes") == 0 && strcmp(namespace, "default") == 0);
}

/* False: it is no sandbox's, or the name is none that a Service could have. */
static bool read_owner(const struct object *pod, struct object_owner *ret)
{
    return object_owner_controller(pod, ret) && strcmp(ret->kind, "Sandbox") == 0 &&
           span_starts(span_cstr(ret->api_version), GROUP_SANDBOX) &&
           names_check(NAMES_DNS_SUBDOMAIN, span_cstr(ret->name), NULL) &&
           names_check(NAMES_DNS_LABEL, span_cstr(object_namespace(pod)), NULL) &&
           !is_taken(ret->name, object_namespace(pod));
}

void in_cluster_hosts_add(struct buf *text, const struct object *pod)
{
    const char *said = object_text(pod, "status.podIP"), *space = object_namespace(pod);
    char ip[NET_ADDR_TEXT_BYTES];
    struct object_owner owner;
    struct net_addr at;
    struct err e;

    if (!said || object_is_deleting(pod) || !read_owner(pod, &owner) || !address_is_given(said) ||
        !net_addr_of_ip(span_cstr(said), 0, &at))
        return;
    (void)net_addr_ip_text(&at, ip);
    /* A whole line that fits, or none: there is room for some ten thousand Pods. */
    (void)buf_addf(text, &e, "%s %s.%s.svc.cluster.local %s.%s.svc %s.%s\n", ip, owner.name, space,
                   owner.name, space, owner.name, space);
}
