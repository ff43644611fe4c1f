/* Boxes are started for real: by who runs the tests, and where that is root also by an account that has
 * nothing but its uid, by one with a range of ids, and by one with cgroups of its own. What runs inside prints what it
 * sees; the test compares. Long, because the same cases are run by each of them. */
#include "isolate/box.h"

#include "base/fd.h"
#include "isolate/cgroup.h"
#include "isolate/runtime_path.h"
#include "isolate/testwho.h"
#include "isolate/yard.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

/* A sanitized PID 1 cannot look for leaks: that wants ptrace. */
static const char *const env[] = { "PATH=" BOX_PATH, "HOME=" BOX_HOME, "LC_ALL=C",
                                   "ASAN_OPTIONS=detect_leaks=0", NULL };
static int runtime_fd = -1;
static bool has_user_namespaces;
static bool is_ranged;   /* we are the account with a range */
static bool has_cgroups; /* memory, pids and cpu can be limited */
static struct yard *yard;

struct ran {
    struct buf out;
    int status; /* as a shell says it */
};

static struct box_spec spec_of(const char *const *args)
{
    return (struct box_spec){ .name = "box-test",
                              .env = env,
                              .uid = 1000,
                              .gid = 1000,
                              .runtime_args = args,
                              .runtime_fd = runtime_fd,
                              .wants_range = is_ranged,
                              .yard = yard };
}

static void need_user_namespaces(void)
{
    if (has_user_namespaces)
        return;
    print_message("user namespaces are not allowed here\n");
    skip();
}

/* Runs `script` as the main command of a box; both outputs come back. */
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

static void expect(const char *name, struct box_spec spec, const char *script, const char *want)
{
    struct ran r = run_spec(spec, script);

    if (strcmp(buf_cstr(&r.out), want) != 0)
        fail_msg("%s: got '%s', want '%s'", name, buf_cstr(&r.out), want);
    buf_done(&r.out);
}

