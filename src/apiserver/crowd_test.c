#include "apiserver/crowd.h"

#include "apiserver/op.h"
#include "apiserver/teststore.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define MAX_EVENTS 20

struct fixture {
    struct teststore t;
    struct crowd *crowd;
};

static int set_up(void **state)
{
    struct fixture *f = NEW(struct fixture);
    struct err e;

    teststore_begin(&f->t);
    f->t.kind = kind_find("", "v1", "events");
    f->t.number = op_number(f->t.kind);
    if (!teststore_open(&f->t, (struct store_config){ 0 }, &e))
        fail_msg("%s", e.msg);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    crowd_close(f->crowd);
    teststore_end(&f->t);
    free(f);
    return 0;
}

static void put_in(struct fixture *f, const char *namespace, enum store_op op, const char *type,
                   int number, const char *more)
{
    OWN(json_doc_done) struct json_doc *doc = NULL;
    OWN(object_done) struct object *o = NULL, *now = NULL;
    char text[256];
    struct err e;

    (void)snprintf(text, sizeof text,
                   "{\"metadata\":{\"namespace\":\"%s\",\"name\":\"%.1s%d\"%s},\"type\":\"%s\"}",
                   namespace, type, number, more, type);
    assert_int_equal(json_parse(span_cstr(text), NULL, &doc, &e), 0);
    assert_int_equal(object_parse(f->t.kind, json_doc_root(doc), &o, &e), 0);
    if (store_write(f->t.store, &(struct store_change){ op, o, false }, &now, &e) < 0)
        fail_msg("%s", e.msg);
}

static void put(struct fixture *f, enum store_op op, const char *type, int number, const char *more)
{
    put_in(f, "n", op, type, number, more);
}

static void put_many(struct fixture *f, const char *type, int from, int to)
{
    for (int i = from; i < to; i++)
        put(f, STORE_CREATE, type, i, "");
}

static bool is_there(struct fixture *f, const char *name)
{
    return store_get(f->t.store, STORE_HEAD, &(struct shelf_key){ f->t.number, "n", name });
}

static size_t count(struct fixture *f, char first, int from, int to)
{
    size_t n = 0;
    char name[16];

    for (int i = from; i < to; i++) {
        (void)snprintf(name, sizeof name, "%c%d", first, i);
        n += is_there(f, name);
    }
    return n;
}

static size_t count_flood(struct fixture *f, int from, int to)
{
    size_t n = 0;
    char name[16];

    for (int i = from; i < to; i++)
        for (const char *type = "NW"; *type; type++) {
            (void)snprintf(name, sizeof name, "%c%d", *type, i);
            n += !!store_get(f->t.store, STORE_HEAD,
                             &(struct shelf_key){ f->t.number, "flood", name });
        }
    return n;
}

struct waited {
    struct store_wait wait;
    struct ev_loop *loop;
};

static void on_waited(void *ctx, const struct err *e)
{
    assert_null(e);
    ev_loop_stop(((struct waited *)ctx)->loop);
}

/* Twice: what the first turns deleted is on disk too. */
static void settle(struct fixture *f)
{
    for (int i = 0; i < 4; i++) {
        struct waited w = { .loop = f->t.loop };

        store_wait(f->t.store, &w.wait, store_version(f->t.store, STORE_HEAD), on_waited, &w);
        ev_loop_run(f->t.loop);
    }
}

static void test_the_oldest_go(void **state)
{
    struct fixture *f = *state;

    f->crowd = crowd_open(f->t.loop, f->t.store, f->t.number, MAX_EVENTS);
    put_many(f, "Normal", 0, MAX_EVENTS);
    settle(f);
    assert_int_equal(count(f, 'N', 0, MAX_EVENTS), MAX_EVENTS);
    put_many(f, "Normal", MAX_EVENTS, 150);
    settle(f);
    assert_int_equal(count(f, 'N', 0, 130), 0);
    assert_int_equal(count(f, 'N', 130, 150), MAX_EVENTS);
}

static void test_those_from_before_are_in_line(void **state)
{
    struct fixture *f = *state;

    put_many(f, "Normal", 0, 30);
    put(f, STORE_UPDATE, "Normal", 3, ""); /* later than all others */
    f->crowd = crowd_open(f->t.loop, f->t.store, f->t.number, MAX_EVENTS);
    settle(f);
    assert_int_equal(count(f, 'N', 0, 30), MAX_EVENTS);
    assert_true(is_there(f, "N3"));
    assert_int_equal(count(f, 'N', 11, 30), MAX_EVENTS - 1);
}

static void test_what_is_said_again_stays(void **state)
{
    struct fixture *f = *state;

    f->crowd = crowd_open(f->t.loop, f->t.store, f->t.number, MAX_EVENTS);
    put_many(f, "Normal", 0, 10);
    for (int i = 0; i < 500; i++)
        put(f, STORE_UPDATE, "Normal", 0, "");
    settle(f);
    put_many(f, "Normal", 10, 25);
    settle(f);
    assert_true(is_there(f, "N0"));
    assert_int_equal(count(f, 'N', 0, 25), MAX_EVENTS);
    assert_int_equal(count(f, 'N', 1, 6), 0);
}

