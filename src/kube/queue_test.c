#include "kube/queue.h"

#include "ev/timer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Workers that only write down what they were given; the test ends the work itself. */
struct fixture {
    struct ev_loop *loop;
    struct queue *queue;
    struct queue_item *working[64];
    size_t working_count;
    char taken[4096]; /* names in the order they were taken, each with a blank */
    bool ends_at_once;
    bool is_closed;
};

static void work(void *ctx, struct queue_item *item)
{
    struct fixture *f = ctx;
    size_t n = strlen(f->taken);

    (void)snprintf(f->taken + n, sizeof f->taken - n, "%s ", queue_item_name(item));
    if (f->ends_at_once)
        queue_done(item);
    else
        f->working[f->working_count++] = item;
}

static void open_queue(struct fixture *f, struct queue_spec spec)
{
    struct err e;

    *f = (struct fixture){ 0 };
    assert_int_equal(ev_loop_new(&f->loop, &e), 0);
    spec.work = work;
    spec.ctx = f;
    spec.name = "demo";
    f->queue = queue_new(f->loop, &spec);
}

static void on_closed(void *ctx)
{
    ((struct fixture *)ctx)->is_closed = true;
}

static void close_queue(struct fixture *f)
{
    queue_close(f->queue, on_closed, f);
    assert_false(f->is_closed);
    for (size_t i = 0; i < f->working_count; i++)
        queue_done(f->working[i]);
    for (int i = 0; i < 3; i++)
        ev_loop_turn(f->loop);
    assert_true(f->is_closed);
    ev_loop_free(f->loop);
}

static void turns(struct fixture *f, int n)
{
    for (int i = 0; i < n; i++)
        ev_loop_turn(f->loop);
}

/* Until so many names were taken in all: waits on the loop, so on timers too. */
static void stop_loop(void *ctx)
{
    ev_loop_stop(ctx);
}

static void run_ms(struct fixture *f, uint64_t ms)
{
    struct ev_timer end = { 0 };

    ev_timer_start(f->loop, &end, ms, stop_loop, f->loop);
    ev_loop_run(f->loop);
}

static void until_taken(struct fixture *f, const char *want)
{
    for (int i = 0; i < 2000 && strcmp(f->taken, want) != 0; i++)
        run_ms(f, 1);
    assert_string_equal(f->taken, want);
}

static struct queue_item *take_first(struct fixture *f)
{
    struct queue_item *it = f->working[0];

    assert_true(f->working_count > 0);
    memmove(f->working, f->working + 1, --f->working_count * sizeof f->working[0]);
    return it;
}

static void test_a_key_waits_once_and_is_worked_on_once(void **state)
{
    struct fixture f;
    struct queue_stats stats;

    (void)state;
    open_queue(&f, (struct queue_spec){ .workers = 4 });
    queue_add(f.queue, "n", "a", QUEUE_NORMAL);
    queue_add(f.queue, "n", "a", QUEUE_NORMAL);
    queue_add(f.queue, "n", "b", QUEUE_NORMAL);
    assert_string_equal(f.taken, ""); /* never inside the call */
    turns(&f, 2);
    assert_string_equal(f.taken, "a b ");
    queue_add(f.queue, "n", "a", QUEUE_NORMAL);
    queue_add(f.queue, "n", "a", QUEUE_NORMAL);
    turns(&f, 2);
    assert_string_equal(f.taken, "a b "); /* one is at it */
    queue_done(take_first(&f));
    turns(&f, 2);
    assert_string_equal(f.taken, "a b a ");
    queue_stats(f.queue, &stats);
    assert_int_equal(stats.adds, 3);
    assert_int_equal(stats.depth, 0);
    assert_int_equal(stats.working, 2);
    assert_int_equal(stats.worked->n, 1);
    assert_int_equal(stats.waited->n, 3);
    assert_true(stats.unfinished_us >= stats.longest_us);
    close_queue(&f);
}

static void test_the_same_name_in_two_namespaces_is_two_keys(void **state)
{
    struct fixture f;

    (void)state;
    open_queue(&f, (struct queue_spec){ .workers = 2 });
    queue_add(f.queue, "n", "a", QUEUE_NORMAL);
    queue_add(f.queue, "m", "a", QUEUE_NORMAL);
    turns(&f, 2);
    assert_int_equal(f.working_count, 2);
    assert_string_equal(queue_item_namespace(f.working[0]), "n");
    assert_string_equal(queue_item_namespace(f.working[1]), "m");
    close_queue(&f);
}

