#include "isolate/yard.h"

#include "base/fd.h"
#include "base/packet.h"
#include "isolate/ground.h"
#include "isolate/inside.h"
#include "isolate/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define YARD_FDS      5  /* in a packet: a network, the trees of a frame, what the ground needs */
#define YARD_FD       3  /* of the process: its end of the socket */
#define FIRST_FREE_FD 10 /* above those that are put in order */
#define FIRST_WAIT_MS 10000 /* for a first network, by one that has to have it */

enum yard_word { YARD_TAKEN = 't', YARD_TAKEN_BARE = 'b', YARD_DROP = 'd', YARD_NETWORK = 'n' };

struct yard {
    int fd; /* whole packets; -1 once its process is gone */
    pid_t pid;
    int home_fd;        /* the network we stay in */
    int home_mounts_fd; /* and the mount namespace, if we can come back to it */
    int cwd_fd;         /* to come back to, while we are on the ground */
    size_t owed;        /* taken, and not told yet */
    bool is_bare;       /* the last one had no use for a frame */
};

/* ---- the process ---- */

static int make_network(void)
{
    struct err ignored;
    OWN_FD int sys_fd = -1;

    /* by path: the kernel's own. */
    sys_fd = open("/proc/sys", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (unshare(CLONE_NEWNET) < 0 || inside_bring_up_loopback(&ignored) < 0)
        return -1;
    inside_shrink_sockets(sys_fd);
    return open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
}

static int say(int fd, char word, const int *with, struct err *e)
{
    return packet_send(fd, &(struct iovec){ &word, 1 }, 1, with, with ? 1 : 0, e);
}

/* From a mould of the host's files as they are. False: sandboxes make their own. */
static bool make_frame(struct frame_mould *m, struct frame *ret)
{
    struct frame_stamp now;
    struct err e;

    frame_stamp_look(&now);
    if (m->root_fd >= 0 && memcmp(&now, &m->stamp, sizeof now) != 0)
        frame_mould_done(m);
    if (m->root_fd < 0 && memcmp(&now, &m->stamp, sizeof now) == 0)
        return false; /* it could not be made, and nothing has changed */
    if (m->root_fd < 0 && frame_mould_make(m, &e) < 0)
        return false;
    return frame_cast(m, ret, &e) == 0;
}

/* Once, with the first frame. Without it sandboxes find their own way out of the host's mounts. */
static const struct ground *find_ground(void)
{
    static struct ground ground = GROUND_INIT;
    static bool is_known;
    struct err ignored;

    if (!is_known)
        (void)ground_make(&ground, &ignored);
    is_known = true;
    return &ground;
}

/* How many descriptors there are for a packet. */
static size_t pack(int fds[YARD_FDS], const struct frame *frame, int lens_fd)
{
    fds[1] = frame->etc_fd;
    fds[2] = frame->dev_fd;
    fds[3] = lens_fd;
    fds[4] = find_ground()->mounts_fd;
    return frame->etc_fd < 0 ? 1 : lens_fd < 0 ? 3 : YARD_FDS;
}

/* A network more than the maker has in its socket. We stay in the last one until the next: it is alive as long as either. */
static bool fill(bool is_bare)
{
    static struct frame_mould mould = FRAME_MOULD_INIT;
    OWN_FD int fd = make_network();
    OWN(frame_done) struct frame frame = FRAME_INIT;
    char word = YARD_NETWORK;
    struct iovec parts[] = { { &word, 1 }, { &mould.stamp, sizeof mould.stamp } };
    int fds[YARD_FDS] = { fd };
    OWN_FD int lens_fd = -1;
    struct err e;

    if (fd < 0)
        return false;
    if (!is_bare && make_frame(&mould, &frame) && find_ground()->lens_fd >= 0)
        lens_fd = mounts_clone_tree(find_ground()->lens_fd, "", AT_EMPTY_PATH);
    return packet_send(YARD_FD, parts, LEN(parts), fds, pack(fds, &frame, lens_fd), &e) == 0;
}

_Noreturn static void serve(void)
{
    struct pollfd asked = { .fd = YARD_FD, .events = POLLIN };
    bool is_able = fill(false), is_bare = false;
    size_t ready = 1;

    if (!is_able)
        _exit(0); /* not here: who waits sees the end */
    for (;;) {
        OWN_FD int dropped_fd = -1; /* closed here, which is what is asked for */
        size_t n, fds = 1;
        struct err e;
        char word;

        if (is_able && ready < YARD_NETWORKS && poll(&asked, 1, 0) == 0) {
            is_able = fill(is_bare);
            ready += is_able;
            continue;
        }
        if (packet_receive(YARD_FD, &(struct iovec){ &word, 1 }, 1, &n, &dropped_fd, &fds, &e) < 0)
            _exit(0); /* the maker is gone */
        if (word == YARD_TAKEN || word == YARD_TAKEN_BARE) {
            is_bare = word == YARD_TAKEN_BARE;
            ready -= ready > 0;
            is_able = true; /* or it is tried again */
        }
    }
}

/* Who: a copy of the maker, with its memory and descriptors, none of which we want. */
_Noreturn static void be_yard(int fd, pid_t maker)
{
    int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    struct rlimit unused;
    struct err ignored;
    sigset_t all;

    (void)prctl(PR_SET_NAME, "silica-yard");
    (void)umask(0); /* files of the frame have the modes they are given */
    sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, NULL); /* handlers of the maker's have no business here */
    (void)setsid();
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != maker || chdir("/") < 0)
        _exit(1);
    fd = fcntl(fd, F_DUPFD_CLOEXEC, FIRST_FREE_FD);
    null_fd = fcntl(null_fd, F_DUPFD_CLOEXEC, FIRST_FREE_FD);
    for (int i = 0; i < YARD_FD; i++)
        if (dup2(null_fd, i) < 0)
            _exit(1);
    /* Descriptors that an account's sandboxes have sent count for us too: we may have more on their way than they. */
    (void)fd_raise_limit(&unused, &ignored);
    if (dup2(fd, YARD_FD) < 0 || syscall(SYS_close_range, YARD_FD + 1, ~0u, 0) < 0)
        _exit(1);
    serve();
}