/* Scripts print a short word for what they find: a line of "ok" is what should be. */
/* clang-format off */
static void inside(void **state)
{
    static const struct row {
        const char *name, *script, *want;
    } rows[] = {
        { "ids", "id -u; id -g; id -un; id -gn", "1000\n1000\nsandbox\nsandbox\n" },
        { "groups", "id -G", "1000\n" },
        { "home", "pwd; touch x && echo made", "/workspace\nmade\n" },
        { "host name", "hostname; cat /etc/hostname", "box-test\nbox-test\n" },
        { "capabilities", "grep -c '^Cap.*:.*0000000000000000$' /proc/self/status", "5\n" },
        { "no new privileges", "grep NoNewPrivs /proc/self/status", "NoNewPrivs:\t1\n" },
        { "filters", "grep Seccomp_filters /proc/self/status", "Seccomp_filters:\t2\n" },
        { "processes", "set -- $(ps -e -o pid=); echo $1 $#", "1 3\n" }, /* PID 1, sh, ps */
        { "python", "python -c 'print(6 * 7)'", "42\n" },
        { "descriptors", "ls /proc/self/fd | tr '\\n' ' '", "0 1 2 3 " }, /* 3 is the listing itself */
        { "interfaces", "sed 1,2d /proc/net/dev | cut -d: -f1 | tr -d ' '", "lo\n" },
        { "loopback", "python3 -c \"import socket; s = socket.create_server(('127.0.0.1', 0)); "
                      "socket.create_connection(s.getsockname()); print('ok')\"", "ok\n" },
        { "no way out", "python3 -c \"import socket\ntry: socket.create_connection(('1.1.1.1', 80), 5)\n"
                        "except OSError as e: print(e.errno)\"", "101\n" }, /* ENETUNREACH */
        { "the host's homes", "ls -A /home /root 2>/dev/null | grep -Evc '^(/|$)'", "0\n" },
        { "shadow", "cat /etc/shadow 2>&1", "cat: /etc/shadow: No such file or directory\n" },
        { "the host's sys", "ls /sys 2>&1", "ls: cannot access '/sys': No such file or directory\n" },
        { "usr", "touch /usr/x 2>&1", "touch: cannot touch '/usr/x': Read-only file system\n" },
        { "remount", "mount -o remount,rw /usr 2>&1 | head -c 5", "mount" },
        { "nested user namespace", "unshare -U true 2>&1",
          "unshare: unshare failed: Function not implemented\n" },
        { "its limit", "cat /proc/sys/user/max_user_namespaces; (echo 1 > "
                       "/proc/sys/user/max_user_namespaces) 2>&1 | grep -o 'Read-only.*'",
          "0\nRead-only file system\n" },
        { "masked", "cat /proc/kmsg /proc/keys /proc/timer_list /proc/interrupts | wc -c; ls /proc/acpi 2>&1 "
                    "| grep -c denied", "0\n1\n" },
        { "PID 1's secrets", "cat /proc/1/environ /proc/1/maps 2>&1 | grep -c denied", "2\n" },
        { "PID 1 cannot be killed", "kill -KILL 1; sleep 0.05; echo alive", "alive\n" },
        { "devices", "mknod /tmp/sda b 8 0 2>/dev/null; test -e /tmp/sda || echo none", "none\n" },
        { "device list", "cd /dev; echo *", "fd full null ptmx pts random shm stderr stdin stdout tty urandom zero\n" },
        { "a terminal", "python3 -c \"import os; m, s = os.openpty(); print(os.isatty(s))\"", "True\n" },
        { "shared memory", "touch /dev/shm/x && echo ok", "ok\n" },
        { "renames across directories", "mkdir a b; touch a/x; mv a/x b/x && ls b", "x\n" },
        { "families", "python3 -c \"import socket\nfor f in range(1, 46):\n try: socket.socket(f, 2 if f == 2 else 1).close(); print(f, end=' ')\n"
                      " except OSError as e:\n  if e.errno != 97: print(f, 'e%d' % e.errno, end=' ')\"",
          "1 2 10 16 e94 " }, /* netlink has no streams: ESOCKTNOSUPPORT */
        { "netlink", "python3 -c \"import socket\nsocket.socket(16, 3, 0).close()\n"
                     "for p in range(1, 24):\n try: socket.socket(16, 3, p); print(p)\n except OSError as e: assert e.errno == 93\"", "" },
        { "controlling terminal", "python3 -c \"import os\ntry: os.open('/dev/tty', os.O_RDWR)\nexcept OSError as e: print(e.errno)\"", "6\n" },
        { "cgroup namespace", "cut -d: -f3 /proc/self/cgroup | sort -u", "/\n" },
    };

    (void)state;
    need_user_namespaces();
    EACH(r, rows) {
        /* Without a range of ids nobody may drop groups: further ones of the caller stay, as nogroup. */
        if (geteuid() != 0 && getgroups(0, NULL) > 1 && strcmp(r->name, "groups") == 0)
            continue;
        expect(r->name, spec_of(NULL), r->script, r->want);
    }
}
/* clang-format on */

/* The calls by number, because no program makes them by accident. ENOSYS is 38, EPERM 1. */
static void calls(void **state)
{
    static const char script[] =
        "python3 - <<'E'\n"
        "import ctypes, os\n"
        "c = ctypes.CDLL(None, use_errno=True)\n"
        "def call(*a):\n"
        "    ctypes.set_errno(0); r = c.syscall(*[ctypes.c_long(x) for x in a]); return ctypes.get_errno() if r < 0 else 0\n"
        "names = dict(io_uring_setup=425, bpf=321, keyctl=250, add_key=248, perf_event_open=298, userfaultfd=323,\n"
        "    ptrace=101, mount=165, umount2=166, pivot_root=155, chroot=161, setns=308, unshare=272, clone3=435,\n"
        "    init_module=175, kexec_load=246, reboot=169, swapon=167, process_vm_readv=310, open_by_handle_at=304,\n"
        "    fsopen=430, open_tree=428, move_mount=429, mount_setattr=442, kcmp=312, syslog=103, acct=163, iopl=172,\n"
        "    x32_getpid=0x40000000 + 39, name_to_handle_at=303, pidfd_getfd=438, quotactl=179, modify_ldt=154)\n"
        "for name, number in names.items():\n"
        "    e = call(number, 0, 0, 0, 0, 0)\n"
        "    if e != 38: print(name, e)\n"
        "print('clone', [call(56, f | 17, 0, 0, 0, 0) for f in (0x10000000, 0x20000, 0x40000000, 0x20000000)])\n"
        "print('ioctl', [call(16, 0, n, 0) for n in (0x5412, 0x541c, (1 << 32) | 0x5412)])\n"
        "print('personality', call(135, 0xffffffff), call(135, 8))\n"
        "print('socket', call(41, (1 << 32) | 40, 1, 0))\n"
        "E";

    (void)state;
    need_user_namespaces();
#ifndef __x86_64__
    print_message("the numbers are those of x86_64\n");
    skip();
#endif
    expect("calls", spec_of(NULL), script,
           "clone [1, 1, 1, 1]\nioctl [1, 1, 1]\npersonality 0 38\nsocket 97\n");
}