static void test_no_more_workers_than_asked_for(void **state)
{
    struct fixture f;

    (void)state;
    open_queue(&f, (struct queue_spec){ .workers = 2 });
    queue_add(f.queue, "n", "a", QUEUE_NORMAL);
    queue_add(f.queue, "n", "b", QUEUE_NORMAL);
    queue_add(f.queue, "n", "c", QUEUE_NORMAL);
    turns(&f, 3);
    assert_string_equal(f.taken, "a b ");
    queue_done(take_first(&f));
    turns(&f, 2);
    assert_string_equal(f.taken, "a b c ");
    close_queue(&f);
}

static void test_higher_priorities_come_first_and_lower_ones_do_not_starve(void **state)
{
    struct fixture f;
    char name[16];
    const char *low;

    (void)state;
    open_queue(&f, (struct queue_spec){ .workers = 1 });
    f.ends_at_once = true;
    queue_add(f.queue, "n", "low", QUEUE_LOW);
    queue_add(f.queue, "n", "raised", QUEUE_LOW);
    for (int i = 0; i < 40; i++) {
        (void)snprintf(name, sizeof name, "h%d", i);
        queue_add(f.queue, "n", name, QUEUE_HIGH);
    }
    queue_add(f.queue, "n", "raised", QUEUE_HIGH);
    queue_add(f.queue, "n", "h3", QUEUE_LOW); /* stays high */
    turns(&f, 3);
    low = strstr(f.taken, "low ");
    assert_non_null(low);
    assert_true(strstr(f.taken, "h0 ") == f.taken);
    assert_true(low > strstr(f.taken, "h10 "));
    assert_true(low < strstr(f.taken, "h39 "));
    assert_true(strstr(f.taken, "raised ") > strstr(f.taken, "h39 "));
    close_queue(&f);
}

static void add_many(struct fixture *f, char kind, int n, enum queue_priority priority)
{
    for (int i = 0; i < n; i++) {
        char name[16];

        (void)snprintf(name, sizeof name, "%c%d", kind, i);
        queue_add(f->queue, "n", name, priority);
    }
}

/* There are workers enough for all: what nobody waits for is begun beside few others, now and then beside many, and never many
 * at a time. */
static void test_what_nobody_waits_for_is_worked_on_beside_few(void **state)
{
    struct fixture f;

    (void)state;
    open_queue(&f, (struct queue_spec){ .workers = 100 });
    add_many(&f, 'n', QUEUE_LOW_BESIDE, QUEUE_NORMAL);
    add_many(&f, 'l', QUEUE_LOW_MOST + 1, QUEUE_LOW);
    turns(&f, 2);
    assert_int_equal(f.working_count, QUEUE_LOW_BESIDE);
    assert_int_equal(queue_load(f.queue), QUEUE_LOW_BESIDE + QUEUE_LOW_MOST + 1);
    assert_int_equal(queue_pressing(f.queue), QUEUE_LOW_BESIDE);
    queue_done(take_first(&f));
    turns(&f, 2);
    assert_int_equal(f.working_count, QUEUE_LOW_BESIDE - 1 + QUEUE_LOW_MOST);
    assert_int_equal(queue_pressing(f.queue), QUEUE_LOW_BESIDE - 1);
    while (f.working_count) {
        queue_done(take_first(&f));
        turns(&f, 2);
    }
    assert_int_equal(queue_load(f.queue), 0);
    /* The others never end: one has its turn all the same. */
    add_many(&f, 'l', 1, QUEUE_LOW);
    turns(&f, 2);
    queue_done(take_first(&f));
    add_many(&f, 'n', 2 * QUEUE_LOW_BESIDE, QUEUE_NORMAL);
    turns(&f, 2);
    add_many(&f, 'l', 1, QUEUE_LOW);
    for (int i = 0; i < 40 && queue_pressing(f.queue) == queue_load(f.queue) - 1 &&
                    f.working_count == 2 * QUEUE_LOW_BESIDE;
         i++) {
        struct queue_item *it = take_first(&f);
        char name[16];

        (void)snprintf(name, sizeof name, "%s", queue_item_name(it));
        queue_add(f.queue, "n", name, QUEUE_NORMAL);
        queue_done(it);
        turns(&f, 2);
    }
    assert_int_equal(f.working_count, 2 * QUEUE_LOW_BESIDE + 1);
    close_queue(&f);
}

static void test_of_several_moments_the_earliest_stays(void **state)
{
    struct fixture f;
    struct queue_stats stats;

    (void)state;
    open_queue(&f, (struct queue_spec){ .workers = 4 });
    queue_add_after(f.queue, "n", "late", 60000);
    queue_add_after(f.queue, "n", "a", 60000);
    queue_add_after(f.queue, "n", "a", 2);
    queue_add_after(f.queue, "n", "a", 60000);
    queue_add(f.queue, "n", "late", QUEUE_NORMAL); /* does not take back the other wish */
    until_taken(&f, "late a ");
    queue_stats(f.queue, &stats);
    assert_int_equal(stats.later, 1);
    close_queue(&f);
}

