/* spawn: starts one program, and says which step failed when it cannot.
 *
 * Owns:     nothing but one small stack kept for the next child. The child shares our memory until it execs (as
 *           after vfork), so nothing is copied, and a failure comes back as a value: no pipe, no read.
 * Used by:  runtime/exec on the loop and on its spawn threads, the node's helpers. Needs no loop.
 * Threads:  any. spawn: the calling thread sleeps until the child has exec'ed or died, which a file system may
 *           make long. spawn_begin: it does not wait for the child at all. Every signal is blocked in the thread
 *           meanwhile. Between clone and exec only system calls run, and none that touches the thread's storage.
 * Child:    gets descriptors 0, 1, 2 and no other, an empty signal mask, default actions for SIGPIPE and SIGXFSZ.
 *           Another signal we ignore stays ignored, as exec has it. A process that calls this must catch none:
 *           a handler could run in the child, on shared memory.
 * Reaping:  a child that was started is reaped by whoever waits for children (ev/child). One that failed
 *           before exec is reaped by spawn itself, and sends no SIGCHLD: until exec it has no exit signal. Of
 *           spawn_begin all children are the caller's to reap, the failed ones too.
 */
#ifndef SILICA_EV_SPAWN_H
#define SILICA_EV_SPAWN_H

#include "base/err.h"

#include <sys/types.h>

/* Where bare names are looked for when nobody says. */
#define SPAWN_DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

enum spawn_flag {
    SPAWN_SESSION = 1 << 0, /* setsid: new session and process group, both named by the pid */
    SPAWN_GROUP = 1 << 1,   /* setpgid: new process group only */
    SPAWN_TTY = 1 << 2,     /* descriptor 0 becomes the controlling terminal; wants SPAWN_SESSION */
    SPAWN_SUBREAPER = 1 << 3, /* orphans below the child stay below it; survives its exec */
    SPAWN_TIED = 1 << 4,      /* killed when the thread that called spawn ends, however it ends */
};

/* What the child was doing when it failed. The order is the order of the steps. */
enum spawn_step {
    SPAWN_STEP_NONE = 0, /* it runs */
    SPAWN_STEP_CLONE,
    SPAWN_STEP_SESSION,
    SPAWN_STEP_CHDIR, /* the subject of the failure is the working directory, not the program */
    SPAWN_STEP_STDIO,
    SPAWN_STEP_TTY,
    SPAWN_STEP_SIGNALS,
    SPAWN_STEP_EXEC,
};

struct spawn_spec {
    char *const *argv;       /* NULL-terminated, at least the program */
    char *const *envp;       /* the complete environment */
    const char *search_path; /* directories for a program without '/'; NULL: SPAWN_DEFAULT_PATH */
    const char *cwd;         /* NULL: ours. Relative programs are found from there */
    int cwd_fd;              /* wins over cwd unless -1 */
    int fds[3];              /* become 0, 1 and 2; -1 hands down our own */
    unsigned flags;          /* enum spawn_flag */
};

/* clang-format off */
#define SPAWN_SPEC_INIT { .cwd_fd = -1, .fds = { -1, -1, -1 } }
/* clang-format on */

struct spawn_fail {
    enum spawn_step step;
    int sys; /* errno of that step */
};

/* The pid, or -1 with *ret_fail filled. A bare name is tried in each directory of search_path: EACCES is
 * remembered, a missing file or directory means the next one, anything else ends the search. A file that
 * is no program and has no "#!" is ENOEXEC; no shell is tried. */
pid_t spawn(const struct spawn_spec *s, struct spawn_fail *ret_fail);

/* A start nobody waits for. The child reads the texts of the spec, and its stack, until it has left. */
struct spawn_flight;

/* The pid as soon as the child exists, or -1 with *ret_fail filled. The descriptors may be closed on return; the
 * texts of the spec must live until spawn_has_left. Whether the program was found shows in spawn_flight_fail when the
 * child has ended. */
pid_t spawn_begin(const struct spawn_spec *s, struct spawn_flight **ret,
                  struct spawn_fail *ret_fail);
/* True when it no longer uses our memory: it runs its program, or has ended. */
bool spawn_has_left(const struct spawn_flight *f);
/* Valid once the child was reaped. */
struct spawn_fail spawn_flight_fail(const struct spawn_flight *f);
/* Only once the child has left or was reaped. */
void spawn_flight_free(struct spawn_flight *f);

/* "cannot run 'prog': No such file or directory", or the directory where that was the subject. -1. */
int spawn_err(struct err *e, const struct spawn_spec *s, struct spawn_fail fail);
const char *spawn_step_name(enum spawn_step step);

#endif
