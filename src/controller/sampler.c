#include "controller/sampler.h"

#include "base/own.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/time.h>
#include <unwind.h>

#define OWN_FRAMES 2 /* the handler and the kernel's way back from it */
#define PROBES     16

static struct {
    struct sampler_stack *stacks; /* NULL: nobody asks */
    atomic_flag is_used;
    atomic_uint_fast64_t lost;
    enum sampler_clock clock;
    struct sigaction before;
} sampler = { .is_used = ATOMIC_FLAG_INIT };

struct walk {
    struct sampler_stack at;
    unsigned skip;
};

static _Unwind_Reason_Code on_frame(struct _Unwind_Context *context, void *ctx)
{
    struct walk *w = ctx;

    if (w->skip) {
        w->skip--;
        return _URC_NO_REASON;
    }
    if (w->at.depth == SAMPLER_DEPTH)
        return _URC_END_OF_STACK;
    w->at.addresses[w->at.depth++] = _Unwind_GetIP(context);
    return _URC_NO_REASON;
}

static uint64_t hash_of(const struct sampler_stack *s)
{
    uint64_t h = 14695981039346656037ull;

    for (uint32_t i = 0; i < s->depth; i++)
        h = (h ^ s->addresses[i]) * 1099511628211ull;
    return h ^ (h >> 29);
}

static bool count(const struct sampler_stack *s)
{
    uint64_t at = hash_of(s);

    for (unsigned i = 0; i < PROBES; i++) {
        struct sampler_stack *slot = &sampler.stacks[(at + i) % SAMPLER_STACKS];

        if (!slot->count)
            *slot = *s;
        if (slot->depth == s->depth &&
            memcmp(slot->addresses, s->addresses, s->depth * sizeof s->addresses[0]) == 0) {
            slot->count++;
            return true;
        }
    }
    return false;
}

static void on_signal(int number)
{
    struct walk w = { .skip = OWN_FRAMES };
    int saved = errno;

    if (atomic_flag_test_and_set(&sampler.is_used)) {
        atomic_fetch_add(&sampler.lost, 1);
        return;
    }
    if (sampler.stacks) {
        (void)_Unwind_Backtrace(on_frame, &w);
        if (!w.at.depth || !count(&w.at))
            atomic_fetch_add(&sampler.lost, 1);
    }
    atomic_flag_clear(&sampler.is_used);
    errno = saved;
}

static int signal_of(enum sampler_clock clock)
{
    return clock == SAMPLER_CPU ? SIGPROF : SIGALRM;
}

static int set_timer(enum sampler_clock clock, long every_us)
{
    const struct timeval every = { .tv_usec = every_us };

    return setitimer(clock == SAMPLER_CPU ? ITIMER_PROF : ITIMER_REAL,
                     &(struct itimerval){ every, every }, NULL);
}

int sampler_start(enum sampler_clock clock, struct err *e)
{
    struct sigaction act = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
    struct walk first = { .skip = 0 };

    if (sampler.stacks)
        return err_set(e, ERR_BUSY, "another profile is being taken");
    (void)_Unwind_Backtrace(on_frame, &first); /* what it sets up once is not set up in a signal */
    sampler.stacks = own_array(SAMPLER_STACKS, sizeof *sampler.stacks);
    sampler.clock = clock;
    atomic_store(&sampler.lost, 0);
    if (sigaction(signal_of(clock), &act, &sampler.before) < 0 ||
        set_timer(clock, 1000000 / SAMPLER_HZ) < 0) {
        free(take_ptr(&sampler.stacks));
        return err_sys(e, "cannot set a timer for samples");
    }
    return 0;
}

void sampler_stop(struct samples *ret)
{
    (void)set_timer(sampler.clock, 0);
    while (
        atomic_flag_test_and_set(&sampler.is_used)) /* a thread is in the handler: microseconds */
        ;
    *ret = (struct samples){ take_ptr(&sampler.stacks), atomic_load(&sampler.lost) };
    atomic_flag_clear(&sampler.is_used);
    /* One that is pending must not end the process: the handler stays, and finds nothing to do. */
}