static void read_only_root(void **state)
{
    struct box_spec spec = spec_of(NULL);

    (void)state;
    need_user_namespaces();
    spec.is_read_only = true;
    expect(
        "read-only", spec,
        "for d in / /etc /var/tmp /run /opt /dev; do touch $d/x 2>/dev/null && echo $d; done; "
        "for d in /tmp /workspace /dev/shm; do touch $d/x || echo no $d; done; echo a > /dev/null; "
        "python -c 'import os; os.openpty()'",
        "");
}

static void expect_error(const char *name, struct box_spec spec, const char *want)
{
    struct box *b = NULL;
    struct err e;

    if (box_start(&spec, &b, &e) == 0)
        fail_msg("%s: it was made", name);
    if (!strstr(e.msg, want))
        fail_msg("%s: got '%s', want '%s'", name, e.msg, want);
}

static void binds(void **state)
{
    char dir[] = "/tmp/box-test-XXXXXX", file[64], link_path[64];
    struct box_bind b[3];
    struct box_spec spec = spec_of(NULL);
    OWN_FD int fd = -1;

    (void)state;
    need_user_namespaces();
    assert_non_null(mkdtemp(dir));
    assert_int_equal(chmod(dir, 0777), 0);
    (void)snprintf(file, sizeof file, "%s/note", dir);
    (void)snprintf(link_path, sizeof link_path, "%s/out", dir);
    fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    assert_int_equal(write(fd, "hello\n", 6), 6);
    assert_int_equal(symlink("/etc", link_path), 0);
    b[0] = (struct box_bind){ dir, "/data", false };
    b[1] = (struct box_bind){ dir, "/deep/er/rw", true };
    b[2] = (struct box_bind){ file, "/etc/note", false };
    spec.binds = b;
    spec.bind_count = 3;
    expect("binds", spec,
           "cat /data/note /etc/note; touch /data/x 2>&1 | grep -o 'Read-only.*'; echo in > "
           "/deep/er/rw/made; ls /data",
           "hello\nhello\nRead-only file system\nmade\nnote\nout\n");
    /* A link in a caller's tree does not lead out of the sandbox's root. */
    b[2] = (struct box_bind){ file, "/deep/er/rw/out/planted", false };
    expect("link", spec, "cat /etc/planted; ls /data", "hello\nmade\nnote\nout\n");
    assert_int_equal(access("/etc/planted", F_OK), -1);
    /* A part of it: a file, and what a link that stays in it leads to; a link that leads out is an error. */
    b[0] = (struct box_bind){ dir, "/part", false, "note" };
    b[1] = (struct box_bind){ dir, "/linked", true, "in" };
    spec.bind_count = 2;
    (void)snprintf(file, sizeof file, "%s/in", dir);
    assert_int_equal(symlink("note", file), 0);
    expect("parts", spec, "cat /part /linked", "hello\nhello\n");
    (void)unlink(file);
    b[1].sub = "out/hostname";
    expect_error("a part outside", spec, "out/hostname' inside: Invalid cross-device link");
    (void)snprintf(file, sizeof file, "%s/made", dir);
    (void)unlink(file);
    (void)snprintf(file, sizeof file, "%s/note", dir);
    (void)unlink(file);
    (void)unlink(link_path);
    assert_int_equal(rmdir(dir), 0);
}

