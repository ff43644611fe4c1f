#include "apiserver/teststore.h"

#include "apiserver/limits.h"
#include "ev/timer.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

static void open_store(struct teststore *f)
{
    struct err e;

    if (!teststore_open(f, (struct store_config){ 0 }, &e))
        fail_msg("%s", e.msg);
}

static int set_up(void **state)
{
    struct teststore *f = NEW(struct teststore);

    teststore_begin(f);
    open_store(f);
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

static struct object *make(struct teststore *f, const char *name, int value)
{
    OWN(json_doc_done) struct json_doc *doc = NULL;
    struct object *o = NULL;
    char text[256];
    struct err e;

    (void)snprintf(text, sizeof text,
                   "{\"metadata\":{\"namespace\":\"n\",\"name\":\"%s\"},\"data\":{\"v\":\"%d\"}}",
                   name, value);
    assert_int_equal(json_parse(span_cstr(text), NULL, &doc, &e), 0);
    assert_int_equal(object_parse(f->kind, json_doc_root(doc), &o, &e), 0);
    return o;
}

static uint64_t put(struct teststore *f, enum store_op op, const char *name, int value)
{
    OWN(object_done) struct object *o = make(f, name, value), *now = NULL;
    struct err e;

    if (store_write(f->store, &(struct store_change){ op, o, false }, &now, &e) < 0)
        fail_msg("%s", e.msg);
    return object_version(now);
}

static const char *value_of(struct teststore *f, enum store_view view, const char *name)
{
    struct object *o = store_get(f->store, view, &(struct shelf_key){ f->number, "n", name });

    return o ? object_text(o, "data.v") : NULL;
}

struct waited {
    struct store_wait wait;
    struct ev_loop *loop;
    int calls;
    enum err_code code;
};

static void on_waited(void *ctx, const struct err *e)
{
    struct waited *w = ctx;

    w->calls++;
    w->code = e ? e->code : ERR_NONE;
    ev_loop_stop(w->loop);
}

static enum err_code wait_for(struct teststore *f, uint64_t version)
{
    struct waited w = { .loop = f->loop };

    store_wait(f->store, &w.wait, version, on_waited, &w);
    assert_int_equal(w.calls, 0);
    ev_loop_run(f->loop);
    assert_int_equal(w.calls, 1);
    return w.code;
}

static void test_the_head_is_ahead_of_the_disk(void **state)
{
    struct teststore *f = *state;
    uint64_t version = put(f, STORE_CREATE, "a", 1);

    assert_string_equal(value_of(f, STORE_HEAD, "a"), "1");
    assert_null(value_of(f, STORE_COMMITTED, "a"));
    assert_int_equal(wait_for(f, version), ERR_NONE);
    assert_string_equal(value_of(f, STORE_COMMITTED, "a"), "1");
    assert_int_equal(wait_for(f, version), ERR_NONE); /* also when it is there already */
}

/* Somebody who answers a write by another, some turns of the loop later. */
struct chain {
    struct teststore *store;
    struct ev_task task;
    int turns, left; /* before each of them; how many */
    uint64_t version;
};

static void next_of_chain(void *ctx)
{
    struct chain *c = ctx;
    char name[16];

    if (c->turns % 4 == 0) {
        (void)snprintf(name, sizeof name, "chain-%d", c->left);
        c->version = put(c->store, STORE_CREATE, name, 1);
        c->left--;
    }
    c->turns++;
    if (c->left)
        ev_post(c->store->loop, &c->task, next_of_chain, c);
}

static void test_what_follows_from_a_write_is_committed_with_it(void **state)
{
    struct teststore *f = *state;
    struct chain c = { .store = f, .left = 5 };
    struct store_stats stats;
    uint64_t first;

    first = put(f, STORE_CREATE, "a", 1);
    ev_post(f->loop, &c.task, next_of_chain, &c);
    assert_int_equal(wait_for(f, first), ERR_NONE);
    assert_int_equal(c.left, 0);
    assert_true(store_version(f->store, STORE_COMMITTED) == c.version);
    store_stats(f->store, &stats);
    assert_int_equal(stats.commits, 1);
}

static void test_a_loop_that_is_never_idle_does_not_keep_writes_from_the_disk(void **state)
{
    struct teststore *f = *state;
    struct chain c = { .store = f, .turns = 1, .left = STORE_GATHER_ROWS_MAX * 100 };
    uint64_t first = put(f, STORE_CREATE, "a", 1);

    ev_post(f->loop, &c.task, next_of_chain, &c);
    assert_int_equal(wait_for(f, first), ERR_NONE);
    assert_true(c.left > 0);
    c.turns = 1, c.left = 0; /* that was the last one */
    ev_loop_turn(f->loop);
}

static void test_what_was_committed_is_there_after_a_restart(void **state)
{
    struct teststore *f = *state;
    uint64_t version;

    (void)put(f, STORE_CREATE, "a", 1);
    (void)put(f, STORE_CREATE, "b", 1);
    (void)put(f, STORE_UPDATE, "a", 2);
    version = put(f, STORE_DELETE, "b", 1);
    teststore_close(f);
    open_store(f);
    assert_string_equal(value_of(f, STORE_COMMITTED, "a"), "2");
    assert_null(value_of(f, STORE_COMMITTED, "b"));
    assert_true(store_version(f->store, STORE_COMMITTED) == version);
    assert_true(put(f, STORE_CREATE, "c", 1) == version + 1);
}

static void test_a_write_is_judged_against_the_head(void **state)
{
    struct teststore *f = *state;
    OWN(object_done) struct object *o = make(f, "a", 1), *ignored = NULL;
    struct err e;

    (void)put(f, STORE_CREATE, "a", 1);
    assert_int_equal(store_write(f->store, &(struct store_change){ STORE_CREATE, o }, &ignored, &e),
                     -1);
    assert_int_equal(e.code, ERR_EXISTS);
    (void)put(f, STORE_DELETE, "a", 1);
    assert_int_equal(store_write(f->store, &(struct store_change){ STORE_UPDATE, o }, &ignored, &e),
                     -1);
    assert_int_equal(e.code, ERR_NOT_FOUND);
}

struct seen {
    struct store_watch watch;
    char text[4096];
    size_t room; /* events until it is full */
    bool is_lost;
};

static bool on_event(void *ctx, struct store_event *ev)
{
    static const char marks[] = "+~-";
    struct seen *s = ctx;
    size_t n = strlen(s->text);

    (void)snprintf(s->text + n, sizeof s->text - n, "%c%s%s ", marks[ev->type],
                   object_name(ev->now), object_text(ev->now, "data.v"));
    return s->room == 0 || --s->room > 0;
}

static void on_lost(void *ctx)
{
    struct seen *s = ctx;

    s->is_lost = true;
}

static void watch(struct teststore *f, struct seen *s, const char *name, bool is_head,
                  uint64_t from)
{
    struct err e;

    s->watch = (struct store_watch){ .kind = f->number,
                                     .namespace = "n",
                                     .name = name,
                                     .is_head = is_head,
                                     .on_event = on_event,
                                     .on_lost = on_lost,
                                     .ctx = s };
    if (store_watch(f->store, &s->watch, from, &e) < 0)
        fail_msg("%s", e.msg);
}

static void turn(struct teststore *f)
{
    for (int i = 0; i < 4; i++)
        ev_loop_turn(f->loop);
}

static void test_watches_hear_what_is_on_disk_and_those_of_the_head_at_once(void **state)
{
    struct teststore *f = *state;
    struct seen all = { 0 }, one = { 0 }, head = { 0 };
    uint64_t version;

    watch(f, &all, "", false, 0);
    watch(f, &one, "b", false, 0);
    watch(f, &head, "", true, 0);
    (void)put(f, STORE_CREATE, "a", 1);
    (void)put(f, STORE_CREATE, "b", 1);
    (void)put(f, STORE_UPDATE, "a", 2);
    version = put(f, STORE_DELETE, "b", 1);
    assert_string_equal(head.text, ""); /* never inside the call */
    ev_loop_turn(f->loop);
    assert_string_equal(head.text, "+a1 +b1 ~a2 -b1 ");
    assert_int_equal(wait_for(f, version), ERR_NONE);
    turn(f);
    assert_string_equal(all.text, "+a1 +b1 ~a2 -b1 ");
    assert_string_equal(one.text, "+b1 -b1 ");
    store_watch_stop(&all.watch);
    store_watch_stop(&one.watch);
    store_watch_stop(&head.watch);
}

static void test_a_watch_goes_on_where_it_was_also_after_a_restart(void **state)
{
    struct teststore *f = *state;
    uint64_t first = put(f, STORE_CREATE, "a", 1);
    struct seen later = { 0 };

    (void)put(f, STORE_UPDATE, "a", 2);
    (void)put(f, STORE_DELETE, "a", 2);
    teststore_close(f);
    open_store(f);
    watch(f, &later, "", false, first);
    turn(f);
    assert_string_equal(later.text, "~a2 -a2 ");
    store_watch_stop(&later.watch);
}

static void test_a_full_watch_waits_and_one_that_is_too_slow_is_lost(void **state)
{
    struct teststore *f = *state;
    struct seen slow = { .room = 1 };
    uint64_t version = 0;
    struct err e;

    watch(f, &slow, "", false, 0);
    (void)put(f, STORE_CREATE, "a", 0);
    (void)wait_for(f, put(f, STORE_UPDATE, "a", 1));
    turn(f);
    assert_string_equal(slow.text, "+a0 ");
    slow.room = 1;
    store_watch_resume(&slow.watch);
    turn(f);
    assert_string_equal(slow.text, "+a0 ~a1 ");
    for (int i = 0; i < STORE_HISTORY_MAX + STORE_HISTORY_MAX / 3; i++) {
        version = put(f, STORE_UPDATE, "a", i);
        if (i % 500 == 0)
            (void)wait_for(f, version);
    }
    (void)wait_for(f, version);
    while (!slow.is_lost) { /* compaction goes on in the background */
        store_watch_resume(&slow.watch);
        turn(f);
    }
    assert_int_equal(store_watch(f->store, &slow.watch, 1, &e), -1);
    assert_int_equal(e.code, ERR_GONE);
    teststore_close(f);
    open_store(f);
    assert_int_equal(store_watch(f->store, &slow.watch, 1, &e), -1);
    assert_int_equal(e.code, ERR_GONE);
    assert_int_equal(store_watch(f->store, &slow.watch, version, &e), 0);
    store_watch_stop(&slow.watch);
}

/* Commits of a thousand rows, one behind the other: none leaves more behind than it brought. */
static void test_the_history_keeps_its_bounds_under_load(void **state)
{
    static const struct {
        size_t max, max_bytes;
    } rows[] = { { .max = 100 }, { .max_bytes = 64 << 10 } };
    struct teststore *f = *state;
    struct store_stats stats;
    size_t each;
    struct err e;

    EACH(r, rows) {
        teststore_close(f);
        assert_true(teststore_open(
            f, (struct store_config){ .history_max = r->max, .history_max_bytes = r->max_bytes },
            &e));
        (void)wait_for(f, put(f, r == rows ? STORE_CREATE : STORE_UPDATE, "a", 0));
        for (int round = 0; round < 10; round++) {
            uint64_t version = 0;

            for (int i = 0; i < STORE_BATCH_ROWS_MAX; i++)
                version = put(f, STORE_UPDATE, "a", i);
            (void)wait_for(f, version);
        }
        store_stats(f->store, &stats);
        each = stats.superseded_bytes / stats.superseded;
        assert_in_range(each, 100, 1000);
        assert_true(stats.superseded <=
                    (r->max ? r->max : r->max_bytes / each) * 11 / 10 + 2 * STORE_BATCH_ROWS_MAX);
        do { /* the rest goes in the background */
            turn(f);
            store_stats(f->store, &stats);
        } while (r->max ? stats.superseded > r->max * 11 / 10
                        : stats.superseded_bytes > r->max_bytes * 11 / 10);
    }
}

/* "a" as it was at a version; 0: it was not there. */
static uint64_t version_at(struct teststore *f, uint64_t version)
{
    struct shelf_key key = { f->number, "n", "a" };
    struct shelf *shelf = NULL;
    struct object *o;
    uint64_t found;
    struct err e;

    if (store_snapshot_at(f->store, f->number, version, &shelf, &e) < 0)
        fail_msg("%s", e.msg);
    o = shelf_get(shelf, &key);
    found = o ? object_version(o) : 0;
    shelf_unref(shelf);
    return found;
}

static void test_an_old_state_can_be_seen_also_after_a_restart(void **state)
{
    struct teststore *f = *state;
    uint64_t made = put(f, STORE_CREATE, "a", 1), other = put(f, STORE_CREATE, "b", 1);
    uint64_t changed = put(f, STORE_UPDATE, "a", 2), gone = put(f, STORE_DELETE, "a", 2);

    (void)wait_for(f, gone);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(version_at(f, made - 1), 0);
        assert_int_equal(version_at(f, made), made);
        assert_int_equal(version_at(f, other), made);
        assert_int_equal(version_at(f, changed), changed);
        assert_int_equal(version_at(f, gone), 0);
        if (i == 0) {
            teststore_close(f);
            open_store(f);
        }
    }
}

