/* op: one operation on objects, wherever it comes from: an HTTP request, or a controller in this process.
 *
 *     body -> checked against the schema -> defaults -> rules -> stamped -> store_write
 *
 * Owns:     nothing but its warnings. Runs to its end in one turn, on the head of the store: what it decided cannot be
 *           overtaken. Whoever lets the result leave the process waits for its commit (store_wait).
 * Used by:  the HTTP verbs (call_*.c), the client interface on the store, the garbage collector, seeds.
 * Refusals: each returns 0, or -1 with a Status as the public server words it.
 */
#ifndef SILICA_APISERVER_OP_H
#define SILICA_APISERVER_OP_H

#include "apiserver/request.h"
#include "apiserver/store.h"
#include "kube/check.h"
#include "kube/kind.h"
#include "kube/status.h"

struct user;

#define OP_MANAGER_MAX_BYTES 128

enum op_patch { OP_PATCH_JSON, OP_PATCH_MERGE, OP_PATCH_STRATEGIC, OP_PATCH_APPLY };
enum op_propagation { OP_PROPAGATION_UNSAID, OP_ORPHAN, OP_BACKGROUND, OP_FOREGROUND };

/* Does this object stand for a part of the system? */
typedef bool (*op_reserved_fn)(const struct kind *kind, const char *namespace, const char *name);

struct op {
    struct store *store;
    const struct user *user; /* who asks; NULL: the process itself, which may give every right */
    const struct kind *kind;
    const struct kind_version *version; /* of the path, in which the body is */
    const struct kind_subresource *sub; /* or NULL */
    const char *namespace, *name;       /* of the path; "" where it has none */
    const char *manager;                /* whose fields they become */
    enum check_mode fields;
    bool is_dry_run;
    bool is_forced;             /* apply: takes the fields of others */
    bool is_tracked;            /* managedFields are written already */
    op_reserved_fn is_reserved; /* what only the operator writes (reserved.h); NULL: nothing */
    bool is_deputy;             /* it writes what tenants ask for, whatever its user may */
    struct buf warnings;        /* texts, each ended by NUL; for Warning fields of the answer */
};

struct op_delete {
    enum op_propagation propagation;
    int64_t grace_s;  /* -1: the kind's own */
    const char *uid;  /* preconditions; NULL: none */
    uint64_t version; /* the same; 0: none */
    bool has_version;
};

/* The kind that keeps these objects (events.k8s.io's Event is the core one), and its number on the shelf. */
const struct kind *op_storage(const struct kind *k);
unsigned op_number(const struct kind *k);
struct shelf_key op_key(const struct op *op);

/* What is asked for, checked; op has its kind, version, namespace and name. */

/* The place makes sense; fills op->sub. `sub` is "" where there is none. 404 or 405. */
int op_place(struct op *op, enum request_verb verb, const char *sub, struct status *st);
/* The verb is one of the place's: 405. */
int op_can(const struct op *op, enum request_verb verb, struct status *st);
/* Options of a write: 422. */
struct op_options {
    enum request_verb verb;
    const char *manager; /* as named; NULL: not named */
    bool is_apply;
    bool has_force; /* it was said, whether true or false */
};
int op_check_options(const struct op_options *options, struct status *st);
/* Options of a write are an object of their own, named by the verb: st->causes is filled already. */
int op_refuse_options(enum request_verb verb, struct status *st);
/* The kind takes patches of that type: 415. */
int op_check_patch(const struct op *op, enum op_patch type, struct status *st);
/* 410: the history has moved past the version a watch had come to. Returns -1. */
int op_say_lost(const struct store *store, uint64_t version, struct status *st);

void op_warn(struct op *op, const char *fmt, ...) PRINTF(2, 3);

int op_get(struct op *op, enum store_view view, struct object **ret, struct status *st);
/* version: a resourceVersion as in a query, which must be there already; NULL or "": not said. */
int op_get_at(struct op *op, enum store_view view, const char *version, struct object **ret,
              struct status *st);
/* body: the whole object as sent. ed is the body's. *ret is the caller's, in the stored version. */
int op_create(struct op *op, struct json_edit *ed, struct json_node *body, struct object **ret,
              struct status *st);
/* What the server itself gives, from JSON that need not say its kind. 409: it is there. */
int op_create_given(struct store *store, const struct kind *kind, const char *namespace,
                    const char *json, struct status *st);
/* *ret_is_created: an apply or an update made it. */
int op_update(struct op *op, struct json_edit *ed, struct json_node *body, struct object **ret,
              struct status *st);
int op_patch(struct op *op, enum op_patch type, struct span patch, struct object **ret,
             bool *ret_is_created, struct status *st);
/* What a DeleteOptions says, of the types that its table has; texts live as long as `options`. dryRun is the op's. */
int op_delete_options(struct op *op, struct json_node *options, struct op_delete *how,
                      struct status *st);
int op_delete_propagation(struct span text, struct op_delete *how, struct status *st);
/* *ret: the object as it was last, or as it is now while finalizers hold it; *ret_is_gone says which. */
int op_delete(struct op *op, const struct op_delete *how, struct object **ret, bool *ret_is_gone,
              struct status *st);
/* One of many, found in the op's place: one that went meanwhile, or is reserved, is no fault, and *ret stays as it is. */
int op_delete_found(struct op *op, const struct object *found, const struct op_delete *how,
                    struct object **ret, struct status *st);

#endif
