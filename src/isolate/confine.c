#include "isolate/confine.h"

#include "isolate/user_counts.h"

#include "isolate/seccomp_calls.h"
#include "isolate/seccomp_filter.h" /* made by seccomp_gen */

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#define LANDLOCK_ACCESS_FS_TRUNCATE (1ull << 14) /* ABI 3 */
#endif
#define LANDLOCK_ABI_TRUNCATE 3

#define READ_RIGHTS                                                                                \
    (LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define WRITE_RIGHTS                                                                               \
    (LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |                               \
     LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |  \
     LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_SYM |   \
     LANDLOCK_ACCESS_FS_REFER)
#define FILE_RIGHTS                                                                                \
    (LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE |   \
     LANDLOCK_ACCESS_FS_TRUNCATE)
/* Handled and never granted: nobody in here makes a device. */
#define DEVICE_RIGHTS (LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK)

int confine_landlock_abi(void)
{
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

    return abi < CONFINE_LANDLOCK_FLOOR ? 0 : (int)abi;
}

static int set_limit(int what, const char *name, rlim_t most, struct err *e)
{
    struct rlimit now;

    if (getrlimit((__rlimit_resource_t)what, &now) < 0)
        return err_sys(e, "cannot read the limit of %s", name);
    now.rlim_max = MIN(now.rlim_max, most);
    now.rlim_cur = MIN(now.rlim_cur, most);
    if (setrlimit((__rlimit_resource_t)what, &now) < 0)
        return err_sys(e, "cannot limit %s", name);
    return 0;
}

/* 0 would keep files from being written and still hand the memory of a crashed process to the host's crash handler, as
 * root, where core_pattern is a pipe; 1 means neither (core(5)). The filter keeps it there. */
static int limit_cores(struct err *e)
{
    struct rlimit one = { 1, 1 }, now;

    if (getrlimit(RLIMIT_CORE, &now) < 0)
        return err_sys(e, "cannot read the limit of core files");
    if (now.rlim_max < 1)
        return 0; /* the caller's, and not ours to raise */
    return setrlimit(RLIMIT_CORE, &one) < 0 ? err_sys(e, "cannot limit core files") : 0;
}

int confine_limits(const struct plan *plan, struct err *e)
{
    if (limit_cores(e) < 0)
        return -1;
    if (set_limit(RLIMIT_MEMLOCK, "locked memory", 8 << 20, e) < 0 ||
        user_counts_limit(&plan->ids, e) < 0)
        return -1;
    /* Since Linux 5.14 processes are counted for each user namespace, so neighbours of the same user do not count. */
    return plan->nproc ? set_limit(RLIMIT_NPROC, "processes", plan->nproc, e) : 0;
}

static int grant_fd(int rules_fd, int fd, const char *path, uint64_t rights, struct err *e)
{
    struct landlock_path_beneath_attr rule = { .parent_fd = fd, .allowed_access = rights };

    if (syscall(SYS_landlock_add_rule, rules_fd, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0)
        return err_sys(e, "cannot grant '%s' by Landlock", path);
    return 0;
}

static int grant(int rules_fd, const char *path, uint64_t rights, struct err *e)
{
    /* by path: of the plan, before a stranger's code runs. */
    OWN_FD int fd = open(path, O_PATH | O_CLOEXEC);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys(e, "cannot open '%s' inside", path);
    return grant_fd(rules_fd, fd, path, S_ISDIR(st.st_mode) ? rights : rights & FILE_RIGHTS, e);
}

/* A sealed root is written to in these places only, and in the caller's writable trees. */
static int grant_writable(int rules_fd, const struct plan *plan, uint64_t rights, struct err *e)
{
    static const char *const places[] = { "/tmp", BOX_HOME, "/dev", "/proc" };
    char path[PLAN_TEXT_MAX_BYTES + 1];

    for (size_t i = 0; i < LEN(places); i++)
        if (grant(rules_fd, places[i], rights, e) < 0)
            return -1;
    for (size_t i = 0; i < plan->n; i++) {
        const struct plan_row *row = &plan->rows[i];

        if ((row->op != PLAN_BIND || (row->flags & PLAN_RDONLY)) &&
            (row->op != PLAN_TOUCH || (row->flags & PLAN_FOREIGN)))
            continue;
        (void)snprintf(path, sizeof path, "/%s", row->target);
        if (grant(rules_fd, path, rights, e) < 0)
            return -1;
    }
    return 0;
}

int confine_paths(const struct plan *plan, int program_fd, struct err *e)
{
    int abi = confine_landlock_abi();
    uint64_t more = abi >= LANDLOCK_ABI_TRUNCATE ? LANDLOCK_ACCESS_FS_TRUNCATE : 0;
    uint64_t writes = WRITE_RIGHTS | more;
    struct landlock_ruleset_attr attr = { .handled_access_fs =
                                              READ_RIGHTS | writes | DEVICE_RIGHTS };
    OWN_FD int rules_fd = -1;

    if (!abi)
        return 0;
    rules_fd = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof attr, 0);
    if (rules_fd < 0)
        return err_sys(e, "cannot make Landlock rules");
    if (grant(rules_fd, "/", READ_RIGHTS | (plan->is_root_sealed ? 0 : writes), e) < 0)
        return -1;
    if (plan->is_root_sealed && grant_writable(rules_fd, plan, writes, e) < 0)
        return -1;
    if (program_fd >= 0 &&
        grant_fd(rules_fd, program_fd, "silica-runtime",
                 LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE, e) < 0)
        return -1;
    if (syscall(SYS_landlock_restrict_self, rules_fd, 0) < 0)
        return err_sys(e, "cannot confine by Landlock");
    return 0;
}

int confine_future(struct err *e)
{
    const unsigned long bits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
                               SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
                               SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return err_sys(e, "cannot give up new privileges");
    for (unsigned long cap = 0; prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == 0; cap++)
        continue;
    if (errno != EINVAL) /* which is how the kernel says that there are no more */
        return err_sys(e, "cannot drop capabilities for good");
    if (prctl(PR_SET_SECUREBITS, bits, 0, 0, 0) < 0)
        return err_sys(e, "cannot lock capabilities out");
    return 0;
}

int confine_ids(const struct ids *ids, struct err *e)
{
    /* Without a range there is one id, which we have, and the kernel allows no setgroups. The C library's calls would change
     * another thread's too, and wait for it. */
    if (ids->kind == IDS_ONE)
        return 0;
    if (syscall(SYS_setgroups, ids->group_count, ids->groups) < 0)
        return err_sys(e, "cannot take the place of old groups");
    if (syscall(SYS_setresgid, ids->gid, ids->gid, ids->gid) < 0)
        return err_sys(e, "cannot become group %u", ids->gid);
    if (syscall(SYS_setresuid, ids->uid, ids->uid, ids->uid) < 0)
        return err_sys(e, "cannot become user %u", ids->uid);
    return 0;
}

int confine_capabilities(struct err *e)
{
    struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct none[2] = { 0 };

    if (syscall(SYS_capset, &head, none) < 0)
        return err_sys(e, "cannot drop capabilities");
    return 0;
}

int confine_calls(const struct plan *plan, struct err *e)
{
    unsigned variant =
        (plan->ids.uid == 0 ? SECCOMP_OF_ROOT : 0u) | (plan->has_shared ? SECCOMP_ON_SHARED : 0u);

    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &seccomp_filters[variant]) < 0)
        return err_sys(e, "cannot filter system calls");
    return 0;
}
