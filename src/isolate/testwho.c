#include "isolate/testwho.h"

#include "base/fd.h"

#include <grp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

bool testwho_be(unsigned id)
{
    return setgroups(0, NULL) == 0 && setresgid(id, id, id) == 0 && setresuid(id, id, id) == 0 &&
           prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0;
}

static int result_of(pid_t child)
{
    int status;

    return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int testwho_run_as_nobody(int (*fn)(void))
{
    pid_t child = fork();

    if (child == 0)
        exit(testwho_be(TESTWHO_NOBODY) ? fn() : 99);
    return result_of(child);
}

static bool write_over(const char *path, const char *text)
{
    char name[] = "/tmp/isolate-test-XXXXXX";
    OWN_FD int fd = mkstemp(name);
    struct err e;
    bool is_ok = fd >= 0 && fchmod(fd, 0644) == 0 && fd_write_all(fd, span_cstr(text), &e) == 0 &&
                 mount(name, path, NULL, MS_BIND, NULL) == 0;

    (void)unlink(name);
    return is_ok;
}

int testwho_run_as_ranged(int (*fn)(void))
{
    pid_t child;

    if (access("/usr/bin/newuidmap", X_OK) < 0) {
        printf("# no newuidmap here: accounts with a range were not tried\n");
        return 0;
    }
    (void)fflush(stdout);
    child = fork();
    if (child == 0) {
        if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
            !write_over("/etc/passwd",
                        "root:x:0:0::/root:/bin/sh\nranged:x:64999:64999::/:/bin/sh\n") ||
            !write_over("/etc/subuid", "ranged:1000000:65536\n") ||
            !write_over("/etc/subgid", "ranged:1000000:65536\n"))
            _exit(98);
        exit(testwho_be(TESTWHO_RANGED) ? fn() : 99);
    }
    return result_of(child);
}
