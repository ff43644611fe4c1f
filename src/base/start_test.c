/* A static program begun by start.c: what the C library promises to main and after it. Not with cmocka, which has no
 * static library; each check that fails says so and counts. */
#include "base/own.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/wait.h>

#define BLOCK_BYTES (3 * 1024 * 1024) /* past every threshold of memcpy */

static int failures, was_constructed, saved_argc, end_fd = -1;

static void check(bool is_fine, const char *what)
{
    printf("%sok - %s\n", is_fine ? "" : "not ", what);
    failures += !is_fine;
}

__attribute__((constructor)) static void construct(int argc, char **argv, char **env)
{
    was_constructed = argv[0] && env;
    saved_argc = argc;
}

__attribute__((destructor)) static void destruct(void)
{
    if (end_fd >= 0)
        (void)!write(end_fd, "destructor ", 11);
}

static void at_exit(void)
{
    (void)!write(end_fd, "atexit ", 7);
}

static void *other_errno(void *ctx)
{
    errno = ERANGE;
    return ctx;
}

static void check_threads(void)
{
    pthread_t t;
    void *got = NULL;

    errno = EDOM;
    check(pthread_create(&t, NULL, other_errno, &failures) == 0 && pthread_join(t, &got) == 0 &&
              got == &failures,
          "a thread runs and is joined");
    check(errno == EDOM, "errno is each thread's own");
}

static void check_guards(void)
{
    uint64_t stack, pointer;

    __asm__("mov %%fs:0x28, %0" : "=r"(stack));
    __asm__("mov %%fs:0x30, %0" : "=r"(pointer));
    check(stack && (stack & 0xff) == 0, "the stack protector has its word, which ends a text");
    check(pointer && pointer != stack, "so have saved pointers");
    check(memcmp((char *)getauxval(AT_RANDOM) + 1, (char *)&stack + 1, 7) == 0,
          "and the words are of this start");
}

static void check_strings(void)
{
    OWN_MEM uint8_t *a = own_new(BLOCK_BYTES), *b = own_new(BLOCK_BYTES);

    for (size_t i = 0; i < BLOCK_BYTES; i++)
        a[i] = (uint8_t)(i * 31 + i / 257);
    memcpy(b, a, BLOCK_BYTES);
    check(memcmp(a, b, BLOCK_BYTES) == 0, "a large copy");
    memmove(b + 1, b, BLOCK_BYTES - 1);
    check(memcmp(a, b + 1, BLOCK_BYTES - 1) == 0, "a large move onto itself");
    memset(b, 7, BLOCK_BYTES);
    check(b[0] == 7 && b[BLOCK_BYTES - 1] == 7 && !memchr(b, 8, BLOCK_BYTES), "a large fill");
}

/* A child that returns from main as we do: what it printed last, and what runs after main. */
static void check_end(void)
{
    char text[64] = "";
    int fds[2], status = -1;
    pid_t pid;

    (void)fflush(stdout);
    if (pipe(fds) < 0 || (pid = fork()) < 0) {
        check(false, "a child");
        return;
    }
    if (pid == 0) {
        end_fd = fds[1];
        (void)dup2(fds[1], 1);
        (void)atexit(at_exit);
        printf("flushed ");
        exit(3);
    }
    (void)close(fds[1]);
    (void)waitpid(pid, &status, 0);
    for (size_t n = 0, got = 1; got > 0 && n < sizeof text - 1; n += got)
        got = (size_t)MAX(read(fds[0], text + n, sizeof text - 1 - n), (ssize_t)0);
    check(WIFEXITED(status) && WEXITSTATUS(status) == 3, "the exit status");
    check(strcmp(text, "atexit destructor flushed ") == 0, "what runs after main, in order");
}

int main(int argc, char **argv, char **env)
{
    check(argc == 2 && strcmp(argv[1], "argument") == 0 && !argv[2], "the arguments");
    check(env == environ && getenv("START_TEST") && strcmp(getenv("START_TEST"), "yes") == 0,
          "the environment");
    check(was_constructed && saved_argc == argc, "constructors have run, with the arguments");
    check(getauxval(AT_PAGESZ) == (unsigned long)sysconf(_SC_PAGESIZE), "the auxiliary vector");
    check_guards();
    check_threads();
    check_strings();
    check_end();
    return failures != 0;
}
