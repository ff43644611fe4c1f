#include "apiserver/slices.h"

#include "base/time.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct one {
    struct slices *slices;
    struct slice slice;
    char name;
    unsigned left;      /* runs */
    struct one *victim; /* taken away by the first run */
    char *log;
};

static void use_time(struct slices *s)
{
    while (!slice_is_over(s))
        continue;
}

static void run(void *ctx)
{
    struct one *o = ctx;

    o->log[strlen(o->log)] = o->name;
    if (o->victim)
        slices_cancel(o->slices, &o->victim->slice);
    use_time(o->slices);
    if (--o->left)
        slices_add(o->slices, &o->slice, run, o);
}

struct fixture {
    struct ev_loop *loop;
    struct slices slices;
    char log[64];
    struct one ones[3];
};

static void begin(struct fixture *f, unsigned runs)
{
    struct err e;

    *f = (struct fixture){ 0 };
    assert_int_equal(ev_loop_new(&f->loop, &e), 0);
    slices_init(&f->slices, f->loop);
    for (size_t i = 0; i < LEN(f->ones); i++)
        f->ones[i] = (struct one){
            .slices = &f->slices, .name = (char)('a' + i), .left = runs, .log = f->log
        };
    for (size_t i = 0; i < LEN(f->ones); i++)
        slices_add(&f->slices, &f->ones[i].slice, run, &f->ones[i]);
}

static void end(struct fixture *f)
{
    slices_done(&f->slices);
    ev_loop_free(f->loop);
}

static void test_one_runs_in_a_turn_and_all_in_turn(void **state)
{
    struct fixture f;

    (void)state;
    begin(&f, 2);
    assert_string_equal(f.log, ""); /* never inside the call */
    for (size_t turns = 1; turns <= 6; turns++) {
        ev_loop_turn(f.loop);
        assert_int_equal(strlen(f.log), turns);
    }
    assert_string_equal(f.log, "abcabc");
    ev_loop_turn(f.loop);
    assert_string_equal(f.log, "abcabc");
    end(&f);
}

static void test_what_was_taken_away_does_not_run(void **state)
{
    struct fixture f;

    (void)state;
    begin(&f, 1);
    f.ones[0].victim = &f.ones[2]; /* the last one: the next that comes goes behind b */
    ev_loop_turn(f.loop);
    slices_add(&f.slices, &f.ones[0].slice, run, &f.ones[0]);
    f.ones[0].left = 1;
    f.ones[0].victim = NULL;
    for (int i = 0; i < 4; i++)
        ev_loop_turn(f.loop);
    assert_string_equal(f.log, "aba");
    end(&f);
}

static void test_to_be_queued_twice_is_to_be_queued(void **state)
{
    struct fixture f;

    (void)state;
    begin(&f, 1);
    slices_add(&f.slices, &f.ones[0].slice, run, &f.ones[0]);
    for (int i = 0; i < 4; i++)
        ev_loop_turn(f.loop);
    assert_string_equal(f.log, "abc");
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_runs_in_a_turn_and_all_in_turn),
        cmocka_unit_test(test_what_was_taken_away_does_not_run),
        cmocka_unit_test(test_to_be_queued_twice_is_to_be_queued),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
