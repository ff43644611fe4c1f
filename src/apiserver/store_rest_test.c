#include "apiserver/teststore.h"

#include "apiserver/limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define NEVER_MS (3600u * 1000)

static void open_store(struct teststore *f, uint64_t fresh_ms, uint64_t sweep_ms)
{
    struct err e;

    if (!teststore_open(f, (struct store_config){ .fresh_ms = fresh_ms, .sweep_ms = sweep_ms }, &e))
        fail_msg("%s", e.msg);
}

static int set_up(void **state)
{
    struct teststore *f = NEW(struct teststore);

    teststore_begin(f);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct teststore *f = *state;

    teststore_end(f);
    free(f);
    return 0;
}

static uint64_t put(struct teststore *f, enum store_op op, const char *name, int value)
{
    OWN(json_doc_done) struct json_doc *doc = NULL;
    OWN(object_done) struct object *o = NULL, *now = NULL;
    char text[256];
    struct err e;

    (void)snprintf(text, sizeof text,
                   "{\"metadata\":{\"namespace\":\"n\",\"name\":\"%s\"},\"data\":{\"v\":\"%d\"}}",
                   name, value);
    assert_int_equal(json_parse(span_cstr(text), NULL, &doc, &e), 0);
    assert_int_equal(object_parse(f->kind, json_doc_root(doc), &o, &e), 0);
    if (store_write(f->store, &(struct store_change){ op, o, false }, &now, &e) < 0)
        fail_msg("%s", e.msg);
    return object_version(now);
}

static struct object *get(struct teststore *f, enum store_view view, const char *name)
{
    return store_get(f->store, view, &(struct shelf_key){ f->number, "n", name });
}

static void until_it_rests(struct teststore *f, const char *name)
{
    while (!object_is_packed(get(f, STORE_HEAD, name)))
        ev_loop_turn(f->loop);
}

/* The object as it was at a version, without a look into it. */
static bool was_packed(struct teststore *f, uint64_t version, const char *name)
{
    struct shelf *shelf = NULL;
    struct object *o;
    bool is_packed;
    struct err e;

    assert_int_equal(store_snapshot_at(f->store, f->number, version, &shelf, &e), 0);
    o = shelf_get(shelf, &(struct shelf_key){ f->number, "n", name });
    is_packed = o && object_is_packed(o); /* it may not be on disk yet */
    shelf_unref(shelf);
    return is_packed;
}

static void test_what_was_let_be_is_packed(void **state)
{
    struct teststore *f = *state;
    OWN(object_done) struct object *was = NULL;
    OWN(buf_done) struct buf before = BUF_INIT(4096), after = BUF_INIT(4096);
    const char *text;
    struct err e;

    open_store(f, 1, NEVER_MS);
    (void)put(f, STORE_CREATE, "a", 1);
    was = object_ref(get(f, STORE_HEAD, "a"));
    text = object_text(was, "data.v");
    assert_false(object_is_packed(was));
    until_it_rests(f, "a");
    assert_ptr_equal(get(f, STORE_COMMITTED, "a"), get(f, STORE_HEAD, "a"));
    assert_int_equal(object_version(get(f, STORE_HEAD, "a")), object_version(was));
    assert_string_equal(text, "1"); /* who holds it has it as it was */
    assert_int_equal(object_write(was, "v1", &before, &e), 0);
    assert_int_equal(object_write(get(f, STORE_HEAD, "a"), "v1", &after, &e), 0);
    assert_string_equal(buf_cstr(&after), buf_cstr(&before));
    assert_string_equal(object_text(get(f, STORE_HEAD, "a"), "data.v"), "1");
}

static void test_old_states_are_packed(void **state)
{
    struct teststore *f = *state;
    uint64_t first, second;

    open_store(f, 1, NEVER_MS);
    first = put(f, STORE_CREATE, "a", 1);
    until_it_rests(f, "a");
    (void)object_text(get(f, STORE_HEAD, "a"), "data.v"); /* as an update does */
    second = put(f, STORE_UPDATE, "a", 2);
    (void)put(f, STORE_UPDATE, "a", 3);
    until_it_rests(f, "a");
    assert_true(was_packed(f, first, "a"));
    assert_true(was_packed(f, second, "a"));
    (void)put(f, STORE_DELETE, "a", 3);
    (void)put(f, STORE_CREATE, "b", 1);
    until_it_rests(f, "b");
    assert_true(was_packed(f, second + 1, "a"));
}

