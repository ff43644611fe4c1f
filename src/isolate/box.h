/* box: one sandbox as the engine sees it: a process tree behind namespaces, with silica-runtime as its PID 1.
 *
 *     spec (what the caller wants) -> plan (data: what will be done, plan.h) -> box (a process tree)
 *
 * Owns:     PID 1 (its pidfd), our end of its control socket, its cgroups. box_free kills what is left, reaps PID 1 and
 *           removes the cgroups: nothing of a box outlives it.
 * Used by:  src/sandbox, which speaks to PID 1; spawner.c; engine.c, which adopts what others started (adopt.h).
 * Threads:  box_start clones: call it from a process with one thread. The rest from the thread that started it.
 * Blocking: box_start returns when PID 1 has been exec'ed, or with what the child said went wrong.
 */
#ifndef SILICA_ISOLATE_BOX_H
#define SILICA_ISOLATE_BOX_H

#include "base/buf.h"

#include <sys/types.h>

struct box;
struct cgroup;
struct cgroup_spare;
struct yard;

/* The user's home and working directory inside, always writable; the search path that finds what the host image adds
 * (python). A caller's environment starts from these. */
#define BOX_HOME         "/workspace"
#define BOX_HOME_INSIDE  "workspace"
#define BOX_MESSAGE_PATH "/dev/termination-log" /* where a container's last words are by custom */
#define BOX_GROUPS_MAX   32 /* a Pod's supplementalGroups and fsGroup; then ERR_LIMIT */
#define BOX_PATH         "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/silica/bin"
/* npm tries again for a minute, whatever the reason was, and has no file in /etc: a sandbox has no network but loopback. */
#define BOX_NPM "NPM_CONFIG_FETCH_RETRIES=0"

/* A tree of the host seen inside. */
struct box_bind {
    const char *source; /* on the host */
    const char *target; /* inside, absolute */
    bool is_writable;
    /* What of `source`, a directory, is shown: a path below it. Links on the way count only as far as they stay below, so
     * the directory's content may be a sandbox's own. NULL: all of it. */
    const char *sub;
    const char *memory; /* a volume of the cellar (cellar.h), whatever is at `source`; NULL: none */
    /* No other account of the host can reach what is in it, so set-user-ID files are harmless there. */
    bool is_private;
};

/* 0: no limit of ours. */
struct box_limits {
    uint64_t memory_bytes;
    uint64_t pids;
    uint64_t cpu_milli;  /* 1000 is one processor */
    uint64_t cpu_shares; /* of what others want too: 1024 is a process's; a weight, and no limit */
};

/* Whose child a box is and which namespaces it does not make: for the spawner. All zero: ours, with namespaces of its
 * own. */
struct box_place {
    bool
        is_sibling; /* our parent's child, which ends with that one and is reaped by it, not by us */
    int parent_pidfd; /* of that parent; borrowed */
    bool is_nested;   /* we are in the spawner's user namespace (IDS_ENGINE) */
    int join_pidfd; /* a process in the user, network, IPC and UTS namespaces to share; borrowed; 0: none */
    /* The range of ids that the caller took for it (id_range.h), or that of the sandbox it joins. 0: root's takes one for
     * itself, which box_free gives back. */
    uint32_t ids_base;
};

