#include "runtime/exec/tree.h"

#include "base/time.h"
#include "runtime/exec/proc.h"

#include <errno.h>
#include <signal.h>

#define BUCKETS 1024
/* For one round of stopping; a storm that outruns this long is killed as it runs */
#define FREEZE_MS    300
#define SETTLE_US    200  /* a stop signal takes effect when its process is next scheduled */
#define ROUND_US     1000 /* a killed process is gone when it is next scheduled */
#define ROUND_MAX_US 50000
#define NO_INDEX     UINT32_MAX

struct member {
    pid_t pid;
    uint64_t start;
    uint32_t next; /* in its bucket */
    bool is_alive; /* as of the last look */
    bool
        is_settled; /* nothing to look for until the next check: dead, or stopped before its children were read */
    bool is_killed;
};

/* All that is to end. Grows by what is found below its members. */
struct herd {
    const struct tree *tree; /* NULL: everything below us */
    struct member *v;
    size_t n, cap;
    uint32_t bucket[BUCKETS];
    bool is_unlisted; /* the kernel does not list children: look for parents instead */
    bool has_new;     /* this pass added members */
    uint64_t until_ms;
    unsigned killed;
};

static void herd_init(struct herd *h, const struct tree *tree)
{
    *h = (struct herd){ .tree = tree, .until_ms = time_mono_ms() + TREE_BUDGET_MS };
    h->is_unlisted = tree && tree->is_unlisted;
    memset(h->bucket, 0xff, sizeof h->bucket);
}

static void herd_done(struct herd *h)
{
    free(h->v);
}

static struct member *find(struct herd *h, pid_t pid)
{
    uint32_t i = h->bucket[(unsigned)pid % BUCKETS];

    while (i != NO_INDEX && h->v[i].pid != pid)
        i = h->v[i].next;
    return i == NO_INDEX ? NULL : &h->v[i];
}

static void add(struct herd *h, const struct proc *p)
{
    struct member *known = find(h, p->pid);

    if (known && known->start == p->start)
        return;
    h->has_new = true;
    if (known) { /* the number went to a new process of the same herd */
        *known = (struct member){ p->pid, p->start, known->next, .is_alive = true };
        return;
    }
    if (h->n == PROC_MAX)
        return;
    if (h->n == h->cap) {
        h->cap = h->cap ? h->cap * 2 : 64;
        h->v = own_resize(h->v, h->cap, sizeof *h->v);
    }
    h->v[h->n] = (struct member){ p->pid, p->start, h->bucket[(unsigned)p->pid % BUCKETS],
                                  .is_alive = true };
    h->bucket[(unsigned)p->pid % BUCKETS] = (uint32_t)h->n++;
}

/* A pid read from a list of children. It may have ended and be somebody else's by now: its parent tells. It is
 * stopped here and now, not when its turn comes: in a storm of forks it would be gone by then. */
static void on_child(void *ctx, pid_t pid)
{
    struct herd *h = ctx;
    struct member *known = find(h, pid);
    struct proc p;

    if (known && (known->is_alive || known->is_settled))
        return; /* it has its turn; and a storm leaves thousands of zombies, not worth a look each pass */
    if (!proc_read(pid, &p) || !find(h, p.ppid))
        return;
    add(h, &p);
    if (proc_is_alive(&p) && !proc_is_stopped(&p))
        (void)proc_signal(pid, p.start, SIGSTOP);
}

static void add_by_parents(struct herd *h)
{
    struct proc_table all = { 0 };
    size_t before;

    proc_table_read(&all);
    do { /* a child may have a lower pid than its parent */
        before = h->n;
        for (size_t i = 0; i < all.n; i++) {
            if (find(h, all.rows[i].ppid))
                add(h, &all.rows[i]);
        }
    } while (h->n > before);
    proc_table_done(&all);
}

static bool is_main(const struct herd *h, const struct member *m)
{
    return h->tree && h->tree->has_main && m->pid == h->tree->main;
}

static bool send_signal(const struct herd *h, const struct member *m, int sig)
{
    if (is_main(h, m) && h->tree->main_fd >= 0)
        return proc_signal_fd(h->tree->main_fd, sig);
    return proc_signal(m->pid, m->start, sig);
}

/* The number of main names its session and group as long as main is not reaped, or somebody is still in them;
 * when a process has that pid and is not main, nobody was left and the number began a new life. */
static bool is_number_ours(const struct tree *t)
{
    if (t->has_main && (t->main_fd < 0 || proc_signal_fd(t->main_fd, 0)))
        return true; /* without a pidfd we trust the number for the second or two this takes */
    return kill(t->main, 0) < 0 && errno == ESRCH;
}

/* Looks at one member, stops it if it runs, finds its children. */
static void freeze_member(struct herd *h, size_t i)
{
    struct member *m = &h->v[i];
    struct proc p;
    bool is_there = proc_read(m->pid, &p) && p.start == m->start && p.state != 'X';

    m->is_alive = is_there && proc_is_alive(&p);
    /* One that waits in the kernel (for its vforked child, which we stop) forks nothing meanwhile. */
    m->is_settled = !m->is_alive || proc_is_stopped(&p) || p.state == 'D';
    if (m->is_alive && !proc_is_stopped(&p))
        (void)send_signal(h, m, SIGSTOP);
    if (!h->is_unlisted && (m->is_alive || (is_there && p.state != 'Z')))
        h->is_unlisted = !proc_children(p.pid, on_child, h); /* m may have moved from here on */
}

