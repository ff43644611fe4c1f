#include "ev/child.h"
#include "ev/io.h"
#include "ev/limits.h"
#include "ev/loop.h"
#include "ev/timer.h"
#include "ev/worker.h"

#include <fcntl.h>
#include <setjmp.h>
#include <sys/socket.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/wait.h>

#include <cmocka.h>

struct trace {
    struct ev_loop *loop;
    char text[64];
    size_t n;
};

struct step {
    struct trace *trace;
    char letter;
    struct ev_timer timer;
    struct ev_task task;
};

static void note(void *ctx)
{
    struct step *s = ctx;

    s->trace->text[s->trace->n++] = s->letter;
}

static void stop(void *ctx)
{
    ev_loop_stop(ctx);
}

static struct ev_loop *make_loop(void)
{
    struct ev_loop *loop = NULL;
    struct err e;

    assert_int_equal(ev_loop_new(&loop, &e), 0);
    return loop;
}

static void test_timers_fire_in_order_of_their_deadlines(void **state)
{
    static const uint64_t due[] = { 30, 10, 20, 10, 5 };
    struct trace t = { .loop = make_loop() };
    struct step steps[LEN(due)] = { 0 }, gone = { &t, 'X', { 0 }, { 0 } };
    struct ev_timer end = { 0 };

    (void)state;
    for (size_t i = 0; i < LEN(due); i++) {
        steps[i] = (struct step){ &t, (char)('a' + i), { 0 }, { 0 } };
        ev_timer_start(t.loop, &steps[i].timer, due[i], note, &steps[i]);
    }
    ev_timer_start(t.loop, &gone.timer, 1, note, &gone);
    ev_timer_stop(t.loop, &gone.timer);
    ev_timer_start(t.loop, &steps[4].timer, 25, note, &steps[4]); /* moved */
    ev_timer_start(t.loop, &end, 40, stop, t.loop);
    ev_loop_run(t.loop);
    assert_true(strcmp(t.text, "bdcea") == 0 || strcmp(t.text, "dbcea") == 0);
    ev_loop_free(t.loop);
}

static void test_many_timers_keep_the_heap_in_order(void **state)
{
    enum { COUNT = 500 };
    struct trace t = { .loop = make_loop() };
    static struct ev_timer timers[COUNT];
    struct ev_timer end = { 0 };
    unsigned seed = 7, running = 0;

    (void)state;
    for (int i = 0; i < 5000; i++) {
        struct ev_timer *one = &timers[(seed = seed * 1103515245 + 12345) / 65536 % COUNT];

        if (seed & 1024)
            ev_timer_stop(t.loop, one);
        else
            ev_timer_start(t.loop, one, 100000 + seed / 65536 % 1000, stop, t.loop);
    }
    for (size_t i = 0; i < COUNT; i++)
        running += ev_timer_is_running(&timers[i]);
    assert_true(running > 0);
    assert_int_equal(ev_loop_timers(t.loop)->n, running);
    for (size_t i = 1; i < running; i++)
        assert_true(ev_loop_timers(t.loop)->heap[(i - 1) / 2]->due_ms <=
                    ev_loop_timers(t.loop)->heap[i]->due_ms);
    ev_timer_start(t.loop, &end, 1, stop, t.loop);
    ev_loop_run(t.loop);
    ev_loop_free(t.loop);
}

static void test_a_posted_task_runs_later_and_can_be_taken_back(void **state)
{
    struct trace t = { .loop = make_loop() };
    struct step a = { &t, 'a', { 0 }, { 0 } }, b = { &t, 'b', { 0 }, { 0 } },
                c = { &t, 'c', { 0 }, { 0 } };

    (void)state;
    ev_post(t.loop, &a.task, note, &a);
    ev_post(t.loop, &b.task, note, &b);
    ev_post(t.loop, &c.task, note, &c);
    ev_post_cancel(&b.task);
    assert_int_equal(t.n, 0);
    ev_loop_turn(t.loop);
    assert_string_equal(t.text, "ac");
    ev_loop_free(t.loop);
}

struct job {
    struct trace *trace;
    struct ev_work work;
    int ran, done;
};

static void run_job(void *ctx)
{
    struct job *j = ctx;

    (void)usleep(1000);
    j->ran++;
}

static void done_job(void *ctx)
{
    struct job *j = ctx;

    j->done++;
    if (++j->trace->n == 40)
        ev_loop_stop(j->trace->loop);
}

struct mayfly {
    struct trace *trace;
    struct ev_task first, second;
};

static void never(void *ctx)
{
    (void)ctx;
    fail_msg("a task that was taken back ran");
}

static void bury_mayfly(void *ctx)
{
    struct mayfly *m = ctx;

    m->trace->text[m->trace->n++] = '+';
    assert_false(m->second.is_queued); /* the queue would run into freed memory */
    free(m);
}

