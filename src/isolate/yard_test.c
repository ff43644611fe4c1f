/* Namespaces are made for real, in a child: by root, and by an account in a user namespace of its own. */
#include "isolate/yard.h"

#include "base/fd.h"
#include "base/str.h"
#include "isolate/ground.h"
#include "isolate/testwho.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <sched.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define WAIT_MS 20000

static ino_t inode_of(int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 ? st.st_ino : 0;
}

static ino_t own_inode(void)
{
    struct stat st;

    return stat("/proc/self/ns/net", &st) == 0 ? st.st_ino : 0;
}

static bool is_loopback_up(void)
{
    OWN_FD int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq lo = { .ifr_name = "lo" };

    return ioctl(fd, SIOCGIFFLAGS, &lo) == 0 && (lo.ifr_flags & IFF_UP);
}

static int take(struct yard *y)
{
    OWN(frame_done) struct frame unused = FRAME_INIT;

    return yard_take(y, &unused);
}

/* It is made meanwhile. */
static int take_soon(struct yard *y)
{
    int fd = -1;

    for (int i = 0; i < WAIT_MS && fd < 0; i++) {
        fd = take(y);
        if (fd < 0)
            (void)poll(NULL, 0, 1);
    }
    return fd;
}

/* 0, or the line that was not as it should be. */
static int use_networks(struct yard *y)
{
    ino_t home = own_inode(), seen[YARD_NETWORKS];

    for (size_t i = 0; i < YARD_NETWORKS; i++) {
        OWN_FD int fd = take_soon(y);

        seen[i] = inode_of(fd);
        for (size_t j = 0; j < i; j++)
            if (seen[j] == seen[i])
                return __LINE__;
        if (fd < 0 || seen[i] == home || setns(fd, CLONE_NEWNET) < 0 || !is_loopback_up())
            return __LINE__;
        yard_leave(y);
        if (own_inode() != home)
            return __LINE__;
    }
    (void)poll(NULL, 0, 20);
    if (take(y) != -1) /* no more than that, until it is told */
        return __LINE__;
    yard_refill(y);
    return take_soon(y) < 0 ? __LINE__ : 0;
}

/* A mount namespace that lives by its descriptor alone, in a child that has ended. */
static int dead_mounts(void)
{
    OWN_FD int fd = -1;
    char path[64], byte;
    int gate[2];
    pid_t child;

    if (pipe(gate) < 0)
        return -1;
    child = fork();
    if (child == 0) {
        (void)close(gate[1]);
        _exit(unshare(CLONE_NEWNS) < 0 || read(gate[0], &byte, 1) != 0);
    }
    (void)close(gate[0]);
    (void)snprintf(path, sizeof path, "/proc/%d/ns/mnt", child);
    for (int i = 0; i < WAIT_MS; i++) { /* until it has one of its own */
        struct stat ours, its;

        own_fd_close(&fd);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd >= 0 && stat("/proc/self/ns/mnt", &ours) == 0 && fstat(fd, &its) == 0 &&
            ours.st_ino != its.st_ino)
            break;
        (void)poll(NULL, 0, 1);
    }
    (void)close(gate[1]);
    (void)waitpid(child, NULL, 0);
    return take_fd(&fd);
}

/* The kernel tells a watcher when the last mount of a file system is gone: ours, and the one in the dead namespace. */
static int use_drop(struct yard *y)
{
    OWN_FD int watch_fd = inotify_init1(IN_CLOEXEC);
    struct pollfd gone = { .fd = watch_fd, .events = POLLIN };
    int fd;

    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("yard", "/mnt", "tmpfs", 0, NULL) < 0 ||
        inotify_add_watch(watch_fd, "/mnt", IN_DELETE) < 0)
        return __LINE__;
    fd = dead_mounts();
    if (fd < 0 || umount2("/mnt", MNT_DETACH) < 0 || poll(&gone, 1, 50) != 0)
        return __LINE__;
    yard_drop(y, fd);
    if (fcntl(fd, F_GETFD) >= 0 || poll(&gone, 1, WAIT_MS) <= 0)
        return __LINE__;
    return 0;
}

static bool reads(int dir_fd, const char *name, const char *want)
{
    OWN_FD int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);
    char text[64] = "";

    return fd >= 0 && read(fd, text, sizeof text - 1) >= 0 && strcmp(text, want) == 0;
}

