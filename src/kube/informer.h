/* informer: a copy of the objects of one kind that is kept up by a watch, with indexes, shared by any number of
 * listeners.
 *
 *     static const struct informer_index by[] = { { informer_keys_owner, NULL, false } };
 *     informer_new(client, &(struct informer_spec){ .kind = pods, .indexes = by, .index_count = 1 }, &inf, e);
 *     informer_listen(inf, &listener, self);
 *     informer_start(inf);
 *
 *     OWN(informer_walk_done) struct informer_walk w = { 0 };
 *     informer_walk(&w, inf, 0, "default", uid);
 *     while ((pod = informer_walk_next(&w)))
 *
 * Owns:     a reference to each object, one entry for it, and its places in the indexes.
 * Borrowed: what a get or a walk gives lives until the callback returns in which it was asked for, also when the copy
 *           changes meanwhile; object_ref what is kept longer. Walks may be under way while the copy changes: they
 *           give each object that stayed once, and none that is gone.
 * Order:    the copy changes first, listeners hear of it in a later turn, each of every change in order. So what a
 *           listener finds in the copy is as new as what it is told, or newer.
 * Versions: are compared as numbers. What informer_learn put in stays until the watch has something newer.
 * Faults:   refusals and a version that is too old (410) lead to another list, after a back-off with jitter; listeners
 *           are told the difference. The copy stays readable meanwhile. The log has one line per reason, and one when it
 *           is over.
 * Threads:  the loop's.
 */
#ifndef SILICA_KUBE_INFORMER_H
#define SILICA_KUBE_INFORMER_H

#include "kube/client.h"

struct informer;
struct informer_keys;

/* Of one object, over all indexes. What is beyond is in no index, and a line in the log. */
#define INFORMER_KEYS_MAX 64
/* Objects in one answer of a list. */
#define INFORMER_PAGE 500

/* Says under which keys an object is found: calls informer_key for each. */
typedef void (*informer_keys_fn)(struct informer_keys *out, const struct object *o,
                                 const void *arg);

struct informer_index {
    informer_keys_fn keys;
    const void *arg;
    bool
        is_global; /* a key is the same in all namespaces; else it counts in the object's own only */
};

/* The text is copied. */
void informer_key(struct informer_keys *out, const char *text);

/* Ready ones. Of a namespace: walk with the key "". */
void informer_keys_namespace(struct informer_keys *out, const struct object *o, const void *arg);
/* The uid of the owner that manages it. */
void informer_keys_owner(struct informer_keys *out, const struct object *o, const void *arg);
/* The value of the label that arg names. */
void informer_keys_label(struct informer_keys *out, const struct object *o, const void *arg);
/* The text at the path that arg is: "spec.nodeName". */
void informer_keys_path(struct informer_keys *out, const struct object *o, const void *arg);

/* What is kept of an object: a new reference, to it or to one with less. Name, uid and version must stay. */
typedef struct object *(*informer_trim_fn)(struct object *o);
/* Without managedFields, and lean (object_lean). Not for objects that the store of this process shares with us: it would
 * cost memory. */
struct object *informer_trim_managed(struct object *o);

struct informer_spec {
    const struct kind *kind;
    const char *version;         /* as in a request */
    const char *namespace;       /* NULL: all */
    const char *labels, *fields; /* selectors */
    informer_trim_fn trim;       /* NULL: everything is kept */
    const struct informer_index
        *indexes; /* borrowed as long as the informer lives; known by their place */
    size_t index_count;
};

/* Nothing is asked for yet. The client must outlive it. Fails for selectors that cannot be read. */
int informer_new(struct kube_client *client, const struct informer_spec *spec,
                 struct informer **ret, struct err *e);
void informer_start(struct informer *inf);
/* No callback any more; frees it once nothing of it is under way. All walks must be over. */
void informer_close(struct informer *inf);

/* Objects are borrowed for the call. Any of them may be NULL. */
struct informer_listener {
    /* is_initial: it was there before the listener was, or before the first list. */
    void (*on_add)(void *ctx, struct object *o, bool is_initial);
    void (*on_update)(void *ctx, struct object *old, struct object *now);
    /* The last that was known of it: what happened during a relist is not. */
    void (*on_delete)(void *ctx, struct object *last);
    /* Everything that was there has been told. Once. */
    void (*on_synced)(void *ctx);
};
/* Hears first of all that is there, then of every change, until the informer is closed. *listener is copied. */
void informer_listen(struct informer *inf, const struct informer_listener *listener, void *ctx);

/* The first list has arrived whole. */
bool informer_is_synced(const struct informer *inf);
/* The last list or watch was refused, and it waits to ask again: the copy grows old. *ret_failures: refusals so far. */
bool informer_is_failing(const struct informer *inf, uint64_t *ret_failures);
size_t informer_count(const struct informer *inf);
/* Borrowed (see above), or NULL. namespace "" for kinds that have none. */
struct object *informer_get(const struct informer *inf, const char *namespace, const char *name);
/* How many a walk would give. */
size_t informer_count_of(const struct informer *inf, size_t index, const char *namespace,
                         const char *key);

struct informer_place;

struct informer_walk {
    struct informer *inf;
    struct informer_walk *next, **link; /* the walks under way */
    struct informer_place *at;          /* what the next step gives */
};

/* Objects under the key, in no order. namespace: of the objects; not looked at for a global index. */
void informer_walk(struct informer_walk *w, struct informer *inf, size_t index,
                   const char *namespace, const char *key);
/* All objects. */
void informer_walk_all(struct informer_walk *w, struct informer *inf);
/* NULL at the end. */
struct object *informer_walk_next(struct informer_walk *w);
/* Ends a walk, also in the middle. */
void informer_walk_done(struct informer_walk *w);

/* Copies the next objects of a walk over all, at most `count`, to where the heap has room now, and says how many there were:
 * after a burst their pages are half empty, and what is left of them can go back to the system. Not while a borrowed object is
 * in use, and only where trim made the copies lean: nothing is shared with others. */
size_t informer_pack(struct informer_walk *w, size_t count);

/* The answer to a write of our own: it is in the copy at once, so that the next look does not see what was before.
 * Nothing happens when the watch is past it. An object that the selectors leave out goes from the copy. */
void informer_learn(struct informer *inf, struct object *o);

#endif
