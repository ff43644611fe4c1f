/* ceiling: the most spawns this machine can do, which no server can pass.
 *
 *     ceiling PROCESSES MILLISECONDS [bare]
 *
 * Each process spawns /bin/true as a runtime must: two pipes, vfork, setsid, exec, both pipes read to EOF, wait.
 * With `bare` it does vfork, exec and wait only. Prints {"count":N,"seconds":S,"rate":R}. */
#include "bench/measure.h"

#include <fcntl.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROCESSES_MAX 64

extern char **environ;

static void child(const int out[2], const int err[2], bool is_bare)
{
    static char *const argv[] = { "/bin/true", NULL };

    /* Between vfork and exec we run on the parent's stack: system calls only. */
    if (!is_bare) {
        setsid();
        dup2(out[1], STDOUT_FILENO);
        dup2(err[1], STDERR_FILENO);
    }
    execve(argv[0], argv, environ);
    _exit(127);
}

static void drain(int fd)
{
    char bytes[4096];
    ssize_t n;

    do
        n = read(fd, bytes, sizeof bytes);
    while (n > 0 || (n < 0 && errno == EINTR));
    close(fd);
}

static void spawn_once(bool is_bare)
{
    int out[2], err[2], status = 0;

    if (!is_bare) {
        must(pipe2(out, O_CLOEXEC) == 0, "pipe");
        must(pipe2(err, O_CLOEXEC) == 0, "pipe");
    }
    pid_t pid = vfork();

    must(pid >= 0, "vfork");
    if (pid == 0)
        child(out, err, is_bare);
    if (!is_bare) {
        close(out[1]);
        close(err[1]);
        drain(out[0]);
        drain(err[0]);
    }
    must(waitpid(pid, &status, 0) == pid && status == 0, "/bin/true");
}

int main(int argc, char **argv)
{
    if (argc < 3 || argc > 4) {
        fprintf(stderr, "usage: ceiling PROCESSES MILLISECONDS [bare]\n");
        return 2;
    }
    long processes = number(argv[1], "number of processes");
    int64_t span_ns = number(argv[2], "milliseconds") * 1000000;
    bool is_bare = argc == 4 && strcmp(argv[3], "bare") == 0;
    long *counts = mmap(NULL, sizeof *counts * PROCESSES_MAX, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    must(counts != MAP_FAILED && processes > 0 && processes <= PROCESSES_MAX, "processes");
    int64_t began = now_ns();

    for (long i = 0; i < processes; i++) {
        pid_t pid = fork();

        must(pid >= 0, "fork");
        if (pid == 0) {
            while (now_ns() - began < span_ns) {
                spawn_once(is_bare);
                counts[i]++;
            }
            _exit(0);
        }
    }
    bool all_well = true;
    int status;

    for (long i = 0; i < processes; i++)
        all_well = wait(&status) > 0 && status == 0 && all_well;
    double seconds = (double)(now_ns() - began) / 1e9;
    long total = 0;

    for (long i = 0; i < processes; i++)
        total += counts[i];
    printf("{\"count\":%ld,\"seconds\":%.3f,\"rate\":%.1f}\n", total, seconds,
           (double)total / seconds);
    return all_well ? 0 : 1;
}
