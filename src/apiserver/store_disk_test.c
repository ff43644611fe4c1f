/* The store on a disk that loses power, is full, fails or is slow (testdisk.h). */
#include "apiserver/limits.h"
#include "apiserver/testdisk.h"
#include "apiserver/teststore.h"
#include "base/log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define NAMES 12 /* objects of the model */
#define SEEDS                                                                                      \
    60 /* each a directory of its own; SILICA_CUT_SEEDS="7-7" or "1-5000" asks for others */
#define CUTS_PER_SEED 6   /* one after the other on the same files */
#define WRITES_MAX    256 /* of one life */

/* What one write did; those without an acknowledgement may be there after a cut, in order, or not. */
struct change {
    uint64_t version;
    unsigned name;
    int value; /* -1: deleted */
};

struct model {
    int values[NAMES]; /* -1: not there */
    uint64_t versions[NAMES];
    uint64_t acknowledged; /* up to here */
    struct change open[WRITES_MAX];
    size_t open_count;
};

struct fixture {
    struct teststore t;
    uint64_t chance;
    struct model model;
};

static unsigned pick(struct fixture *f, unsigned end)
{
    f->chance = f->chance * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(f->chance >> 33) % end;
}

/* ---- the store ---- */

static bool open_store(struct fixture *f, struct err *e)
{
    struct store_config config = {
        .vfs = TESTDISK, .checkpoint_pages = 8, .history_max = 20, .room_retry_ms = 200
    };

    return teststore_open(&f->t, config, e);
}

static void begin(struct fixture *f, unsigned seed)
{
    *f = (struct fixture){ .chance = seed };
    for (size_t i = 0; i < NAMES; i++)
        f->model.values[i] = -1;
    teststore_begin(&f->t);
    testdisk_init(seed);
}

static void end(struct fixture *f)
{
    teststore_end(&f->t);
    testdisk_done();
}

static int put(struct fixture *f, unsigned name, int value, uint64_t *ret, struct err *e)
{
    OWN(json_doc_done) struct json_doc *doc = NULL;
    OWN(object_done) struct object *o = NULL, *now = NULL;
    enum store_op op = value < 0 ? STORE_DELETE : STORE_UPDATE;
    char text[6000];

    (void)snprintf(text, sizeof text,
                   "{\"metadata\":{\"namespace\":\"n\",\"name\":\"c%u\"},"
                   "\"data\":{\"v\":\"%d\",\"fill\":\"%0*d\"}}",
                   name, value, 1 + (int)pick(f, 5000), 0);
    assert_int_equal(json_parse(span_cstr(text), NULL, &doc, e), 0);
    assert_int_equal(object_parse(f->t.kind, json_doc_root(doc), &o, e), 0);
    if (op == STORE_UPDATE &&
        !store_get(f->t.store, STORE_HEAD, &(struct shelf_key){ f->t.number, "n", object_name(o) }))
        op = STORE_CREATE;
    if (store_write(f->t.store, &(struct store_change){ op, o, op == STORE_DELETE }, &now, e) < 0)
        return -1;
    *ret = object_version(now);
    return 0;
}

struct waited {
    struct store_wait wait;
    struct ev_loop *loop;
    struct err e;
    bool is_failed;
};

static void on_waited(void *ctx, const struct err *e)
{
    struct waited *w = ctx;

    w->is_failed = e != NULL;
    if (e)
        w->e = *e;
    ev_loop_stop(w->loop);
}

/* True: acknowledged. */
static bool commit(struct fixture *f, uint64_t version, struct err *e)
{
    struct waited w = { .loop = f->t.loop };

    store_wait(f->t.store, &w.wait, version, on_waited, &w);
    ev_loop_run(f->t.loop);
    if (w.is_failed)
        *e = w.e;
    return !w.is_failed;
}

/* ---- the model ---- */

static void apply(struct model *m, const struct change *c)
{
    m->values[c->name] = c->value;
    m->versions[c->name] = c->version;
}

static void acknowledge(struct model *m, uint64_t version)
{
    for (size_t i = 0; i < m->open_count; i++)
        apply(m, &m->open[i]);
    m->open_count = 0;
    m->acknowledged = version;
}

