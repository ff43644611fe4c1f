/* start: what runs before main in silica-runtime and in silica's front, in place of the C library's own __libc_start_main.
 *
 * Why:      the library asks the processor what it can do, by some fifty CPUID instructions, to choose among its memcpy and
 *           the like. In a virtual machine each of them ends in the hypervisor: 8 us where we measured, which made 410
 *           of the 1,040 us from exec to serving. Every sandbox pays that for its PID 1. Here nothing is asked, and the
 *           library takes its plain SSE2 routines, which every x86-64 has. On real hardware nothing is gained.
 * What:     the same steps in the same order as glibc 2.36 has them, but that one. They are the library's inner
 *           functions, so meson.build links this file only with that version, on x86-64, into static position-
 *           independent programs, and -Dfast_start=false leaves it out; everywhere else the library's own start runs.
 * Rules:    until the relocations are done no pointer in our data is right, and until the thread's storage is there
 *           neither errno nor the stack protector: only hidden symbols and plain code here.
 * Left out: main's thread cannot end alone (pthread_exit in main); we never do that.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#define HIDDEN __attribute__((visibility("hidden")))

typedef int main_fn(int argc, char **argv, char **env);
typedef void init_fn(int argc, char **argv, char **env);

/* The library's own, in the order they are called. */
extern char **__environ HIDDEN;
extern void *__libc_stack_end HIDDEN;
extern uint64_t *_dl_random HIDDEN; /* 16 bytes from the kernel */
extern HIDDEN void _dl_aux_init(void *auxv);
extern HIDDEN void __tunables_init(char **env);
extern HIDDEN void _dl_relocate_static_pie(void);
extern HIDDEN void __libc_setup_tls(void);
extern HIDDEN void __libc_early_init(bool is_initial);
extern HIDDEN void __libc_init_first(int argc, char **argv, char **env);
extern HIDDEN void _init(void);
extern HIDDEN void _fini(void);
extern HIDDEN void *_dl_debug_initialize(uintptr_t base, long space);
extern init_fn *__preinit_array_start[] HIDDEN, *__preinit_array_end[] HIDDEN;
extern init_fn *__init_array_start[] HIDDEN, *__init_array_end[] HIDDEN;
extern void (*__fini_array_start[])(void) HIDDEN, (*__fini_array_end[])(void)HIDDEN;

/* What the library's start would set for its string routines: its own defaults, for a cache of 1 MiB. */
#define SHARED_BYTES (1024 * 1024)
HIDDEN long __x86_data_cache_size = 32 * 1024, __x86_data_cache_size_half = 16 * 1024;
HIDDEN long __x86_shared_cache_size = SHARED_BYTES, __x86_shared_cache_size_half = SHARED_BYTES / 2;
HIDDEN long __x86_shared_non_temporal_threshold = SHARED_BYTES / 4 * 3;
HIDDEN long __x86_rep_movsb_threshold = 2048, __x86_rep_stosb_threshold = 2048;
HIDDEN long __x86_rep_movsb_stop_threshold = SHARED_BYTES / 4 * 3;
HIDDEN int __x86_string_control;

/* Where the program lies, for the search of libraries beside it: a static program that loads none has no use for it, and
 * the answer takes a look through /proc, 40 us of each start. -1 is the library's own "cannot be known". */
HIDDEN const char *_dl_get_origin(void);
const char *_dl_get_origin(void)
{
    return (const char *)-1;
}

int __libc_start_main(main_fn *main, int argc, char **argv, void (*init)(void), void (*fini)(void),
                      void (*rtld_fini)(void), void *stack_end);

/* Where the compiler looks for the stack protector's word, and setjmp for its own. Its lowest byte is zero, so that a
 * text that runs over cannot contain it. */
__attribute__((no_stack_protector)) static void set_guards(void)
{
    __asm__ volatile("mov %0, %%fs:0x28" : : "r"(_dl_random[0] & ~(uint64_t)0xff));
    __asm__ volatile("mov %0, %%fs:0x30" : : "r"(_dl_random[1]));
}

static void run_fini(void)
{
    for (size_t n = (size_t)(__fini_array_end - __fini_array_start); n > 0; n--)
        __fini_array_start[n - 1]();
    _fini();
}

static void run_init(int argc, char **argv)
{
    for (init_fn **f = __preinit_array_start; f < __preinit_array_end; f++)
        (*f)(argc, argv, __environ);
    _init();
    for (init_fn **f = __init_array_start; f < __init_array_end; f++)
        (*f)(argc, argv, __environ);
}

/* Called by the entry point, with what the kernel put on the stack. A static program has no init, fini and rtld_fini. */
__attribute__((no_stack_protector)) int __libc_start_main(main_fn *main, int argc, char **argv,
                                                          void (*init)(void), void (*fini)(void),
                                                          void (*rtld_fini)(void), void *stack_end)
{
    char **end = argv + argc + 1;

    (void)init, (void)fini, (void)rtld_fini;
    __environ = end;
    __libc_stack_end = stack_end;
    while (*end)
        end++;
    _dl_aux_init(end + 1);
    __tunables_init(__environ);
    _dl_relocate_static_pie(); /* chooses the routines too */
    __libc_setup_tls();
    set_guards();
    __libc_early_init(true);
    __libc_init_first(argc, argv, __environ);
    (void)atexit(run_fini);
    run_init(argc, argv);
    (void)_dl_debug_initialize(0, 0);
    exit(main(argc, argv, __environ));
}
