/* Requests that wait for a sandbox: told when it comes, when it does not, and not at all once they have left. */
#include "router/pick.h"

#include "base/time.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

static struct world {
    struct picker picker;
    enum pick_verdict verdict; /* what a look finds */
    unsigned looks, dones;
    enum pick_verdict told;
    char detail[512], host[512];
} w;

static const struct target here = { .id = "box", .namespace = "a" };

static enum pick_verdict find(struct picker *p, const struct target *t, struct picked *ret,
                              struct refusal *why)
{
    (void)p, (void)t;
    w.looks++;
    *ret = (struct picked){ .source = "cache", .host = "10.0.0.1" };
    refusal_set(why, 404, "look %u", w.looks);
    return w.verdict;
}

static const struct picker_ops ops = { .find = find };

static void on_done(void *ctx, enum pick_verdict verdict, const struct picked *at,
                    const struct refusal *why)
{
    (void)ctx;
    w.dones++;
    w.told = verdict;
    (void)snprintf(w.detail, sizeof w.detail, "%s", why->detail);
    (void)snprintf(w.host, sizeof w.host, "%s", at->host);
}

static int set_up(void **state)
{
    struct err e;

    (void)state;
    w = (struct world){ .picker = { .ops = &ops }, .verdict = PICK_WAITING };
    return ev_loop_new(&w.picker.loop, &e);
}

static int tear_down(void **state)
{
    (void)state;
    ev_loop_free(w.picker.loop);
    return 0;
}

static enum pick_verdict start(struct pick *p)
{
    struct picked at;
    struct refusal why;

    return pick_start(p, &w.picker, &here, &at, &why, on_done, NULL);
}

static void test_known_at_once(void **state)
{
    struct pick p = { 0 };

    (void)state;
    w.verdict = PICK_FOUND;
    assert_int_equal(start(&p), PICK_FOUND);
    w.verdict = PICK_REFUSED;
    assert_int_equal(start(&p), PICK_REFUSED);
    assert_int_equal(w.picker.waiting_count, 0);
    pick_cancel(&p); /* harmless */
    assert_int_equal(w.dones, 0);
}

static void test_told_by_changes_of_its_namespace(void **state)
{
    struct pick p = { 0 }, q = { 0 };

    (void)state;
    assert_int_equal(start(&p), PICK_WAITING);
    assert_int_equal(start(&q), PICK_WAITING);
    picker_changed(&w.picker, "b");
    assert_int_equal(w.looks, 2);
    picker_changed(&w.picker, "a");
    assert_int_equal(w.looks, 4);
    assert_int_equal(w.dones, 0);
    pick_cancel(&q);
    w.verdict = PICK_FOUND;
    picker_changed(&w.picker, NULL);
    assert_int_equal(w.dones, 1);
    assert_int_equal(w.told, PICK_FOUND);
    assert_string_equal(w.host, "10.0.0.1");
    assert_int_equal(w.picker.waiting_count, 0);
    picker_changed(&w.picker, NULL);
    assert_int_equal(w.dones, 1);
}

/* What stands against it when time is over is the last look's word, not the first one's. */
static void test_in_vain(void **state)
{
    struct pick p = { 0 };
    uint64_t end = time_mono_ms() + 30000;

    (void)state;
    assert_int_equal(start(&p), PICK_WAITING);
    while (w.dones == 0 && time_mono_ms() < end)
        ev_loop_turn(w.picker.loop);
    assert_int_equal(w.dones, 1);
    assert_int_equal(w.told, PICK_REFUSED);
    assert_string_equal(w.detail, "look 2");
    assert_int_equal(w.picker.waiting_count, 0);
}

static void test_a_flood_does_not_wait(void **state)
{
    static struct pick many[PICK_WAITS_MAX];
    struct pick late = { 0 };

    (void)state;
    EACH(p, many)
        assert_int_equal(start(p), PICK_WAITING);
    assert_int_equal(start(&late), PICK_REFUSED);
    pick_cancel(&many[7]);
    assert_int_equal(start(&late), PICK_WAITING);
    pick_cancel(&late);
    EACH(p, many)
        pick_cancel(p);
    assert_null(w.picker.waiting);
    assert_int_equal(w.picker.waiting_count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_known_at_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_told_by_changes_of_its_namespace, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_in_vain, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_flood_does_not_wait, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