/* A few writes at once, as many clients make them; one wait for all. False: the power went. */
static bool write_some(struct fixture *f)
{
    unsigned n = 1 + pick(f, 6);
    uint64_t version = 0;
    struct err e;

    for (unsigned i = 0; i < n; i++) {
        struct change c = { .name = pick(f, NAMES) };
        char name[16];

        (void)snprintf(name, sizeof name, "c%u", c.name);
        c.value =
            store_get(f->t.store, STORE_HEAD, &(struct shelf_key){ f->t.number, "n", name }) &&
                    pick(f, 4) == 0
                ? -1
                : (int)pick(f, 100000);
        if (put(f, c.name, c.value, &c.version, &e) < 0)
            fail_msg("%s", e.msg);
        f->model.open[f->model.open_count++] = c;
        version = c.version;
    }
    if (!commit(f, version, &e))
        return false;
    acknowledge(&f->model, version);
    return true;
}

/* What is there is the acknowledged state and then the first so many of the open writes, whole. */
static void compare(struct fixture *f, unsigned seed)
{
    struct model *m = &f->model;
    uint64_t there = store_version(f->t.store, STORE_COMMITTED);

    if (there < m->acknowledged)
        fail_msg("seed %u: version %llu was acknowledged, %llu is there", seed,
                 (unsigned long long)m->acknowledged, (unsigned long long)there);
    for (size_t i = 0; i < m->open_count && m->open[i].version <= there; i++)
        apply(m, &m->open[i]);
    m->open_count = 0;
    m->acknowledged = there;
    for (unsigned i = 0; i < NAMES; i++) {
        char name[16];
        struct object *o;
        int value;

        (void)snprintf(name, sizeof name, "c%u", i);
        o = store_get(f->t.store, STORE_COMMITTED, &(struct shelf_key){ f->t.number, "n", name });
        value = o ? (int)strtoull(object_text(o, "data.v"), NULL, 10) : -1;
        if (value != m->values[i] || (o && object_version(o) != m->versions[i]))
            fail_msg("seed %u: %s is %d at %llu, should be %d at %llu", seed, name, value,
                     o ? (unsigned long long)object_version(o) : 0ull, m->values[i],
                     (unsigned long long)m->versions[i]);
    }
}

/* ---- the power goes ---- */

static void live_until_the_cut(struct fixture *f, unsigned seed)
{
    struct err e;

    testdisk_cut_after(1 + pick(f, pick(f, 2) ? 40 : 400));
    if (!open_store(f, &e)) {
        if (!testdisk_is_cut())
            fail_msg("seed %u: refused after a cut: %s", seed, e.msg);
    } else {
        compare(f, seed); /* the cut before this one */
        for (unsigned i = 0; i < 36 && write_some(f); i++)
            continue;
        teststore_close(&f->t);
    }
    testdisk_restore();
}

static void test_what_was_acknowledged_survives_a_power_cut_anywhere(void **state)
{
    const char *asked_for = getenv("SILICA_CUT_SEEDS");
    unsigned seed = 1, last = SEEDS;
    struct fixture f;
    struct err e;

    (void)state;
    if (asked_for)
        assert_int_equal(sscanf(asked_for, "%u-%u", &seed, &last), 2);
    for (; seed <= last; seed++) {
        begin(&f, seed);
        for (unsigned i = 0; i < CUTS_PER_SEED; i++)
            live_until_the_cut(&f, seed);
        if (!open_store(&f, &e))
            fail_msg("seed %u: refused at the end: %s", seed, e.msg);
        compare(&f, seed);
        end(&f);
    }
}