static bool replace_timezone(const char *text)
{
    OWN_FD int fd = open("/etc/new", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    struct err e;

    return fd >= 0 && fd_write_all(fd, span_cstr(text), &e) == 0 &&
           rename("/etc/new", "/etc/timezone") == 0;
}

/* The next one that has a frame: those before a change of the host's files have none. */
static bool frame_soon(struct yard *y, struct frame *ret)
{
    for (int i = 0; i < WAIT_MS; i++) {
        OWN_FD int fd = yard_take(y, ret);

        if (fd >= 0)
            yard_refill(y);
        if (ret->etc_fd >= 0)
            return true;
        if (fd < 0)
            (void)poll(NULL, 0, 1);
    }
    return false;
}

static bool is_at(const char *name, ino_t want)
{
    struct stat st;

    return stat(name, &st) == 0 && st.st_ino == want;
}

/* Onto the ground and back, to where we were. */
static bool use_ground(struct yard *y, const struct frame *f)
{
    struct stat root, cwd;
    struct err e;
    bool is_empty;

    if (chdir("/usr") < 0 || stat("/", &root) < 0 || stat(".", &cwd) < 0)
        return false;
    if (!yard_has_ground(y, f) || yard_enter(y, -1, f, &e) < 0)
        return false;
    is_empty = access("/usr", F_OK) < 0 && access("/proc/self", F_OK) < 0 &&
               access("/proc", F_OK) == 0 && !is_at(".", cwd.st_ino);
    yard_leave(y);
    return is_empty && is_at("/", root.st_ino) && is_at(".", cwd.st_ino) &&
           is_at("/usr", cwd.st_ino);
}

/* Who has another root than its namespace could not come back, and so never goes. */
static int use_other_root(void)
{
    const unsigned what = STATX_INO | STATX_MNT_ID;
    struct statx before[2], after[2];

    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("/", "/mnt", NULL, MS_BIND | MS_REC, NULL) < 0 || chroot("/mnt") < 0 ||
        chdir("/usr") < 0)
        return __LINE__;
    if (statx(AT_FDCWD, "/", 0, what, &before[0]) < 0 ||
        statx(AT_FDCWD, ".", 0, what, &before[1]) < 0)
        return __LINE__;
    if (ground_find_home() != -1)
        return __LINE__;
    if (statx(AT_FDCWD, "/", 0, what, &after[0]) < 0 ||
        statx(AT_FDCWD, ".", 0, what, &after[1]) < 0)
        return __LINE__;
    for (size_t i = 0; i < LEN(before); i++)
        if (before[i].stx_mnt_id != after[i].stx_mnt_id || before[i].stx_ino != after[i].stx_ino)
            return __LINE__;
    return 0;
}

/* As many as there were at once, and one more: whether that one came with a frame. */
static bool has_frame_at_last(struct yard *y)
{
    OWN(frame_done) struct frame last = FRAME_INIT;

    for (size_t n = 0, tries = 0; n <= YARD_NETWORKS && tries < WAIT_MS; tries++) {
        OWN_FD int fd = -1;

        frame_done(&last);
        fd = yard_take(y, &last);
        if (fd >= 0)
            yard_refill(y);
        else
            (void)poll(NULL, 0, 1);
        n += fd >= 0;
    }
    return last.etc_fd >= 0;
}

/* Where sandboxes have no use for frames none are made. */
static int use_bare(struct yard *y)
{
    yard_note_use(y, false);
    if (has_frame_at_last(y))
        return __LINE__;
    yard_note_use(y, true);
    return has_frame_at_last(y) ? 0 : __LINE__;
}

/* What all share is as the host has it now, and cannot be written to. On an older kernel there is none. */
static int use_frames(void)
{
    OWN(frame_done) struct frame first = FRAME_INIT, second = FRAME_INIT;
    OWN(frame_mould_done) struct frame_mould mould = FRAME_MOULD_INIT;
    struct yard *y;
    struct err e;
    int line = 0;

    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("etc", "/etc", "tmpfs", 0, NULL) < 0 || !replace_timezone("first"))
        return __LINE__;
    if (frame_mould_make(&mould, &e) < 0) {
        print_message("no frames: %s\n", e.msg);
        return e.sys == EINVAL ? 0 : __LINE__;
    }
    if (yard_open(&y, &e) < 0)
        return __LINE__;
    if (!frame_soon(y, &first) || !reads(first.etc_fd, "timezone", "first") ||
        !use_ground(y, &first) || !reads(first.dev_fd, "null", ""))
        line = __LINE__;
    else if (openat(first.etc_fd, "x", O_CREAT | O_WRONLY, 0600) >= 0 || errno != EROFS ||
             openat(first.dev_fd, "x", O_CREAT | O_WRONLY, 0600) >= 0 || errno != EROFS ||
             openat(first.etc_fd, "timezone", O_WRONLY) >= 0 || errno != EROFS)
        line = __LINE__;
    else if (!replace_timezone("second") || !frame_soon(y, &second) ||
             !reads(second.etc_fd, "timezone", "second"))
        line = __LINE__;
    else
        line = use_bare(y);
    yard_close(y);
    return line;
}

