/* Static, as the programs are: where a strand cannot be had there is nothing to test, and the suite of boxes runs by fork. */
#include "isolate/strand.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define CHECK(what)                                                                                \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what);                             \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

struct shared {
    struct strand *second;
    int gate[2];
    int errno_seen; /* by the first, after the second failed at something else */
    int errno_of_second;
    pid_t parent_of_first;
    volatile int told;
};

static void second(void *ctx)
{
    struct shared *x = ctx;

    (void)close(-1);
    x->errno_of_second = errno;
    strand_exit();
}

/* Its own errno, descriptors and directory; our memory. */
static void first(void *ctx)
{
    struct shared *x = ctx;
    char word;

    errno = 0;
    (void)open("/does/not/exist", O_RDONLY | O_CLOEXEC);
    if (strand_thread(x->second, second, x) < 0)
        _exit(2);
    strand_join(x->second);
    x->errno_seen = errno;
    x->parent_of_first = getppid();
    (void)close(x->gate[1]);
    if (chdir("/proc") < 0 || read(x->gate[0], &word, 1) != 1)
        _exit(3);
    x->told = word;
    _exit(7);
}

static void test_process(void)
{
    struct strand *s = strand_take();
    struct shared x = { .second = strand_take() };
    struct clone_args args = { .exit_signal = SIGCHLD };
    char before[4096], after[4096];
    int status;
    pid_t pid;

    CHECK(s && x.second && pipe2(x.gate, O_CLOEXEC) == 0 && getcwd(before, sizeof before));
    errno = ERANGE;
    pid = strand_process(s, &args, first, &x);
    CHECK(pid > 0 && errno == ERANGE);
    CHECK(write(x.gate[1], "w", 1) == 1); /* it closed its copy, not ours */
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 7);
    CHECK(errno == ERANGE && x.errno_seen == ENOENT && x.errno_of_second == EBADF);
    CHECK(x.told == 'w' && x.parent_of_first == getpid());
    CHECK(getcwd(after, sizeof after) && strcmp(before, after) == 0);
    strand_give(s);
    strand_give(x.second);
    (void)close(x.gate[0]), (void)close(x.gate[1]);
}

static void run_true(void *ctx)
{
    (void)ctx;
    (void)execl("/bin/true", "true", (char *)NULL);
    _exit(1);
}

static void test_many(void)
{
    for (int i = 0; i < 200; i++) {
        struct strand *a = strand_take(), *b = strand_take(), *c = strand_take();
        struct clone_args args = { .exit_signal = SIGCHLD };
        int status;
        pid_t pid = strand_process(b, &args, run_true, NULL);

        CHECK(a != b && b != c && a != c && pid > 0);
        CHECK(waitpid(pid, &status, 0) == pid && status == 0);
        strand_give(a), strand_give(b), strand_give(c);
    }
}

static void on_signal(int number)
{
    (void)number;
    CHECK(0); /* in the child it would run on our memory */
}

static void signal_self(void *ctx)
{
    (void)ctx;
    (void)kill(getpid(), SIGUSR1);
    _exit(5);
}

static void test_signals(void)
{
    struct strand *s = strand_take();
    struct clone_args args = { .exit_signal = SIGCHLD };
    int status;
    pid_t pid;

    CHECK(signal(SIGUSR1, on_signal) != SIG_ERR);
    pid = strand_process(s, &args, signal_self, NULL);
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 5);
    strand_give(s);
}

int main(void)
{
    struct strand *s = strand_take();

    if (!s) {
        printf("no strands in this program\n");
        return 77;
    }
    strand_give(s);
    test_process();
    test_many();
    test_signals();
    return 0;
}