static void live_and_die(void *ctx)
{
    struct mayfly *m = ctx;

    ev_post(m->trace->loop, &m->second, never, m);
    ev_post_cancel(&m->second);
    ev_free_later(m->trace->loop, m, bury_mayfly);
}

static void test_an_object_outlives_the_tasks_it_took_back(void **state)
{
    struct trace t = { .loop = make_loop() };
    struct mayfly *m = NEW(struct mayfly);

    (void)state;
    m->trace = &t;
    ev_post(t.loop, &m->first, live_and_die, m);
    for (int i = 0; i < 4; i++)
        ev_loop_turn(t.loop);
    assert_string_equal(t.text, "+");
    ev_loop_free(t.loop);
}

struct leaf {
    struct ev_loop *loop;
    unsigned *count;
    struct leaf *child; /* goes in the turn after */
};

static void drop_leaf(void *ctx)
{
    struct leaf *l = ctx;

    ++*l->count;
    if (l->child)
        ev_free_later(l->loop, l->child, drop_leaf);
    if (*l->count == 1)
        ev_loop_turn(l->loop); /* within a turn; those that are due stay the outer one's */
    free(l);
}

static void test_every_object_is_freed_exactly_once(void **state)
{
    enum { LEAVES = 3 * EV_GRAVES_FIRST };
    struct ev_loop *loop = make_loop();
    unsigned count = 0;

    (void)state;
    for (int i = 0; i < LEAVES; i++) {
        struct leaf *l = NEW(struct leaf);

        *l = (struct leaf){ loop, &count, NEW(struct leaf) };
        *l->child = (struct leaf){ loop, &count, NULL };
        ev_free_later(loop, l, drop_leaf);
    }
    assert_int_equal(count, 0);
    ev_loop_turn(loop);
    assert_in_range(count, LEAVES, 2 * LEAVES);
    ev_loop_turn(loop);
    assert_int_equal(count, 2 * LEAVES);
    ev_loop_free(loop);
}

static void test_blocks_come_clean(void **state)
{
    struct ev_loop *loop = make_loop();
    uint8_t *blocks[EV_BLOCKS_KEPT + 8];

    (void)state;
    for (int round = 0; round < 3; round++) {
        EACH(b, blocks) {
            size_t size = 100 + (size_t)(b - blocks) % (EV_BLOCK_SIZES + 2); /* two too many */

            *b = ev_block_new(loop, size);
            for (size_t i = 0; i < size; i++)
                assert_int_equal((*b)[i], 0);
            memset(*b, 0xff, size);
        }
        EACH(b, blocks)
            ev_block_free(loop, *b, 100 + (size_t)(b - blocks) % (EV_BLOCK_SIZES + 2));
    }
    ev_loop_free(loop);
}

static void test_every_job_is_done_exactly_once(void **state)
{
    struct trace t = { .loop = make_loop() };
    struct job jobs[40] = { 0 };
    struct ev_pool *pool = NULL;
    struct err e;

    (void)state;
    assert_int_equal(ev_pool_new(t.loop, "test", 3, &pool, &e), 0);
    EACH(j, jobs) {
        j->trace = &t;
        ev_pool_submit(pool, &j->work, run_job, done_job, j);
    }
    ev_loop_run(t.loop);
    EACH(j, jobs) {
        assert_int_equal(j->ran, 1);
        assert_int_equal(j->done, 1);
    }
    ev_pool_free(pool);
    ev_loop_free(t.loop);
}

static void test_a_closing_pool_completes_what_it_cancels(void **state)
{
    struct trace t = { .loop = make_loop() };
    struct job jobs[20] = { 0 };
    struct ev_pool *pool = NULL;
    struct err e;
    int ran = 0;

    (void)state;
    assert_int_equal(ev_pool_new(t.loop, "test", 1, &pool, &e), 0);
    EACH(j, jobs) {
        j->trace = &t;
        ev_pool_submit(pool, &j->work, run_job, done_job, j);
    }
    ev_pool_free(pool);
    EACH(j, jobs) {
        assert_int_equal(j->done, 1);
        ran += j->ran;
    }
    assert_true(ran < 20);
    ev_loop_free(t.loop);
}

struct reader {
    struct ev_loop *loop;
    struct ev_io io;
    int fd;
    char got;
};

static void on_readable(void *ctx, unsigned ready)
{
    struct reader *r = ctx;

    assert_true(ready & EV_READ);
    assert_int_equal(read(r->fd, &r->got, 1), 1);
    ev_io_close(&r->io);
    ev_loop_stop(r->loop);
}

