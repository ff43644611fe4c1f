/* Attempts on mounts, processes and files. */
#define _GNU_SOURCE
#include "attempts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define DESCRIPTORS_MAX 256

static char path[4096];

/* ---- mounts ---- */

const char *bind_mount(void)
{
    mkdir("/tmp/at", 0755);
    return result(mount("/usr", "/tmp/at", NULL, MS_BIND, NULL));
}

const char *remount_usr(void)
{
    if (is_outside && (mount("/usr", "/usr", NULL, MS_BIND, NULL) < 0 ||
                       mount(NULL, "/usr", NULL, MS_BIND | MS_REMOUNT | MS_RDONLY, NULL) < 0))
        return "cannot-prepare";
    return result(mount(NULL, "/usr", NULL, MS_BIND | MS_REMOUNT, NULL));
}

const char *open_tree_clone(void)
{
    return result(syscall(SYS_open_tree, AT_FDCWD, "/tmp", OPEN_TREE_CLONE));
}

/* From a mask in /proc to somewhere else; outside a mask is made first. */
const char *move_a_mount(void)
{
    mkdir("/tmp/at", 0755);
    if (is_outside && mount("tmpfs", "/proc/tty", "tmpfs", 0, NULL) < 0)
        return "cannot-prepare";
    return result(syscall(SYS_move_mount, AT_FDCWD, is_outside ? "/proc/tty" : "/proc/sys",
                          AT_FDCWD, "/tmp/at", 0));
}

const char *set_mount_attributes(void)
{
    struct mount_attr attr = { .attr_clr = MOUNT_ATTR_RDONLY };

    return result(
        syscall(SYS_mount_setattr, AT_FDCWD, is_outside ? "/tmp" : "/usr", 0, &attr, sizeof attr));
}

const char *pivot(void)
{
    mkdir("/tmp/at", 0755);
    if (is_outside && (unshare(CLONE_NEWNS) < 0 || mount("tmpfs", "/tmp/at", "tmpfs", 0, NULL) < 0))
        return "cannot-prepare";
    return chdir("/tmp/at") < 0 ? "cannot-prepare" : result(syscall(SYS_pivot_root, ".", "."));
}

const char *unmask(void)
{
    if (is_outside && mount("/dev/null", "/proc/interrupts", NULL, MS_BIND, NULL) < 0)
        return "cannot-prepare";
    return result(umount2("/proc/interrupts", MNT_DETACH));
}

const char *write_usr(void)
{
    if (is_outside && (unshare(CLONE_NEWNS) < 0 || mount("tmpfs", "/usr", "tmpfs", 0, NULL) < 0))
        return "cannot-prepare";
    return result(open("/usr/silica-was-here", O_WRONLY | O_CREAT, 0755));
}

/* ---- processes of the host ---- */

const char *kill_host_pid(void)
{
    return result(kill(atoi(given("E_PID")), 0));
}

const char *pidfd_of_host_pid(void)
{
    return result(syscall(SYS_pidfd_open, atoi(given("E_PID")), 0));
}

const char *renice_host_pid(void)
{
    return result(setpriority(PRIO_PROCESS, (id_t)atoi(given("E_PID")), 19));
}

const char *root_of_host_pid(void)
{
    snprintf(path, sizeof path, "/proc/%s/root/", given("E_PID"));
    return result(open(path, O_PATH | O_CLOEXEC));
}

const char *host_shm(void)
{
    return shmat(atoi(given("E_SHM")), NULL, SHM_RDONLY) == (void *)-1 ? result(-1) : "ok";
}

const char *host_secret(void)
{
    return getenv("E_SECRET") ? "ok" : "UNSET";
}

const char *join_namespace(void)
{
    int fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);

    return fd < 0 ? "cannot-prepare" : result(syscall(SYS_setns, fd, CLONE_NEWNET));
}

/* Ours from here, whose parent is the host's; outside that of a child in a namespace of its own, whose parent is ours. */
const char *parent_namespace(void)
{
    int ready[2], fd, pid;
    char byte;

    snprintf(path, sizeof path, "/proc/self/ns/user");
    if (is_outside) {
        if (pipe(ready) < 0 || (pid = fork()) < 0)
            return "cannot-prepare";
        if (pid == 0) {
            (void)!unshare(CLONE_NEWUSER);
            prctl(PR_SET_PDEATHSIG, SIGKILL); /* the change of namespace would have forgotten it */
            (void)!write(ready[1], "", 1);
            pause();
        }
        (void)!read(ready[0], &byte, 1);
        snprintf(path, sizeof path, "/proc/%d/ns/user", pid);
    }
    fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? "cannot-prepare" : result(ioctl(fd, NS_GET_PARENT));
}

/* ---- PID 1; outside a child of ours stands in for it ---- */

static int target(void)
{
    return is_outside ? sleeper() : 1;
}

static const char *open_of_target(const char *what, int flags)
{
    snprintf(path, sizeof path, "/proc/%d/%s", target(), what);
    return result(open(path, flags | O_CLOEXEC));
}