/* Its process is killed: what waits in the socket can still be had, and then there is none. */
static int use_lost(struct yard *y)
{
    char path[64], text[64] = "";
    OWN_FD int children_fd = -1;
    uint64_t pid;
    size_t n = 0;

    (void)snprintf(path, sizeof path, "/proc/self/task/%d/children", getpid());
    children_fd = open(path, O_RDONLY | O_CLOEXEC);
    if (children_fd < 0 || read(children_fd, text, sizeof text - 1) <= 0 ||
        !str_u64(span_trim(span_cstr(text)), INT32_MAX, &pid) || kill((pid_t)pid, SIGKILL) < 0)
        return __LINE__;
    (void)poll(NULL, 0, 20);
    for (int fd; n <= YARD_NETWORKS && (fd = take(y)) >= 0; n++)
        (void)close(fd);
    yard_refill(y);
    return n <= YARD_NETWORKS && take(y) == -1 ? 0 : __LINE__;
}

static int use_yard(void)
{
    ino_t host = own_inode();
    struct yard *y;
    struct err e;
    int line;

    if (yard_open(&y, &e) < 0 || own_inode() == host) /* from where we could not come back */
        return __LINE__;
    line = use_networks(y);
    if (line == 0)
        line = use_drop(y);
    if (line == 0)
        line = use_lost(y);
    yard_close(y);
    yard_drop(NULL, -1);
    return line ? line : waitpid(-1, NULL, __WALL) == -1 && errno == ECHILD ? 0 : __LINE__;
}

/* Who may make none, or has lost the process, goes without. */
static int use_nothing(void)
{
    struct yard *y;
    struct err e;
    bool is_fine;

    if (yard_open(&y, &e) < 0)
        return __LINE__;
    is_fine = take(y) == -1;
    yard_refill(y);
    yard_drop(y, open("/dev/null", O_RDONLY | O_CLOEXEC));
    yard_close(y);
    return is_fine ? 0 : __LINE__;
}

static void in_mounts_of_its_own(int (*use)(void))
{
    pid_t child;
    int status, line;

    if (geteuid() != 0)
        skip();
    child = fork();
    if (child == 0) {
        line = use();
        if (line)
            fprintf(stderr, "yard_test.c:%d\n", line);
        _exit(line != 0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void what_all_share(void **state)
{
    (void)state;
    in_mounts_of_its_own(use_frames);
}

static void who_could_not_come_back_stays(void **state)
{
    (void)state;
    in_mounts_of_its_own(use_other_root);
}

/* 255: user namespaces are not allowed. */
static int in_child(bool has_rights)
{
    pid_t child = fork();
    int status, line;

    if (child == 0) {
        if (geteuid() == 0 && !has_rights && !testwho_be(TESTWHO_NOBODY))
            _exit(1);
        if (has_rights && unshare(CLONE_NEWUSER) < 0)
            _exit(255);
        line = has_rights ? use_yard() : use_nothing();
        if (line)
            fprintf(stderr, "yard_test.c:%d\n", line);
        _exit(line != 0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void what_is_made_ahead(void **state)
{
    int result = in_child(true);

    (void)state;
    if (result == 255)
        skip();
    assert_int_equal(result, 0);
}

static void without_the_right_it_is_empty(void **state)
{
    (void)state;
    assert_int_equal(in_child(false), 0);
}

/* Root comes back to its own network. */
static void the_maker_stays_where_it_is(void **state)
{
    ino_t host = own_inode();
    struct yard *y;
    struct err e;
    int fd;

    (void)state;
    if (geteuid() != 0)
        skip();
    assert_int_equal(yard_open(&y, &e), 0);
    assert_int_equal(own_inode(), host);
    fd = take_soon(y);
    assert_int_equal(setns(fd, CLONE_NEWNET), 0);
    assert_int_not_equal(own_inode(), host);
    yard_leave(y);
    assert_int_equal(own_inode(), host);
    (void)close(fd);
    yard_close(y);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_made_ahead),
        cmocka_unit_test(without_the_right_it_is_empty),
        cmocka_unit_test(the_maker_stays_where_it_is),
        cmocka_unit_test(what_all_share),
        cmocka_unit_test(who_could_not_come_back_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
