/* Attempts in several steps: on volumes, filters, credentials and what the host shares. */
#define _GNU_SOURCE
#include "attempts.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

static char path[4096], other[4096];

/* ---- a volume that is read-only inside ---- */

/* `path` is a file of the volume, made anew where the volume can be written: each attempt changes one of its own. */
static const char *of_volume(const char *name)
{
    int fd;

    snprintf(path, sizeof path, "%s/%s", given("E_DIR"), is_outside ? name : "copy");
    snprintf(other, sizeof other, "%s/%s.other", given("E_DIR"), name);
    if (!is_outside)
        return path;
    unlink(path);
    unlink(other);
    rmdir(other);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0 || write(fd, "text", 4) != 4)
        exit(5);
    close(fd);
    return path;
}

static const char *done(long got)
{
    const char *text = result(got);

    if (is_outside) {
        unlink(path);
        unlink(other);
        rmdir(other);
    }
    return text;
}

const char *volume_truncate(void)
{
    return done(truncate(of_volume("truncate"), 1));
}

const char *volume_truncate_open(void)
{
    return done(open(of_volume("truncate-open"), O_RDONLY | O_TRUNC | O_CLOEXEC));
}

const char *volume_chmod(void)
{
    return done(chmod(of_volume("chmod"), 0600));
}

const char *volume_chown(void)
{
    return done(chown(of_volume("chown"), (uid_t)-1, getegid()));
}

const char *volume_unlink(void)
{
    return done(unlink(of_volume("unlink")));
}

const char *volume_rename(void)
{
    return done(rename(of_volume("rename"), other));
}

const char *volume_exchange(void)
{
    of_volume("exchange");
    if (is_outside && mkdir(other, 0700) < 0)
        return "cannot-prepare";
    if (!is_outside)
        snprintf(other, sizeof other, "%s/attempts", given("E_DIR"));
    return done(renameat2(AT_FDCWD, path, AT_FDCWD, other, RENAME_EXCHANGE));
}

const char *volume_mkdir(void)
{
    of_volume("mkdir");
    return done(mkdir(other, 0700));
}

const char *volume_symlink(void)
{
    of_volume("symlink");
    return done(symlink("/", other));
}

const char *volume_link(void)
{
    return done(link(of_volume("link-of"), other));
}

const char *volume_fifo(void)
{
    of_volume("fifo");
    return done(mkfifo(other, 0600));
}

const char *volume_utimes(void)
{
    struct timespec times[2] = { { 1, 0 }, { 1, 0 } };

    return done(utimensat(AT_FDCWD, of_volume("utimes"), times, 0));
}

const char *volume_xattr(void)
{
    return done(setxattr(of_volume("xattr"), "user.silica", "x", 1, 0));
}

const char *volume_bind(void)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    of_volume("bind");
    strncpy(at.sun_path, other, sizeof at.sun_path - 1);
    return done(bind(fd, (void *)&at, sizeof at));
}

const char *volume_reopen(void)
{
    char link[64];
    int fd = open(of_volume("reopen"), O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return "cannot-prepare";
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    return done(open(link, O_WRONLY | O_CLOEXEC));
}

const char *volume_mapping(void)
{
    int fd = open(of_volume("mapping"), O_RDWR | O_CLOEXEC);
    char *at = fd < 0 ? MAP_FAILED : mmap(NULL, 4, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (at == MAP_FAILED)
        return done(-1);
    at[0] = 'T';
    return done(0);
}

const char *volume_link_out(void)
{
    of_volume("link-out");
    if (!is_outside)
        snprintf(other, sizeof other, "/shared/link-out");
    return done(link(path, other));
}

/* FS_IOC_SETFLAGS on a file that is there. */
static long set_flags(const char *at, int flags)
{
    int fd = open(at, O_RDONLY | O_CLOEXEC);

    return fd < 0 ? -1 : ioctl(fd, FS_IOC_SETFLAGS, &flags);
}

const char *volume_immutable(void)
{
    long got = set_flags(is_outside ? of_volume("flags") : of_volume(""), FS_NODUMP_FL);

    return done(got);
}

/* ---- filters ---- */

const char *filter_that_allows(void)
{
    struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = { .len = 1, .filter = &allow };

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
        return "cannot-prepare";
    return result(unshare(CLONE_NEWUSER));
}

const char *landlock_that_allows(void)
{
    struct landlock_ruleset_attr attr = { .handled_access_fs = LANDLOCK_ACCESS_FS_WRITE_FILE };
    struct landlock_path_beneath_attr below = { .allowed_access = LANDLOCK_ACCESS_FS_WRITE_FILE,
                                                .parent_fd = open("/", O_PATH | O_CLOEXEC) };
    int fd = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof attr, 0);

    if (fd < 0 || syscall(SYS_landlock_add_rule, fd, LANDLOCK_RULE_PATH_BENEATH, &below, 0) < 0 ||
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        syscall(SYS_landlock_restrict_self, fd, 0) < 0)
        return "cannot-prepare";
    return result(open("/proc/sys/kernel/core_pattern", O_WRONLY | O_CLOEXEC));
}

static int thread_errno;

/* A process of several threads makes no user namespace: CLONE_FS shows as much of the filter. */
static void *unshare_there(void *unused)
{
    (void)unused;
    thread_errno = unshare(CLONE_FS) < 0 ? errno : 0;
    return NULL;
}

const char *thread_without_filter(void)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, unshare_there, NULL) != 0)
        return "cannot-prepare";
    pthread_join(thread, NULL);
    errno = thread_errno;
    return result(errno ? -1 : 0);
}

