#include "sandbox/testruntime.h"

#include "sandbox/sandbox.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>

int testruntime_start(pid_t *ret_pid)
{
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        abort();
    *ret_pid = fork();
    if (*ret_pid < 0)
        abort();
    if (*ret_pid == 0) {
        const char *argv[32] = { SILICA_RUNTIME, "--control-fd", "3" };
        size_t n = 3;

        for (size_t i = 0; sandbox_runtime_args[i]; i++)
            argv[n++] = sandbox_runtime_args[i];
        if (dup2(pair[1], 3) < 0 || fcntl(3, F_SETFD, 0) < 0)
            _exit(99);
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        (void)execv(SILICA_RUNTIME, (char **)(uintptr_t)argv);
        _exit(98);
    }
    (void)close(pair[1]);
    return pair[0];
}
