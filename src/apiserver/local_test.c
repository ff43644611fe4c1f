#include "apiserver/limits.h"
#include "apiserver/testdisk.h"
#include "apiserver/testserver.h"
#include "kube/client_suite.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define MAP(name) "{\"metadata\":{\"name\":\"" name "\"}}"

/* ---- what only this implementation promises ---- */

struct seen {
    char text[256];
    int ends, code;
};

static void on_event(void *ctx, enum kube_event type, struct object *o, uint64_t version)
{
    struct seen *s = ctx;
    size_t n = strlen(s->text);

    (void)version;
    (void)snprintf(s->text + n, sizeof s->text - n, "%c%s ", "+~-"[type], object_name(o));
}

static void on_end(void *ctx, const struct status *why)
{
    struct seen *s = ctx;

    s->ends++;
    s->code = why->code;
}

static struct kube_watch *watch(struct testserver *t, struct seen *s, uint64_t from)
{
    static const struct kube_watch_events events = { on_event, on_end };

    return kube_watch_start(t->client,
                            &(struct kube_watch_spec){ .kind = testserver_kind("configmaps"),
                                                       .namespace = "default",
                                                       .from_version = from },
                            &events, s);
}

static void test_a_write_is_seen_before_it_is_on_disk(void **state)
{
    struct testserver t;
    struct seen seen = { 0 };
    struct kube_watch *w;

    (void)state;
    testdisk_init(1);
    testserver_begin(&t, TESTDISK);
    w = watch(&t, &seen, store_version(t.server->store, STORE_HEAD));
    testdisk_hold_syncs(true);
    assert_int_equal(testserver_create(&t, "configmaps", "default", MAP("a"))->code, 0);
    assert_int_equal(testserver_get(&t, "configmaps", "default", "a")->code, 0);
    for (int i = 0; i < 5; i++)
        ev_loop_turn(t.loop);
    assert_string_equal(seen.text, "+a ");
    assert_true(store_version(t.server->store, STORE_COMMITTED) <
                store_version(t.server->store, STORE_HEAD));
    testdisk_hold_syncs(false);
    testserver_settle(&t);
    assert_string_equal(seen.text, "+a ");
    kube_watch_stop(w);
    testserver_end(&t);
    assert_int_equal(seen.ends, 1);
    testdisk_done();
}

struct told {
    size_t n, failed;
};

static void on_told(void *ctx, const struct kube_answer *answer)
{
    struct told *told = ctx;

    told->n++;
    told->failed += answer->refusal != NULL;
}

static void start_writes(struct testserver *t, const struct object *map, size_t count,
                         struct told *told)
{
    for (size_t i = 0; i < count; i++) {
        char patch[64];

        (void)snprintf(patch, sizeof patch, "{\"data\":{\"n\":\"%zu\"}}", told->n + i);
        (void)kube_call_start(t->client,
                              &(struct kube_request){ .verb = KUBE_PATCH,
                                                      .kind = object_kind(map),
                                                      .namespace = object_namespace(map),
                                                      .name = object_name(map),
                                                      .patch = KUBE_PATCH_MERGE,
                                                      .body = span_cstr(patch) },
                              on_told, told);
    }
}

/* Who writes on every answer is held to the disk's pace before memory is full of what waits for it. */
static void test_who_writes_faster_than_the_disk_waits_for_it(void **state)
{
    OWN(object_done) struct object *map = NULL;
    struct told soon = { 0 }, late = { 0 }, lost = { 0 };
    struct testserver t;

    (void)state;
    testdisk_init(1);
    testserver_begin(&t, TESTDISK);
    map = object_ref(testserver_create(&t, "configmaps", "default", MAP("a"))->object);
    testserver_settle(&t);
    testdisk_hold_syncs(true);
    start_writes(&t, map, STORE_PENDING_CALM - 1, &soon);
    while (soon.n < STORE_PENDING_CALM - 1)
        ev_loop_turn(t.loop);
    start_writes(&t, map, STORE_PENDING_CALM, &late); /* one batch of the others is at the disk */
    assert_int_equal(testserver_get(&t, "configmaps", "default", "a")->code, 0);
    assert_in_range(late.n, 0, STORE_BATCH_ROWS_MAX);
    testdisk_hold_syncs(false);
    while (late.n < STORE_PENDING_CALM)
        ev_loop_turn(t.loop);
    assert_int_equal(soon.failed + late.failed, 0);
    testserver_settle(&t);
    testdisk_fail(TESTDISK_BROKEN, 1);
    start_writes(&t, map, STORE_PENDING_CALM + 10, &lost);
    while (lost.n < STORE_PENDING_CALM + 10)
        ev_loop_turn(t.loop);
    assert_in_range(lost.failed, 10, 11); /* those that waited hear that it is not so */
    testdisk_fail(TESTDISK_WELL, 1);
    testserver_end(&t);
    testdisk_done();
}