/* True when nobody is unsettled: all stand still, and had no children we do not know. */
static bool freeze_pass(struct herd *h, uint64_t until_ms)
{
    bool is_still = true;

    h->has_new = false;
    for (size_t i = 0; i < h->n; i++) { /* grows while we walk */
        if (h->v[i].is_settled)
            continue;
        freeze_member(h, i);
        is_still = is_still && h->v[i].is_settled;
        if (i % 64 == 63 && time_mono_ms() >= until_ms)
            return false; /* a storm could keep us in one pass for ever */
    }
    if (h->is_unlisted)
        add_by_parents(h);
    return is_still && !h->has_new;
}

static void unsettle(struct herd *h)
{
    for (size_t i = 0; i < h->n; i++)
        h->v[i].is_settled = false;
}

/* Passes look at the unsettled only, to keep up with a storm; then all are looked at once more, because
 * somebody may have sent SIGCONT. */
static void freeze(struct herd *h)
{
    uint64_t until = MIN(h->until_ms, time_mono_ms() + FREEZE_MS);
    bool is_checked = false;

    unsettle(h);
    for (;;) {
        if (freeze_pass(h, until)) {
            if (is_checked)
                return;
            unsettle(h);
            is_checked = true;
        } else {
            is_checked = false;
            (void)usleep(SETTLE_US);
        }
        if (time_mono_ms() >= until)
            return;
    }
}

/* Kills all but main; returns how many were alive. */
static unsigned kill_herd(struct herd *h)
{
    unsigned alive = 0;

    for (size_t i = 0; i < h->n; i++) {
        struct member *m = &h->v[i];

        if (!m->is_alive || is_main(h, m))
            continue;
        alive++;
        if (send_signal(h, m, SIGKILL) && !m->is_killed) {
            m->is_killed = true;
            h->killed++;
        }
    }
    return alive;
}

static bool is_other(const struct herd *h, pid_t pid)
{
    for (size_t i = 0; h->tree && i < h->tree->other_count; i++) {
        if (h->tree->others[i] == pid)
            return true;
    }
    return false;
}

/* Below this process, and not below another command. */
static bool is_ours_to_judge(const struct herd *h, const struct proc_table *all,
                             const struct proc *p)
{
    pid_t self = getpid();

    for (size_t depth = 0; p && depth < all->n; depth++) {
        if (p->pid == self || is_other(h, p->pid))
            return false;
        if (p->ppid == self)
            return true;
        p = proc_table_find(all, p->ppid);
    }
    return false;
}

static bool is_orphan_of(const struct herd *h, const struct proc *p, bool has_number)
{
    const struct tree *t = h->tree;

    if (!t)
        return true;
    if (has_number && (p->session == t->main || p->pgrp == t->main))
        return true;
    /* A child of ours between clone and exec holds copies of all our descriptors: not a sign of anything. */
    if (!t->link_count || (!p->has_execed && p->ppid == getpid() && proc_is_our_program(p->pid)))
        return false;
    return proc_holds(p->pid, t->links, t->link_count);
}

static void add_orphans(struct herd *h)
{
    bool has_number = h->tree && is_number_ours(h->tree);
    struct proc_table all = { 0 };

    proc_table_read(&all);
    for (size_t i = 0; i < all.n; i++) {
        const struct proc *p = &all.rows[i];

        if (proc_is_alive(p) && !(h->tree && p->pid == h->tree->main) &&
            is_ours_to_judge(h, &all, p) && is_orphan_of(h, p, has_number))
            add(h, p);
    }
    proc_table_done(&all);
}

/* Rounds of stopping and killing until nobody is alive or the time is up. Returns who is left. */
static unsigned end_herd(struct herd *h, bool with_orphans)
{
    unsigned wait_us = ROUND_US, left;

    for (;;) {
        /* A signal to a group reaches also what is being forked in it: the usual fork bomb stops right here. */
        if (h->tree && is_number_ours(h->tree))
            (void)kill(-h->tree->main, SIGSTOP);
        if (with_orphans)
            add_orphans(h);
        freeze(h);
        left = kill_herd(h);
        if (left == 0 || time_mono_ms() >= h->until_ms)
            return left;
        (void)usleep(wait_us);
        wait_us = MIN(wait_us * 2, (unsigned)ROUND_MAX_US);
    }
}

/* While main lives: everybody is below it. */
static unsigned end_main(struct herd *h)
{
    const struct tree *t = h->tree;
    struct member *m;
    struct proc p;
    unsigned left;

    if (!proc_read(t->main, &p)) {
        if (is_number_ours(t))
            (void)kill(-t->main, SIGKILL); /* no /proc here: the group is what can be reached */
        h->killed++;
        return 0;
    }
    add(h, &p);
    left = end_herd(h, false);
    m = find(h, t->main);
    h->killed += send_signal(h, m, SIGKILL);
    return left;
}

void tree_kill(const struct tree *t, struct tree_report *ret)
{
    struct herd below, orphans;
    unsigned left = 0;

    herd_init(&orphans, t);
    if (t->has_main) {
        herd_init(&below, t);
        left = end_main(&below);
        orphans.killed = below.killed;
        orphans.until_ms = below.until_ms;
        herd_done(&below);
    }
    /* Also after main was killed: it may have been woken and have forked at the last moment, or it had ended
     * before we came. */
    left = MAX(end_herd(&orphans, true), left);
    /* Whom the signal above stopped and /proc did not show, most of all where there is none, must not stay stopped. */
    if (is_number_ours(t))
        (void)kill(-t->main, SIGKILL);
    *ret = (struct tree_report){ orphans.killed, left };
    herd_done(&orphans);
}

void tree_kill_rest(struct tree_report *ret)
{
    struct herd h;
    unsigned left;

    herd_init(&h, NULL);
    left = end_herd(&h, true);
    *ret = (struct tree_report){ h.killed, left };
    herd_done(&h);
}