/* ---- the maker ---- */

static int start(struct yard *y, struct err *e)
{
    struct clone_args args = { 0 }; /* no exit signal */
    pid_t maker = getpid();
    int fds[2];
    long pid;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
        return err_sys(e, "cannot make a pair of sockets");
    pid = syscall(SYS_clone3, &args, sizeof args);
    if (pid == 0)
        be_yard(fds[1], maker);
    if (pid < 0)
        (void)err_sys(e, "cannot start the process beside sandboxes");
    (void)close(fds[1]);
    y->fd = fds[0];
    y->pid = pid < 0 ? 0 : (pid_t)pid;
    return pid < 0 ? -1 : 0;
}

/* An account may have left its host's network for a user namespace from where it cannot come back. */
static void find_home(struct yard *y)
{
    struct pollfd first = { .fd = y->fd, .events = POLLIN };
    struct frame unused = FRAME_INIT;

    y->home_fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    if (y->home_fd >= 0 && setns(y->home_fd, CLONE_NEWNET) == 0)
        return;
    own_fd_close(&y->home_fd);
    if (poll(&first, 1, FIRST_WAIT_MS) > 0)
        y->home_fd = yard_take(y, &unused);
    yard_drop_frame(y, &unused);
    if (y->home_fd < 0 || setns(y->home_fd, CLONE_NEWNET) < 0)
        own_fd_close(&y->fd); /* without a way back none can be used */
    else
        yard_refill(y);
}

int yard_open(struct yard **ret, struct err *e)
{
    struct yard *y = NEW(struct yard);

    y->fd = y->home_fd = y->cwd_fd = -1;
    y->home_mounts_fd = ground_find_home();
    if (start(y, e) < 0) {
        yard_close(y);
        return -1;
    }
    find_home(y);
    *ret = y;
    return 0;
}

