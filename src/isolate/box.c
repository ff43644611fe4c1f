#include "isolate/box_impl.h"

#include "base/fd.h"
#include "base/str.h"
#include "isolate/cellar.h"
#include "isolate/cgroup_spare.h"
#include "isolate/default_limits.h"
#include "isolate/ground.h"
#include "isolate/id_range.h"
#include "isolate/idmap.h"
#include "isolate/inside.h"
#include "isolate/join.h"
#include "isolate/plan.h"
#include "isolate/tree.h"
#include "isolate/user_counts.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* The two ends of a stream, told apart by who keeps them. */
struct pair {
    int ours, theirs;
};

static void pair_done(struct pair *p)
{
    own_fd_close(&p->ours);
    own_fd_close(&p->theirs);
}

static int pair_open(struct pair *p, struct err *e)
{
    int fds[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
        return err_sys(e, "cannot make a pair of sockets");
    p->ours = fds[0];
    p->theirs = fds[1];
    return 0;
}

static size_t count(const char *const *words)
{
    size_t n = 0;

    while (words && words[n])
        n++;
    return n;
}

/* The caller's to free; the words are the spec's. */
static const char **make_argv(const struct box_spec *spec, const char *message, struct err *e)
{
    static const char control[] = "3", status[] = "4";
    size_t options = count(spec->runtime_args), words = count(spec->command), n = 0;
    const char **argv;

    assert(INSIDE_CONTROL_FD == 3 && INSIDE_STATUS_FD == 4);
    if (options > BOX_ARGS_MAX || words > BOX_COMMAND_MAX) {
        (void)err_set(e, ERR_LIMIT, "more than %d options for PID 1 or %d words of its command",
                      BOX_ARGS_MAX, BOX_COMMAND_MAX);
        return NULL;
    }
    argv = own_array(options + words + 10, sizeof *argv);
    argv[n++] = "silica-runtime";
    argv[n++] = "--control-fd";
    argv[n++] = control;
    if (spec->status_fd) {
        argv[n++] = "--status-fd";
        argv[n++] = status;
    }
    if (spec->is_staying)
        argv[n++] = "--stay";
    if (message) {
        argv[n++] = "--message-file";
        argv[n++] = message;
    }
    for (size_t i = 0; i < options; i++)
        argv[n++] = spec->runtime_args[i];
    if (words)
        argv[n++] = "--";
    for (size_t i = 0; i < words; i++)
        argv[n++] = spec->command[i];
    return argv;
}

static void hint_clone(struct err *e)
{
    if (e->sys == EPERM)
        err_hint(e, "this host forbids user namespaces to this account (AppArmor, a container's "
                    "seccomp); 'silica doctor' says which setting");
    else if (e->sys == ENOSPC)
        err_hint(e, "raise user.max_user_namespaces with sysctl");
}

#define NAMES (CLONE_NEWIPC | CLONE_NEWUTS)

/* What the child makes itself while its mounts are being made, rather than being born with it: the network, which takes as
 * long as all the others together, or, where that is there, what would take longest then; and the cgroup namespace, which
 * begins where the child has been moved to. */
static int own_namespaces(const struct inside *in)
{
    if (in->has_names)
        return CLONE_NEWCGROUP;
    return CLONE_NEWCGROUP | (in->has_network ? NAMES : CLONE_NEWNET);
}

static int clone_plain(struct inside *in, const struct box_place *place, int group_fd,
                       struct strand *first, pid_t *ret_pid, int *ret_pidfd, struct err *e)
{
    int pidfd = -1;
    struct clone_args args = {
        .flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_PIDFD |
                 (NAMES & ~(uint64_t)in->own_namespaces),
        .pidfd = (uint64_t)(uintptr_t)&pidfd,
        .exit_signal = SIGCHLD,
    };
    const struct ids *ids = &in->plan->ids;
    struct user_counts counts;
    int saved;
    long pid;

    if (place->is_sibling) { /* it has the exit signal that we have */
        args.flags |= CLONE_PARENT;
        args.exit_signal = 0;
    }
    if (group_fd >= 0) {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = (uint64_t)group_fd;
    }
    user_counts_begin(&counts, ids->kind == IDS_ROOT ? ids->base : 0);
    pid = first ? strand_process(first, &args, inside_run, in)
                : syscall(SYS_clone3, &args, sizeof args);
    if (pid == 0)
        inside_run(in);
    saved = errno;
    user_counts_end(&counts);
    errno = saved;
    if (pid < 0) {
        (void)err_sys(e, "cannot make the sandbox's namespaces");
        hint_clone(e);
        return -1;
    }
    *ret_pid = (pid_t)pid;
    *ret_pidfd = pidfd;
    return 0;
}

/* Where the machine runs out of memory, a sandbox's processes go before others. Ours, and so for all that we clone: a child
 * that shares our memory until its exec has our value, and a later change of ours would be its own. */
static void offer_to_oom(void)
{
    static pid_t known_by;
    OWN_FD int fd = -1;
    uint8_t text[16];
    uint64_t now = 0;
    ssize_t n;

    if (known_by == getpid())
        return;
    known_by = getpid();
    fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
    n = fd < 0 ? -1 : read(fd, text, sizeof text);
    if (n <= 0)
        return;
    (void)str_u64(span_of(text, (size_t)n - 1), 1000, &now); /* stays 0 where it is negative */
    if (now < BOX_OOM_SCORE_ADJ)
        (void)dprintf(fd, "%d", BOX_OOM_SCORE_ADJ); /* or they are as likely as we */
}

static int clone_from_here(struct box *b, struct inside *in, const struct box_place *place,
                           int group_fd, struct strand *first, struct err *e)
{
    int rc;

    if (place->join_pidfd > 0)
        return join_clone(in, place, group_fd, &b->pid, &b->pidfd, e);
    if (in->net_fd >= 0 && yard_enter(b->yard, in->net_fd, &in->frame, e) < 0)
        return -1;
    rc = clone_plain(in, place, group_fd, first, &b->pid, &b->pidfd, e);
    if (in->net_fd >= 0)
        yard_leave(b->yard);
    return rc;
}

static int clone_inside(struct box *b, const struct box_spec *spec, struct inside *in,
                        struct strand *first, struct err *e)
{
    OWN_FD int group_fd = cgroup_open_v2(&b->cgroup);
    bool is_in = cgroup_enter(&b->cgroup, spec->parent);
    int rc;

    b->is_foreign = spec->place.is_sibling;
    offer_to_oom();
    rc = clone_from_here(b, in, &spec->place, group_fd, first, e);
    cgroup_leave();
    return rc < 0 ? -1 : cgroup_join(&b->cgroup, spec->parent, b->pid, group_fd >= 0, is_in, e);
}

/* READY and the end: it runs. FAILED: what the child says. The end alone: it died, and its status says how. */
static int hear(struct box *b, int gate_fd, struct err *e)
{
    struct err why;
    char word = 0;
    ssize_t n;

    for (bool is_ready = false;; is_ready = true) {
        n = TEMP_FAILURE_RETRY(read(gate_fd, &word, 1));
        if (n == 0 && is_ready)
            return 0;
        if (n != 1 || word != INSIDE_READY || is_ready)
            break;
    }
    if (n == 1 && word == INSIDE_FAILED && fd_read_exact(gate_fd, &why, sizeof why, e) == 0) {
        why.msg[sizeof why.msg - 1] = why.hint[sizeof why.hint - 1] = '\0';
        *e = why;
        return -1;
    }
    (void)box_kill(b, NULL, &why);
    if (b->is_foreign)
        return err_set(e, ERR_INTERNAL, "the sandbox died while it was made");
    return err_set(e, ERR_INTERNAL, "the sandbox died while it was made (%s %d)",
                   WIFSIGNALED(b->status) ? "signal" : "status",
                   WIFSIGNALED(b->status) ? WTERMSIG(b->status) : WEXITSTATUS(b->status));
}

/* We failed with a child that may have failed first: what it has said is then the reason, and ours that it is gone. */
static int blame(struct box *b, int gate_fd, struct err *e)
{
    char word;

    if (recv(gate_fd, &word, 1, MSG_PEEK | MSG_DONTWAIT) == 1 && word == INSIDE_FAILED)
        return hear(b, gate_fd, e);
    return -1;
}

/* A word to the child. One that has given up has said why already, or its end says it: hear() finds out. */
static void tell(int gate_fd, char word)
{
    (void)send(gate_fd, &word, 1, MSG_NOSIGNAL);
}

/* Its mounts are the host's but for its own root, so nobody waits for their end; a caller's may be a disk that is wanted. */
static void keep_mounts(struct box *b, const struct box_spec *spec)
{
    char path[64];

    if (!spec->yard || b->is_foreign || spec->bind_count || (spec->host_paths && *spec->host_paths))
        return;
    (void)snprintf(path, sizeof path, "/proc/%d/ns/mnt", b->pid);
    /* by path: the kernel's link in /proc. */
    b->mounts_fd = open(path, O_RDONLY | O_CLOEXEC); /* or the kernel takes them apart by itself */
}

static int launch(struct box *b, const struct box_spec *spec, struct inside *in,
                  struct strand *first, struct program *program, struct err *e)
{
    OWN(pair_done) struct pair gate = { -1, -1 };
    OWN(pair_done) struct pair control = { -1, -1 };
    int rc;

    if (pair_open(&gate, e) < 0 || (!spec->control_fd && pair_open(&control, e) < 0))
        return -1;
    in->gate_fd = gate.theirs;
    in->control_fd = spec->control_fd ? spec->control_fd : control.theirs;
    in->parents_fds[0] = gate.ours;
    in->parents_fds[1] = control.ours;
    in->has_network = in->has_names || in->net_fd >= 0;
    in->own_namespaces = own_namespaces(in);
    rc = clone_inside(b, spec, in, first, e);
    own_fd_close(&gate.theirs);
    own_fd_close(&control.theirs);
    if (rc < 0)
        return b->pidfd >= 0 ? blame(b, gate.ours, e) : -1;
    /* A user namespace that is joined has its ids already. */
    if (!spec->place.join_pidfd && ids_write(&in->plan->ids, b->pid, e) < 0)
        return blame(b, gate.ours, e);
    tell(gate.ours, INSIDE_GO);
    /* It still has to wait for us, so it cannot have ended. */
    if (b->is_foreign && !tree_start_ticks(b->pid, &b->start_ticks))
        return err_set(e, ERR_INTERNAL, "the sandbox died while it was made");
    if (program_finish(program, e) < 0)
        return -1;
    tell(gate.ours, INSIDE_PROGRAM);
    keep_mounts(b, spec);
    if (hear(b, gate.ours, e) < 0)
        return -1;
    if (spec->yard)
        yard_refill(spec->yard);
    b->control_fd = take_fd(&control.ours);
    return 0;
}

static bool wants_group(const struct box_spec *spec)
{
    const struct box_limits l = default_limits_fill(&spec->limits, &spec->defaults);

    /* A v2 group with groups below it has no processes of its own. */
    return !spec->is_brief || l.memory_bytes || l.pids || l.cpu_milli ||
           (spec->parent && (spec->parent->is_v2[CGROUP_MEMORY] ||
                             spec->parent->is_v2[CGROUP_PIDS] || spec->parent->is_v2[CGROUP_CPU]));
}

/* Of the limits that could not be made, those that were asked for. */
static void forget_defaults(struct buf *unenforced, const struct box_limits *asked)
{
    struct span rest = SPAN(""), word;
    char text[BOX_UNENFORCED_MAX_BYTES + 1];
    struct err full;

    (void)snprintf(text, sizeof text, "%s", buf_cstr(unenforced));
    buf_clear(unenforced);
    for (rest = span_cstr(text); span_cut(&rest, ',', &word);) {
        word = span_trim(word);
        if (span_is(word, "memory") ? asked->memory_bytes : asked->cpu_milli)
            /* Fits: some of the words that were in it. */
            (void)buf_addf(unenforced, &full, "%s%.*s", unenforced->n ? ", " : "", SPAN_ARG(word));
    }
}

/* Processes the kernel also counts for each user namespace; the other limits want cgroups. */
static int apply_limits(struct box *b, struct plan *plan, const struct box_spec *spec,
                        struct err *e)
{
    const struct box_limits limits = default_limits_fill(&spec->limits, &spec->defaults);
    struct err why;

    plan->nproc =
        limits.pids ? limits.pids : DEFAULT_PIDS; /* costs nothing, so without asking, too */
    if (!wants_group(spec))
        return 0;
    if (spec->spare)
        (void)cgroup_spare_take(spec->spare, &limits, &b->cgroup);
    cgroup_make(&b->cgroup, spec->parent, b->name, &limits, &b->unenforced, &why);
    if (cgroup_limits_pids(&b->cgroup))
        plan->nproc = 0;
    forget_defaults(&b->unenforced, &spec->limits);
    if (b->unenforced.n == 0 || spec->is_best_effort)
        return 0;
    *e = why;
    (void)err_wrap(e, "a limit of %s cannot be enforced", buf_cstr(&b->unenforced));
    e->code = ERR_UNSUPPORTED;
    err_hint(e, "run it in a cgroup that was handed to this account, as root, or with "
                "--limits=best-effort");
    return -1;
}

/* In our memory, where that can be: its setup is over, or the child dead, when this returns. */
static int launch_in_ours(struct box *b, const struct box_spec *spec, struct inside *in,
                          struct program *program, struct err *e)
{
    struct strand *first = spec->place.join_pidfd > 0 ? NULL : strand_take();
    bool is_dumpable = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 1, is_over = true;
    struct err why;
    int rc;

    in->second = strand_take();
    rc = launch(b, spec, in, first, program, e);
    if (rc < 0 && b->pidfd >= 0)
        is_over = box_kill(b, NULL, &why) == 0;
    if (is_over) { /* or they are lost, as the process is */
        strand_give(first);
        strand_give(in->second);
    }
    if (is_dumpable)
        (void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    return rc;
}

/* Where there is no path of the host's, all that is shown of it has to be held, the program too. */
static void settle_ground(const struct box_spec *spec, const struct plan *plan,
                          const struct program *program, int *tree_fds, struct frame *frame)
{
    if (!yard_has_ground(spec->yard, frame) || program->fd < 0 || !ground_hold(plan, tree_fds))
        yard_drop_ground(spec->yard, frame);
}

/* They are in the range like every id inside. */
static int take_groups(struct ids *ids, const struct box_spec *spec, struct err *e)
{
    if (spec->group_count && ids->kind == IDS_ONE)
        return err_set(e, ERR_UNSUPPORTED, "this account has one id to give, and no group besides");
    for (size_t i = 0; i < spec->group_count; i++)
        if (spec->groups[i] >= IDS_COUNT)
            return err_set(e, ERR_INVALID, "group %u: ids inside go up to %u", spec->groups[i],
                           IDS_COUNT - 1);
    ids->groups = spec->groups;
    ids->group_count = spec->group_count;
    return 0;
}

static void give_back(const uint32_t *base)
{
    id_range_release(id_ranges_of_machine(), *base);
}

int box_start(const struct box_spec *spec, struct box **ret, struct err *e)
{
    static const char *const no_env[] = { NULL };
    OWN_MEM const char **argv = NULL;
    OWN(plan_done) struct plan plan = { 0 };
    OWN(program_done) struct program program = PROGRAM_INIT;
    OWN(idmap_done) struct idmap held = { .n = 0 };
    OWN_FD int net_fd = -1;
    OWN(frame_done) struct frame frame = FRAME_INIT;
    struct inside in = { .plan = &plan, .held_fds = held.tree_fds };
    OWN(give_back) uint32_t taken = 0;
    struct plan_host host;
    struct box *b;
    struct ids ids;

    if ((spec->log_fd > 0 && isatty(spec->log_fd)) || (spec->err_fd > 0 && isatty(spec->err_fd)))
        return err_set(e, ERR_INVALID, "a terminal cannot be handed into a sandbox");
    if (!spec->place.ids_base && id_range_take(id_ranges_of_machine(), spec->name ? spec->name : "",
                                               spec->uid, &taken, e) < 0)
        return -1;
    if (ids_choose(taken ? taken : spec->place.ids_base, spec->uid, spec->gid, spec->wants_range,
                   &ids, e) < 0)
        return -1;
    ids.is_nested = spec->place.is_nested;
    if (take_groups(&ids, spec, e) < 0)
        return -1;
    plan_host_look(&host);
    user_counts_of_sandbox(&ids, host.counts);
    if (spec->yard && spec->place.join_pidfd <= 0)
        net_fd = yard_take(spec->yard, &frame);
    host.has_frame = frame.etc_fd >= 0;
    if (plan_make(&plan, spec, &ids, &host, e) < 0)
        return -1;
    argv = make_argv(spec, plan.message, e);
    if (!argv)
        return -1;
    if (!plan.is_framed)
        yard_drop_frame(spec->yard, &frame);
    if (net_fd >= 0)
        yard_note_use(spec->yard, plan.can_be_framed);
    if (idmap_hold(&held, &plan, e) < 0 ||
        (spec->cellar_fd && cellar_hold(spec->cellar_fd, &plan, held.tree_fds, e) < 0))
        return -1;
    if (program_begin(&program, spec, e) < 0)
        return -1;
    if (spec->yard)
        settle_ground(spec, &plan, &program, held.tree_fds, &frame);
    in.program = &program;
    in.net_fd = net_fd;
    in.frame = frame;
    in.log_fd = spec->log_fd > 0 ? spec->log_fd : -1;
    in.err_fd = spec->err_fd > 0 ? spec->err_fd : in.log_fd;
    in.status_fd = spec->status_fd > 0 ? spec->status_fd : -1;
    in.parent_pidfd = spec->place.is_sibling ? spec->place.parent_pidfd : -1;
    in.has_names = spec->place.join_pidfd > 0;
    in.argv = (char *const *)(uintptr_t)argv;
    in.envp = (char *const *)(uintptr_t)(spec->env ? spec->env : no_env);
    b = NEW(struct box);
    b->name = own_strdup(spec->name ? spec->name : "sandbox");
    b->pidfd = b->control_fd = b->mounts_fd = -1;
    b->yard = spec->yard;
    b->ids_base = taken;
    taken = 0;
    b->unenforced.max = BOX_UNENFORCED_MAX_BYTES;
    if (apply_limits(b, &plan, spec, e) < 0 || launch_in_ours(b, spec, &in, &program, e) < 0) {
        cgroup_leave(); /* those that we were in ahead */
        box_free(b);
        return err_wrap(e, "sandbox '%s'", spec->name ? spec->name : "sandbox");
    }
    *ret = b;
    return 0;
}