static void test_failures_wait_longer_each_time_and_a_success_forgets_them(void **state)
{
    struct fixture f;
    struct queue_stats stats;

    (void)state;
    open_queue(&f, (struct queue_spec){ .workers = 1, .first_ms = 1, .most_ms = 4 });
    queue_add(f.queue, "n", "a", QUEUE_NORMAL);
    until_taken(&f, "a ");
    assert_int_equal(queue_item_failures(f.working[0]), 0);
    queue_retry(take_first(&f));
    until_taken(&f, "a a ");
    assert_int_equal(queue_item_failures(f.working[0]), 1);
    queue_retry(take_first(&f));
    until_taken(&f, "a a a ");
    assert_int_equal(queue_item_failures(f.working[0]), 2);
    queue_done_after(take_first(&f), 1);
    until_taken(&f, "a a a a ");
    assert_int_equal(queue_item_failures(f.working[0]), 0);
    queue_stats(f.queue, &stats);
    assert_int_equal(stats.retries, 2);
    assert_int_equal(stats.done_after, 1);
    assert_int_equal(stats.done, 0);
    close_queue(&f);
}

static void test_a_key_that_failed_and_was_added_comes_at_once(void **state)
{
    struct fixture f;

    (void)state;
    open_queue(&f, (struct queue_spec){ .workers = 1, .first_ms = 60000, .most_ms = 60000 });
    queue_add(f.queue, "n", "a", QUEUE_NORMAL);
    turns(&f, 2);
    queue_add(f.queue, "n", "a", QUEUE_NORMAL);
    queue_retry(take_first(&f));
    turns(&f, 2);
    assert_string_equal(f.taken, "a a ");
    assert_int_equal(queue_item_failures(f.working[0]), 1);
    close_queue(&f);
}

static void test_failures_before_it_is_due_prolong_nothing(void **state)
{
    struct fixture f;

    (void)state;
    open_queue(&f, (struct queue_spec){ .workers = 1, .first_ms = 60000, .most_ms = 3600000 });
    queue_add(f.queue, "n", "a", QUEUE_NORMAL);
    turns(&f, 2);
    for (int i = 0; i < 3; i++) {
        queue_add(f.queue, "n", "a", QUEUE_NORMAL);
        queue_retry(take_first(&f));
        turns(&f, 2);
        assert_int_equal(queue_item_failures(f.working[0]), 1);
    }
    assert_string_equal(f.taken, "a a a a ");
    close_queue(&f);
}

static void test_all_retries_together_have_a_rate(void **state)
{
    struct fixture f;
    struct queue_stats stats;
    char name[16];

    (void)state;
    open_queue(
        &f,
        (struct queue_spec){
            .workers = 64, .first_ms = 1, .most_ms = 1, .retry_rate = 0.001, .retry_burst = 3 });
    for (int i = 0; i < 10; i++) {
        (void)snprintf(name, sizeof name, "%d", i);
        queue_add(f.queue, "n", name, QUEUE_NORMAL);
    }
    turns(&f, 2);
    assert_int_equal(f.working_count, 10);
    while (f.working_count)
        queue_retry(take_first(&f));
    until_taken(&f, "0 1 2 3 4 5 6 7 8 9 0 1 2 ");
    run_ms(&f, 5);
    queue_stats(f.queue, &stats);
    assert_int_equal(stats.later, 7);
    close_queue(&f);
}

static void test_closing_waits_for_the_workers_only(void **state)
{
    struct fixture f;

    (void)state;
    open_queue(&f, (struct queue_spec){ .workers = 1, .first_ms = 1 });
    queue_add(f.queue, "n", "a", QUEUE_NORMAL);
    queue_add(f.queue, "n", "b", QUEUE_NORMAL);
    queue_add_after(f.queue, "n", "c", 1);
    turns(&f, 2);
    queue_add(f.queue, "n", "a", QUEUE_NORMAL);
    queue_close(f.queue, on_closed, &f);
    queue_add(f.queue, "n", "d", QUEUE_NORMAL);
    run_ms(&f, 5);
    assert_false(f.is_closed);
    queue_retry(take_first(&f));
    assert_false(f.is_closed);
    turns(&f, 3);
    assert_true(f.is_closed);
    assert_string_equal(f.taken, "a ");
    ev_loop_free(f.loop);
}

