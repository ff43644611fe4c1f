#include "router/known.h"

#include "base/log.h"
#include "kube/informer.h"
#include "kube/keymap.h"

#include <stdio.h>
#include <string.h>

#define GROUP_SANDBOX  "agents.x-k8s.io"
#define LABEL_TRACKING GROUP_SANDBOX "/sandbox-name-hash"
#define LABEL_POOL     GROUP_SANDBOX "/warm-pool-sandbox"

enum { PODS_BY_IP, PODS_BY_UID, PODS_BY_NAME };

/* A Pod that nobody answers for, as long as it is what it was. */
struct dead {
    struct keymap_node node;
    uint64_t version;
    char namespace[TARGET_NAME_BYTES], name[256];
};

struct known {
    struct picker base;
    struct known_config config;
    struct informer *pods, *sandboxes; /* NULL without a client */
    struct keymap dead;
    unsigned waiting; /* copies that are not there yet */
    struct ev_task tell;
};

/* ---- what is found how ---- */

/* Is it a sandbox's? Its group counts in any version. */
static bool owner_of(const struct object *pod, struct object_owner *ret)
{
    struct span group;

    if (!object_owner_controller(pod, ret) || strcmp(ret->kind, "Sandbox") != 0)
        return false;
    group = span_cstr(ret->api_version);
    return span_is(span_slice(group, 0, span_find(group, '/')), GROUP_SANDBOX);
}

static bool is_ready(const struct object *pod)
{
    const struct json *conditions = object_at(pod, "status.conditions");

    for (size_t i = 0; i < json_count(conditions); i++) {
        const struct json *c = json_at(conditions, i);

        if (span_is(json_str(json_get(c, "type")), "Ready"))
            return span_is(json_str(json_get(c, "status")), "True");
    }
    return false;
}

static void add_ip(struct informer_keys *out, const char *ip)
{
    char text[NET_ADDR_TEXT_BYTES];
    struct net_addr a;

    if (ip && net_addr_of_ip(span_cstr(ip), 0, &a))
        informer_key(out, net_addr_ip_text(&a, text));
}

static void keys_ip(struct informer_keys *out, const struct object *pod, const void *arg)
{
    const struct json *ips = object_at(pod, "status.podIPs");
    struct object_owner owner;

    (void)arg;
    if (!owner_of(pod, &owner))
        return;
    if (!json_count(ips))
        add_ip(out, object_text(pod, "status.podIP"));
    for (size_t i = 0; i < MIN(json_count(ips), (size_t)4); i++)
        add_ip(out, json_cstr(json_get(json_at(ips, i), "ip")));
}

static void keys_uid(struct informer_keys *out, const struct object *pod, const void *arg)
{
    struct object_owner owner;

    (void)arg;
    if (owner_of(pod, &owner) && is_ready(pod) && object_text(pod, "status.podIP"))
        informer_key(out, owner.uid);
}

static void keys_name(struct informer_keys *out, const struct object *pod, const void *arg)
{
    struct object_owner owner;

    (void)arg;
    if (owner_of(pod, &owner) && is_ready(pod) && object_text(pod, "status.podIP") &&
        !object_label(pod, LABEL_POOL))
        informer_key(out, owner.name);
}

static const struct informer_index pod_indexes[] = {
    [PODS_BY_IP] = { keys_ip, NULL, false },
    [PODS_BY_UID] = { keys_uid, NULL, false },
    [PODS_BY_NAME] = { keys_name, NULL, false },
};

/* ---- finding ---- */

static bool is_dead(const struct known *k, const struct object *pod)
{
    struct keymap_node *n = keymap_get(&k->dead, object_namespace(pod), object_name(pod));

    return n && CONTAINER(n, struct dead, node)->version == object_version(pod);
}

/* The newest under the key that is the sandbox `id` (NULL: any). */
static struct object *newest(const struct known *k, size_t index, const char *namespace,
                             const char *key, const char *id)
{
    OWN(informer_walk_done) struct informer_walk w = { 0 };
    struct object *pod, *best = NULL;
    struct object_owner owner;

    informer_walk(&w, k->pods, index, namespace, key);
    while ((pod = informer_walk_next(&w))) {
        if (id && (!owner_of(pod, &owner) || strcmp(owner.name, id) != 0))
            continue;
        if (!best || object_version(pod) > object_version(best))
            best = pod;
    }
    return best;
}

/* Cut where it does not fit; for every request, so not by printf. */
static void copy_text(char *to, size_t size, const char *text)
{
    size_t n = strnlen(text, size - 1);

    memcpy(to, text, n);
    to[n] = '\0';
}