/* Root's volumes show the ids that are on disk, and get those of who writes. */
static void ids_of_volumes(void **state)
{
    char dir[] = "/tmp/box-test-XXXXXX", file[64];
    struct box_bind b = { dir, "/data", true };
    struct box_spec spec = spec_of(NULL);
    struct stat st;

    (void)state;
    need_user_namespaces();
    assert_non_null(mkdtemp(dir));
    if (geteuid() == 0)
        assert_int_equal(chown(dir, 1000, 1000), 0);
    (void)snprintf(file, sizeof file, "%s/made", dir);
    spec.binds = &b;
    spec.bind_count = 1;
    expect("ids", spec, "stat -c %u:%g /data; touch /data/made && stat -c %u:%g /data/made",
           "1000:1000\n1000:1000\n");
    assert_int_equal(stat(file, &st), 0);
    assert_int_equal(st.st_uid, geteuid() == 0 ? 1000 : geteuid());
    assert_int_equal(unlink(file), 0);
    assert_int_equal(rmdir(dir), 0);
}

static void errors(void **state)
{
    static const struct box_bind missing[] = { { "/nonexistent/x", "/x", false } };
    static const struct box_bind readonly[] = { { "/usr", "/usr/nope/x", false } };
    static const struct row {
        const char *name;
        struct box_spec more;
        const char *text;
    } rows[] = {
        { "no source",
          { .binds = missing, .bind_count = 1 },
          "sandbox 'box-test': cannot show '/nonexistent/x' inside: No such file or directory" },
        { "no place",
          { .binds = readonly, .bind_count = 1 },
          "sandbox 'box-test': cannot make '/usr/nope' inside: Read-only file system" },
        { "no directory",
          { .cwd = "/nope" },
          "sandbox 'box-test': cannot enter '/nope' inside: No such file or directory" },
        { "an id too high", { .uid = (uid_t)-1 }, "user 4294967295:1000 is not an id" },
    };
    struct err e;
    struct box *b;

    (void)state;
    need_user_namespaces();
    EACH(r, rows) {
        struct box_spec spec = spec_of(NULL);

        spec.binds = r->more.binds;
        spec.bind_count = r->more.bind_count;
        spec.cwd = r->more.cwd;
        spec.uid = r->more.uid ? r->more.uid : 1000;
        assert_int_equal(box_start(&spec, &b, &e), -1);
        if (strcmp(e.msg, r->text) != 0)
            fail_msg("%s: got '%s', want '%s'", r->name, e.msg, r->text);
    }
}

/* How many lines a file has, or entries a directory. */
static size_t count_lines(const char *path)
{
    OWN(buf_done) struct buf text = BUF_INIT(1 << 20);
    struct span rest, line;
    struct err e;
    size_t n = 0;

    if (fd_read_file(path, &text, &e) < 0)
        fail_msg("%s", e.msg);
    for (rest = buf_span(&text); span_cut(&rest, '\n', &line);)
        n++;
    return n;
}

static size_t count_entries(const char *path)
{
    DIR *d = opendir(path);
    size_t n = 0;

    while (d && readdir(d))
        n++;
    if (d)
        (void)closedir(d);
    return n;
}

/* A box in the middle of its life is killed with everything in it; then nothing of it is left. */
static void nothing_is_left(void **state)
{
    static const char *const args[] = {
        "--log-level", "off", "--",
        "sh",          "-c",  "for i in 1 2 3; do setsid sleep 98765 & done; wait",
        NULL
    };
    size_t mounts = count_lines("/proc/self/mountinfo"), fds = count_entries("/proc/self/fd");
    struct box_spec spec = spec_of(args);
    struct err e;

    (void)state;
    need_user_namespaces();
    for (int i = 0; i < 5; i++) {
        struct box *b;
        int status, control;
        char path[64];
        pid_t pid;

        if (box_start(&spec, &b, &e) < 0)
            fail_msg("%s", e.msg);
        pid = box_pid(b);
        control = box_take_control(b);
        assert_true(control >= 0);
        assert_int_equal(box_take_control(b), -1);
        if (i % 2)
            assert_int_equal(box_kill(b, &status, &e), 0);
        box_free(b);
        (void)close(control);
        (void)snprintf(path, sizeof path, "/proc/%d", pid);
        assert_int_equal(access(path, F_OK), -1);
        assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
        assert_int_equal(errno, ECHILD);
    }
    assert_int_equal(count_lines("/proc/self/mountinfo"), mounts);
    assert_int_equal(count_entries("/proc/self/fd"), fds);
}