static void test_io_reports_what_is_readable(void **state)
{
    struct reader r = { .loop = make_loop() };
    struct err e;
    int fds[2];

    (void)state;
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    r.fd = fds[0];
    assert_int_equal(ev_io_open(&r.io, r.loop, r.fd, on_readable, &r, &e), 0);
    ev_io_want(&r.io, EV_READ);
    assert_int_equal(write(fds[1], "x", 1), 1);
    ev_loop_run(r.loop);
    assert_int_equal(r.got, 'x');
    (void)close(fds[0]);
    (void)close(fds[1]);
    ev_loop_free(r.loop);
}

struct edges {
    unsigned reports, ready;
};

static void on_edge(void *ctx, unsigned ready)
{
    struct edges *x = ctx;

    x->reports++;
    x->ready = ready;
}

static void test_an_edge_is_reported_once(void **state)
{
    struct ev_loop *loop = make_loop();
    struct edges x = { 0 };
    struct ev_io io;
    struct err e;
    int fds[2];

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    assert_int_equal(ev_io_open(&io, loop, fds[0], on_edge, &x, &e), 0);
    ev_io_want(&io, EV_READ | EV_EDGE);
    assert_int_equal(write(fds[1], "x", 1), 1);
    for (int i = 0; i < 3; i++)
        ev_loop_turn(loop);
    assert_int_equal(x.reports, 1);
    assert_int_equal(x.ready, EV_READ);
    ev_io_want(&io, 0); /* who wants it again is told of what is there */
    ev_io_want(&io, EV_READ | EV_EDGE);
    ev_loop_turn(loop);
    assert_int_equal(x.reports, 2);
    (void)shutdown(fds[1], SHUT_WR);
    for (int i = 0; i < 3; i++)
        ev_loop_turn(loop);
    assert_int_equal(x.reports, 3);
    assert_int_equal(x.ready, EV_READ | EV_END);
    ev_io_close(&io);
    (void)close(fds[0]);
    (void)close(fds[1]);
    ev_loop_free(loop);
}

static void test_texts_keep_their_ceilings(void **state)
{
    struct buf a = BUF_INIT(100), b = BUF_INIT(8);
    struct ev_loop *loop = make_loop();
    struct err e;

    (void)state;
    ev_text_take(loop, &a);
    assert_int_equal(buf_add(&a, SPAN("more than eight bytes"), &e), 0);
    ev_text_give(loop, &a);
    assert_null(a.p);
    ev_text_take(loop, &b); /* of its memory, where there is some */
    assert_string_equal(buf_cstr(&b), "");
    assert_int_equal(buf_add(&b, SPAN("more than eight bytes"), &e), -1);
    assert_int_equal(buf_add(&b, SPAN("eight it"), &e), 0);
    ev_text_take(loop, &a);
    assert_int_equal(buf_add(&a, SPAN("another"), &e), 0);
    ev_text_give(loop, &a);
    ev_text_give(loop, &b);
    ev_loop_free(loop);
}

static void test_children_are_told_apart_from_orphans(void **state)
{
    struct ev_loop *loop = make_loop();
    struct ev_children *kids = NULL;
    struct ev_child late = { 0 }, early = { 0 };
    struct ev_timer guard = { 0 };
    struct err e;
    unsigned epoch;
    pid_t pid;

    (void)state;
    assert_int_equal(ev_children_open(loop, NULL, NULL, NULL, &kids, &e), 0);

    epoch = ev_child_spawn_begin(kids); /* this one is reaped before anybody knows its pid */
    pid = fork();
    if (pid == 0)
        _exit(3);
    (void)usleep(20000);
    ev_loop_turn(loop);
    ev_child_watch(kids, &early, pid, stop, loop);
    ev_child_spawn_end(kids, epoch);
    ev_loop_run(loop);
    assert_int_equal(WEXITSTATUS(early.wait_status), 3);

    epoch = ev_child_spawn_begin(kids);
    pid = fork();
    if (pid == 0) {
        (void)usleep(10000);
        _exit(4);
    }
    ev_child_watch(kids, &late, pid, stop, loop);
    ev_child_spawn_end(kids, epoch);
    assert_true(ev_child_is_known(kids, pid));
    ev_loop_run(loop);
    assert_int_equal(WEXITSTATUS(late.wait_status), 4);
    assert_int_equal(ev_children_orphans(kids), 0);

    pid = fork();
    if (pid == 0)
        _exit(5);
    ev_timer_start(loop, &guard, 100, stop, loop);
    ev_loop_run(loop);
    assert_int_equal(ev_children_orphans(kids), 1);
    ev_children_close(kids);
    ev_loop_free(loop);
}

static void count(void *ctx)
{
    (*(int *)ctx)++;
}

