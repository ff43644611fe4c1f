/* client: how everything of ours reads and writes Kubernetes objects, whoever keeps them.
 *
 *     kube_call_start(c, &(struct kube_request){ .verb = KUBE_GET, .kind = pod, .namespace = "a", .name = "b" },
 *                     on_pod, self);
 *
 * Kept by:  the store of this process (apiserver/local.h), or any API server over HTTPS (kubeclient). The same calls
 *           in the same order do the same on both; one suite of tests says so (client_suite.h).
 * Used by:  informers, leases, controllers, node, router.
 * Life:     a call or watch lives until its last callback returned: `done`, or `on_end`. That comes exactly once, also
 *           after a cancel and when the client is freed. No callback runs inside the verb that asked for it.
 * Order:    on the store, a write is seen by every later call and by watches before it is on disk: what leaves the
 *           process waits for the disk, reconcilers do not (store.h). If the disk then fails, watches end with 410.
 * Threads:  the loop's.
 */
#ifndef SILICA_KUBE_CLIENT_H
#define SILICA_KUBE_CLIENT_H

#include "kube/kind.h"
#include "kube/object.h"
#include "kube/status.h"

struct ev_loop;
struct kube_client;
struct kube_call;
struct kube_watch;

enum kube_verb {
    KUBE_GET,
    KUBE_LIST,
    KUBE_CREATE,
    KUBE_UPDATE,
    KUBE_PATCH,
    KUBE_DELETE,
    KUBE_DELETE_COLLECTION,
};

enum kube_patch { KUBE_PATCH_JSON, KUBE_PATCH_MERGE, KUBE_PATCH_STRATEGIC, KUBE_PATCH_APPLY };
enum kube_propagation { KUBE_PROPAGATION_UNSAID, KUBE_ORPHAN, KUBE_BACKGROUND, KUBE_FOREGROUND };

/* Zeroes and NULLs are what the API calls absent. Everything is copied, objects are referenced. */
struct kube_request {
    enum kube_verb verb;
    const struct kind *kind;
    const char *version;   /* in which objects and patches are said; NULL: the stored one */
    const char *namespace; /* of a list: NULL is all of them */
    const char *name;
    const char *sub; /* "status", "scale", "token", "eviction" */
    /* create, update; of a subresource whose body is another kind: `body` instead */
    struct object *object;
    struct span body; /* JSON: a patch, or a subresource's body */
    enum kube_patch patch;
    const char *manager; /* fieldManager; NULL: the client's own name. An apply must name one */
    bool is_forced;      /* apply */
    bool is_lax; /* fieldValidation=Ignore: unknown fields go unsaid, and are not looked for */
    bool is_dry_run;
    /* list, delete collection */
    const char *labels, *fields; /* selectors */
    uint64_t limit;
    const char *next;       /* answer.next of the page before */
    const char *at_version; /* resourceVersion of a list or get: "0" may be old; NULL: the newest */
    /* delete */
    const char *uid;       /* preconditions */
    uint64_t only_version; /* the same: resourceVersion; 0: none */
    enum kube_propagation propagation;
    const int64_t *grace_s;
};

/* Borrowed for the callback; object_ref what is kept. */
struct kube_answer {
    /* NULL: it was done. code 0: no answer came, and it may or may not have been done (transport, cancel). */
    const struct status *refusal;
    /* The object as it is now. Of a delete: as it was last, or while finalizers hold it as it is; NULL where the server
     * answered with a Status. Of a list: NULL. */
    struct object *object;
    /* Bodies that are no object of a known kind: Scale, TokenRequest. NULL otherwise. */
    const struct json *body;
    struct object *const *items; /* of a list; a delete of many tells none */
    size_t item_count;
    uint64_t version; /* of a list: watch from here */
    const char *next; /* of a list: there is more; NULL: this was all */
};

typedef void (*kube_done_fn)(void *ctx, const struct kube_answer *answer);

/* Never fails here: what is wrong arrives in `done`. */
struct kube_call *kube_call_start(struct kube_client *c, const struct kube_request *rq,
                                  kube_done_fn done, void *ctx);
void kube_call_cancel(struct kube_call *call);

enum kube_event { KUBE_ADDED, KUBE_MODIFIED, KUBE_DELETED, KUBE_BOOKMARK };

struct kube_watch_spec {
    const struct kind *kind;
    const char *version;         /* as in a request */
    const char *namespace;       /* NULL: all */
    const char *labels, *fields; /* selectors */
    uint64_t from_version;       /* the first event is the first one after this */
};

struct kube_watch_events {
    /* o is borrowed; NULL of a bookmark. `version` is where a later watch would go on. */
    void (*on_event)(void *ctx, enum kube_event type, struct object *o, uint64_t version);
    /* Last. Connections that break are made again behind the scenes, from where the watch was; so this is 410 (list
     * again), what the server refuses (403, 404), or code 0: kube_watch_stop, the client's end, a server that is not
     * believed. */
    void (*on_end)(void *ctx, const struct status *why);
};

struct kube_watch *kube_watch_start(struct kube_client *c, const struct kube_watch_spec *spec,
                                    const struct kube_watch_events *events, void *ctx);
/* No event any more; on_end comes in a later turn. */
void kube_watch_stop(struct kube_watch *w);

void kube_client_free(struct kube_client *c);
struct ev_loop *kube_client_loop(const struct kube_client *c);

/* For those who implement it: embedded as their first member, as call and watch are. */
struct kube_client_ops {
    struct kube_call *(*call)(struct kube_client *c, const struct kube_request *rq,
                              kube_done_fn done, void *ctx);
    void (*call_cancel)(struct kube_call *call);
    struct kube_watch *(*watch)(struct kube_client *c, const struct kube_watch_spec *spec,
                                const struct kube_watch_events *events, void *ctx);
    void (*watch_stop)(struct kube_watch *w);
    void (*free)(struct kube_client *c);
};
struct kube_client {
    const struct kube_client_ops *ops;
    struct ev_loop *loop;
};
struct kube_call {
    struct kube_client *client;
};
struct kube_watch {
    struct kube_client *client;
};

#endif