struct box_spec {
    const char *name;          /* for messages, and the host name inside */
    const char *host_name;     /* inside, where it is another; may be NULL */
    const char *const *layers; /* NULL-terminated; NULL: the host image (design.md, Images) */
    const char *const *
        host_paths; /* NULL-terminated: more read-only trees of the host, at their own place; may be NULL */
    const struct box_bind *binds;
    size_t bind_count;
    const char *const
        *env; /* NULL-terminated NAME=value: the whole environment of PID 1 and of commands */
    const char *cwd; /* inside; NULL: the user's home */
    bool makes_cwd;  /* where the image does not have it, as container runtimes do */
    /* A second place of the home, absolute: one directory at two paths, each a mount. What `binds` shows at or below one of
     * them is seen at the other, too; with binds at both there is no alias. NULL: none. */
    const char *home_alias;
    uid_t uid; /* of commands, inside */
    gid_t gid;
    gid_t groups[BOX_GROUPS_MAX]; /* that they are in besides; only where a range of ids is given */
    size_t group_count;
    /* An account other than root gives the range it has in /etc/subuid, not only itself (userns.h): 0 inside is the
     * account, and any other id nobody that can do anything. Two programs have to run for that, unless a spawner is in a
     * namespace that has the range. Root always gives a range. */
    bool wants_range;
    uint64_t root_bytes; /* size of the writable root; 0: 1 GiB. It is memory */
    bool is_read_only;   /* the root cannot be written; /tmp and the home still can */
    struct box_limits limits;
    struct box_limits
        defaults; /* where `limits` has none; one that cannot be enforced is no error, and not told */
    /* Groups above it, which limit it with others (cgroup_parent.h); NULL: none. Without limits of its own it is in them. */
    const struct cgroup *parent;
    struct cgroup_spare *spare; /* groups made ahead for it (cgroup_spare.h); NULL: none */
    /* Nobody will pause or count it: it has a cgroup only if a limit needs one. Making and removing one takes a tenth of
     * the time of a short command. */
    bool is_brief;
    bool is_best_effort; /* a limit that cannot be enforced is a warning, not an error */
    const char *const
        *runtime_args; /* NULL-terminated options for PID 1 besides --control-fd; may be NULL */
    /* PID 1's main command, NULL-terminated: its end is the end of the box, and its status PID 1's. NULL: none, and PID 1
     * stays until it is told to go. */
    const char *const *command;
    /* A file that its command may write its last words to: made where it is missing, and read by PID 1 at the end. With a
     * keeper alone. NULL: nobody wants them. */
    const char *message_path;
    /* The silica-runtime program: open for reading, and when it is sealed (fd_seal_program) used as it is; or its bytes,
     * which are made a sealed file while the sandbox is being built. */
    int runtime_fd;
    struct span runtime;
    const char *
        runtime_path; /* where this host may have a file of these bytes: no copy is needed then; may be NULL */
    /* Descriptors that are borrowed; 0 is none. */
    int log_fd; /* PID 1's stdout and stderr; none: nowhere. Never a terminal */
    int err_fd; /* its stderr, where that is not log_fd */
    int control_fd; /* a listening socket that PID 1 serves; none: a pair is made, box_take_control has the other end */
    int status_fd; /* PID 1 writes "started" when its command runs; with is_staying also "exit N" when it has ended */
    bool is_staying; /* PID 1 outlives its command */
    int cellar_fd;   /* where the volumes are that are memory */
    /* Of a process that makes more than one (yard.h): the network is taken from it, and what takes the kernel long to take
     * apart is left to it. It outlives the box. NULL: none. */
    struct yard *yard;
    struct box_place place;
};

struct box_stats {
    uint64_t memory_bytes, pids, cpu_us;
    bool has_memory, has_pids, has_cpu; /* what this host can tell */
};

int box_start(const struct box_spec *spec, struct box **ret, struct err *e);
pid_t box_pid(const struct box *b); /* PID 1, as the host numbers it */
int box_pidfd(const struct box *b); /* readable when PID 1 has ended */
/* A connected stream to PID 1, which serves HTTP and gRPC on it (section B of the runtime contract). Taken: the caller
 * closes it. What comes back on it is hostile. */
int box_take_control(struct box *b);
/* A socket made inside the sandbox's network namespace, not connected; the caller connects it to 127.0.0.1:PORT. */
int box_socket(struct box *b, int family, int type, int *ret_fd, struct err *e);
/* The limits that best effort left out, "memory, cpu"; "" when all hold. */
const char *box_unenforced(const struct box *b);
/* Everything inside stands still: by a cgroup where there is one, else by SIGSTOP, which code inside can notice. */
int box_pause(struct box *b, struct err *e);
int box_resume(struct box *b, struct err *e);
int box_stats(struct box *b, struct box_stats *ret, struct err *e);
/* Kills everything inside, and does not wait: dying takes the kernel a while, in which the caller may do something else.
 * box_kill or box_free follows. */
int box_end(struct box *b, struct err *e);
/* Kills everything inside and waits for PID 1. *ret_status as waitpid gives it; may be NULL. */
int box_kill(struct box *b, int *ret_status, struct err *e);
int box_signal(struct box *b, int number, struct err *e); /* to PID 1 */
bool box_is_paused(const struct box *b);
void box_free(struct box *b);
/* Frees what we know of it; the box lives on. */
void box_release(struct box *b);
/* A box dies with its owner; when the owner was killed its cgroups stay behind, empty. Removes those of owners that are
 * gone, and says how many. */
size_t box_sweep(void);

#endif
