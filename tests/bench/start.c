/* start: how long a server takes from exec to serving.
 *
 *     start RUNS ready -- COMMAND...      "@FD@" in COMMAND becomes the --ready-fd; a line on it is "serves"
 *     start RUNS PORT -- COMMAND...       a connection to 127.0.0.1:PORT that is accepted is "serves"
 *     start RUNS exit -- COMMAND...       the program's own end is what is waited for; it must succeed
 *
 * The clock starts in the child, just before exec. Prints {"runs":N,"median_us":..,"worst_us":..,"best_us":..}. */
#include "bench/measure.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define RUNS_MAX      1000
#define GIVE_UP_NS    (20 * 1000000000LL)
#define RETRY_NS      100000 /* between connects: small beside any peer's start */
#define ARGUMENTS_MAX 64
#define UNTIL_EXIT    (-1) /* in place of a port */

static int64_t wait_line(int fd)
{
    char byte = 0;

    while (byte != '\n')
        must(read(fd, &byte, 1) == 1, "the server ended before its ready line");
    return now_ns();
}

static int64_t wait_port(long port)
{
    const struct sockaddr_in to = { .sin_family = AF_INET,
                                    .sin_port = htons((uint16_t)port),
                                    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    const struct timespec pause = { 0, RETRY_NS };
    int64_t give_up = now_ns() + GIVE_UP_NS;

    for (;;) {
        int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        bool is_open = connect(s, (const struct sockaddr *)&to, sizeof to) == 0;
        int64_t t = now_ns();

        close(s);
        if (is_open)
            return t;
        must(t < give_up, "the server does not accept");
        nanosleep(&pause, NULL);
    }
}

static int64_t run_once(char **argv, long port, volatile int64_t *exec_ns)
{
    char fd_text[16];
    char *args[ARGUMENTS_MAX + 1] = { NULL };
    int ready[2], status;

    must(pipe2(ready, O_CLOEXEC) == 0, "pipe");
    (void)snprintf(fd_text, sizeof fd_text, "%d", ready[1]);
    for (size_t i = 0; argv[i] && i < ARGUMENTS_MAX; i++)
        args[i] = strcmp(argv[i], "@FD@") == 0 ? fd_text : argv[i];
    pid_t pid = fork();

    must(pid >= 0, "fork");
    if (pid == 0) {
        int null = open("/dev/null", O_RDWR);

        fcntl(ready[1], F_SETFD, 0);
        dup2(null, STDIN_FILENO);
        dup2(null, STDOUT_FILENO);
        dup2(null, STDERR_FILENO);
        *exec_ns = now_ns();
        execv(args[0], args);
        _exit(127);
    }
    close(ready[1]);
    if (port == UNTIL_EXIT) {
        must(waitpid(pid, &status, 0) == pid, "wait");
        int64_t ended = now_ns();

        close(ready[0]);
        must(status == 0, "the command failed");
        return ended - *exec_ns;
    }
    int64_t served = port ? wait_port(port) : wait_line(ready[0]);

    close(ready[0]);
    kill(pid, SIGTERM);
    must(waitpid(pid, &status, 0) == pid, "wait");
    return served - *exec_ns;
}

int main(int argc, char **argv)
{
    static int64_t took[RUNS_MAX];
    volatile int64_t *exec_ns =
        mmap(NULL, sizeof *exec_ns, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (argc < 5 || strcmp(argv[3], "--") != 0) {
        fprintf(stderr, "usage: start RUNS ready|exit|PORT -- COMMAND...\n");
        return 2;
    }
    long runs = number(argv[1], "runs");
    long port = strcmp(argv[2], "ready") == 0  ? 0
                : strcmp(argv[2], "exit") == 0 ? UNTIL_EXIT
                                               : number(argv[2], "port");

    must(exec_ns != MAP_FAILED && runs > 0 && runs <= RUNS_MAX, "runs");
    for (long i = 0; i < runs; i++)
        took[i] = run_once(argv + 4, port, exec_ns);
    sort_values(took, (size_t)runs);
    printf("{\"runs\":%ld,\"best_us\":%.0f,\"median_us\":%.0f,\"worst_us\":%.0f}\n", runs,
           percentile_us(took, (size_t)runs, 0), percentile_us(took, (size_t)runs, 0.5),
           percentile_us(took, (size_t)runs, 1));
    return 0;
}
