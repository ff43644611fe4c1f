#define _GNU_SOURCE
#include "attempts.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#define ATTEMPT_TIMEOUT_S 10
#define DESCRIPTORS_MAX   4096
#define RESULT_MAX        64

#define CALL(nr, ...)                                                                              \
    {                                                                                              \
        .kind = DO_CALL, .n = { SYS_##nr, ##__VA_ARGS__ }                                          \
    }
#define SOCKET(f, t, p)                                                                            \
    {                                                                                              \
        .kind = DO_SOCKET, .n = { f, t, p }                                                        \
    }
#define PAIR(f, t)                                                                                 \
    {                                                                                              \
        .kind = DO_SOCKETPAIR, .n = { f, t }                                                       \
    }
#define OPEN(file, f)                                                                              \
    {                                                                                              \
        .kind = DO_OPEN, .path = file, .n = { f }                                                  \
    }
#define READ(file)                                                                                 \
    {                                                                                              \
        .kind = DO_READ, .path = file                                                              \
    }
#define MOUNT(type, opt)                                                                           \
    {                                                                                              \
        .kind = DO_MOUNT, .path = type, .data = opt                                                \
    }
#define CLONE(flags)                                                                               \
    {                                                                                              \
        .kind = DO_CLONE, .n = { flags }                                                           \
    }
#define NUMBER(nr, ...)                                                                            \
    {                                                                                              \
        .kind = DO_CALL, .n = { nr, ##__VA_ARGS__ }                                                \
    }
#define OF_PID_1(file, f)                                                                          \
    {                                                                                              \
        .kind = DO_OF_PID_1, .path = file, .n = { f }                                              \
    }
#define OF_HOST(nr, ...)                                                                           \
    {                                                                                              \
        .kind = DO_OF_HOST, .n = { nr, ##__VA_ARGS__ }                                             \
    }
#define ROUTE(type)                                                                                \
    {                                                                                              \
        .kind = DO_ROUTE, .n = { type }                                                            \
    }
#define OPTION(f, l, o, v)                                                                         \
    {                                                                                              \
        .kind = DO_OPTION, .n = { f, l, o, v }                                                     \
    }
#define INTERFACE(request)                                                                         \
    {                                                                                              \
        .kind = DO_INTERFACE, .n = { request }                                                     \
    }
#define TRY(function)                                                                              \
    {                                                                                              \
        .kind = DO_TRICK, .trick = function                                                        \
    }
#define X(name, how, inside, where, twin, what) { #name, how, where },

static char zeroes[4096], one[8] = { 1 };
static int queued[32] = { 0, 0, -1 /* SI_QUEUE */ };
static const struct attempt attempts[] = {
#include "attempts.def"
};

bool is_outside, has_inherited;

const char *result(long got)
{
    return got >= 0 ? "ok" : strerrorname_np(errno);
}

const char *given(const char *name)
{
    const char *value = getenv(name);

    if (!value) {
        fprintf(stderr, "attempts: %s is not set\n", name);
        exit(2);
    }
    return value;
}

int sleeper(void)
{
    int pid = fork();

    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
    return pid;
}

static const char *open_it(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return result(-1);
    return S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3) ? "HIDDEN"
                                                              : "ok"; /* /dev/null instead */
}

static const char *read_it(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    char bytes[64];
    ssize_t n = fd < 0 ? -1 : read(fd, bytes, sizeof bytes);

    return n == 0 ? "EMPTY" : result(n);
}

static const char *mount_it(const char *type, const char *options)
{
    mkdir("/tmp/low", 0755);
    mkdir("/tmp/up", 0755);
    mkdir("/tmp/work", 0755);
    mkdir("/tmp/at", 0755);
    return result(mount("none", "/tmp/at", type, 0, *options ? options : NULL));
}

static const char *clone_it(unsigned long flags)
{
    long pid = syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);

    if (pid == 0)
        _exit(0);
    return result(pid);
}

/* A call whose first argument is a process of the host; of tgkill the second, too. */
static const char *of_host(const long *n)
{
    long pid = atoi(given("E_PID"));

    if (n[0] == SYS_tgkill)
        return result(syscall(SYS_tgkill, pid, pid, 0));
    return result(syscall(n[0], pid, n[1], n[2], n[3]));
}

static const char *attempt(const struct attempt_how *how)
{
    const long *n = how->n;
    int pair[2];

    switch (how->kind) {
    case DO_CALL:
        return result(syscall(n[0], n[1], n[2], n[3], n[4], n[5], n[6]));
    case DO_SOCKET:
        return result(socket((int)n[0], (int)n[1], (int)n[2]));
    case DO_SOCKETPAIR:
        return result(socketpair((int)n[0], (int)n[1], 0, pair));
    case DO_OPEN:
        return open_it(how->path, (int)n[0]);
    case DO_READ:
        return read_it(how->path);
    case DO_MOUNT:
        return mount_it(how->path, how->data);
    case DO_CLONE:
        return clone_it((unsigned long)n[0]);
    case DO_OF_PID_1:
        return use_of_target(how->path, (int)n[0]);
    case DO_OF_HOST:
        return of_host(n);
    case DO_ROUTE:
        return route_message((int)n[0]);
    case DO_OPTION:
        return socket_option((int)n[0], (int)n[1], (int)n[2], (int)n[3]);
    case DO_INTERFACE:
        return change_interface((unsigned long)n[0]);
    case DO_TRICK:
        return how->trick();
    }
    return "?";
}

/* In a process of its own, so that nothing it does or dies of touches the next. */
static void run(const struct attempt *a)
{
    char text[RESULT_MAX] = "";
    int report[2], status, pid;
    ssize_t n;

    if (pipe2(report, O_CLOEXEC) < 0 || (pid = fork()) < 0) {
        printf("%s cannot-start-%s\n", a->name, strerrorname_np(errno));
        return;
    }
    if (pid == 0) {
        const char *got;

        setsid();
        alarm(ATTEMPT_TIMEOUT_S);
        got = attempt(&a->how);
        n = write(report[1], got, strlen(got));
        _exit(n < 0);
    }
    close(report[1]);
    waitpid(pid, &status, 0);
    kill(-pid, SIGKILL); /* what it left behind */
    n = read(report[0], text, sizeof text - 1);
    close(report[0]);
    if (n <= 0)
        snprintf(text, sizeof text, "SIG%s",
                 WIFSIGNALED(status) ? sigabbrev_np(WTERMSIG(status)) : "NONE");
    printf("%s %s\n", a->name, text);
}

static void need(long got, const char *what)
{
    if (got >= 0)
        return;
    fprintf(stderr, "attempts: %s: %s\n", what, strerror(errno));
    exit(3);
}

static void write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY);

    need(fd, path);
    need(write(fd, text, strlen(text)), path);
    close(fd);
}

