#include "isolate/user_counts.h"

#include "base/fd.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define SETTING_MAX_BYTES 32
#define SHARE             4 /* of one sandbox: a quarter; of an account's together: all but one of them */

/* Message queues are counted so too, and no sandbox can make one (seccomp_calls.h). */
static const int limits[USER_COUNTS_LIMITS] = { RLIMIT_SIGPENDING, RLIMIT_MEMLOCK };

static const struct {
    const char *of_host; /* what one user has, whichever namespace we are in */
    const char *setting; /* of a user namespace */
} counts[USER_COUNTS] = {
    [USER_INOTIFY_INSTANCES] = { "/proc/sys/fs/inotify/max_user_instances",
                                 "proc/sys/user/max_inotify_instances" },
    [USER_INOTIFY_WATCHES] = { "/proc/sys/fs/inotify/max_user_watches",
                               "proc/sys/user/max_inotify_watches" },
};

static rlim_t all_but_one_share(rlim_t all)
{
    return all - all / SHARE;
}

/* ---- the making of a namespace ---- */

static bool may_become_owner(void)
{
    struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct have[2] = { 0 };

    return syscall(SYS_capget, &head, have) == 0 && (have[0].effective & (1u << CAP_SETPCAP)) &&
           (have[0].effective & (1u << CAP_SETUID));
}

/* Rights stay what they are while the effective user is another; files are opened as before. */
static bool become_owner(struct user_counts *u, uint32_t owner)
{
    u->securebits = prctl(PR_GET_SECUREBITS, 0, 0, 0, 0);
    if (u->securebits < 0 || prctl(PR_GET_PDEATHSIG, &u->death_signal, 0, 0, 0) < 0 ||
        prctl(PR_SET_SECUREBITS, (unsigned long)u->securebits | SECBIT_NO_SETUID_FIXUP, 0, 0, 0) <
            0)
        return false;
    if (syscall(SYS_setresuid, -1, owner, -1) < 0) {
        (void)prctl(PR_SET_SECUREBITS, (unsigned long)u->securebits, 0, 0, 0);
        return false;
    }
    (void)syscall(SYS_setfsuid, 0);
    return true;
}

/* We may always become what we are. */
static void become_ourselves(const struct user_counts *u)
{
    if (syscall(SYS_setresuid, -1, 0, -1) < 0 ||
        prctl(PR_SET_SECUREBITS, (unsigned long)u->securebits, 0, 0, 0) < 0)
        abort();
    if (u->death_signal) /* a change of users forgets it */
        (void)prctl(PR_SET_PDEATHSIG, u->death_signal, 0, 0, 0);
}

void user_counts_begin(struct user_counts *u, uint32_t owner)
{
    *u = (struct user_counts){ .is_owner = false };
    u->is_owner = owner && become_owner(u, owner);
    if (u->is_owner)
        return; /* whose count is the sandbox's alone */
    for (size_t i = 0; i < LEN(limits); i++) {
        struct rlimit *was = &u->limits[i], less;

        if (getrlimit((__rlimit_resource_t)limits[i], was) < 0 || was->rlim_cur == RLIM_INFINITY)
            continue;
        less = (struct rlimit){ all_but_one_share(was->rlim_cur), was->rlim_max };
        u->is_lowered[i] = setrlimit((__rlimit_resource_t)limits[i], &less) == 0;
    }
}

void user_counts_end(const struct user_counts *u)
{
    if (u->is_owner)
        become_ourselves(u);
    for (size_t i = 0; i < LEN(limits); i++)
        if (u->is_lowered[i])
            (void)setrlimit((__rlimit_resource_t)limits[i], &u->limits[i]);
}

/* ---- what a sandbox has ---- */

const char *user_count_setting(enum user_count which)
{
    return counts[which].setting;
}

/* Read once in each process. */
static uint64_t of_host(enum user_count which)
{
    static uint64_t known[USER_COUNTS];
    OWN(buf_done) struct buf text = BUF_INIT(SETTING_MAX_BYTES);
    struct span rest, line;
    struct err ignored;

    if (!known[which] && fd_read_file(counts[which].of_host, &text, &ignored) == 0) {
        rest = buf_span(&text);
        if (span_cut(&rest, '\n', &line))
            (void)str_u64(line, INT32_MAX, &known[which]);
    }
    return known[which];
}

void user_counts_of_sandbox(const struct ids *ids, uint64_t ret[USER_COUNTS])
{
    bool is_own = ids->kind == IDS_ROOT && may_become_owner();

    for (int i = 0; i < USER_COUNTS; i++) {
        uint64_t all = is_own ? 0 : of_host((enum user_count)i);

        ret[i] = all ? MAX(all / SHARE, 1u) : 0;
    }
}

static int lower(int what, rlim_t most, struct err *e)
{
    struct rlimit now;

    if (getrlimit((__rlimit_resource_t)what, &now) < 0)
        return err_sys(e, "cannot read a resource limit");
    now.rlim_max = MIN(now.rlim_max, most);
    now.rlim_cur = MIN(now.rlim_cur, most);
    return setrlimit((__rlimit_resource_t)what, &now) < 0
               ? err_sys(e, "cannot lower a resource limit")
               : 0;
}

int user_counts_limit(const struct ids *ids, struct err *e)
{
    struct rlimit signals, files, locked;

    if (getrlimit(RLIMIT_SIGPENDING, &signals) < 0 || getrlimit(RLIMIT_NOFILE, &files) < 0 ||
        getrlimit(RLIMIT_MEMLOCK, &locked) < 0)
        return err_sys(e, "cannot read a resource limit");
    if (lower(RLIMIT_SIGPENDING, signals.rlim_max / SHARE, e) < 0)
        return -1;
    locked.rlim_cur = locked.rlim_max; /* for a process it is no less than before the clone */
    if (setrlimit(RLIMIT_MEMLOCK, &locked) < 0)
        return err_sys(e, "cannot set the limit of locked memory");
    /* The kernel counts descriptors that are in a socket for the uid, and compares the sender's limit of open files. */
    return ids->kind == IDS_ROOT ? 0 : lower(RLIMIT_NOFILE, all_but_one_share(files.rlim_max), e);
}

/* ---- what all of an account's have ---- */

void user_counts_bound_engine(void)
{
    for (int i = 0; i < USER_COUNTS; i++) {
        uint64_t all = of_host((enum user_count)i);
        char path[64], text[SETTING_MAX_BYTES];
        OWN_FD int fd = -1;
        struct err ignored;

        (void)snprintf(path, sizeof path, "/%s", counts[i].setting);
        (void)snprintf(text, sizeof text, "%llu", (unsigned long long)all_but_one_share(all));
        fd = all ? open(path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC) : -1;
        if (fd >= 0)
            (void)fd_write_all(fd, span_cstr(text), &ignored);
    }
}
