#include "isolate/strand.h"

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SPARE_STRANDS 2 /* what one sandbox takes */
#define STACK_BYTES   (256 * 1024)
#define GUARD_BYTES   4096
#define BLOCK_BYTES   (16 * 1024)
#define BLOCK_ALIGN   64

struct strand {
    int is_running; /* a thread: the kernel writes 0, and wakes us */
    uint8_t *room;  /* guard, stack, thread block */
};

#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__)

/* Of the C library, for debuggers and its own loader. In a program that is not static they are not there. */
extern void _dl_get_tls_static_info(size_t *ret_bytes, size_t *ret_align) __attribute__((weak));
extern const uint32_t _thread_db_sizeof_pthread __attribute__((weak));

/* Below the address that names a thread block are the variables, above it is what the library knows of the thread. */
static bool measure(size_t *ret_below, size_t *ret_above)
{
    size_t bytes = 0, align = 0;

    if (!_dl_get_tls_static_info || !&_thread_db_sizeof_pthread)
        return false;
    _dl_get_tls_static_info(&bytes, &align);
    *ret_above = _thread_db_sizeof_pthread;
    if (align > BLOCK_ALIGN || bytes < *ret_above || bytes > BLOCK_BYTES - BLOCK_ALIGN)
        return false;
    *ret_below = bytes - *ret_above;
    return true;
}

/* A copy of the calling thread's, so that the locale and all that was set up lazily is there. */
static uint64_t make_block(const struct strand *s)
{
    uint8_t *room = s->room + GUARD_BYTES + STACK_BYTES, *ours = __builtin_thread_pointer(), *block;
    size_t below = 0, above = 0;

    (void)measure(&below, &above);
    block = room + (below + BLOCK_ALIGN - 1) / BLOCK_ALIGN * BLOCK_ALIGN;
    memcpy(block - below, ours - below, below + above);
    ((void **)block)[0] = block; /* what the first word of a block says, and the third */
    ((void **)block)[2] = block;
    return (uint64_t)(uintptr_t)block;
}

/* The call returns twice, the second time on another stack, where there is no frame to return to. */
static long call_clone3(struct clone_args *args, strand_fn fn, void *ctx)
{
    register strand_fn in_r8 __asm__("r8") = fn;
    register void *in_r9 __asm__("r9") = ctx;
    long pid;

    __asm__ volatile("syscall\n\t"
                     "test %%rax, %%rax\n\t"
                     "jnz 1f\n\t"
                     "xor %%ebp, %%ebp\n\t"
                     "mov %%r9, %%rdi\n\t"
                     "call *%%r8\n\t"
                     "ud2\n"
                     "1:"
                     : "=a"(pid)
                     : "0"((long)SYS_clone3), "D"(args), "S"(sizeof *args), "r"(in_r8), "r"(in_r9)
                     : "rcx", "r11", "memory", "cc");
    return pid;
}

static bool is_able(void)
{
    size_t below, above;

    return measure(&below, &above);
}

#else

static uint64_t make_block(const struct strand *s)
{
    (void)s;
    return 0;
}

static long call_clone3(struct clone_args *args, strand_fn fn, void *ctx)
{
    (void)args, (void)fn, (void)ctx;
    return -ENOSYS;
}

static bool is_able(void)
{
    return false;
}

#endif

static struct strand *spares[SPARE_STRANDS]; /* atomic */

static struct strand *make(void)
{
    uint8_t *room = mmap(NULL, GUARD_BYTES + STACK_BYTES + BLOCK_BYTES, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    struct strand *s;

    if (room == MAP_FAILED)
        return NULL;
    (void)mprotect(room, GUARD_BYTES, PROT_NONE);
    s = NEW(struct strand);
    s->room = room;
    return s;
}

struct strand *strand_take(void)
{
    if (!is_able())
        return NULL;
    for (size_t i = 0; i < LEN(spares); i++) {
        struct strand *s = __atomic_exchange_n(&spares[i], NULL, __ATOMIC_ACQ_REL);

        if (s)
            return s;
    }
    return make();
}

void strand_give(struct strand *s)
{
    for (size_t i = 0; i < LEN(spares) && s; i++)
        s = __atomic_exchange_n(&spares[i], s, __ATOMIC_ACQ_REL);
    if (!s)
        return;
    (void)munmap(s->room, GUARD_BYTES + STACK_BYTES + BLOCK_BYTES);
    free(s);
}

/* The raw call: the C library would leave its own two signals out. */
static pid_t start(struct strand *s, struct clone_args *args, strand_fn fn, void *ctx)
{
    uint64_t all = UINT64_MAX, before = 0;
    long pid;

    args->flags |= CLONE_VM | CLONE_SETTLS;
    args->stack = (uint64_t)(uintptr_t)(s->room + GUARD_BYTES);
    args->stack_size = STACK_BYTES;
    args->tls = make_block(s);
    (void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, sizeof all);
    pid = call_clone3(args, fn, ctx);
    (void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof before);
    if (pid < 0)
        errno = (int)-pid;
    return pid < 0 ? -1 : (pid_t)pid;
}

pid_t strand_process(struct strand *s, struct clone_args *args, strand_fn fn, void *ctx)
{
    return start(s, args, fn, ctx);
}

pid_t strand_thread(struct strand *s, strand_fn fn, void *ctx)
{
    struct clone_args args = { .flags = CLONE_THREAD | CLONE_SIGHAND | CLONE_FS | CLONE_FILES |
                                        CLONE_CHILD_CLEARTID,
                               .child_tid = (uint64_t)(uintptr_t)&s->is_running };

    s->is_running = 1;
    return start(s, &args, fn, ctx);
}

_Noreturn void strand_exit(void)
{
    for (;;)
        (void)syscall(SYS_exit, 0); /* of this thread */
}

void strand_join(struct strand *s)
{
    while (__atomic_load_n(&s->is_running, __ATOMIC_ACQUIRE))
        (void)syscall(SYS_futex, &s->is_running, FUTEX_WAIT, 1, NULL, NULL, 0);
}
