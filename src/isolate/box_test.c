/* What code sees in a box, and what it may not do there. */
#include "isolate/box_rig.h"

#include "isolate/ground.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

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
        { "filters", "grep Seccomp_filters /proc/self/status", "Seccomp_filters:\t1\n" },
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
        { "device list", "cd /dev; for d in *; do test ! -e $d || echo -n \"$d \"; done", "fd full null ptmx pts random shm stderr stdin stdout tty urandom zero " },
        { "no last words", "test ! -e /dev/termination-log && echo ok", "ok\n" }, /* in a frame a link that leads nowhere */
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
    box_rig_need_user_namespaces();
    EACH(r, rows) {
        /* Without a range of ids nobody may drop groups: further ones of the caller stay, as nogroup. */
        if (geteuid() != 0 && getgroups(0, NULL) > 1 && strcmp(r->name, "groups") == 0)
            continue;
        box_rig_expect(r->name, box_rig_spec(NULL), r->script, r->want);
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
    box_rig_need_user_namespaces();
#ifndef __x86_64__
    print_message("the numbers are those of x86_64\n");
    skip();
#endif
    box_rig_expect("calls", box_rig_spec(NULL), script,
                   "clone [1, 1, 1, 1]\nioctl [1, 1, 1]\npersonality 0 38\nsocket 97\n");
}

static void read_only_root(void **state)
{
    struct box_spec spec = box_rig_spec(NULL);

    (void)state;
    box_rig_need_user_namespaces();
    spec.is_read_only = true;
    box_rig_expect(
        "read-only", spec,
        "for d in / /etc /var/tmp /run /opt /dev; do touch $d/x 2>/dev/null && echo $d; done; "
        "for d in /tmp /workspace /dev/shm; do touch $d/x || echo no $d; done; echo a > /dev/null; "
        "python -c 'import os; os.openpty()'",
        "");
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
    box_rig_need_user_namespaces();
    EACH(r, rows) {
        struct box_spec spec = box_rig_spec(NULL);

        spec.binds = r->more.binds;
        spec.bind_count = r->more.bind_count;
        spec.cwd = r->more.cwd;
        spec.uid = r->more.uid ? r->more.uid : 1000;
        assert_int_equal(box_start(&spec, &b, &e), -1);
        if (strcmp(e.msg, r->text) != 0)
            fail_msg("%s: got '%s', want '%s'", r->name, e.msg, r->text);
    }
}

/* Twice, so that one could see what the other left. The owner of everything has /etc and /dev of its own. */
static void shared_with_others(void **state)
{
    static const char script[] =
        "for d in /etc /dev /etc/ssl; do touch $d/left 2>/dev/null && echo wrote $d; done; "
        "rm -f /etc/passwd 2>/dev/null; chmod 777 /etc /dev 2>/dev/null; ls /etc /dev | grep left; "
        "(echo x > /etc/nsswitch.conf) 2>/dev/null; id -un; grep -c sandbox /etc/group; "
        "getent hosts box-test | grep -c 127; echo ok > /dev/null; cat /etc/timezone > /tmp/x; "
        "test -r /etc/ssl/certs && grep -c /etc/ssl/certs /proc/self/mounts";

    (void)state;
    box_rig_need_user_namespaces();
    if (geteuid() != 0)
        return;
    for (int i = 0; i < 2; i++)
        box_rig_expect("shared", box_rig_spec(NULL), script, "sandbox\n1\n1\n1\n");
}

static size_t entries(const char *path)
{
    DIR *dir = opendir(path);
    size_t n = 0;

    while (dir && readdir(dir))
        n++;
    if (dir)
        (void)closedir(dir);
    return n; /* 2 for an empty one */
}

/* Who: root of the host, who may take the box's root away to see what it stands on. PID 1 may not survive that: its mounts are
 * held by themselves. 0, or the line of what is not so. */
static int look_below(pid_t pid)
{
    char path[64];
    OWN_FD int before_fd = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    OWN_FD int box_fd = -1;

    (void)snprintf(path, sizeof path, "/proc/%d/ns/mnt", pid);
    box_fd = open(path, O_RDONLY | O_CLOEXEC);
    if (before_fd < 0 || setns(box_fd, CLONE_NEWNS) < 0 || entries("/proc/self/task") != 0)
        return __LINE__; /* its proc does not know us */
    if (access("/workspace", F_OK) < 0 || umount2("/", MNT_DETACH) < 0)
        return __LINE__;
    if (setns(before_fd, CLONE_NEWNS) < 0 || setns(box_fd, CLONE_NEWNS) < 0)
        return __LINE__;
    if (entries("/") != 3 || entries("/proc") != 2)
        return __LINE__; /* the place of the lens, and nothing in it */
    if (mkdir("/x", 0700) == 0 || errno != EROFS)
        return __LINE__;
    return umount2("/", MNT_DETACH) == 0 || errno != EINVAL ? __LINE__ : 0; /* it is the last */
}

/* A box of root's that has not left the host's mounts by pivot_root has none of them, as if it had. */
static void nothing_below(void **state)
{
    struct box_spec spec = box_rig_spec(NULL);
    struct ground ground = GROUND_INIT;
    int status, line;
    struct box *b;
    struct err e;
    pid_t child;

    (void)state;
    box_rig_need_user_namespaces();
    if (geteuid() != 0)
        return;
    if (ground_make(&ground, &e) < 0) {
        print_message("no ground: %s\n", e.msg);
        assert_true(e.code == ERR_UNSUPPORTED || e.sys == EINVAL);
        skip();
    }
    ground_done(&ground);
    assert_int_equal(box_start(&spec, &b, &e), 0);
    child = fork();
    if (child == 0) {
        line = look_below(box_pid(b));
        if (line)
            fprintf(stderr, "box_test.c:%d: %s\n", line, strerror(errno));
        _exit(line != 0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    box_free(b);
    assert_int_equal(status, 0);
}

/* An account with a range, made up for these tests: its files lie over the host's in a mount namespace of our own. */
static void range_of_ids(void **state)
{
    static const char *const args[] = { NULL };
    struct box_spec spec = box_rig_spec(args);
    char want[64];
    struct box *b;
    struct err e;

    (void)state;
    box_rig_need_user_namespaces();
    if (!box_rig
             .is_ranged) { /* the account of the other run has none; whoever runs the tests may have one */
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
    box_rig_expect(
        "range", spec,
        "id -u; stat -c '%u %U' / /workspace; touch /x 2>&1 | grep -o 'Perm.*'; grep -c . /proc/self/uid_map; awk '{print $1, $3}' /proc/self/uid_map",
        "1000\n0 root\n1000 sandbox\nPermission denied\n2\n0 1\n1 65535\n");
}

int main(void)
{
    static const struct CMUnitTest all[] = { cmocka_unit_test(inside), cmocka_unit_test(calls),
                                             cmocka_unit_test(read_only_root),
                                             cmocka_unit_test(errors),
                                             cmocka_unit_test(range_of_ids) };
    static const struct CMUnitTest beside[] = { cmocka_unit_test(inside),
                                                cmocka_unit_test(shared_with_others),
                                                cmocka_unit_test(nothing_below) };
    static const struct CMUnitTest ranged[] = { cmocka_unit_test(range_of_ids),
                                                cmocka_unit_test(inside) };

    return box_rig_run(&(struct box_rig_plan){
        .all = BOX_RIG_CASES(all),
        .beside_a_yard = BOX_RIG_CASES(beside),
        .ranged = BOX_RIG_CASES(ranged),
    });
}