static void test_many_ends_leave_room_for_others(void **state)
{
    enum { COUNT = 3 * EV_REAPS_PER_TURN };
    struct ev_loop *loop = make_loop();
    struct ev_children *kids = NULL;
    struct ev_child child[COUNT] = { 0 };
    int told = 0, before, turns = 0;
    struct err e;

    (void)state;
    assert_int_equal(ev_children_open(loop, NULL, NULL, NULL, &kids, &e), 0);
    EACH(c, child) {
        pid_t pid = fork();

        if (pid == 0)
            _exit(0);
        ev_child_watch(kids, c, pid, count, &told);
    }
    (void)usleep(50000); /* most have ended, and one signal tells of all */
    for (; told < COUNT && turns < 1000; turns++) {
        before = told;
        ev_loop_turn(loop);
        /* one round from the signal and one from the round before it */
        assert_true(told - before <= 2 * EV_REAPS_PER_TURN);
        (void)usleep(told == before ? 5000 : 0);
    }
    assert_int_equal(told, COUNT);
    assert_true(turns >= 2);
    EACH(c, child)
        assert_int_equal(c->wait_status, 0);
    ev_children_close(kids);
    ev_loop_free(loop);
}

static void test_an_old_status_meets_no_new_child(void **state)
{
    struct ev_loop *loop = make_loop();
    struct ev_children *kids = NULL;
    struct ev_child again = { 0 };
    unsigned old, young;
    struct err e;
    pid_t pid;

    (void)state;
    assert_int_equal(ev_children_open(loop, NULL, NULL, NULL, &kids, &e), 0);
    old = ev_child_spawn_begin(kids);
    pid = fork(); /* an orphan's death, while somebody spawns */
    if (pid == 0)
        _exit(6);
    (void)usleep(20000);
    ev_loop_turn(loop);
    for (int i = 0; i < 3; i++) { /* spawns never cease, but each has its end */
        young = ev_child_spawn_begin(kids);
        ev_child_spawn_end(kids, old);
        old = young;
    }
    ev_child_watch(kids, &again, pid, stop, loop); /* the number has come round */
    ev_child_spawn_end(kids, old);
    ev_loop_turn(loop);
    assert_true(ev_child_is_known(kids, pid)); /* it lives, as far as we know */
    assert_int_equal(ev_children_orphans(kids), 1);
    ev_child_forget(kids, &again);
    ev_children_close(kids);
    ev_loop_free(loop);
}

struct look {
    struct ev_loop *loop;
    struct ev_task task;
    bool has_seen;
};

static void look_for_others(void *ctx)
{
    struct look *l = ctx;

    l->has_seen = ev_has_posted(l->loop);
}

static void test_a_posted_task_sees_whether_others_wait(void **state)
{
    struct look first = { .loop = make_loop() }, last = first;
    struct trace t = { .loop = first.loop };
    struct step other = { &t, 'a', { 0 }, { 0 } };

    (void)state;
    ev_post(first.loop, &first.task, look_for_others, &first);
    ev_post(first.loop, &other.task, note, &other);
    ev_post(first.loop, &last.task, look_for_others, &last);
    ev_loop_turn(first.loop);
    assert_true(first.has_seen); /* of the same turn */
    assert_false(last.has_seen);
    ev_post(first.loop, &other.task, note, &other);
    look_for_others(&last); /* of the next turn */
    assert_true(last.has_seen);
    ev_loop_turn(first.loop);
    ev_post_aside(first.loop, &other.task, note, &other);
    look_for_others(&last); /* not what goes on for long */
    assert_false(last.has_seen);
    ev_loop_free(first.loop);
}

int main(void)
{
    const struct CMUnitTest all[] = {
        cmocka_unit_test(test_timers_fire_in_order_of_their_deadlines),
        cmocka_unit_test(test_many_timers_keep_the_heap_in_order),
        cmocka_unit_test(test_a_posted_task_runs_later_and_can_be_taken_back),
        cmocka_unit_test(test_a_posted_task_sees_whether_others_wait),
        cmocka_unit_test(test_an_object_outlives_the_tasks_it_took_back),
        cmocka_unit_test(test_every_object_is_freed_exactly_once),
        cmocka_unit_test(test_blocks_come_clean),
        cmocka_unit_test(test_every_job_is_done_exactly_once),
        cmocka_unit_test(test_a_closing_pool_completes_what_it_cancels),
        cmocka_unit_test(test_io_reports_what_is_readable),
        cmocka_unit_test(test_an_edge_is_reported_once),
        cmocka_unit_test(test_texts_keep_their_ceilings),
        cmocka_unit_test(test_children_are_told_apart_from_orphans),
        cmocka_unit_test(test_many_ends_leave_room_for_others),
        cmocka_unit_test(test_an_old_status_meets_no_new_child),
    };

    return cmocka_run_group_tests(all, NULL, NULL);
}