const char *program_without_filter(void)
{
    int pid = fork(), status;

    snprintf(path, sizeof path, "%s/attempts", given("E_DIR"));
    if (pid == 0) {
        execl(path, path, "unshare", (char *)NULL);
        _exit(127);
    }
    waitpid(pid, &status, 0);
    errno = WEXITSTATUS(status);
    return result(errno ? -1 : 0);
}

/* ---- credentials ---- */

const char *owner_of_signals(void)
{
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return "cannot-prepare";
    return result(fcntl(pair[0], F_SETOWN, atoi(given("E_PID"))));
}

static const char *send_as(struct ucred who)
{
    char space[CMSG_SPACE(sizeof who)] = "", byte = 'x';
    struct iovec text = { &byte, 1 };
    struct msghdr message = {
        .msg_iov = &text, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space
    };
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    int pair[2];

    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_CREDENTIALS;
    head->cmsg_len = CMSG_LEN(sizeof who);
    memcpy(CMSG_DATA(head), &who, sizeof who);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return "cannot-prepare";
    return result(sendmsg(pair[0], &message, 0));
}

const char *forged_pid(void)
{
    return send_as((struct ucred){ 1, getuid(), getgid() });
}

const char *forged_uid(void)
{
    return send_as((struct ucred){ getpid(), getuid() + 1, getgid() });
}

/* ---- files with a say over others ---- */

const char *lease_on_usr(void)
{
    int fd = open("/usr/bin/env", O_RDONLY | O_CLOEXEC);

    return fd < 0 ? "cannot-prepare" : result(fcntl(fd, F_SETLEASE, F_RDLCK));
}

const char *freeze_root(void)
{
    int fd = open(is_outside ? "/tmp" : "/", O_RDONLY | O_CLOEXEC);

    return fd < 0 ? "cannot-prepare" : result(ioctl(fd, FIFREEZE, 0));
}

static const char *own_file(void)
{
    int fd;

    snprintf(path, sizeof path, "/tmp/own-%d", getpid());
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        exit(5);
    close(fd);
    return path;
}

const char *immutable_file(void)
{
    return result(set_flags(own_file(), FS_IMMUTABLE_FL));
}

const char *trusted_attribute(void)
{
    return result(setxattr(own_file(), "trusted.overlay.opaque", "y", 1, 0));
}

const char *security_attribute(void)
{
    return result(setxattr(own_file(), "security.silica", "y", 1, 0));
}

const char *hang_up(void)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY);

    return master < 0 ? "cannot-prepare" : result(ioctl(master, TIOCVHANGUP));
}

/* ---- what the host shares with its own processes ---- */

const char *host_semaphores(void)
{
    return result(semctl(atoi(given("E_SEM")), 0, GETVAL));
}

const char *host_queue(void)
{
    struct msqid_ds what;

    return result(msgctl(atoi(given("E_QUEUE")), IPC_STAT, &what));
}

const char *host_posix_shm(void)
{
    return result(shm_open(given("E_MEMORY"), O_RDONLY, 0));
}

static const char *connect_ipv6(const char *address, const char *port)
{
    struct sockaddr_in6 at = { .sin6_family = AF_INET6,
                               .sin6_port = htons((uint16_t)atoi(given(port))) };
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

    inet_pton(AF_INET6, address, &at.sin6_addr);
    return result(connect(fd, (void *)&at, sizeof at));
}

const char *host_loopback_v6(void)
{
    return connect_ipv6("::1", "E_PORT6");
}

const char *host_mapped(void)
{
    return connect_ipv6("::ffff:127.0.0.1", "E_PORT");
}

const char *host_wildcard(void)
{
    struct sockaddr_in at = { .sin_family = AF_INET,
                              .sin_port = htons((uint16_t)atoi(given("E_PORT"))) };

    return result(connect(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), (void *)&at, sizeof at));
}