/* The judge can see: a disk that lies about its syncs loses acknowledged writes, and that is noticed. */
static void test_a_disk_that_does_not_sync_is_found_out(void **state)
{
    unsigned lost = 0;
    struct err e;

    (void)state;
    for (unsigned seed = 1; seed <= 20; seed++) {
        struct fixture f;

        begin(&f, seed);
        assert_true(open_store(&f, &e));
        testdisk_lie(true);
        for (int i = 0; i < 5; i++)
            assert_true(write_some(&f));
        testdisk_cut_after(1);
        (void)write_some(&f);
        teststore_close(&f.t);
        testdisk_restore();
        testdisk_lie(false);
        if (!open_store(&f, &e) || store_version(f.t.store, STORE_COMMITTED) < f.model.acknowledged)
            lost++;
        end(&f);
    }
    assert_true(lost > 5); /* chance may keep everything now and then */
}

/* ---- the disk fails ---- */

struct head_watch {
    struct store_watch watch;
    unsigned events;
    bool is_lost;
};

static bool on_event(void *ctx, struct store_event *ev)
{
    struct head_watch *w = ctx;

    (void)ev;
    w->events++;
    return true;
}

static void on_lost(void *ctx)
{
    struct head_watch *w = ctx;

    w->is_lost = true;
}

static void watch_head(struct fixture *f, struct head_watch *w)
{
    struct err e;

    *w = (struct head_watch){ .watch = { .kind = f->t.number,
                                         .namespace = "",
                                         .name = "",
                                         .is_head = true,
                                         .on_event = on_event,
                                         .on_lost = on_lost,
                                         .ctx = w } };
    assert_int_equal(store_watch(f->t.store, &w->watch, store_version(f->t.store, STORE_HEAD), &e),
                     0);
}

static void turn(struct fixture *f)
{
    for (int i = 0; i < 4; i++)
        ev_loop_turn(f->t.loop);
}

static void test_a_failed_commit_is_undone_and_told(void **state)
{
    struct fixture f;
    struct head_watch head;
    uint64_t version, before, undone;
    struct err e = { 0 };

    (void)state;
    begin(&f, 1);
    assert_true(open_store(&f, &e));
    assert_int_equal(put(&f, 0, 1, &before, &e), 0);
    assert_true(commit(&f, before, &e));
    watch_head(&f, &head);
    testdisk_fail(TESTDISK_BROKEN, 1);
    assert_int_equal(put(&f, 0, 2, &version, &e), 0);
    assert_false(commit(&f, version, &e));
    assert_int_equal(e.code, ERR_INTERNAL);
    assert_non_null(strstr(e.msg, "disk I/O error"));
    turn(&f);
    assert_true(head.is_lost);
    assert_int_equal(head.events, 1); /* it had been told, and was told that it was not so */
    assert_int_equal(store_version(f.t.store, STORE_HEAD), before);
    assert_true(
        commit(&f, store_version(f.t.store, STORE_HEAD), &e)); /* nobody waits for what is not */
    testdisk_fail(TESTDISK_WELL, 1);
    undone = version;
    assert_int_equal(store_watch(f.t.store, &head.watch, undone, &e), -1);
    assert_int_equal(put(&f, 0, 3, &version, &e), 0);
    assert_true(version > undone); /* not given away a second time */
    assert_true(commit(&f, version, &e));
    assert_false(commit(&f, undone, &e)); /* also when later ones are on disk */
    assert_non_null(strstr(e.msg, "undone"));
    assert_int_equal(store_watch(f.t.store, &head.watch, undone, &e), -1);
    assert_int_equal(e.code, ERR_GONE);
    assert_int_equal(store_watch(f.t.store, &head.watch, before, &e), 0);
    turn(&f);
    assert_int_equal(head.events, 2);
    store_watch_stop(&head.watch);
    end(&f);
}

/* Calls fail now and then: each write is there or was refused, before and after a restart. */
static void test_a_disk_that_fails_now_and_then(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= 30; seed++) {
        struct fixture f;
        unsigned refused = 0;
        struct err e;

        begin(&f, seed);
        assert_true(open_store(&f, &e));
        testdisk_fail(seed % 2 ? TESTDISK_BROKEN : TESTDISK_FULL, 4 + seed % 8);
        for (int i = 0; i < 40; i++) {
            struct change c = { .name = pick(&f, NAMES), .value = (int)pick(&f, 1000) };

            if (put(&f, c.name, c.value, &c.version, &e) < 0 || !commit(&f, c.version, &e)) {
                assert_true(e.code == (seed % 2 ? ERR_INTERNAL : ERR_NO_SPACE));
                refused++;
                continue;
            }
            apply(&f.model, &c);
            f.model.acknowledged = c.version;
            compare(&f, seed);
        }
        testdisk_fail(TESTDISK_WELL, 1);
        teststore_close(&f.t);
        if (!open_store(&f, &e))
            fail_msg("seed %u: %s", seed, e.msg);
        compare(&f, seed);
        assert_true(refused > 0);
        end(&f);
    }
}

