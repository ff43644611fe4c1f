/* engine: long-lived sandboxes, as a program uses them: the CLI, later the node.
 *
 *     engine_open(dir) -> engine_create(spec) -> engine_control(name), engine_pause(name), ... -> engine_destroy(name)
 *
 * A sandbox belongs to the keeper of its data directory (keeper.h), not to who made it: any process of the same account may
 * use it, and it lives until it ends, is stopped, or its keeper is killed. What is known of it stands in that directory
 * (dir.h), so listing and most verbs need no keeper at all.
 *
 * Owns:     a handle owns the data directory's descriptors and perhaps a connection. Infos are the caller's.
 * Threads:  one at a time for each handle. Everything blocks, with a deadline unless said.
 * Errors:   ERR_NOT_FOUND: no such sandbox. ERR_CLOSED: it has ended. ERR_UNAVAILABLE: no keeper, or it was killed.
 */
#ifndef SILICA_ISOLATE_ENGINE_H
#define SILICA_ISOLATE_ENGINE_H

#include "isolate/box.h"
#include "isolate/limits.h"

struct engine;

struct engine_spec {
    const char *dir;    /* NULL: $SILICA_DATA, else the account's own (dir_default) */
    bool starts_keeper; /* the directory and its keeper are made where they are missing */
    bool
        renews_keeper; /* one that runs, with no sandbox, volume or other caller, ends, and ours takes its place */
    struct box_limits
        all; /* of all sandboxes together, for a keeper that is started; 0: the keeper's defaults */
    const char *program; /* run as `PROGRAM keeper --data DIR`; NULL: ourselves */
};

int engine_open(const struct engine_spec *spec, struct engine **ret, struct err *e);
void engine_close(struct engine *en);
const char *engine_dir(const struct engine *en); /* the data directory */
/* The connection to the keeper, borrowed, to be polled: it hangs up when the keeper is gone. -1: there is none now. */
int engine_keeper_fd(const struct engine *en);

/* Another build than ours makes and keeps the sandboxes. False also where that cannot be known: no keeper, or a program that is
 * not the same file in each process. */
bool engine_keeper_is_other(struct engine *en);

struct engine_create {
    const struct box_spec
        *box; /* its name, box->command and all but descriptors; runtime_fd is the keeper's own */
    bool is_kept; /* outlives its command, and is listed after its end until it is destroyed */
    bool ends_with_command; /* is_kept, but nothing of it runs on when its command has ended */
    uint64_t timeout_ms;    /* then the keeper kills all of it; 0: none */
    const char *
        join; /* a running sandbox whose user, network, IPC and UTS namespaces it shares; NULL: none */
};

struct engine_created {
    char unenforced[BOX_UNENFORCED_MAX_BYTES]; /* limits that best effort left out, or "" */
    int exit_code; /* after a failure: what a shell says of a command that cannot be run (126, 127), else 0 */
};

/* Returns when it runs, and its command with it. ERR_EXISTS: the name is taken. *ret is filled also on failure. */
int engine_create(struct engine *en, const struct engine_create *c, struct engine_created *ret,
                  struct err *e);

enum engine_status {
    ENGINE_MAKING,
    ENGINE_RUNNING,
    ENGINE_PAUSED,
    ENGINE_EXITED,
    ENGINE_LOST, /* it ended with its keeper, which was killed */
};

const char *engine_status_name(enum engine_status s);

struct engine_info {
    char name[BOX_NAME_MAX_BYTES + 1];
    enum engine_status status;
    bool is_kept;
    pid_t pid;           /* PID 1 as the host numbers it; 0: it has none */
    uint64_t created_ms; /* since 1970; 0: not yet */
    bool has_exit;       /* its command has ended, or all of it */
    int exit_code;       /* as a shell says it; 124 after timeout_ms, 137 when lost */
    bool is_timed_out;
    bool is_oom; /* the kernel killed something of it over its memory limit */
    uint64_t ended_ms;
    char command[256]; /* the words of its main command, cut; "" without one */
    char unenforced[BOX_UNENFORCED_MAX_BYTES];
    struct box_limits limits;
};

int engine_get(struct engine *en, const char *name, struct engine_info *ret, struct err *e);
/* In order of names; *ret is the caller's to free. */
int engine_list(struct engine *en, struct engine_info **ret, size_t *ret_n, struct err *e);

/* A connected stream to PID 1, for sandbox_open. The caller's. */
int engine_control(struct engine *en, const char *name, int *ret_fd, struct err *e);
/* A socket made inside its network, not connected. The caller's. */
int engine_socket(struct engine *en, const char *name, int family, int type, int *ret_fd,
                  struct err *e);
int engine_pause(struct engine *en, const char *name, struct err *e);
int engine_resume(struct engine *en, const char *name, struct err *e);
int engine_stats(struct engine *en, const char *name, struct box_stats *ret, struct err *e);
/* The files that hold its command's output, newest last (logfile.h has the format): "log.1" and "log" of this directory,
 * either of which may be missing. A descriptor of the directory, the caller's. */
int engine_open_logs(struct engine *en, const char *name, int *ret_dir_fd, struct err *e);

/* Until its command has ended, or all of it: *ret has its exit. timeout_ms 0: for ever; ERR_TIMEOUT. Wait before it ends
 * for one that is not kept: afterwards nothing is known of it. */
int engine_wait(struct engine *en, const char *name, uint64_t timeout_ms, struct engine_info *ret,
                struct err *e);
/* A signal to PID 1, which passes it on to its command. ERR_CLOSED: it has ended. */
int engine_signal(struct engine *en, const char *name, int number, struct err *e);
/* TERM to PID 1, which ends its commands; KILL after grace_ms. A kept one stays listed. One that has ended is no error. */
int engine_stop(struct engine *en, const char *name, uint64_t grace_ms, struct err *e);
/* Kills it if it runs, and removes all of it. */
int engine_destroy(struct engine *en, const char *name, struct err *e);

/* What all its sandboxes may take together, as its keeper has it: set anew where it differs from `all`. *ret says what holds.
 * ERR_NOT_FOUND: a keeper of an older version. */
struct cgroup_parent;
int engine_limit_all(struct engine *en, const struct box_limits *all, struct cgroup_parent *ret,
                     struct err *e);
/* Volumes that are memory: a tmpfs each, the keeper's until it is dropped (cellar.h). A sandbox names one in its box_bind.
 * ERR_UNSUPPORTED: this account cannot have any, or the keeper is of an older version. */
struct cellar_volume;
int engine_has_memory(struct engine *en, struct err *e);
/* One that is there stays as it is. */
int engine_make_memory(struct engine *en, const struct cellar_volume *v, struct err *e);
/* All whose name begins so; there may be none. */
int engine_drop_memory(struct engine *en, const char *prefix, struct err *e);

/* What killed keepers of this directory left behind; nothing while one lives. Cgroups of dead makers are box_sweep's. */
struct engine_swept {
    size_t killed, lost, removed;
};
int engine_sweep(struct engine *en, struct engine_swept *ret, struct err *e);

#endif
