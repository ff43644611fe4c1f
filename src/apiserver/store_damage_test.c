/* Files that are not what they were: refused with what to do, and left as they are; or read without a loss. */
#include "apiserver/testdisk.h"
#include "apiserver/teststore.h"
#include "base/fd.h"

#include <fcntl.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#define OBJECTS   40
#define FILE_MAX  (4 << 20)
#define FLIPS     120 /* places besides the heads, where each byte is tried */
#define HEAD_SPAN 112

struct fixture {
    struct teststore t;
    struct buf main, log;       /* the files as they should be */
    struct buf told;            /* what is in them, in words */
    uint64_t last, before_last; /* versions of the last two transactions */
};

/* ---- files ---- */

static const char *path_of(const struct fixture *f, const char *name)
{
    static char path[128];

    (void)snprintf(path, sizeof path, "%s/%s", f->t.dir, name);
    return path;
}

static void read_to(const struct fixture *f, const char *name, struct buf *to)
{
    struct err e;

    buf_done(to);
    to->max = FILE_MAX;
    if (access(path_of(f, name), F_OK) == 0)
        assert_int_equal(fd_read_file(path_of(f, name), to, &e), 0);
}

static void write_from(const struct fixture *f, const char *name, struct span bytes)
{
    OWN_FD int fd = -1;

    (void)unlink(path_of(f, name));
    if (!bytes.p)
        return;
    fd = open(path_of(f, name), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_int_equal(pwrite(fd, bytes.p, bytes.n, 0), (ssize_t)bytes.n);
}

static void put_files(struct fixture *f, struct span main_file, struct span log)
{
    write_from(f, "store.db", main_file);
    write_from(f, "store.db-wal", log);
    (void)unlink(path_of(f, "store.db-shm"));
}

static bool is_on_disk(struct fixture *f, const char *name, struct span bytes)
{
    OWN(buf_done) struct buf there = BUF_INIT(FILE_MAX);

    read_to(f, name, &there);
    return span_eq(buf_span(&there), bytes);
}

/* ---- the store ---- */

static bool open_store(struct fixture *f, struct err *e)
{
    testdisk_init(1);
    return teststore_open(&f->t, (struct store_config){ .vfs = TESTDISK }, e);
}

static void on_waited(void *ctx, const struct err *e)
{
    assert_null(e);
    ev_loop_stop(ctx);
}

/* One transaction. */
static uint64_t put(struct fixture *f, enum store_op op, unsigned i, unsigned value)
{
    OWN(json_doc_done) struct json_doc *doc = NULL;
    OWN(object_done) struct object *o = NULL, *now = NULL;
    struct store_wait wait = { 0 };
    char text[6000];
    struct err e;

    (void)snprintf(text, sizeof text,
                   "{\"metadata\":{\"namespace\":\"n\",\"name\":\"c%u\"},"
                   "\"data\":{\"v\":\"%u\",\"fill\":\"%0*d\"}}",
                   i, value, (int)(1 + i * 113 % 5000), 0);
    assert_int_equal(json_parse(span_cstr(text), NULL, &doc, &e), 0);
    assert_int_equal(object_parse(f->t.kind, json_doc_root(doc), &o, &e), 0);
    assert_int_equal(store_write(f->t.store, &(struct store_change){ op, o }, &now, &e), 0);
    store_wait(f->t.store, &wait, object_version(now), on_waited, f->t.loop);
    ev_loop_run(f->t.loop);
    return object_version(now);
}

static void tell(struct fixture *f, struct buf *out)
{
    uint64_t version;
    struct shelf *shelf = store_snapshot(f->t.store, STORE_COMMITTED, &version);
    struct shelf_key first = { 0, "", "" };
    struct shelf_walk walk;
    struct object *o;
    struct err e;

    buf_done(out);
    out->max = FILE_MAX;
    (void)buf_addf(out, &e, "%llu", (unsigned long long)version);
    shelf_walk_init(&walk, shelf, &first, false);
    while ((o = shelf_walk_next(&walk, NULL)))
        (void)buf_addf(out, &e, " %s=%s@%llu:%zu", object_name(o), object_text(o, "data.v"),
                       (unsigned long long)object_version(o), strlen(object_text(o, "data.fill")));
    shelf_unref(shelf);
}

static void fill(struct fixture *f)
{
    for (unsigned i = 0; i < OBJECTS; i++)
        (void)put(f, STORE_CREATE, i, i);
    for (unsigned i = 0; i < OBJECTS; i += 4)
        (void)put(f, i % 8 ? STORE_UPDATE : STORE_DELETE, i, 1000 + i);
    f->before_last = put(f, STORE_CREATE, OBJECTS, 1);
    f->last = put(f, STORE_CREATE, OBJECTS + 1, 1);
}

/* Everything is in the file, or in the log as a killed process leaves it. */
static void begin(struct fixture *f, bool is_in_log)
{
    struct err e;

    *f = (struct fixture){ 0 };
    teststore_begin(&f->t);
    assert_true(open_store(f, &e));
    fill(f);
    tell(f, &f->told);
    if (is_in_log) {
        read_to(f, "store.db", &f->main);
        read_to(f, "store.db-wal", &f->log);
        assert_true(f->log.n > 100000);
    }
    teststore_close(&f->t);
    if (!is_in_log)
        read_to(f, "store.db", &f->main);
}

static void end(struct fixture *f)
{
    teststore_end(&f->t);
    buf_done(&f->main);
    buf_done(&f->log);
    buf_done(&f->told);
    testdisk_done();
}

/* ---- verdicts ---- */

enum verdict { REFUSED, SAME, SHORTER };

/* Opens these files. A refusal leaves them as they are and says what to do; else all is there, or all but the last write. */
static enum verdict try(struct fixture *f, struct span main_file, struct span log, const char *what)
{
    OWN(buf_done) struct buf told = BUF_INIT(FILE_MAX);
    struct err e = { 0 };
    uint64_t version;
    bool is_same;

    put_files(f, main_file, log);
    if (!open_store(f, &e)) {
        if (e.code != ERR_INVALID && e.code != ERR_UNSUPPORTED)
            fail_msg("%s: refused for a strange reason: %s", what, e.msg);
        if (!*e.hint)
            fail_msg("%s: no hint: %s", what, e.msg);
        if (!is_on_disk(f, "store.db", main_file) || !is_on_disk(f, "store.db-wal", log))
            fail_msg("%s: refused, and the files were changed: %s", what, e.msg);
        return REFUSED;
    }
    tell(f, &told);
    version = store_version(f->t.store, STORE_COMMITTED);
    teststore_close(&f->t);
    is_same = span_eq(buf_span(&told), buf_span(&f->told));
    if (!is_same && !(log.n && version == f->before_last))
        fail_msg("%s: opened, and something is missing: version %llu of %llu", what,
                 (unsigned long long)version, (unsigned long long)f->last);
    return is_same ? SAME : SHORTER;
}

static unsigned flip_all(struct fixture *f, struct buf *victim, enum verdict *ret_first)
{
    unsigned refused = 0;
    size_t step = victim->n / FLIPS;

    for (size_t at = 0; at < victim->n; at += at < HEAD_SPAN ? 1 : step) {
        enum verdict v;
        char what[64];

        (void)snprintf(what, sizeof what, "byte %zu of %s flipped", at,
                       victim == &f->log ? "the log" : "the file");
        victim->p[at] ^= (uint8_t)(1u << at % 8);
        v = try(f, buf_span(&f->main), buf_span(&f->log), what);
        victim->p[at] ^= (uint8_t)(1u << at % 8);
        refused += v == REFUSED;
        if (at == 0)
            *ret_first = v;
    }
    return refused;
}

static void test_flipped_bytes_of_the_file_lose_nothing_unnoticed(void **state)
{
    struct fixture f;
    enum verdict first;

    (void)state;
    begin(&f, false);
    assert_int_equal(try(&f, buf_span(&f.main), SPAN_NONE, "as it was"), SAME);
    assert_true(flip_all(&f, &f.main, &first) > FLIPS / 2);
    assert_int_equal(first, REFUSED);
    end(&f);
}

static void test_flipped_bytes_of_the_log_lose_no_more_than_a_power_cut(void **state)
{
    struct fixture f;
    enum verdict first;

    (void)state;
    begin(&f, true);
    assert_int_equal(try(&f, buf_span(&f.main), buf_span(&f.log), "as it was"), SAME);
    assert_true(flip_all(&f, &f.log, &first) > FLIPS / 2);
    assert_int_equal(first, REFUSED);
    end(&f);
}

static void test_a_file_that_was_cut_short_is_refused(void **state)
{
    struct fixture f;

    (void)state;
    begin(&f, false);
    for (size_t n = 0; n < f.main.n; n += n < 4096 ? 500 : 4096) {
        char what[64];

        (void)snprintf(what, sizeof what, "cut to %zu bytes", n);
        assert_int_equal(try(&f, span_slice(buf_span(&f.main), 0, n), SPAN_NONE, what), REFUSED);
    }
    end(&f);
}

static void test_a_log_without_its_file_is_refused(void **state)
{
    struct fixture f;

    (void)state;
    begin(&f, true);
    assert_int_equal(try(&f, SPAN_NONE, buf_span(&f.log), "a log alone"), REFUSED);
    end(&f);
}

static void test_what_is_no_store_is_refused(void **state)
{
    struct fixture f;
    struct span text = SPAN("apiVersion: v1\nkind: List\nitems: []\n# not a database at all\n");

    (void)state;
    begin(&f, false);
    assert_int_equal(try(&f, text, SPAN_NONE, "a text"), REFUSED);
    end(&f);
}

/* ---- formats ---- */

static void run_sql(struct fixture *f, const char *sql)
{
    sqlite3 *db = NULL;

    assert_int_equal(sqlite3_open(path_of(f, "store.db"), &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
        fail_msg("%s", sqlite3_errmsg(db));
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void change_file(struct fixture *f, const char *sql)
{
    put_files(f, buf_span(&f->main), SPAN_NONE);
    run_sql(f, sql);
    read_to(f, "store.db", &f->main);
}

static void test_another_programs_database_is_left_alone(void **state)
{
    struct fixture f;

    (void)state;
    begin(&f, false);
    (void)unlink(path_of(&f, "store.db"));
    run_sql(&f, "PRAGMA journal_mode=DELETE; CREATE TABLE t(x); INSERT INTO t VALUES(1);");
    read_to(&f, "store.db", &f.main);
    assert_int_equal(try(&f, buf_span(&f.main), SPAN_NONE, "another program's"), REFUSED);
    end(&f);
}

static void test_a_newer_format_is_refused(void **state)
{
    struct fixture f;
    struct err e = { 0 };

    (void)state;
    begin(&f, false);
    change_file(&f, "PRAGMA user_version=3");
    assert_int_equal(try(&f, buf_span(&f.main), SPAN_NONE, "format 3"), REFUSED);
    assert_false(open_store(&f, &e));
    assert_int_equal(e.code, ERR_UNSUPPORTED);
    assert_non_null(strstr(e.msg, "has format 3, this program knows formats up to 2"));
    end(&f);
}

static const char to_format_1[] =
    "CREATE TABLE meta(key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;"
    "INSERT INTO meta SELECT 'compacted', compacted FROM state; DROP TABLE state;"
    "PRAGMA user_version=1;";

static void test_format_1_becomes_todays(void **state)
{
    struct fixture f;
    struct err e = { 0 };

    (void)state;
    begin(&f, false);
    change_file(&f, to_format_1);
    assert_int_equal(try(&f, buf_span(&f.main), SPAN_NONE, "format 1"), SAME);
    assert_true(open_store(&f, &e)); /* and again, as what it is now */
    assert_true(put(&f, STORE_CREATE, OBJECTS + 2, 1) > f.last);
    end(&f);
}

/* The power goes while it is being converted: it is of either format, and whole. */
static void test_a_cut_conversion_begins_again(void **state)
{
    struct fixture f;
    struct err e = { 0 };

    (void)state;
    begin(&f, false);
    change_file(&f, to_format_1);
    for (unsigned calls = 1; calls < 40; calls++) {
        put_files(&f, buf_span(&f.main), SPAN_NONE);
        testdisk_init(calls);
        testdisk_know(path_of(&f, "store.db"));
        testdisk_cut_after(calls);
        if (teststore_open(&f.t, (struct store_config){ .vfs = TESTDISK }, &e))
            teststore_close(&f.t);
        testdisk_restore();
        if (!open_store(&f, &e))
            fail_msg("cut after %u calls: %s", calls, e.msg);
        assert_int_equal(store_version(f.t.store, STORE_COMMITTED), f.last);
        teststore_close(&f.t);
    }
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flipped_bytes_of_the_file_lose_nothing_unnoticed),
        cmocka_unit_test(test_flipped_bytes_of_the_log_lose_no_more_than_a_power_cut),
        cmocka_unit_test(test_a_file_that_was_cut_short_is_refused),
        cmocka_unit_test(test_a_log_without_its_file_is_refused),
        cmocka_unit_test(test_what_is_no_store_is_refused),
        cmocka_unit_test(test_another_programs_database_is_left_alone),
        cmocka_unit_test(test_a_newer_format_is_refused),
        cmocka_unit_test(test_format_1_becomes_todays),
        cmocka_unit_test(test_a_cut_conversion_begins_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