/* Opened and used: some are anybody's to open, and refuse when they are read or written. */
const char *use_of_target(const char *what, int flags)
{
    char bytes[4096] = "0";
    struct stat st;
    int fd;

    snprintf(path, sizeof path, "/proc/%d/%s", target(), what);
    fd = open(path, flags | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return result(-1);
    if (S_ISDIR(st.st_mode)) {
        long got;

        do /* "." and ".." come before the kernel asks who reads */
            got = syscall(SYS_getdents64, fd, bytes, sizeof bytes);
        while (got > 0);
        return result(got);
    }
    if (strncmp(what, "ns/", 3) == 0)
        return "ok";
    if ((flags & O_ACCMODE) == O_RDONLY)
        return result(read(fd, bytes, 8));
    return result(write(fd, bytes, 1));
}

static const char *follow_of_target(const char *what)
{
    char to[4096];

    snprintf(path, sizeof path, "/proc/%d/%s", target(), what);
    return result(readlink(path, to, sizeof to));
}

const char *kill_pid_1(void)
{
    int pid = target();

    if (kill(pid, SIGKILL) < 0)
        return result(-1);
    if (is_outside)
        return result(waitpid(pid, NULL, 0));
    usleep(50000);
    return kill(1, 0) == 0 ? "ALIVE" : "ok";
}

const char *trace_pid_1(void)
{
    return result(ptrace(PTRACE_SEIZE, target(), NULL, NULL));
}

static char shared_byte = 'x';

static const char *vm(bool is_write)
{
    char byte = 'y';
    struct iovec here = { &byte, 1 }, there = { &shared_byte, 1 };

    return result(syscall(is_write ? SYS_process_vm_writev : SYS_process_vm_readv, target(), &here,
                          1L, &there, 1L, 0L));
}

const char *read_pid_1(void)
{
    return vm(false);
}

const char *write_pid_1(void)
{
    return vm(true);
}

const char *descriptor_of_pid_1(void)
{
    int pidfd = (int)syscall(SYS_pidfd_open, target(), 0);

    return pidfd < 0 ? "cannot-prepare"
                     : result(syscall(SYS_pidfd_getfd, pidfd, is_outside ? 0 : 3, 0));
}

const char *mem_of_pid_1(void)
{
    return open_of_target("mem", O_RDWR);
}

const char *environ_of_pid_1(void)
{
    return open_of_target("environ", O_RDONLY);
}

const char *maps_of_pid_1(void)
{
    return open_of_target("maps", O_RDONLY);
}

const char *fd_of_pid_1(void)
{
    return follow_of_target(is_outside ? "fd/0" : "fd/3");
}

const char *exe_of_pid_1(void)
{
    return open_of_target("exe", O_PATH);
}

const char *root_of_pid_1(void)
{
    return open_of_target("root/", O_PATH);
}

const char *cwd_of_pid_1(void)
{
    return follow_of_target("cwd");
}

const char *net_namespace_of_pid_1(void)
{
    return open_of_target("ns/net", O_RDONLY);
}

const char *limits_of_pid_1(void)
{
    struct rlimit few = { 3, 3 };

    return result(prlimit(target(), RLIMIT_NOFILE, &few, NULL));
}

/* ---- files and descriptors ---- */

/* Hold a running program of the read-only volume by descriptor, let it end, open it for writing. */
const char *overwrite_exe(void)
{
    int started[2], pid, fd, status;
    char byte;

    snprintf(path, sizeof path, "%s/copy", given("E_DIR"));
    if (pipe2(started, O_CLOEXEC) < 0 || (pid = fork()) < 0)
        return "cannot-prepare";
    if (pid == 0) {
        execl(path, path, "0.2", (char *)NULL);
        _exit(127);
    }
    close(started[1]);
    (void)!read(started[0], &byte, 1); /* ends when the exec has closed the other end */
    snprintf(path, sizeof path, "/proc/%d/exe", pid);
    fd = open(path, O_PATH | O_CLOEXEC);
    waitpid(pid, &status, 0);
    if (fd < 0 || status != 0)
        return "cannot-prepare";
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return result(open(path, O_WRONLY | O_CLOEXEC));
}

/* The caller holds its own / as descriptor 9, open for whoever inherits it. */
const char *leaked_descriptor(void)
{
    return has_inherited ? "ok" : "NONE";
}

const char *cwd_through_descriptor(void)
{
    for (int fd = 3; fd < DESCRIPTORS_MAX; fd++) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        if (chdir(path) == 0 && access(given("E_FILE") + 1, R_OK) == 0)
            return "ok";
    }
    return result(-1);
}

const char *climb(void)
{
    snprintf(path, sizeof path, "../../../../../../../../../../../..%s", given("E_FILE"));
    return result(open(path, O_RDONLY | O_CLOEXEC));
}

const char *host_file(void)
{
    return result(open(given("E_FILE"), O_RDONLY | O_CLOEXEC));
}

const char *host_file_by_self_root(void)
{
    snprintf(path, sizeof path, "/proc/self/root%s", given("E_FILE"));
    return result(open(path, O_RDONLY | O_CLOEXEC));
}

static const char *in_volume(const char *name, int flags)
{
    snprintf(path, sizeof path, "%s/%s", given("E_DIR"), name);
    return result(open(path, flags | O_CLOEXEC, 0644));
}

const char *link_in_volume(void)
{
    return in_volume("link", O_RDONLY);
}

const char *write_volume(void)
{
    const char *got = in_volume("written", O_WRONLY | O_CREAT | O_EXCL);

    unlink(path); /* outside the next caller's turn is on the same volume */
    return got;
}

/* ---- programs with privileges of their own ---- */

static int run_copy(const char *name, const char *what)
{
    int pid = fork(), status;

    snprintf(path, sizeof path, "%s/%s", is_outside ? "/tmp/volume" : given("E_DIR"), name);
    if (pid == 0) {
        if (is_outside && (setgid(65534) < 0 || setuid(65534) < 0))
            _exit(126);
        execl(path, name, what, (char *)NULL);
        _exit(127);
    }
    waitpid(pid, &status, 0);
    return WEXITSTATUS(status);
}

const char *setuid_file(void)
{
    int code = run_copy("setuid", "euid");

    return code == 0 ? "ok" : code == 1 ? "UNCHANGED" : "cannot-run";
}

const char *capable_file(void)
{
    int code = run_copy("capable", "raw");

    if (code >= 126)
        return "cannot-run";
    errno = code;
    return result(code ? -1 : 0);
}