static void test_two_processes_cannot_have_one_directory(void **state)
{
    struct teststore *f = *state;
    struct store *second = NULL;
    struct err e;

    assert_int_equal(store_open(f->loop, &(struct store_config){ .dir = f->dir }, &second, &e), -1);
    assert_int_equal(e.code, ERR_BUSY);
}

static void overwrite(struct teststore *f, const char *name, off_t at, const char *bytes)
{
    char path[128];
    int fd;

    (void)snprintf(path, sizeof path, "%s/%s", f->dir, name);
    fd = open(path, O_WRONLY);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, bytes, strlen(bytes), at), (ssize_t)strlen(bytes));
    (void)close(fd);
}

static void test_a_damaged_file_is_refused_with_what_to_do(void **state)
{
    struct teststore *f = *state;
    struct store *st = NULL;
    struct err e;

    (void)wait_for(f, put(f, STORE_CREATE, "a", 1));
    teststore_close(f);
    overwrite(f, "store.db", 0, "this is no database");
    assert_int_equal(ev_loop_new(&f->loop, &e), 0);
    assert_int_equal(store_open(f->loop, &(struct store_config){ .dir = f->dir }, &st, &e), -1);
    assert_int_equal(e.code, ERR_INVALID);
    assert_non_null(strstr(e.hint, "backup"));
    ev_loop_free(f->loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_the_head_is_ahead_of_the_disk, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_follows_from_a_write_is_committed_with_it, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(
            test_a_loop_that_is_never_idle_does_not_keep_writes_from_the_disk, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_was_committed_is_there_after_a_restart, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_the_history_keeps_its_bounds_under_load, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_a_write_is_judged_against_the_head, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            test_watches_hear_what_is_on_disk_and_those_of_the_head_at_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_watch_goes_on_where_it_was_also_after_a_restart,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_full_watch_waits_and_one_that_is_too_slow_is_lost,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_an_old_state_can_be_seen_also_after_a_restart, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_two_processes_cannot_have_one_directory, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_a_damaged_file_is_refused_with_what_to_do, set_up,
                                        tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
