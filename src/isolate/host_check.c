/* The steps are those of a sandbox (box.c, mounts.c) in the order in which hosts refuse them: the user namespace, the others in
 * it, a mount, a /proc of the new processes. What refuses is then found by the step and the errno: a sysctl that is 0, the
 * root of a chroot, a filter of system calls, a security module, or mounts over parts of /proc. */
#include "isolate/host_check.h"

#include "base/fd.h"
#include "base/str.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum step { STEP_USER, STEP_NAMESPACES, STEP_MOUNT, STEP_PROC, STEP_NONE };

/* The first step that was refused. */
struct refusal {
    enum step step;
    int sys;
    const char *
        limit; /* the sysctl that limits what was refused; a constant of ours, so the same in the copy */
};

static const struct {
    int flag;
    const char *limit;
} namespaces[] = {
    { CLONE_NEWNS, "user.max_mnt_namespaces" },  { CLONE_NEWPID, "user.max_pid_namespaces" },
    { CLONE_NEWNET, "user.max_net_namespaces" }, { CLONE_NEWIPC, "user.max_ipc_namespaces" },
    { CLONE_NEWUTS, "user.max_uts_namespaces" }, { CLONE_NEWCGROUP, "user.max_cgroup_namespaces" },
};

#define USER_LIMIT "user.max_user_namespaces"

/* The longest that fits a hint, and names all three, since each alone forbids sandboxes. */
#define CONTAINER_HINT                                                                             \
    "docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined "             \
    "--security-opt systempaths=unconfined"

/* ---- in a process of its own ---- */

static bool is_refused(struct refusal *r, enum step step, int rc, const char *limit)
{
    if (rc < 0)
        *r = (struct refusal){ step, errno, limit };
    return rc < 0;
}

static struct refusal take_steps(void)
{
    struct refusal r = { .step = STEP_NONE };
    pid_t pid;
    int status = 0;

    if (is_refused(&r, STEP_USER, unshare(CLONE_NEWUSER), USER_LIMIT))
        return r;
    EACH(row, namespaces) {
        if (is_refused(&r, STEP_NAMESPACES, unshare(row->flag), row->limit))
            return r;
    }
    if (is_refused(&r, STEP_MOUNT, mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), NULL))
        return r;
    pid = fork(); /* the first process of the new namespace */
    if (pid == 0)
        _exit(mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0 ? errno
                                                                                         : 0);
    if (pid > 0 && TEMP_FAILURE_RETRY(waitpid(pid, &status, 0)) == pid && WIFEXITED(status) &&
        WEXITSTATUS(status))
        r = (struct refusal){ .step = STEP_PROC, .sys = WEXITSTATUS(status) };
    return r;
}

static struct refusal find_refusal(void)
{
    struct refusal r = { .step = STEP_NONE };
    OWN_FD int in_fd = -1;
    OWN_FD int out_fd = -1;
    struct err e;
    int fds[2];
    pid_t pid;

    if (pipe2(fds, O_CLOEXEC) < 0)
        return r;
    in_fd = fds[0];
    out_fd = fds[1];
    pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        r = take_steps();
        (void)fd_write_all(out_fd, span_of(&r, sizeof r), &e);
        _exit(0);
    }
    own_fd_close(&out_fd);
    if (pid < 0 || fd_read_exact(in_fd, &r, sizeof r, &e) < 0)
        r = (struct refusal){ .step = STEP_NONE };
    if (pid > 0)
        (void)TEMP_FAILURE_RETRY(waitpid(pid, NULL, 0));
    return r;
}

/* ---- what refused ---- */

static bool file_has(const char *path, const char *line)
{
    OWN(buf_done) struct buf text = BUF_INIT(64 * 1024);
    struct span rest, at;
    struct err e;

    if (fd_read_file(path, &text, &e) < 0)
        return false;
    for (rest = buf_span(&text); span_cut(&rest, '\n', &at);)
        if (span_is(at, line))
            return true;
    return span_is(rest, line);
}

/* "user.max_user_namespaces": its file. */
static bool sysctl_is(const char *name, const char *value)
{
    char path[128];

    (void)snprintf(path, sizeof path, "/proc/sys/%s", name);
    for (char *at = path + sizeof "/proc/sys/" - 1; *at; at++)
        if (*at == '.')
            *at = '/';
    return file_has(path, value);
}

static int blame(struct err *e, const char *cause, const char *hint)
{
    (void)err_wrap(e, "%s", cause);
    err_hint(e, "%s", hint);
    return -1;
}

static int blame_sysctl(struct err *e, const char *name, const char *value, const char *better)
{
    char cause[160], hint[160];

    (void)snprintf(cause, sizeof cause, "%s is %s", name, value);
    (void)snprintf(hint, sizeof hint, "as root: sysctl -w %s=%s (and a line in /etc/sysctl.d)",
                   name, better);
    return blame(e, cause, hint);
}