/* The owner closes its end: PID 1 ends by itself. */
static void ends_with_its_owner(void **state)
{
    static const char *const args[] = { "--log-level", "off", NULL };
    struct box_spec spec = spec_of(args);
    struct box *b;
    struct err e;
    int status, control;

    (void)state;
    need_user_namespaces();
    if (box_start(&spec, &b, &e) < 0)
        fail_msg("%s", e.msg);
    control = box_take_control(b);
    (void)close(control);
    assert_int_equal(poll(&(struct pollfd){ .fd = box_pidfd(b), .events = POLLIN }, 1, 10000), 1);
    assert_int_equal(box_kill(b, &status, &e), 0);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    box_free(b);
}

/* Is there a cgroup that this process made? */
static bool has_group_of(pid_t maker)
{
    const char *above = cgroup_host()->dirs[CGROUP_V2];
    DIR *dir = *above ? opendir(above) : NULL;
    struct dirent *entry;
    char prefix[32];
    bool is_found = false;

    (void)snprintf(prefix, sizeof prefix, "silica-%d-", maker);
    while (dir && (entry = readdir(dir)))
        is_found |= strncmp(entry->d_name, prefix, strlen(prefix)) == 0;
    if (dir)
        (void)closedir(dir);
    return is_found;
}

/* And when its owner dies without a word, everything in it is killed. */
static void dies_with_its_parent(void **state)
{
    static const char *const args[] = { "--log-level", "off", "--", "sleep", "98766", NULL };
    struct box_spec spec = spec_of(args);
    int tell[2], inside_pid = 0;
    char path[64];
    pid_t parent;

    (void)state;
    need_user_namespaces();
    assert_int_equal(pipe2(tell, O_CLOEXEC), 0);
    parent = fork();
    if (parent == 0) {
        struct box *b;
        struct err e;

        if (box_start(&spec, &b, &e) == 0)
            (void)!write(tell[1], &(int){ box_pid(b) }, sizeof(int));
        (void)raise(SIGKILL);
    }
    assert_int_equal(read(tell[0], &inside_pid, sizeof inside_pid), sizeof inside_pid);
    assert_int_equal(waitpid(parent, NULL, 0), parent);
    (void)snprintf(path, sizeof path, "/proc/%d/ns", inside_pid);
    for (int i = 0; i < 500 && count_entries(path); i++)
        (void)poll(NULL, 0, 10);
    assert_int_equal(count_entries(path), 0);
    /* The last task leaves its group after its entry in /proc is gone. Another sweeper of this host may be faster. */
    (void)box_sweep();
    for (int i = 0; has_group_of(parent); i++) {
        assert_true(i < 500);
        (void)poll(NULL, 0, 10);
        (void)box_sweep();
    }
    (void)close(tell[0]);
    (void)close(tell[1]);
}

static void process_limit(void **state)
{
    struct box_spec spec = spec_of(NULL);

    (void)state;
    need_user_namespaces();
    spec.limits.pids = 12;
    expect(
        "processes", spec,
        "python3 - <<'E'\nimport os, time\nn = 0\ntry:\n while n < 50:\n  if os.fork() == 0: time.sleep(30)\n"
        "  n += 1\nexcept OSError as e: print(e.errno, 5 < n < 12)\nE",
        "11 True\n");
}

/* Where no cgroup is ours to use, a limit is refused, or left out when that is what the caller said. */
static void memory_limit(void **state)
{
    static const char eat[] =
        "python3 -c 'x = bytearray(200 << 20); print(len(x) >> 20)' || echo $?";
    struct box_spec spec = spec_of(NULL);
    struct box *b;
    struct err e;

    (void)state;
    need_user_namespaces();
    spec.limits.memory_bytes = 64 << 20;
    if (has_cgroups) {
        expect("memory", spec, eat, "Killed\n137\n");
        return;
    }
    assert_int_equal(box_start(&spec, &b, &e), -1);
    assert_int_equal(e.code, ERR_UNSUPPORTED);
    assert_non_null(strstr(e.msg, "a limit of memory cannot be enforced: "));
    assert_non_null(strstr(e.hint, "--limits=best-effort"));
    spec.is_best_effort = true;
    expect("memory, best effort", spec, eat, "200\n");
}

