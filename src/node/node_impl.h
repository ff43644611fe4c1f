/* node_impl: what the files of this room share. */
#ifndef SILICA_NODE_NODE_IMPL_H
#define SILICA_NODE_NODE_IMPL_H

#include "node/node.h"

#include "isolate/cgroup_parent.h"
#include "kube/informer.h"
#include "kube/queue.h"
#include "node/address.h"
#include "node/crew.h"
#include "node/exits.h"
#include "node/images.h"
#include "node/record.h"

struct streams;
struct sockets;
struct address_demand;
struct port_conflicts;
struct identity;
struct ready;
struct hook;
struct claims;
struct disk_watch;
struct node_events;
struct tls;

/* Why a Pod failed as a whole; what it was is read back from its status. */
#define NODE_FAILED_LOST     "SandboxLost"
#define NODE_FAILED_DEADLINE "DeadlineExceeded"
#define NODE_FAILED_REFUSED  "UnexpectedAdmissionError"
#define NODE_FAILED_EVICTED  "Evicted"
extern const char *const node_fail_reasons[4];

/* Sandboxes are reached on this host only. */
#define NODE_HOST_IP "127.0.0.1"

struct node {
    struct ev_loop *loop;
    struct kube_client *client;
    struct node_events *events; /* what people are told */
    char *name;
    char *dir; /* the data directory, the engine's too */
    int dir_fd, lock_fd;
    bool is_scheduler;
    uint16_t pod_port_min;
    uint64_t pods_max;
    bool has_ids;             /* a sandbox may have more than one: we are root, or have a range */
    struct box_limits limits; /* of a sandbox that asks for none */
    struct cgroup_parent all; /* of all together; what cannot be enforced here is told once */
    struct crew *crew;
    struct exits *exits;
    struct images *images;
    struct informer *pods, *services;
    struct claims *claims;
    struct disk_watch *disk;
    struct tls *probe_tls; /* for probes over HTTPS, made when the first one asks */
    struct queue *queue;   /* NULL: it is closed */
    struct keymap by_name, by_uid;
    struct addresses addresses;
    struct streams *streams;
    struct sockets *sockets;
    struct address_demand *address_demand;
    struct port_conflicts *port_conflicts;
    struct identity *identity; /* our Node object */
    struct hook *hooks;        /* that are under way */
    struct ready *asking;      /* sandboxes that are not known to be ready yet */
    bool is_listed, has_begun, is_closing;
    struct engine_info *found; /* what stood in the engine's directory */
    size_t found_count;
    struct crew_job list_job, sweep_job;
    struct err list_error;
    char (*strays)[RUN_NAME_BYTES]; /* older attempts, to be destroyed */
    size_t stray_count;
    ev_fn started, closed;
    void *ctx, *closed_ctx;
};

/* node.c */
uint64_t node_wall_ms(void);
/* The Pod is to be looked at. */
void node_wake(struct node *n, const struct record *r);

/* ready.c: a sandbox that runs now: whoever asks is told whether it is ready. */
void ready_begin(struct record *r, size_t at);
void ready_close(struct node *n);

/* work.c: its end is told from now on, and it is looked at once more. */
void work_watch(struct record *r, size_t at);
/* work.c: one look at one Pod; it ends the work on the item. */
void work_start(void *ctx, struct queue_item *item);

#endif
