/* collect_impl: what the files of the collector share; only for collect*.c. */
#ifndef SILICA_APISERVER_COLLECT_IMPL_H
#define SILICA_APISERVER_COLLECT_IMPL_H

#include "apiserver/collect.h"
#include "apiserver/op.h"
#include "apiserver/owners.h"

#define FOREGROUND "foregroundDeletion"
#define ORPHAN     "orphan"
#define IN_USE     "kubernetes.io/pvc-protection"

/* Something to be looked at. */
struct task {
    struct task *next;
    struct ref ref;
};

struct follow {
    struct collect *collect;
    struct store_watch watch;
};

struct collect {
    struct apiserver *s;
    struct follow *follows; /* one per kind */
    size_t kind_count;
    const struct kind *kinds;
    unsigned namespaces, definitions, pods, volume_claims; /* the kinds' numbers */
    struct owners owners;
    struct task *first, **last;
    struct ev_task work;
    struct ev_timer restore;
    bool is_closing;
};

/* collect.c */

/* Borrowed; NULL when it is gone, or another has its name. */
struct object *collect_get(struct collect *c, const struct ref *r);
/* In a later turn. */
void collect_look_at(struct collect *c, unsigned kind, const struct object *o);
void collect_delete(struct collect *c, unsigned kind, struct object *o, enum op_propagation how);
/* Changes the stored tree of an object; what it may become is decided by fn, false: nothing. */
void collect_change(struct collect *c, unsigned kind, struct object *o,
                    bool (*fn)(struct json_edit *ed, struct json_node *root, const void *what),
                    const void *what);

/* For collect_change: `name` holds the object no more. */
bool collect_drop_finalizer(struct json_edit *ed, struct json_node *root, const void *name);

/* collect_dependents.c: one that has owners, or is one that waits. */
void collect_dependent(struct collect *c, unsigned kind, struct object *o);
void collect_foreground(struct collect *c, unsigned kind, struct object *o);
void collect_orphan(struct collect *c, unsigned kind, struct object *o);

/* collect_volume.c: a volume claim that goes, and a Pod that is gone. */
void collect_volume_claim(struct collect *c, struct object *o);
void collect_pod_is_gone(struct collect *c, const struct object *pod);

/* collect_namespace.c: what a new one gets, and what becomes of one that ends. */
void collect_namespace(struct collect *c, struct object *o);
/* It is of what every namespace has. */
bool collect_is_furniture(const struct object *o);

#endif