static void cpu_limit(void **state)
{
    static const char burn[] =
        "python3 -c \"import time\nend = time.monotonic() + 0.6\n"
        "while time.monotonic() < end: pass\nprint(time.process_time() < 0.3)\"";
    struct box_spec spec = spec_of(NULL);
    struct box *b;
    struct err e;

    (void)state;
    need_user_namespaces();
    spec.limits.cpu_milli = 250;
    if (has_cgroups) {
        expect("cpu", spec, burn, "True\n");
        return;
    }
    assert_int_equal(box_start(&spec, &b, &e), -1);
    assert_non_null(strstr(e.msg, "a limit of cpu cannot be enforced: "));
    spec.is_best_effort = true;
    if (box_start(&spec, &b, &e) < 0)
        fail_msg("%s", e.msg);
    assert_string_equal(box_unenforced(b), "cpu");
    box_free(b);
}

/* What can be read within `ms`: how much a box that prints all the time has printed. */
static size_t drain(int fd, int ms)
{
    char some[4096];
    size_t n = 0;
    ssize_t got = 1;

    while (got > 0 && poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, ms) == 1) {
        got = read(fd, some, sizeof some);
        n += (size_t)MAX(got, 0);
    }
    return n;
}

static void pause_and_resume(void **state)
{
    static const char *const args[] = {
        "--log-level",
        "off",
        "--",
        "sh",
        "-c",
        "(while :; do echo a; sleep 0.01; done) & (while :; do echo b; sleep 0.01; done)",
        NULL
    };
    struct box_spec spec = spec_of(args);
    struct box_stats stats = { 0 };
    struct box *b;
    struct err e;
    char byte;
    int out[2];

    (void)state;
    need_user_namespaces();
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    spec.log_fd = out[1];
    if (box_start(&spec, &b, &e) < 0)
        fail_msg("%s", e.msg);
    (void)close(out[1]);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(read(out[0], &byte, 1), 1); /* it runs */
        if (box_pause(b, &e) < 0)
            fail_msg("%s", e.msg);
        (void)drain(out[0], 0); /* what it said before */
        assert_int_equal(drain(out[0], 100), 0);
        assert_int_equal(box_stats(b, &stats, &e), 0);
        assert_true(stats.has_cpu && stats.has_memory && stats.has_pids);
        assert_in_range(stats.pids, 3, 8);
        assert_in_range(stats.memory_bytes, 100 << 10, 100 << 20);
        assert_true(i == 0 || stats.cpu_us > 0 || !has_cgroups);
        if (box_resume(b, &e) < 0)
            fail_msg("%s", e.msg);
    }
    assert_int_equal(read(out[0], &byte, 1), 1);
    assert_int_equal(box_pause(b, &e), 0);
    box_free(b); /* the paused die too */
    (void)drain(out[0], 0);
    assert_int_equal(read(out[0], &byte, 1), 0);
    (void)close(out[0]);
}

/* A server inside is reached through a socket made inside, and through no other. */
static void reach(void **state)
{
    static const char *const args[] = {
        "--log-level",
        "off",
        "--",
        "python3",
        "-c",
        "import socket\ns = socket.create_server(('127.0.0.1', 47113))\nprint('listening', flush=True)\n"
        "while True: s.accept()[0].sendall(b'from inside')",
        NULL
    };
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_port = htons(47113),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    struct box_spec spec = spec_of(args);
    OWN_FD int plain = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct box *b;
    struct err e;
    char text[16] = "";
    int out[2], fd;

    (void)state;
    need_user_namespaces();
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    spec.log_fd = out[1];
    if (box_start(&spec, &b, &e) < 0)
        fail_msg("%s", e.msg);
    assert_true(read(out[0], text, sizeof text) > 0);
    for (int i = 0; i < 20; i++) {
        if (box_socket(b, AF_INET, SOCK_STREAM, &fd, &e) < 0)
            fail_msg("%s", e.msg);
        assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
        assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
        assert_int_equal(recv(fd, text, 11, MSG_WAITALL), 11);
        assert_memory_equal(text, "from inside", 11);
        (void)close(fd);
    }
    assert_int_equal(connect(plain, (struct sockaddr *)&to, sizeof to), -1);
    assert_int_equal(box_socket(b, AF_PACKET, SOCK_RAW, &fd, &e), -1);
    assert_int_equal(e.code, ERR_INVALID);
    assert_int_equal(box_kill(b, NULL, &e), 0);
    assert_int_equal(box_socket(b, AF_INET, SOCK_STREAM, &fd, &e), -1);
    assert_int_equal(e.code, ERR_CLOSED);
    box_free(b);
    (void)close(out[0]);
    (void)close(out[1]);
}

