/* record: what is known of one Pod: its containers, their sandboxes, its address.
 *
 * Owns:     its texts, a reference to the Pod as it was last seen, the address, the objects the Pod names.
 * Made:     when a Pod is first seen; at the node's start also from what stands in the engine's directory, so that
 *           sandboxes that run are taken over, and those of Pods that are gone are found and removed.
 * Used by:  work.c changes it, one pass at a time; streams look things up in it.
 * Threads:  the loop's.
 */
#ifndef SILICA_NODE_RECORD_H
#define SILICA_NODE_RECORD_H

#include "isolate/engine.h"
#include "kube/keymap.h"
#include "kube/object.h"
#include "node/address.h"
#include "node/life.h"
#include "node/needs.h"
#include "node/run.h"

struct node;
struct disk_pod;
struct ports;

/* How it stands with the ports at a Pod's address (ports.h). */
enum ports_state {
    PORTS_UNASKED,   /* nothing asks for them */
    PORTS_UNCLAIMED, /* they are asked for, but not before the Pod is claimed */
    PORTS_OPEN,
    PORTS_TAKEN,     /* another program has one of them; the others are open */
    PORTS_STRANGERS, /* and that may be another account's */
};

/* Beside life.v[i]. */
struct record_part {
    char name[RUN_CONTAINER_MAX_BYTES + 1];
    bool has_news;     /* its sandbox is to be looked at: it may have ended */
    bool is_unwatched; /* nobody tells of its end */
    bool was_frozen;   /* it stood still when the node started */
};

struct record {
    struct keymap_node by_name, by_uid;
    struct node *node;
    struct record *next_dropped; /* of node_free */
    char *namespace, *name, *uid;
    struct object *pod; /* NULL: the API does not have it (any more) */
    struct life_pod life;
    struct record_part *parts;
    char ip[ADDRESS_TEXT_BYTES]; /* "": none yet */
    struct ports *ports;         /* that are listened on there; NULL: none (ports.h) */
    enum ports_state ports_state;
    bool is_address_awaited; /* address_demand.h counts it */
    char *fail_message;      /* with life.failed */
    struct needs needs;      /* as they were when a container was last started */
    bool is_failure_told;    /* an Event has told of life.failed */
    uint64_t tend_ms;        /* when it is next looked after (tend.h), by the monotonic clock */
    bool has_no_volumes;     /* they are removed */
    char **in_use;           /* claims' directories that its sandboxes have (volumes_in_use.h) */
    size_t in_use_count;
    struct disk_pod *disk; /* its volumes on disk, which are measured (disk_watch.h) */
    char *evict_message;   /* it is to end for what is in them */
    bool is_pod_noted;     /* an Event has told of fields that are not served */
};

struct record *record_find(struct node *n, const char *namespace, const char *name);
struct record *record_find_uid(struct node *n, const char *uid);
/* Of a Pod; takes a reference. ERR_INVALID, ERR_LIMIT: what cannot be run here. */
int record_of_pod(struct node *n, struct object *pod, struct record **ret, struct err *e);
/* Of sandboxes whose Pod is gone: its namespace is "", its name the uid. */
struct record *record_of_orphan(struct node *n, const char *uid);
void record_free(struct record *r);

/* SIZE_MAX: there is none of that name. */
size_t record_container(const struct record *r, const char *name);
/* A sandbox that stands in the engine's directory; of one container the newest attempt first. False: an attempt that nobody
 * asks about any more, whose sandbox is to be destroyed. */
bool record_add_box(struct record *r, const struct run_id *id, const struct engine_info *info);
/* What the API says of containers that have no sandbox any more. */
void record_add_status(struct record *r);
/* What a look at a sandbox of `now` showed; info NULL: it is gone without a trace. */
void record_take_info(struct record *r, size_t at, const struct engine_info *info);
/* Takes the newest of the Pod, or that it is gone (NULL), and what that means for its life. */
void record_update(struct record *r, struct object *pod);
/* A container that runs, the first; SIZE_MAX: none does. */
size_t record_running(const struct record *r);
/* The name of the sandbox of an attempt. */
void record_box(const struct record *r, size_t at, uint32_t attempt, char name[RUN_NAME_BYTES]);
/* The container in the Pod's spec, or NULL. */
const struct json *record_spec(const struct record *r, size_t at);

#endif
