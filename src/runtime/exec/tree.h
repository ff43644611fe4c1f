/* tree: ends a command with all that descends from it, also what left its session.
 *
 * How:      a command's first process ("main") is a child subreaper, so while it lives every descendant is
 *           below it, whoever died in between. Main is stopped, then the children of everything stopped, until
 *           a pass finds nobody new: what is stopped cannot fork. Then all are killed, main last. Once main is
 *           gone, its orphans are children of this process (which must be PID 1 or a subreaper itself); they are
 *           told from others' by session, by process group, or because they hold one of the command's pipes.
 * Threads:  blocks for up to TREE_BUDGET_MS: for a worker. Reads nothing of the loop; main_fd keeps a pid that
 *           the loop may reap meanwhile from being taken for another's.
 * Limits:   a process that left the session, closed the pipes and outlived main belongs to nobody; only
 *           tree_kill_rest finds it. One that cannot die yet (state D) is counted and left.
 */
#ifndef SILICA_RUNTIME_TREE_H
#define SILICA_RUNTIME_TREE_H

#include "base/own.h"

#include <sys/types.h>

/* Then we report what is left; a reply is due within seconds of a deadline */
#define TREE_BUDGET_MS 2000
#define TREE_LINKS_MAX 3

struct tree {
    pid_t main;    /* its session and process group have this number too */
    bool has_main; /* it was not reaped when this began; false: only orphans are left */
    int main_fd;   /* pidfd of it, opened before it was reaped; -1: none, or a kernel without */
    /* The command's pipes as /proc/PID/fd shows them; our ends are still open. */
    const char *links[TREE_LINKS_MAX];
    size_t link_count;
    /* First processes of the other commands: never touched, nor what is below them. */
    const pid_t *others;
    size_t other_count;
    /* Look for parents instead of reading lists of children, as happens by itself on kernels without them. */
    bool is_unlisted;
};

struct tree_report {
    unsigned killed; /* processes that got SIGKILL, main included */
    unsigned left;   /* alive when the time was up */
};

void tree_kill(const struct tree *t, struct tree_report *ret);
/* Everything below this process, orphans of ended commands included. For shutdown. */
void tree_kill_rest(struct tree_report *ret);

#endif