void yard_close(struct yard *y)
{
    if (!y)
        return;
    own_fd_close(&y->fd);
    if (y->pid) {
        (void)kill(y->pid, SIGKILL); /* not reaped yet: the number is its own */
        (void)TEMP_FAILURE_RETRY(waitpid(y->pid, NULL, __WCLONE));
    }
    own_fd_close(&y->home_fd);
    own_fd_close(&y->home_mounts_fd);
    free(y);
}

int yard_take(struct yard *y, struct frame *ret)
{
    struct pollfd ready = { .fd = y->fd, .events = POLLIN };
    int got[YARD_FDS] = { -1, -1, -1, -1, -1 };
    struct frame_stamp then, now;
    char word;
    struct iovec parts[] = { { &word, 1 }, { &then, sizeof then } };
    size_t n, fds = YARD_FDS;
    struct err e;

    *ret = (struct frame)FRAME_INIT;
    if (y->fd < 0 || poll(&ready, 1, 0) <= 0)
        return -1;
    if (packet_receive(y->fd, parts, LEN(parts), &n, got, &fds, &e) < 0) {
        own_fd_close(&y->fd); /* its process is gone */
        return -1;
    }
    y->owed++;
    *ret = (struct frame){ got[1], got[2], got[3], got[4] };
    frame_stamp_look(&now);
    if (memcmp(&then, &now, sizeof now) != 0)
        yard_drop_frame(y, ret);
    return got[0];
}

void yard_note_use(struct yard *y, bool is_framed)
{
    y->is_bare = !is_framed;
}

void yard_refill(struct yard *y)
{
    char word = y->is_bare ? YARD_TAKEN_BARE : YARD_TAKEN;
    struct err e;

    for (; y->fd >= 0 && y->owed; y->owed--)
        if (say(y->fd, word, NULL, &e) < 0)
            own_fd_close(&y->fd);
}

bool yard_has_ground(const struct yard *y, const struct frame *f)
{
    return y && y->home_mounts_fd >= 0 && f->ground_fd >= 0;
}

int yard_enter(struct yard *y, int net_fd, const struct frame *f, struct err *e)
{
    if (net_fd >= 0 && setns(net_fd, CLONE_NEWNET) < 0)
        return err_sys(e, "cannot enter the sandbox's network");
    if (!yard_has_ground(y, f))
        return 0;
    y->cwd_fd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (y->cwd_fd >= 0 && setns(f->ground_fd, CLONE_NEWNS) == 0)
        return 0;
    (void)err_sys(e, "cannot enter the ground");
    own_fd_close(&y->cwd_fd);
    yard_leave(y);
    return -1;
}

void yard_leave(struct yard *y)
{
    (void)setns(y->home_fd, CLONE_NEWNET); /* we were there: nothing can be wrong with it */
    if (y->cwd_fd < 0)
        return;
    ground_go_home(y->home_mounts_fd);
    if (fchdir(y->cwd_fd) < 0)
        abort(); /* we were there */
    own_fd_close(&y->cwd_fd);
    y->cwd_fd = -1;
}

void yard_drop(struct yard *y, int mounts_fd)
{
    OWN_FD int fd = mounts_fd;
    struct err e;

    if (y && y->fd >= 0 && fd >= 0)
        (void)say(y->fd, YARD_DROP, &fd, &e); /* or it is dropped here */
}

void yard_drop_ground(struct yard *y, struct frame *f)
{
    yard_drop(y, take_fd(&f->lens_fd));
    own_fd_close(&f->ground_fd); /* not the last one of it */
    f->ground_fd = -1;
}

void yard_drop_frame(struct yard *y, struct frame *f)
{
    yard_drop(y, take_fd(&f->etc_fd));
    yard_drop(y, take_fd(&f->dev_fd));
    yard_drop_ground(y, f);
}