static enum pick_verdict found(struct picked *ret, const char *source, const char *host,
                               const struct object *pod)
{
    ret->source = source;
    copy_text(ret->host, sizeof ret->host, host);
    copy_text(ret->pod, sizeof ret->pod, pod ? object_name(pod) : "");
    ret->version = pod ? object_version(pod) : 0;
    ret->uid[0] = '\0';
    return PICK_FOUND;
}

static enum pick_verdict found_pod(struct picked *ret, const char *source, const char *host,
                                   const struct object *pod, bool is_cached)
{
    const char *uid = object_uid(pod);

    (void)found(ret, source, host, is_cached ? pod : NULL);
    if (uid && strlen(uid) < sizeof ret->uid)
        copy_text(ret->uid, sizeof ret->uid, uid);
    return PICK_FOUND;
}

static enum pick_verdict find_pod(struct known *k, const struct target *t, struct picked *ret)
{
    char ip[NET_ADDR_TEXT_BYTES];
    struct object *pod;

    if (t->has_ip) {
        pod = newest(k, PODS_BY_IP, t->namespace, net_addr_ip_text(&t->ip, ip), t->id);
        return pod && object_text(pod, "status.podIP")
                   ? found_pod(ret, "pod-ip", object_text(pod, "status.podIP"), pod, false)
                   : PICK_WAITING;
    }
    pod = t->uid[0] ? newest(k, PODS_BY_UID, t->namespace, t->uid, NULL) : NULL;
    if (pod && !is_dead(k, pod))
        return found_pod(ret, "cache", object_text(pod, "status.podIP"), pod, true);
    pod = newest(k, PODS_BY_NAME, t->namespace, t->id, NULL);
    if (pod && !is_dead(k, pod))
        return found_pod(ret, "cache-name", object_text(pod, "status.podIP"), pod, true);
    return PICK_WAITING;
}

static enum pick_verdict find_unlisted(struct known *k, const struct target *t, struct picked *ret)
{
    char text[PICK_HOST_BYTES];

    if (t->has_ip)
        return found(ret, "pod-ip", net_addr_ip_text(&t->ip, text), NULL);
    (void)snprintf(text, sizeof text, "%s.%s.svc.%s", t->id, t->namespace,
                   k->config.cluster_domain);
    return found(ret, "dns", text, NULL);
}

/* The message of a condition, or "". */
static const char *message_of(const struct object *sandbox, const char *type)
{
    const struct json *conditions = object_at(sandbox, "status.conditions");

    for (size_t i = 0; i < json_count(conditions); i++) {
        const struct json *c = json_at(conditions, i);
        const char *text = json_cstr(json_get(c, "message"));

        if (text && span_is(json_str(json_get(c, "type")), type))
            return text;
    }
    return "";
}

static bool is_suspended(const struct object *sandbox)
{
    const char *mode = object_text(sandbox, "spec.operatingMode");

    return mode && strcmp(mode, "Suspended") == 0;
}

/* Why nobody was found: not ready yet, or not there. */
static enum pick_verdict missing(const struct known *k, const struct target *t,
                                 const struct object *sandbox, struct refusal *why)
{
    char ip[NET_ADDR_TEXT_BYTES];

    if (!informer_is_synced(k->pods) || !informer_is_synced(k->sandboxes))
        refusal_set(why, 503, "The router does not know the cluster's sandboxes yet.");
    else if (sandbox && t->has_ip) /* not 404: SDKs ask for the address again after a 5xx only */
        refusal_set(why, 503, "Sandbox %s in namespace %s has no Pod at %s.", t->id, t->namespace,
                    net_addr_ip_text(&t->ip, ip));
    else if (sandbox)
        refusal_set(why, 503, "Sandbox %s is not ready: %.200s", t->id,
                    message_of(sandbox, "Ready"));
    else
        refusal_set(why, 404, "Sandbox %s not found in namespace %s.", t->id, t->namespace);
    return PICK_WAITING;
}

static enum pick_verdict find(struct picker *p, const struct target *t, struct picked *ret,
                              struct refusal *why)
{
    struct known *k = CONTAINER(p, struct known, base);
    const struct object *sandbox;

    if (!k->pods)
        return find_unlisted(k, t, ret);
    sandbox = informer_get(k->sandboxes, t->namespace, t->id);
    if (sandbox && is_suspended(sandbox)) {
        refusal_set(why, 503, "Sandbox %s is suspended: %.200s", t->id,
                    message_of(sandbox, "Suspended"));
        return PICK_REFUSED;
    }
    if (find_pod(k, t, ret) == PICK_FOUND)
        return PICK_FOUND;
    return k->config.is_unlisted_allowed ? find_unlisted(k, t, ret) : missing(k, t, sandbox, why);
}