static void test_watches_end_when_the_disk_takes_a_write_back(void **state)
{
    struct testserver t;
    struct seen seen = { 0 }, again = { 0 };
    uint64_t undone;

    (void)state;
    testdisk_init(1);
    testserver_begin(&t, TESTDISK);
    (void)watch(&t, &seen, store_version(t.server->store, STORE_HEAD));
    testdisk_fail(TESTDISK_BROKEN, 1);
    undone = object_version(testserver_create(&t, "configmaps", "default", MAP("a"))->object);
    while (!seen.ends)
        ev_loop_turn(t.loop);
    assert_string_equal(seen.text, "+a ");
    assert_int_equal(seen.code, 410);
    assert_int_equal(testserver_get(&t, "configmaps", "default", "a")->code, 404);
    (void)watch(&t, &again, undone); /* who has seen it lists again */
    while (!again.ends)
        ev_loop_turn(t.loop);
    assert_int_equal(again.code, 410);
    testdisk_fail(TESTDISK_WELL, 1);
    testserver_end(&t);
    testdisk_done();
}

/* Nobody is told less than happened: what is not known any more is 410. */
static void test_a_watch_from_long_ago_is_refused(void **state)
{
    struct testserver t;
    struct seen seen = { 0 }, ended = { 0 };
    struct kube_watch *w;
    uint64_t first, last = 0;

    (void)state;
    testserver_begin(&t, NULL);
    first = object_version(testserver_create(&t, "configmaps", "default", MAP("a"))->object);
    for (int i = 0; i < STORE_HISTORY_MAX * 3 / 2; i++) {
        char patch[64];

        (void)snprintf(patch, sizeof patch, "{\"data\":{\"n\":\"%d\"}}", i);
        last = object_version(
            testserver_ask(&t, &(struct kube_request){ .verb = KUBE_PATCH,
                                                       .kind = testserver_kind("configmaps"),
                                                       .namespace = "default",
                                                       .name = "a",
                                                       .patch = KUBE_PATCH_MERGE,
                                                       .body = span_cstr(patch) })
                ->object);
    }
    testserver_settle(&t);
    (void)watch(&t, &ended, first);
    w = watch(&t, &seen, last - 2);
    while (!ended.ends || strlen(seen.text) < 6)
        ev_loop_turn(t.loop);
    assert_int_equal(ended.code, 410);
    assert_string_equal(ended.text, "");
    assert_string_equal(seen.text, "~a ~a ");
    kube_watch_stop(w);
    testserver_end(&t);
}

/* ---- what all of them promise ---- */

static struct kube_client *open_client(void *ctx)
{
    return local_client_new(ctx, "suite");
}

static int run_suite(void)
{
    struct testserver t;
    int failed;

    testserver_begin(&t, NULL);
    failed = client_suite_run(
        &(struct client_suite){ .loop = t.loop, .open = open_client, .ctx = t.server });
    testserver_end(&t);
    return failed;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_write_is_seen_before_it_is_on_disk),
        cmocka_unit_test(test_who_writes_faster_than_the_disk_waits_for_it),
        cmocka_unit_test(test_watches_end_when_the_disk_takes_a_write_back),
        cmocka_unit_test(test_a_watch_from_long_ago_is_refused),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);

    return failed + run_suite();
}