/* Namespaces in which a twin may do what it likes. */
static void enter_scratch(bool has_user)
{
    int flags =
        CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;
    unsigned uid = geteuid(), gid = getegid();
    int pid, status, volume_fd;
    char map[64];

    need(unshare(flags | (has_user ? CLONE_NEWUSER : 0)), "unshare");
    if (has_user) {
        write_file("/proc/self/setgroups", "deny");
        snprintf(map, sizeof map, "0 %u 1", uid);
        write_file("/proc/self/uid_map", map);
        snprintf(map, sizeof map, "0 %u 1", gid);
        write_file("/proc/self/gid_map", map);
    }
    pid = fork();
    need(pid, "fork");
    if (pid > 0) {
        need(waitpid(pid, &status, 0), "wait");
        exit(WIFEXITED(status) ? WEXITSTATUS(status) : 4);
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    need(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), "private mounts");
    need(mount("proc", "/proc", "proc", 0, NULL), "proc");
    volume_fd = (int)syscall(SYS_open_tree, AT_FDCWD, given("E_DIR"), OPEN_TREE_CLONE);
    need(volume_fd, "open_tree");
    need(mount("tmpfs", "/tmp", "tmpfs", 0, NULL), "tmpfs");
    need(mkdir("/tmp/volume", 0755), "mkdir");
    need(syscall(SYS_move_mount, volume_fd, "", AT_FDCWD, "/tmp/volume", MOVE_MOUNT_F_EMPTY_PATH),
         "move_mount");
}

int main(int argc, char **argv)
{
    static const char *const names[] = { "HOST", "SCRATCH", "ROOT" };
    const char *where = argc > 1 ? argv[1] : "inside";

    for (int fd = 3; fd < DESCRIPTORS_MAX; fd++)
        has_inherited = has_inherited || fcntl(fd, F_GETFD) >= 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (strcmp(where, "euid") == 0) /* what the setuid copy of this program does */
        return geteuid() != getuid() ? 0 : 1;
    if (strcmp(where, "raw") == 0) /* what the copy with file capabilities does */
        return socket(AF_INET, SOCK_RAW, 1) >= 0 ? 0 : errno;
    if (strcmp(where, "0.2") == 0) /* what the copy that gets overwritten does */
        return usleep(200000) < 0;
    if (strcmp(where, "unshare") == 0) /* what program_without_filter becomes */
        return unshare(CLONE_NEWUSER) < 0 ? errno : 0;
    is_outside = strcmp(where, "inside") != 0;
    if (is_outside && strcmp(where, "HOST") != 0)
        enter_scratch(strcmp(where, "SCRATCH") == 0);
    for (size_t i = 0; i < sizeof attempts / sizeof *attempts; i++)
        if ((!is_outside || strcmp(where, names[attempts[i].where]) == 0) &&
            (argc < 3 || strcmp(argv[2], attempts[i].name) == 0))
            run(&attempts[i]);
    return 0;
}
