#include "isolate/box_rig.h"

#include "base/fd.h"
#include "isolate/cgroup.h"
#include "isolate/runtime_path.h"
#include "isolate/testwho.h"
#include "isolate/yard.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>

struct box_rig box_rig;
static const struct box_rig_plan *cases;
static int runtime_fd = -1;
static struct yard *yard;

/* A sanitized PID 1 cannot look for leaks: that wants ptrace. */
static const char *const env[] = { "PATH=" BOX_PATH, "HOME=" BOX_HOME, "LC_ALL=C",
                                   "ASAN_OPTIONS=detect_leaks=0", NULL };

struct ran {
    struct buf out;
    int status; /* as a shell says it */
};

struct box_spec box_rig_spec(const char *const *args)
{
    return (struct box_spec){ .name = "box-test",
                              .env = env,
                              .uid = 1000,
                              .gid = 1000,
                              .runtime_args = args,
                              .runtime_fd = runtime_fd,
                              .wants_range = box_rig.is_ranged,
                              .yard = yard };
}

void box_rig_need_user_namespaces(void)
{
    if (box_rig.has_user_namespaces)
        return;
    print_message("user namespaces are not allowed here\n");
    skip();
}

/* Both outputs come back. */
static struct ran run_spec(struct box_spec spec, const char *script)
{
    const char *const args[] = { "--log-level", "off", "--", "sh", "-c", script, NULL };
    struct ran r = { .out = BUF_INIT(1 << 20) };
    struct box *b = NULL;
    struct err e = { 0 };
    int out[2];

    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    spec.runtime_args = args;
    spec.log_fd = out[1];
    if (box_start(&spec, &b, &e) < 0)
        fail_msg("%s", e.msg);
    (void)close(out[1]);
    if (fd_read_all(out[0], &r.out, &e) < 0)
        fail_msg("%s", e.msg);
    (void)close(out[0]);
    (void)poll(&(struct pollfd){ .fd = box_pidfd(b), .events = POLLIN }, 1, 20000);
    assert_int_equal(box_kill(b, &r.status, &e), 0);
    r.status = WIFSIGNALED(r.status) ? 128 + WTERMSIG(r.status) : WEXITSTATUS(r.status);
    box_free(b);
    return r;
}

void box_rig_expect(const char *name, struct box_spec spec, const char *script, const char *want)
{
    struct ran r = run_spec(spec, script);

    if (strcmp(buf_cstr(&r.out), want) != 0)
        fail_msg("%s: got '%s', want '%s'", name, buf_cstr(&r.out), want);
    buf_done(&r.out);
}

void box_rig_expect_error(const char *name, struct box_spec spec, const char *want)
{
    struct box *b = NULL;
    struct err e;

    if (box_start(&spec, &b, &e) == 0)
        fail_msg("%s: it was made", name);
    if (!strstr(e.msg, want))
        fail_msg("%s: got '%s', want '%s'", name, e.msg, want);
}

static bool probe_user_namespaces(void)
{
    static const char *const args[] = { "--version", NULL };
    struct box_spec spec = box_rig_spec(args);
    struct box *b;
    struct err e;

    if (box_start(&spec, &b, &e) == 0) {
        box_free(b);
        return true;
    }
    print_message("%s\n", e.msg);
    return e.sys != EPERM && e.sys != ENOSPC;
}

/* Root of a container may not have them either; what is wanted of root here is checked by who runs these tests. */
static bool probe_cgroups(void)
{
    static const char *const args[] = { "--version", NULL };
    struct box_spec spec = box_rig_spec(args);
    struct box *b;
    struct err e;

    spec.limits = (struct box_limits){ .memory_bytes = 64 << 20, .cpu_milli = 1000, .pids = 100 };
    if (box_start(&spec, &b, &e) < 0) {
        print_message("%s\n", e.msg);
        return false;
    }
    box_free(b);
    return true;
}

static int run(const char *who, struct box_rig_cases c)
{
    return c.n ? _cmocka_run_group_tests(who, c.tests, c.n, NULL, NULL) : 0;
}

static int run_all(const char *who)
{
    struct err e;
    int failed;

    box_rig.has_user_namespaces = probe_user_namespaces();
    box_rig.has_cgroups = box_rig.has_user_namespaces && probe_cgroups();
    failed = run(who, cases->all);
    if (!cases->beside_a_yard.n)
        return failed;
    if (yard_open(&yard, &e) < 0) {
        print_message("%s\n", e.msg);
        return 1;
    }
    print_message("beside a yard:\n");
    failed |= run(who, cases->beside_a_yard);
    yard_close(take_ptr(&yard));
    return failed;
}

static int run_ranged(void)
{
    box_rig.is_ranged = true;
    box_rig.has_user_namespaces = probe_user_namespaces();
    return run("an account with a range", cases->ranged);
}

/* A subtree of the cgroups is handed to the account and it runs in there: then its limits hold. */
static bool hand_over(const char *dir)
{
    char path[CGROUP_PATH_MAX_BYTES + 64];
    struct err e;
    int fd;

    if (mkdir(dir, 0755) < 0 || chown(dir, TESTWHO_NOBODY, TESTWHO_NOBODY) < 0)
        return false;
    (void)snprintf(path, sizeof path, "%s/cgroup.procs", dir);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || fchown(fd, TESTWHO_NOBODY, TESTWHO_NOBODY) < 0 ||
        fd_write_all(fd, SPAN("0"), &e) < 0)
        return false;
    (void)close(fd);
    return true;
}

static int run_as_handed(void)
{
    struct cgroup_host host = *cgroup_host();
    pid_t child;
    int status = 1;

    if (!box_rig.has_cgroups) {
        print_message("no cgroups to hand over\n");
        return 0;
    }
    for (int kind = 0; kind < CGROUP_KINDS; kind++)
        if (host.dirs[kind][0])
            (void)snprintf(host.dirs[kind] + strlen(host.dirs[kind]), 64, "/box-test-%d", getpid());
    child = fork();
    if (child == 0) {
        for (int kind = 0; kind < CGROUP_KINDS; kind++)
            if (host.dirs[kind][0] && !hand_over(host.dirs[kind]))
                _exit(98);
        if (!testwho_be(TESTWHO_NOBODY))
            _exit(99);
        box_rig.has_user_namespaces = probe_user_namespaces();
        box_rig.has_cgroups = true;
        exit(run("an account with cgroups", cases->handed));
    }
    (void)waitpid(child, &status, 0);
    for (int kind = 0; kind < CGROUP_KINDS; kind++)
        for (int i = 0; host.dirs[kind][0] && rmdir(host.dirs[kind]) < 0 && i < 100; i++)
            (void)poll(NULL, 0, 10);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static int run_nobody(void)
{
    return run_all("an account");
}

int box_rig_run(const struct box_rig_plan *plan)
{
    int failed;

    cases = plan;
    runtime_fd = open(SILICA_RUNTIME_PATH, O_RDONLY | O_CLOEXEC);
    if (runtime_fd < 0)
        return 1;
    failed = run_all(geteuid() == 0 ? "root" : "an account");
    if (geteuid() != 0)
        return failed;
    failed |= testwho_run_as_nobody(run_nobody);
    if (plan->ranged.n)
        failed |= testwho_run_as_ranged(run_ranged);
    if (plan->handed.n)
        failed |= run_as_handed();
    return failed;
}