static void test_one_turn_takes_only_its_share(void **state)
{
    struct fixture f;
    char name[16];

    (void)state;
    open_queue(&f, (struct queue_spec){ .workers = 10, .per_turn = 2 });
    f.ends_at_once = true;
    for (int i = 0; i < 5; i++) {
        (void)snprintf(name, sizeof name, "%d", i);
        queue_add(f.queue, "n", name, QUEUE_NORMAL);
    }
    turns(&f, 1);
    assert_string_equal(f.taken, "0 1 ");
    turns(&f, 1);
    assert_string_equal(f.taken, "0 1 2 3 ");
    turns(&f, 1);
    assert_string_equal(f.taken, "0 1 2 3 4 ");
    close_queue(&f);
}

static bool is_urgent;

static bool yields(void *ctx)
{
    (void)ctx;
    return is_urgent;
}

static void test_one_that_yields_takes_few(void **state)
{
    struct fixture f;
    char name[16];

    (void)state;
    open_queue(&f, (struct queue_spec){ .workers = 10, .yields = yields });
    f.ends_at_once = true;
    for (int i = 0; i < 10; i++) {
        (void)snprintf(name, sizeof name, "%d", i);
        queue_add(f.queue, "n", name, QUEUE_NORMAL);
    }
    assert_int_equal(queue_load(f.queue), 10);
    is_urgent = true;
    turns(&f, 1);
    assert_string_equal(f.taken, "0 1 2 3 ");
    assert_int_equal(queue_load(f.queue), 6);
    is_urgent = false;
    turns(&f, 1);
    assert_string_equal(f.taken, "0 1 2 3 4 5 6 7 8 9 ");
    close_queue(&f);
}

static void test_one_that_yields_works_on_few(void **state)
{
    struct fixture f;
    char name[16];

    (void)state;
    open_queue(&f, (struct queue_spec){ .workers = 10, .workers_yielding = 2, .yields = yields });
    for (int i = 0; i < 8; i++) {
        (void)snprintf(name, sizeof name, "%d", i);
        queue_add(f.queue, "n", name, QUEUE_NORMAL);
    }
    is_urgent = true;
    turns(&f, 3);
    assert_string_equal(f.taken, "0 1 ");
    queue_done(f.working[0]);
    turns(&f, 3);
    assert_string_equal(f.taken, "0 1 2 ");
    is_urgent = false; /* seen when the next one ends */
    queue_done(f.working[1]);
    turns(&f, 1);
    assert_string_equal(f.taken, "0 1 2 3 4 5 6 7 ");
    for (int i = 2; i < 8; i++)
        queue_done(f.working[i]);
    f.working_count = 0;
    close_queue(&f);
}

static void test_one_that_holds_begins_nothing(void **state)
{
    struct fixture f;

    (void)state;
    open_queue(&f, (struct queue_spec){ .workers = 10, .holds = yields });
    queue_add(f.queue, "n", "a", QUEUE_NORMAL);
    turns(&f, 2);
    assert_string_equal(f.taken, "a ");
    is_urgent = true;
    queue_add(f.queue, "n", "b", QUEUE_HIGH);
    run_ms(&f, 2 * QUEUE_HOLD_MS);
    queue_done(f.working[0]); /* what was begun ends as ever */
    f.working_count = 0;
    run_ms(&f, 2 * QUEUE_HOLD_MS);
    assert_string_equal(f.taken, "a ");
    is_urgent = false;
    run_ms(&f, 2 * QUEUE_HOLD_MS); /* nobody tells it: it asks */
    assert_string_equal(f.taken, "a b ");
    is_urgent = true;
    queue_add(f.queue, "n", "c", QUEUE_HIGH);
    turns(&f, 2);
    close_queue(&f); /* while it holds */
    is_urgent = false;
}

static void test_it_is_known_how_long_somebody_waits(void **state)
{
    struct fixture f;
    uint64_t began_ms;

    (void)state;
    open_queue(&f, (struct queue_spec){ .workers = 1 });
    queue_add(f.queue, "n", "low", QUEUE_LOW);
    turns(&f, 1);
    run_ms(&f, 2 * QUEUE_HOLD_MS);
    assert_int_equal(queue_pressing_ms(f.queue), 0);
    queue_add(f.queue, "n", "a", QUEUE_NORMAL);
    began_ms = ev_now_ms(f.loop);
    run_ms(&f, 2 * QUEUE_HOLD_MS);
    assert_int_equal(queue_pressing_ms(f.queue), ev_now_ms(f.loop) - began_ms);
    queue_done(f.working[0]);
    turns(&f, 1); /* from waiting to being worked on is no pause */
    assert_int_equal(queue_pressing_ms(f.queue), ev_now_ms(f.loop) - began_ms);
    queue_add(f.queue, "n", "b", QUEUE_NORMAL);
    queue_done(f.working[1]); /* nor from one to the next */
    turns(&f, 1);
    assert_int_equal(queue_pressing_ms(f.queue), ev_now_ms(f.loop) - began_ms);
    queue_done(f.working[2]);
    assert_int_equal(queue_pressing_ms(f.queue), 0);
    f.working_count = 0;
    close_queue(&f);
}

