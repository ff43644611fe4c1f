/* keeper_impl: the keeper's parts, for its files: keeper.c (the whole), keeper_client.c (who asks), keeper_box.c (what is
 * kept), keeper_spawn.c (who makes it). */
#ifndef SILICA_ISOLATE_KEEPER_IMPL_H
#define SILICA_ISOLATE_KEEPER_IMPL_H

#include "ev/child.h"
#include "ev/io.h"
#include "ev/timer.h"
#include "isolate/cgroup_parent.h"
#include "isolate/dir.h"
#include "isolate/keeper.h"
#include "isolate/spawner.h"
#include "isolate/wire.h"

#include <sys/resource.h>

#define KEEPER_BUCKETS 1024

struct client;

enum kept_state {
    KEPT_QUEUED,  /* waits for the spawner */
    KEPT_MAKING,  /* the spawner is at it */
    KEPT_STARTED, /* PID 1 runs; its command not yet */
    KEPT_UP,
    KEPT_ENDED, /* PID 1 was reaped; its cgroups are still to go */
};

/* One of the two output pipes. */
struct kept_pipe {
    struct kept *box;
    int fd; /* -1: closed */
    struct ev_io io;
    struct ev_timer rest; /* a flood is read in doses */
};

/* A sandbox. */
struct kept {
    struct kept *next;       /* in its bucket */
    struct kept *next_asked; /* in the queue to the spawner */
    struct keeper *keeper;
    enum kept_state state;
    bool is_kept, has_command, is_removing, is_log_broken, has_message;
    struct buf message; /* its command's last words, as PID 1 found them (base/lastwords.h) */
    uint32_t
        ids_base; /* root's: its range of ids, or that of the one it joined; held until it is forgotten */
    uint64_t timeout_ms;
    uint64_t share;       /* of memory, where the keeper watches it (keeper_memory.c) */
    bool is_over_memory;  /* and was ended for it */
    struct buf spec_text; /* until it is made; these too: */
    int fds[SPAWNER_FDS]; /* for the spawner */
    unsigned tries;
    struct state_run run; /* its name from the beginning, the rest when it is made */
    struct ev_child child;
    struct kept_pipe out[2];
    int status_fd; /* where PID 1 tells of its command; -1 */
    struct ev_io status_io;
    struct buf status_text;
    bool has_exit; /* how its command ended, or all of it */
    struct state_exit exit;
    struct ev_timer timeout, cleaning;
    uint64_t clean_until_ms;
    struct client *creator; /* who waits for it to be up */
};

/* A caller. */
struct client {
    struct client *next;
    struct keeper *keeper;
    int fd;
    struct ev_io io;
    struct kept *waits_for; /* and reads nothing more until it is told */
    enum wire_op op;
};

struct keeper {
    const struct keeper_spec *spec;
    struct ev_loop *loop;
    struct ev_children *kids;
    struct dir dir;
    int lock_fd, listen_fd, self_pidfd;
    int engine_fd; /* an account's user namespace above all of its sandboxes', for one spawner after another; -1 */
    int cellar_fd; /* volumes in memory (cellar.h), from the first who asks on; -1 */
    struct ev_io listen_io;
    struct client *clients;
    size_t client_count, box_count;
    struct kept *buckets[KEEPER_BUCKETS];
    struct ev_timer linger;
    bool is_stopping;
    bool
        has_failed; /* to make the last sandbox: the host may forbid it to us alone, so we do not wait for the next */
    struct cgroup_parent parent; /* above all sandboxes */
    struct cgroup_parent
        killed; /* of the keeper before, which was killed: until all in it have died */
    struct ev_timer sweeping, watching;
    uint64_t
        memory_floor; /* what sandboxes leave to the machine, where no group holds them to it */
    uint64_t sweep_until_ms;
    struct rlimit files; /* as we were given it, for what the spawner makes */
    /* the spawner */
    struct ev_child spawner;
    pid_t spawner_pid; /* 0: none */
    int spawner_fd;
    struct ev_io spawner_io;
    struct ev_timer spawner_retry;
    struct err unsent; /* why the first of the queue was not sent */
    unsigned spawn_epoch;
    struct kept *queue, **queue_end; /* the first is with the spawner if it is KEPT_MAKING */
};

/* keeper.c */
void keeper_rest(struct keeper *k); /* something ended: perhaps nobody needs us any more */

/* keeper_client.c */
int client_listen(struct keeper *k, struct err *e);
void client_answer(struct client *c, const struct wire_answer *a);
void client_close_all(struct keeper *k);

/* keeper_box.c */
struct kept *kept_find(struct keeper *k, const char *name);
/* Makes its directory and asks for it; -1: it cannot be, and nothing of it is left. Takes the ask's spec text. */
int kept_create(struct keeper *k, struct wire_ask *ask, struct client *creator, struct err *e);
void kept_kill(struct kept *b);
/* The spawner's word. */
void kept_made(struct kept *b, const struct spawner_answer *answer);
/* The spawner died over it: everything anew for the next one. False: it has killed too many, or cannot be. */
bool kept_retry(struct kept *b, struct err *e);
/* Its creator has gone: what was not told to anybody is nobody's. */
void kept_disown(struct kept *b);
void kept_kill_all(struct keeper *k);

/* keeper_memory.c: where the memory of all has no cgroup */
void memory_watch_begin(struct keeper *k);
/* Of a sandbox that is asked for. */
uint64_t memory_share(const struct box_spec *spec);

/* keeper_spawn.c */
int spawner_start(struct keeper *k, struct err *e);
void spawner_enqueue(struct keeper *k, struct kept *b);
void spawner_stop(struct keeper *k);

#endif