static void test_many_are_packed_without_a_pause(void **state)
{
    struct teststore *f = *state;
    char name[32];

    open_store(f, NEVER_MS, NEVER_MS);
    for (int i = 0; i <= STORE_FRESH_MAX; i++) {
        (void)snprintf(name, sizeof name, "o%d", i);
        (void)put(f, STORE_CREATE, name, i);
    }
    until_it_rests(f, "o0");
    assert_false(object_is_packed(get(f, STORE_HEAD, name)));
}

static bool on_event(void *ctx, struct store_event *ev)
{
    struct object **kept = ctx;

    object_unref(*kept);
    *kept = object_ref(ev->now);
    return true;
}

static void on_lost(void *ctx)
{
    (void)ctx;
    fail();
}

static void test_what_a_reader_here_keeps_is_shared(void **state)
{
    struct teststore *f = *state;
    OWN(object_done) struct object *kept = NULL;
    struct store_watch watch;
    uint64_t first;
    struct err e;

    open_store(f, 1, 1);
    watch = (struct store_watch){ .kind = f->number,
                                  .namespace = "",
                                  .name = "",
                                  .is_head = true,
                                  .is_keeping = true,
                                  .on_event = on_event,
                                  .on_lost = on_lost,
                                  .ctx = &kept };
    assert_int_equal(store_watch(f->store, &watch, store_version(f->store, STORE_HEAD), &e), 0);
    first = put(f, STORE_CREATE, "a", 1);
    (void)put(f, STORE_UPDATE, "a", 2);
    while (!was_packed(f, first, "a")) /* its old states nobody keeps */
        ev_loop_turn(f->loop);
    assert_false(object_is_packed(kept));
    assert_ptr_equal(get(f, STORE_HEAD, "a"), kept);
    store_watch_stop(&watch);
    (void)put(f, STORE_CREATE, "b", 1);
    until_it_rests(f, "b");
    (void)object_text(get(f, STORE_HEAD, "b"), "data.v"); /* so that there is a sweep */
    until_it_rests(f, "a");
}

static void test_trees_of_readers_go_with_a_sweep(void **state)
{
    struct teststore *f = *state;
    uint64_t version;

    open_store(f, 1, 1);
    version = put(f, STORE_CREATE, "a", 1);
    (void)put(f, STORE_CREATE, "b", 1);
    until_it_rests(f, "a");
    until_it_rests(f, "b");
    assert_string_equal(object_text(get(f, STORE_HEAD, "a"), "data.v"), "1");
    assert_string_equal(object_text(get(f, STORE_COMMITTED, "b"), "data.v"), "1");
    until_it_rests(f, "a");
    until_it_rests(f, "b");
    assert_true(was_packed(f, version, "a")); /* also where the history has it */
}

static void test_it_is_packed_after_a_restart(void **state)
{
    struct teststore *f = *state;
    uint64_t version;

    open_store(f, NEVER_MS, NEVER_MS);
    version = put(f, STORE_CREATE, "a", 1);
    (void)put(f, STORE_UPDATE, "a", 2);
    teststore_close(f);
    open_store(f, NEVER_MS, NEVER_MS);
    assert_true(object_is_packed(get(f, STORE_HEAD, "a")));
    assert_true(was_packed(f, version, "a"));
    assert_string_equal(object_text(get(f, STORE_COMMITTED, "a"), "data.v"), "2");
}

int main(void)
{
#define IN_A_STORE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        IN_A_STORE(test_what_was_let_be_is_packed),
        IN_A_STORE(test_old_states_are_packed),
        IN_A_STORE(test_many_are_packed_without_a_pause),
        IN_A_STORE(test_what_a_reader_here_keeps_is_shared),
        IN_A_STORE(test_trees_of_readers_go_with_a_sweep),
        IN_A_STORE(test_it_is_packed_after_a_restart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