/* ---- the disk is full ---- */

static void fill_up(struct fixture *f)
{
    uint64_t version;
    struct err e;

    testdisk_fail(TESTDISK_FULL, 1);
    for (;;) {
        if (put(f, pick(f, NAMES), 1, &version, &e) < 0)
            break;
        if (!commit(f, version, &e))
            break;
    }
    assert_int_equal(e.code, ERR_NO_SPACE);
}

static bool is_full(struct fixture *f)
{
    struct store_stats stats;

    store_stats(f->t.store, &stats);
    return stats.is_full;
}

static void test_on_a_full_disk_reads_go_on_and_writes_after_there_is_room(void **state)
{
    struct fixture f;
    uint64_t version;
    struct err e = { 0 };

    (void)state;
    begin(&f, 7);
    assert_true(open_store(&f, &e));
    assert_int_equal(put(&f, 0, 1, &version, &e), 0);
    assert_true(commit(&f, version, &e));
    fill_up(&f);
    assert_true(is_full(&f));
    assert_int_equal(put(&f, 1, 1, &version, &e), -1);
    assert_int_equal(e.code, ERR_NO_SPACE);
    assert_non_null(strstr(e.msg, "only deletes are accepted"));
    assert_non_null(
        store_get(f.t.store, STORE_COMMITTED, &(struct shelf_key){ f.t.number, "n", "c0" }));
    testdisk_fail(TESTDISK_WELL, 1);
    assert_int_equal(put(&f, 0, -1, &version, &e), 0); /* deletes are tried at any time */
    assert_true(commit(&f, version, &e));
    while (is_full(&f)) /* it looks for room by itself */
        ev_loop_turn(f.t.loop);
    assert_int_equal(put(&f, 1, 1, &version, &e), 0);
    assert_true(commit(&f, version, &e));
    end(&f);
}

/* ---- the disk is slow ---- */

static void test_nobody_is_answered_before_the_sync(void **state)
{
    struct fixture f;
    struct waited w;
    struct store_wait *wait = &w.wait;
    unsigned syncs;
    uint64_t version;
    struct err e;

    (void)state;
    begin(&f, 1);
    assert_true(open_store(&f, &e));
    w = (struct waited){ .loop = f.t.loop };
    testdisk_hold_syncs(true);
    syncs = testdisk_syncs();
    assert_int_equal(put(&f, 0, 1, &version, &e), 0);
    store_wait(f.t.store, wait, version, on_waited, &w);
    while (testdisk_syncs() == syncs)
        ev_loop_turn(f.t.loop);
    for (int i = 0; i < 100; i++)
        ev_loop_turn(f.t.loop);
    assert_non_null(wait->store); /* it waits */
    assert_true(store_version(f.t.store, STORE_COMMITTED) < version);
    assert_null(
        store_get(f.t.store, STORE_COMMITTED, &(struct shelf_key){ f.t.number, "n", "c0" }));
    testdisk_hold_syncs(false);
    ev_loop_run(f.t.loop);
    assert_null(wait->store);
    assert_false(w.is_failed);
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_was_acknowledged_survives_a_power_cut_anywhere),
        cmocka_unit_test(test_a_disk_that_does_not_sync_is_found_out),
        cmocka_unit_test(test_a_failed_commit_is_undone_and_told),
        cmocka_unit_test(test_a_disk_that_fails_now_and_then),
        cmocka_unit_test(test_on_a_full_disk_reads_go_on_and_writes_after_there_is_room),
        cmocka_unit_test(test_nobody_is_answered_before_the_sync),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
