/* seccomp_short: the sandbox's filter as a program that the kernel loads quickly, and a machine to run such programs.
 *
 * Owns:     nothing. Used by seccomp_gen at build time, which compares it with what libseccomp makes of the same rules.
 * Reads:    of an argument the lower 32 bits where the kernel reads no more, so that nothing above them leads around it.
 */
#ifndef SILICA_ISOLATE_SECCOMP_SHORT_H
#define SILICA_ISOLATE_SECCOMP_SHORT_H

#include "base/own.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>

#define SECCOMP_LINES_MAX 4096

#define NEW_NAMESPACES                                                                             \
    (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |  \
     CLONE_NEWNET)

struct seccomp_program {
    struct sock_filter lines[SECCOMP_LINES_MAX];
    size_t n;
};

/* False when a jump is too long. */
bool seccomp_short_make(struct seccomp_program *p);
/* True for a call that is looked at more closely; false past the last one. */
bool seccomp_short_ruled(size_t i, const char **ret_name);
/* What the kernel would do: SECCOMP_RET_* with its errno. 0, which kills, for a program that is none. */
uint32_t seccomp_run(const struct seccomp_program *p, const struct seccomp_data *data);

#endif
