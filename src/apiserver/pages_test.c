#include "apiserver/pages.h"

#include "apiserver/teststore.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct fixture {
    struct teststore t;
    struct snapshots snapshots;
    struct selection want;
};

static void put(struct fixture *f, enum store_op op, const char *namespace, const char *name)
{
    OWN(json_doc_done) struct json_doc *doc = NULL;
    OWN(object_done) struct object *o = NULL, *now = NULL;
    char text[256];
    struct err e;

    (void)snprintf(
        text, sizeof text,
        "{\"metadata\":{\"namespace\":\"%s\",\"name\":\"%s\",\"labels\":{\"first\":\"%c\"}}}",
        namespace, name, name[0]);
    assert_int_equal(json_parse(span_cstr(text), NULL, &doc, &e), 0);
    assert_int_equal(object_parse(f->t.kind, json_doc_root(doc), &o, &e), 0);
    if (store_write(f->t.store, &(struct store_change){ op, o, false }, &now, &e) < 0)
        fail_msg("%s", e.msg);
}

static int set_up(void **state)
{
    struct fixture *f = NEW(struct fixture);
    struct err e;

    teststore_begin(&f->t);
    if (!teststore_open(&f->t, (struct store_config){ 0 }, &e))
        fail_msg("%s", e.msg);
    f->want = (struct selection){ .kind = f->t.number, .namespace = "" };
    put(f, STORE_CREATE, "m", "a1");
    put(f, STORE_CREATE, "m", "b1");
    put(f, STORE_CREATE, "m", "a2");
    put(f, STORE_CREATE, "k", "a9");
    put(f, STORE_CREATE, "z", "b9");
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    selection_done(&f->want);
    snapshots_done(&f->snapshots);
    teststore_end(&f->t);
    free(f);
    return 0;
}

static void select_by(struct fixture *f, const char *namespace, const char *labels)
{
    OWN(status_done) struct status st = STATUS_INIT;
    struct op op = { .kind = f->t.kind, .namespace = namespace };

    selection_done(&f->want);
    assert_int_equal(selection_init(&f->want, &op, labels, NULL, &st), 0);
}

static struct pages_ask ask_for(struct fixture *f)
{
    return (struct pages_ask){
        .store = f->t.store, .view = STORE_HEAD, .snapshots = &f->snapshots, .now_ms = 1000
    };
}

/* The names that come, each with a blank behind it; `each` objects are looked at in one go. */
static const char *walk(struct pages *p, size_t each)
{
    static char text[256];
    size_t n = 0;

    text[0] = '\0';
    while (!p->is_over) {
        size_t budget = each;
        struct object *o = pages_next(p, &budget);

        if (o)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s ", object_name(o));
    }
    return text;
}

static const char *names(struct fixture *f, const struct pages_ask *ask, size_t each)
{
    OWN(status_done) struct status st = STATUS_INIT;
    struct pages p;
    const char *text;

    if (pages_open(&p, &f->want, ask, &st) < 0)
        fail_msg("%d %s", st.code, buf_cstr(&st.message));
    text = walk(&p, each);
    pages_done(&p);
    return text;
}

static void test_a_walk_holds_what_is_selected(void **state)
{
    static const struct {
        const char *namespace, *labels, *want;
    } rows[] = {
        { "", NULL, "a9 a1 a2 b1 b9 " }, { "m", NULL, "a1 a2 b1 " }, { "m", "first=a", "a1 a2 " },
        { "", "first=b", "b1 b9 " },     { "k", "first=b", "" },     { "l", NULL, "" },
    };
    struct fixture *f = *state;
    struct pages_ask ask = ask_for(f);

    EACH(r, rows) {
        select_by(f, r->namespace, r->labels);
        assert_string_equal(names(f, &ask, SIZE_MAX), r->want);
        assert_string_equal(names(f, &ask, 1), r->want); /* in the smallest slices too */
    }
}