static void test_metrics_have_the_public_names(void **state)
{
    struct fixture f;
    OWN(buf_done) struct buf out = BUF_INIT(64 * 1024);
    struct err e;

    (void)state;
    open_queue(&f, (struct queue_spec){ .workers = 1 });
    queue_add(f.queue, "n", "a", QUEUE_NORMAL);
    queue_add(f.queue, "n", "b", QUEUE_NORMAL);
    turns(&f, 2);
    assert_int_equal(queue_metrics_write(&f.queue, 1, &out, &e), 0);
    assert_non_null(strstr(buf_cstr(&out),
                           "# TYPE workqueue_depth gauge\n"
                           "workqueue_depth{controller=\"demo\",name=\"demo\"} 1\n"));
    assert_non_null(
        strstr(buf_cstr(&out), "\nworkqueue_adds_total{controller=\"demo\",name=\"demo\"} 2\n"));
    assert_non_null(strstr(buf_cstr(&out),
                           "\nworkqueue_queue_duration_seconds_bucket{controller=\"demo\","
                           "name=\"demo\",le=\"9.999999999999999e-06\"} "));
    assert_non_null(
        strstr(buf_cstr(&out),
               "\nworkqueue_work_duration_seconds_count{controller=\"demo\",name=\"demo\"} 0\n"));
    assert_non_null(strstr(buf_cstr(&out),
                           "\ncontroller_runtime_reconcile_total{controller=\"demo\","
                           "result=\"success\"} 0\n"));
    assert_non_null(
        strstr(buf_cstr(&out), "\ncontroller_runtime_active_workers{controller=\"demo\"} 1\n"));
    assert_non_null(strstr(buf_cstr(&out), "\ncontroller_runtime_reconcile_time_seconds_bucket{"
                                           "controller=\"demo\",le=\"0.005\"} 0\n"));
    close_queue(&f);
}

static void test_thousands_of_keys_come_and_go(void **state)
{
    enum { KEYS = 5000 };
    struct fixture f;
    struct queue_stats stats;
    char name[16];

    (void)state;
    open_queue(&f, (struct queue_spec){ .workers = 3 });
    f.ends_at_once = true;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < KEYS; i++) {
            (void)snprintf(name, sizeof name, "%d", i);
            queue_add(f.queue, "n", name, (enum queue_priority)(i % QUEUE_PRIORITIES));
            f.taken[0] = '\0';
        }
        for (int i = 0; i < KEYS; i++) {
            turns(&f, 1);
            f.taken[0] = '\0';
        }
        queue_stats(f.queue, &stats);
        assert_int_equal(stats.depth, 0);
        assert_int_equal(stats.worked->n, KEYS * (round + 1));
    }
    close_queue(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_key_waits_once_and_is_worked_on_once),
        cmocka_unit_test(test_the_same_name_in_two_namespaces_is_two_keys),
        cmocka_unit_test(test_no_more_workers_than_asked_for),
        cmocka_unit_test(test_higher_priorities_come_first_and_lower_ones_do_not_starve),
        cmocka_unit_test(test_what_nobody_waits_for_is_worked_on_beside_few),
        cmocka_unit_test(test_of_several_moments_the_earliest_stays),
        cmocka_unit_test(test_failures_wait_longer_each_time_and_a_success_forgets_them),
        cmocka_unit_test(test_failures_before_it_is_due_prolong_nothing),
        cmocka_unit_test(test_a_key_that_failed_and_was_added_comes_at_once),
        cmocka_unit_test(test_all_retries_together_have_a_rate),
        cmocka_unit_test(test_closing_waits_for_the_workers_only),
        cmocka_unit_test(test_one_turn_takes_only_its_share),
        cmocka_unit_test(test_one_that_yields_takes_few),
        cmocka_unit_test(test_one_that_yields_works_on_few),
        cmocka_unit_test(test_one_that_holds_begins_nothing),
        cmocka_unit_test(test_it_is_known_how_long_somebody_waits),
        cmocka_unit_test(test_metrics_have_the_public_names),
        cmocka_unit_test(test_thousands_of_keys_come_and_go),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
