#include "controller/telling.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* A pool that wishes for 80, and whose status says 80 of 80 unless a row changes that. */
static const struct look {
    const char *name;
    uint64_t at_ms;
    size_t active, ready;
    size_t told_ready;
    bool is_wish_new;
    bool differs;
    uint64_t want_ms; /* 0: it is written then */
} busy[] = {
    { "a claim takes one", 10000, 79, 79, 80, false, true, 1000 },
    { "it stands still", 10900, 79, 79, 80, false, true, 100 },
    { "another one is taken", 10950, 78, 78, 80, false, true, 1000 },
    { "all are back: nothing to be told", 11900, 80, 80, 80, false, false, 0 },
    { "from the beginning", 12000, 79, 79, 80, false, true, 1000 },
    { "it moves", 20000, 72, 70, 80, false, true, 1000 },
    { "and moves", 41500, 75, 75, 80, false, true, 500 },
    { "for long enough", 42000, 74, 74, 80, false, true, 0 },
    { "what it was told is near for as long again", 42100, 73, 73, 74, false, true, 1000 },
    { "it stood still for long enough", 43100, 73, 73, 74, false, true, 0 },
    { "all are back, and that is told", 43300, 80, 80, 73, false, true, 0 },
    { "a burst", 50000, 60, 60, 80, false, true, 1000 },
    { "goes on", 50600, 50, 50, 80, false, true, 400 },
    { "is told while it goes on", 51000, 40, 40, 80, false, true, 0 },
    { "a new wish", 51010, 40, 40, 40, true, true, 90 },
    { "at once but for a pause", 51100, 40, 40, 40, true, true, 0 },
};

static void numbers_are_told_when_they_say_something(void **state)
{
    struct telling t = { 0 };

    (void)state;
    EACH(r, busy) {
        struct telling_view v = { .active = r->active,
                                  .ready = r->ready,
                                  .wish = 80,
                                  .told_active = r->told_ready,
                                  .told_ready = r->told_ready,
                                  .is_wish_new = r->is_wish_new };
        uint64_t wait_ms;

        telling_see(&t, &v, r->differs, r->at_ms);
        if (!r->differs)
            continue;
        wait_ms = telling_wait_ms(&t, &v, r->at_ms);
        if (wait_ms != r->want_ms)
            fail_msg("%s: waits %llu ms, not %llu", r->name, (unsigned long long)wait_ms,
                     (unsigned long long)r->want_ms);
        if (!wait_ms)
            telling_done(&t, r->at_ms);
    }
}

/* Of a pool of a few members each is much. */
static void small_pools_wait_no_longer(void **state)
{
    struct telling t = { 0 };
    struct telling_view v = {
        .active = 3, .ready = 2, .wish = 3, .told_active = 3, .told_ready = 3
    };

    (void)state;
    telling_see(&t, &v, true, 5000);
    assert_int_equal(telling_wait_ms(&t, &v, 5000), 1000);
    v.ready = 1;
    telling_see(&t, &v, true, 5900);
    assert_int_equal(telling_wait_ms(&t, &v, 5900), 100);
}

/* Nothing was ever told: the first status does not wait for a pause. */
static void the_first_status_comes_at_once(void **state)
{
    struct telling t = { 0 };
    struct telling_view v = { .wish = 80, .is_wish_new = true };

    (void)state;
    telling_see(&t, &v, true, 7);
    assert_int_equal(telling_wait_ms(&t, &v, 7), 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_told_when_they_say_something),
        cmocka_unit_test(small_pools_wait_no_longer),
        cmocka_unit_test(the_first_status_comes_at_once),
    };

    return cmocka_run_group_tests_name("controller/telling", tests, NULL, NULL);
}