/* What is true of a box is true of one whose network was made ahead, and whose mounts the yard takes apart. */
static void beside_a_yard(void **state)
{
    struct err e;

    need_user_namespaces();
    if (yard_open(&yard, &e) < 0)
        fail_msg("%s", e.msg);
    inside(state);
    nothing_is_left(state);
    reach(state);
    binds(state);
    yard_close(take_ptr(&yard));
}

/* An account with a range, made up for these tests: its files lie over the host's in a mount namespace of our own. */
static void range_of_ids(void **state)
{
    static const char *const args[] = { NULL };
    struct box_spec spec = spec_of(args);
    char want[64];
    struct box *b;
    struct err e;

    (void)state;
    need_user_namespaces();
    if (!is_ranged) { /* the account of the other run has none; whoever runs the tests may have one */
        spec.wants_range = true;
        if (geteuid() != 0) {
            (void)snprintf(want, sizeof want, "user %u has no 65536 ids in /etc/subuid", geteuid());
            if (box_start(&spec, &b, &e) == 0) {
                assert_int_not_equal(geteuid(), 65534);
                box_free(b);
                return;
            }
            assert_int_equal(e.code, ERR_UNSUPPORTED);
            assert_non_null(strstr(e.msg, want));
        }
        return;
    }
    spec.wants_range = true;
    expect(
        "range", spec,
        "id -u; stat -c '%u %U' / /workspace; touch /x 2>&1 | grep -o 'Perm.*'; grep -c . /proc/self/uid_map; awk '{print $1, $3}' /proc/self/uid_map",
        "1000\n0 root\n1000 sandbox\nPermission denied\n3\n0 1000\n1000 1\n1001 64536\n");
}

static bool probe_user_namespaces(void)
{
    static const char *const args[] = { "--version", NULL };
    struct box_spec spec = spec_of(args);
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
    struct box_spec spec = spec_of(args);
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

static int run_all(const char *who)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inside),
        cmocka_unit_test(calls),
        cmocka_unit_test(read_only_root),
        cmocka_unit_test(binds),
        cmocka_unit_test(errors),
        cmocka_unit_test(ids_of_volumes),
        cmocka_unit_test(nothing_is_left),
        cmocka_unit_test(process_limit),
        cmocka_unit_test(ends_with_its_owner),
        cmocka_unit_test(dies_with_its_parent),
        cmocka_unit_test(memory_limit),
        cmocka_unit_test(cpu_limit),
        cmocka_unit_test(pause_and_resume),
        cmocka_unit_test(reach),
        cmocka_unit_test(beside_a_yard),
        cmocka_unit_test(range_of_ids),
    };

    has_user_namespaces = probe_user_namespaces();
    has_cgroups = has_user_namespaces && probe_cgroups();
    return cmocka_run_group_tests_name(who, tests, NULL, NULL);
}

static int run_ranged(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(range_of_ids), cmocka_unit_test(inside),
                                        cmocka_unit_test(binds), cmocka_unit_test(reach) };

    is_ranged = true;
    has_user_namespaces = probe_user_namespaces();
    return cmocka_run_group_tests_name("an account with a range", tests, NULL, NULL);
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
    const struct CMUnitTest tests[] = { cmocka_unit_test(memory_limit), cmocka_unit_test(cpu_limit),
                                        cmocka_unit_test(process_limit),
                                        cmocka_unit_test(nothing_is_left),
                                        cmocka_unit_test(pause_and_resume) };
    struct cgroup_host host = *cgroup_host();
    pid_t child;
    int status = 1;

    if (!has_cgroups) {
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
        has_user_namespaces = probe_user_namespaces();
        has_cgroups = true;
        exit(cmocka_run_group_tests_name("an account with cgroups", tests, NULL, NULL));
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

int main(void)
{
    int failed;

    runtime_fd = open(SILICA_RUNTIME_PATH, O_RDONLY | O_CLOEXEC);
    if (runtime_fd < 0)
        return 1;
    failed = run_all(geteuid() == 0 ? "root" : "an account");
    if (geteuid() == 0)
        failed |=
            testwho_run_as_nobody(run_nobody) | testwho_run_as_ranged(run_ranged) | run_as_handed();
    return failed;
}