static void test_what_is_left_is_counted(void **state)
{
    struct fixture *f = *state;
    struct shelf_key after = { f->t.number, "m", "a1" }, gone = { f->t.number, "m", "a11" };
    struct pages p;

    pages_init(&p, &f->want, store_snapshot(f->t.store, STORE_HEAD, NULL), 1, NULL);
    assert_int_equal(p.left, 5);
    pages_done(&p);
    select_by(f, "m", NULL);
    pages_init(&p, &f->want, store_snapshot(f->t.store, STORE_HEAD, NULL), 1, NULL);
    assert_int_equal(p.left, 3);
    pages_done(&p);
    pages_init(&p, &f->want, store_snapshot(f->t.store, STORE_HEAD, NULL), 1, &after);
    assert_int_equal(p.left, 2);
    assert_string_equal(walk(&p, 2), "a2 b1 ");
    pages_done(&p);
    pages_init(&p, &f->want, store_snapshot(f->t.store, STORE_HEAD, NULL), 1, &gone);
    assert_int_equal(p.left, 2); /* the one it goes on behind need not be there */
    assert_string_equal(walk(&p, 2), "a2 b1 ");
    pages_done(&p);
}

static void test_a_token_goes_on_in_the_state_it_names(void **state)
{
    OWN(buf_done) struct buf token = BUF_INIT(PAGES_TOKEN_MAX_BYTES);
    OWN(status_done) struct status st = STATUS_INIT;
    struct fixture *f = *state;
    struct pages_ask ask = ask_for(f);
    struct shelf_key key = { f->t.number, "m", "a1" };
    struct pages p;
    uint64_t version;
    struct shelf *shelf = store_snapshot(f->t.store, STORE_HEAD, &version);
    struct err e;

    assert_int_equal(pages_token_write(version, shelf_get(shelf, &key), &token, &e), 0);
    snapshots_keep(&f->snapshots, shelf, version, ask.now_ms);
    shelf_unref(shelf);
    put(f, STORE_DELETE, "m", "b1");
    put(f, STORE_CREATE, "m", "c1");
    ask.next = buf_cstr(&token);
    assert_string_equal(names(f, &ask, SIZE_MAX), "a2 b1 b9 ");
    ask.version = "0"; /* as clients send it along */
    assert_string_equal(names(f, &ask, SIZE_MAX), "a2 b1 b9 ");
    ask.version = "3";
    assert_int_equal(pages_open(&p, &f->want, &ask, &st), -1);
    assert_int_equal(st.code, 400);
    ask.version = NULL;
    ask.now_ms += SNAPSHOT_KEEP_MS + 1;
    status_clear(&st);
    assert_int_equal(pages_open(&p, &f->want, &ask, &st), -1);
    assert_int_equal(st.code, 410);
    assert_string_equal(st.reason, "Expired");
}

static void test_tokens_of_others_are_refused(void **state)
{
    static const char *const texts[] = {
        "x",
        "bm90IGpzb24=",
        "e30=",                             /* {} */
        "eyJ2Ijoic2lsaWNhLzEifQ==",         /* {"v":"silica/1"} */
        "eyJ2IjoibWV0YS5rOHMuaW8vdjEifQ==", /* the public server's */
        "eyJ2Ijoic2lsaWNhLzEiLCJydiI6LTEsIm5zIjoiIiwibmFtZSI6IiJ9",
    };
    struct fixture *f = *state;
    struct pages_ask ask = ask_for(f);
    struct pages p;

    EACH(text, texts) {
        OWN(status_done) struct status st = STATUS_INIT;

        ask.next = *text;
        assert_int_equal(pages_open(&p, &f->want, &ask, &st), -1);
        assert_int_equal(st.code, 400);
    }
}