/* ---- those that do not answer ---- */

static void forget_dead(struct known *k, const struct object *pod)
{
    struct keymap_node *n = keymap_get(&k->dead, object_namespace(pod), object_name(pod));

    if (!n)
        return;
    keymap_remove(&k->dead, n);
    free(CONTAINER(n, struct dead, node));
}

static bool unreachable(struct picker *p, const struct target *t, const struct picked *at)
{
    struct known *k = CONTAINER(p, struct known, base);
    const struct object *pod =
        k->pods && at->pod[0] ? informer_get(k->pods, t->namespace, at->pod) : NULL;
    struct dead *d;

    if (!pod || object_version(pod) != at->version || is_dead(k, pod))
        return false;
    forget_dead(k, pod);
    d = NEW(struct dead);
    d->version = at->version;
    (void)snprintf(d->namespace, sizeof d->namespace, "%s", object_namespace(pod));
    (void)snprintf(d->name, sizeof d->name, "%s", object_name(pod));
    keymap_add(&k->dead, &d->node, d->namespace, d->name);
    return true;
}

/* ---- what is heard ---- */

static void on_add(void *ctx, struct object *o, bool is_initial)
{
    struct known *k = ctx;

    (void)is_initial;
    picker_changed(&k->base, object_namespace(o));
}

static void on_update(void *ctx, struct object *old, struct object *now)
{
    struct known *k = ctx;

    (void)old;
    if (k->dead.count)
        forget_dead(k, now);
    picker_changed(&k->base, object_namespace(now));
}

static void on_delete(void *ctx, struct object *last)
{
    struct known *k = ctx;

    if (k->dead.count)
        forget_dead(k, last);
}

static void tell_synced(void *ctx)
{
    struct known *k = ctx;

    k->config.synced(k->config.ctx);
}

static void on_synced(void *ctx)
{
    struct known *k = ctx;

    if (--k->waiting)
        return;
    picker_changed(&k->base, NULL);
    tell_synced(k);
}

static const struct informer_listener pod_listener = { on_add, on_update, on_delete, on_synced };
static const struct informer_listener sandbox_listener = { .on_synced = on_synced };

/* ---- life ---- */

static void free_dead(struct keymap_node *node, void *ctx)
{
    (void)ctx;
    free(CONTAINER(node, struct dead, node));
}

void known_free(struct picker *p)
{
    struct known *k;

    if (!p)
        return;
    k = CONTAINER(p, struct known, base);
    if (k->pods)
        informer_close(k->pods);
    if (k->sandboxes)
        informer_close(k->sandboxes);
    ev_post_cancel(&k->tell);
    keymap_each(&k->dead, free_dead, NULL);
    keymap_done(&k->dead);
    ev_free_later(k->base.loop, k, free);
}

static const struct picker_ops ops = { find, unreachable, known_free };

static int watch(struct known *k, struct err *e)
{
    const struct informer_spec pods = { .kind = kind_find("", "v1", "pods"),
                                        .namespace = k->config.namespace,
                                        .labels = LABEL_TRACKING,
                                        .trim = informer_trim_managed,
                                        .indexes = pod_indexes,
                                        .index_count = LEN(pod_indexes) };
    const struct informer_spec sandboxes = { .kind = kind_find(GROUP_SANDBOX, NULL, "sandboxes"),
                                             .namespace = k->config.namespace,
                                             .trim = informer_trim_managed };

    if (informer_new(k->config.client, &pods, &k->pods, e) < 0 ||
        informer_new(k->config.client, &sandboxes, &k->sandboxes, e) < 0)
        return -1;
    k->waiting = 2;
    informer_listen(k->pods, &pod_listener, k);
    informer_listen(k->sandboxes, &sandbox_listener, k);
    informer_start(k->pods);
    informer_start(k->sandboxes);
    return 0;
}

int known_new(const struct known_config *config, struct picker **ret, struct err *e)
{
    struct known *k = NEW(struct known);

    k->base.ops = &ops;
    k->base.loop = config->loop;
    k->config = *config;
    if (config->client && watch(k, e) < 0) {
        known_free(&k->base);
        return -1;
    }
    if (!config->client)
        ev_post(config->loop, &k->tell, tell_synced, k);
    *ret = &k->base;
    return 0;
}