static void test_warnings_go_last(void **state)
{
    struct fixture *f = *state;

    f->crowd = crowd_open(f->t.loop, f->t.store, f->t.number, MAX_EVENTS);
    put_many(f, "Warning", 0, 8);
    put_many(f, "Normal", 0, 100);
    settle(f);
    assert_int_equal(count(f, 'W', 0, 8), 8);
    assert_int_equal(count(f, 'N', 88, 100), 12);
    put_many(f, "Warning", 8, 100); /* and leave the others their half */
    settle(f);
    assert_int_equal(count(f, 'W', 90, 100), MAX_EVENTS / 2);
    assert_int_equal(count(f, 'N', 90, 100), MAX_EVENTS / 2);
    assert_int_equal(count(f, 'W', 0, 100) + count(f, 'N', 0, 100), MAX_EVENTS);
}

static void test_they_say_the_same_in_less_memory(void **state)
{
    struct fixture *f = *state;
    struct shelf_key key = { f->t.number, "n", "N7" };
    OWN(object_done) struct object *was = NULL;
    OWN(buf_done) struct buf before = BUF_INIT(4096), after = BUF_INIT(4096);
    struct object *now;
    struct err e;

    f->crowd = crowd_open(f->t.loop, f->t.store, f->t.number, MAX_EVENTS);
    put_many(f, "Normal", 0, 10);
    was = object_ref(store_get(f->t.store, STORE_HEAD, &key));
    settle(f);
    now = store_get(f->t.store, STORE_HEAD, &key);
    assert_ptr_not_equal(now, was);
    assert_int_equal(object_version(now), object_version(was));
    assert_true(object_memory(now) < object_memory(was));
    assert_int_equal(object_write(was, "v1", &before, &e), 0);
    assert_int_equal(object_write(now, "v1", &after, &e), 0);
    assert_string_equal(buf_cstr(&after), buf_cstr(&before));
    put(f, STORE_UPDATE, "Normal", 7,
        ",\"labels\":{}"); /* the next is leaned too, not this one again */
    settle(f);
    assert_null(store_lean(f->t.store, was));
}

static void test_finalizers_hold_no_place(void **state)
{
    struct fixture *f = *state;

    f->crowd = crowd_open(f->t.loop, f->t.store, f->t.number, MAX_EVENTS);
    for (int i = 0; i < MAX_EVENTS; i++)
        put(f, STORE_CREATE, "Normal", i, ",\"finalizers\":[\"a/b\"]");
    put_many(f, "Normal", MAX_EVENTS, 2 * MAX_EVENTS);
    settle(f);
    assert_int_equal(count(f, 'N', MAX_EVENTS, 2 * MAX_EVENTS), MAX_EVENTS);
    assert_int_equal(count(f, 'N', 0, MAX_EVENTS), 0);
}

/* The older Events of a namespace that has few outlive a flood in another, before and after a start. */
static void test_each_namespace_has_a_share(void **state)
{
    struct fixture *f = *state;

    put_many(f, "Normal", 0, MAX_EVENTS / 4);
    for (int i = 0; i < 3 * MAX_EVENTS; i++)
        put_in(f, "flood", STORE_CREATE, i % 2 ? "Warning" : "Normal", i, "");
    f->crowd = crowd_open(f->t.loop, f->t.store, f->t.number, MAX_EVENTS);
    settle(f);
    assert_int_equal(count(f, 'N', 0, MAX_EVENTS), MAX_EVENTS / 4);
    for (int i = 3 * MAX_EVENTS; i < 9 * MAX_EVENTS; i++)
        put_in(f, "flood", STORE_CREATE, "Warning", i, "");
    settle(f);
    assert_int_equal(count(f, 'N', 0, MAX_EVENTS), MAX_EVENTS / 4);
    put_many(f, "Normal", MAX_EVENTS / 4,
             3 * MAX_EVENTS); /* it may have half of all, while both want more */
    settle(f);
    assert_int_equal(count(f, 'N', 0, 3 * MAX_EVENTS), MAX_EVENTS / 2);
    for (int i = 3 * MAX_EVENTS - MAX_EVENTS / 2; i < 3 * MAX_EVENTS; i++)
        put(f, STORE_DELETE, "Normal", i, "");
    for (int i = 9 * MAX_EVENTS; i < 12 * MAX_EVENTS; i++)
        put_in(f, "flood", STORE_CREATE, "Normal", i, ""); /* and all where nobody else is */
    settle(f);
    assert_int_equal(count_flood(f, 0, 12 * MAX_EVENTS), MAX_EVENTS);
}

int main(void)
{
#define IN_A_STORE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        IN_A_STORE(test_the_oldest_go),
        IN_A_STORE(test_those_from_before_are_in_line),
        IN_A_STORE(test_what_is_said_again_stays),
        IN_A_STORE(test_warnings_go_last),
        IN_A_STORE(test_finalizers_hold_no_place),
        IN_A_STORE(test_each_namespace_has_a_share),
        IN_A_STORE(test_they_say_the_same_in_less_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