static void test_which_version_is_asked_for(void **state)
{
    static const struct {
        const char *version, *match;
        bool has_initial_events;
        int code;
        const char *want;
    } rows[] = {
        { NULL, NULL, false, 0, "a9 a1 a2 b1 b9 " },
        { "", "", false, 0, "a9 a1 a2 b1 b9 " },
        { "0", NULL, false, 0, "a9 a1 a2 b1 b9 " },
        { "3", "NotOlderThan", false, 0, "a9 a1 a2 b1 b9 " },
        { "5", "Exact", false, 0, "a9 a1 a2 b1 b9 " },
        { "x", NULL, false, 400, NULL },
        { "-1", NULL, false, 400, NULL },
        { "6", NULL, false, 504, NULL },
        { "0", "Exact", false, 422, NULL },
        { NULL, "Exact", false, 422, NULL },
        { "3", "Sometimes", false, 422, NULL },
        { NULL, NULL, true, 422, NULL },
    };
    struct fixture *f = *state;

    assert_int_equal(store_version(f->t.store, STORE_HEAD), 5);
    EACH(r, rows) {
        OWN(status_done) struct status st = STATUS_INIT;
        struct pages_ask ask = ask_for(f);
        struct pages p;

        ask.version = r->version;
        ask.match = r->match;
        ask.has_initial_events = r->has_initial_events;
        if (!r->code) {
            assert_string_equal(names(f, &ask, SIZE_MAX), r->want);
            continue;
        }
        assert_int_equal(pages_open(&p, &f->want, &ask, &st), -1);
        if (st.code != r->code)
            fail_msg("\"%s\": %d %s", r->version, st.code, buf_cstr(&st.message));
    }
}

static void test_an_old_state_is_asked_for(void **state)
{
    OWN(status_done) struct status st = STATUS_INIT;
    struct fixture *f = *state;
    struct pages_ask ask = ask_for(f);
    struct pages p;

    while (store_version(f->t.store, STORE_COMMITTED) < 5)
        ev_loop_turn(f->t.loop);
    ask.match = "Exact";
    ask.version = "2";
    assert_string_equal(names(f, &ask, SIZE_MAX), "a1 b1 ");
    ask.version = "4";
    assert_string_equal(names(f, &ask, SIZE_MAX), "a9 a1 a2 b1 ");
    assert_int_equal(pages_open(&p, &f->want, &ask, &st), 0);
    assert_int_equal(p.version, 4);
    pages_done(&p);
}

static void test_what_an_event_is_to_who_selects(void **state)
{
    /* labels before and after; NULL: not there */
    static const struct {
        const char *before, *after;
        bool is_told;
        enum event_type type;
        const char *shown;
    } rows[] = {
        { NULL, "a", true, EVENT_ADDED, "a" },   { NULL, "b", false, 0, NULL },
        { "a", "a", true, EVENT_MODIFIED, "a" }, { "b", "a", true, EVENT_ADDED, "a" },
        { "a", "b", true, EVENT_DELETED, "a" },  { "b", "b", false, 0, NULL },
        { "a", NULL, true, EVENT_DELETED, "a" }, { "b", NULL, false, 0, NULL },
    };
    struct fixture *f = *state;
    uint64_t version;
    struct shelf *shelf = store_snapshot(f->t.store, STORE_HEAD, &version);
    struct object *objects[2] = {
        shelf_get(shelf, &(struct shelf_key){ f->t.number, "m", "a1" }),
        shelf_get(shelf, &(struct shelf_key){ f->t.number, "m", "b1" }),
    };

    select_by(f, "m", "first=a");
    EACH(r, rows) {
        struct object *before = r->before ? objects[r->before[0] - 'a'] : NULL;
        struct object *after = r->after ? objects[r->after[0] - 'a'] : NULL;
        struct store_event ev = { .type = !before ? EVENT_ADDED
                                          : after ? EVENT_MODIFIED
                                                  : EVENT_DELETED,
                                  .version = 77,
                                  .before = before,
                                  .now = after ? after : before };
        OWN(object_done) struct object *shown = NULL;
        enum event_type type;

        assert_int_equal(selection_judge(&f->want, &ev, &type, &shown), r->is_told);
        if (!r->is_told)
            continue;
        assert_int_equal(type, r->type);
        assert_string_equal(object_label(shown, "first"), r->shown);
        if (type == EVENT_DELETED && after) /* as it was, at the version at which it went */
            assert_int_equal(object_version(shown), 77);
    }
    shelf_unref(shelf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_walk_holds_what_is_selected, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_is_left_is_counted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_token_goes_on_in_the_state_it_names, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_tokens_of_others_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_which_version_is_asked_for, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_an_old_state_is_asked_for, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_an_event_is_to_who_selects, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