static int blame_limit(struct err *e, const struct refusal *r)
{
    char cause[160], hint[160];

    if (sysctl_is(r->limit, "0"))
        return blame_sysctl(e, r->limit, "0", "10000");
    (void)snprintf(cause, sizeof cause, "%s is used up, here or in a namespace above", r->limit);
    (void)snprintf(hint, sizeof hint, "as root: sysctl -w %s=N with a larger N; lsns shows them",
                   r->limit);
    return blame(e, cause, hint);
}

/* A chroot's root directory is no mount of its own; the kernel gives no user namespace there. */
static bool is_chrooted(void)
{
    OWN(buf_done) struct buf text = BUF_INIT(1 << 20);
    struct span rest, line, word;
    struct err e;

    if (fd_read_file("/proc/self/mountinfo", &text, &e) < 0)
        return false;
    for (rest = buf_span(&text); span_cut(&rest, '\n', &line);) {
        for (int i = 0; i < 5; i++)
            if (!span_cut(&line, ' ', &word))
                return false;
        if (span_is(word, "/"))
            return false;
    }
    return text.n > 0;
}

static bool is_filtered(void)
{
    return file_has("/proc/self/status", "Seccomp:\t2");
}

/* The profile of a security module that confines us, or "". */
static void read_profile(char *text, size_t n)
{
    OWN(buf_done) struct buf file = BUF_INIT(4096);
    struct span profile;
    struct err e;

    *text = '\0';
    if (fd_read_file("/proc/self/attr/current", &file, &e) < 0)
        return;
    profile = span_trim(span_cstr(buf_cstr(&file))); /* its end may be a NUL */
    if (profile.n && !span_is(profile, "unconfined") && !span_is(profile, "kernel"))
        (void)snprintf(text, n, "%.*s", (int)MIN(profile.n, n - 1), (const char *)profile.p);
}

static int blame_module(struct err *e, const char *what)
{
    char profile[100], cause[160];

    read_profile(profile, sizeof profile);
    if (is_filtered()) {
        (void)snprintf(cause, sizeof cause, "a seccomp filter, as containers have it, forbids %s",
                       what);
        return blame(e, cause, CONTAINER_HINT ", or --privileged");
    }
    if (*profile) {
        (void)snprintf(cause, sizeof cause, "the security profile '%.80s' forbids %s", profile,
                       what);
        return blame(e, cause,
                     "start it outside that profile; in a container: "
                     "--security-opt apparmor=unconfined --security-opt label=disable");
    }
    return -1;
}

/* The path of a mount over a part of /proc, cut out of a line of mountinfo; SPAN_NONE. */
static struct span covered_part(struct span line)
{
    struct span word = SPAN_NONE;

    for (int i = 0; i < 5; i++)
        if (!span_cut(&line, ' ', &word))
            return SPAN_NONE;
    return span_starts(word, "/proc/") && !span_starts(word, "/proc/sys/fs/binfmt_misc")
               ? word
               : SPAN_NONE;
}

static int blame_proc(struct err *e)
{
    OWN(buf_done) struct buf text = BUF_INIT(1 << 20);
    struct span rest, line, part = SPAN_NONE;
    char cause[200];
    struct err ignored;

    if (fd_read_file("/proc/self/mountinfo", &text, &ignored) < 0)
        return -1;
    for (rest = buf_span(&text); !part.n && span_cut(&rest, '\n', &line);)
        part = covered_part(line);
    if (!part.n)
        return blame_module(e, "to mount a /proc");
    (void)snprintf(cause, sizeof cause, "a part of /proc is covered, as in containers (%.*s)",
                   (int)MIN(part.n, 80u), (const char *)part.p);
    return blame(e, cause,
                 "docker run --security-opt systempaths=unconfined; in a Pod procMount: Unmasked; "
                 "or umount it");
}

static int blame_user(struct err *e)
{
    if (access("/proc/self/ns/user", F_OK) < 0 && errno == ENOENT)
        return blame(e, "this kernel has no user namespaces", "a kernel with CONFIG_USER_NS=y");
    if (sysctl_is("kernel.unprivileged_userns_clone", "0"))
        return blame_sysctl(e, "kernel.unprivileged_userns_clone", "0", "1");
    if (is_chrooted())
        return blame(e, "this process is in a chroot, where there are no user namespaces",
                     "start silica outside of it, or in a container that uses pivot_root");
    return blame_module(e, "user namespaces");
}

int host_check_explain(struct err *e)
{
    const struct refusal r = find_refusal();

    if (r.step == STEP_NONE)
        return -1;
    if (r.sys == ENOSPC && r.limit)
        return blame_limit(e, &r);
    if (r.step == STEP_USER)
        return blame_user(e);
    /* Such a system makes the namespace, and gives no rights in it. */
    if (geteuid() != 0 && sysctl_is("kernel.apparmor_restrict_unprivileged_userns", "1"))
        return blame(e, "kernel.apparmor_restrict_unprivileged_userns is 1",
                     "as root: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or an "
                     "AppArmor profile for silica with `userns,`");
    if (r.step == STEP_PROC)
        return blame_proc(e);
    return blame_module(e, r.step == STEP_MOUNT ? "mounts" : "namespaces");
}
