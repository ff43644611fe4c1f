#include "kube/informer.h"

#include "kube/testserver.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { BY_NAMESPACE, BY_COLOR, BY_NODE, BY_OWNER };

static const struct informer_index indexes[] = {
    [BY_NAMESPACE] = { informer_keys_namespace, NULL, false },
    [BY_COLOR] = { informer_keys_label, "color", false },
    [BY_NODE] = { informer_keys_path, "spec.nodeName", true },
    [BY_OWNER] = { informer_keys_owner, NULL, false },
};

/* What a listener heard: "+a1! " added (initial), "~a1>2 " changed, "-a2 " gone, "S " synced. */
struct ear {
    char text[1024];
};

static void hear(struct ear *ear, const char *fmt, ...) PRINTF(2, 3);
static void hear(struct ear *ear, const char *fmt, ...)
{
    size_t n = strlen(ear->text);
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(ear->text + n, sizeof ear->text - n, fmt, ap);
    va_end(ap);
}

static void on_add(void *ctx, struct object *o, bool is_initial)
{
    hear(ctx, "+%s%llu%s ", object_name(o), (unsigned long long)object_version(o),
         is_initial ? "!" : "");
}

static void on_update(void *ctx, struct object *old, struct object *now)
{
    hear(ctx, "~%s%llu>%llu ", object_name(now), (unsigned long long)object_version(old),
         (unsigned long long)object_version(now));
}

static void on_delete(void *ctx, struct object *last)
{
    hear(ctx, "-%s%llu ", object_name(last), (unsigned long long)object_version(last));
}

static void on_synced(void *ctx)
{
    hear(ctx, "S ");
}

static const struct informer_listener listener = { on_add, on_update, on_delete, on_synced };

struct fixture {
    struct testserver server;
    struct informer *inf;
    struct ear ear;
};

/* Pods "a".."z" of namespace "n", with the letter as uid. */
static struct object *pod(const char *name, uint64_t version, const char *more)
{
    char json[512];

    (void)snprintf(json, sizeof json,
                   "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"n\",\"uid\":\"u%s\","
                   "\"resourceVersion\":\"%llu\"%s}}",
                   name, name, (unsigned long long)version, more);
    return testserver_object(kind_find("", "v1", "pods"), json);
}

static struct object *colored(const char *name, uint64_t version, const char *color)
{
    char more[64];

    (void)snprintf(more, sizeof more, ",\"labels\":{\"color\":\"%s\"}", color);
    return pod(name, version, more);
}

static void open_informer(struct fixture *f, struct informer_spec spec)
{
    struct err e;

    *f = (struct fixture){ 0 };
    testserver_init(&f->server);
    spec.kind = kind_find("", "v1", "pods");
    spec.indexes = indexes;
    spec.index_count = LEN(indexes);
    if (informer_new(&f->server.base, &spec, &f->inf, &e) < 0)
        fail_msg("%s", e.msg);
    informer_listen(f->inf, &listener, &f->ear);
    informer_start(f->inf);
}

static void close_informer(struct fixture *f)
{
    informer_close(f->inf);
    testserver_done(&f->server);
}

/* Takes the references. */
static void list(struct fixture *f, uint64_t version, struct object *a, struct object *b)
{
    struct object *items[] = { a, b };

    testserver_list(&f->server, version, NULL, items, a ? b ? 2 : 1 : 0);
    object_unref(a);
    object_unref(b);
}

/* Takes the reference. */
static void event(struct fixture *f, enum kube_event type, struct object *o, uint64_t version)
{
    testserver_event(&f->server, type, o, version);
    object_unref(o);
}

static void learn(struct fixture *f, struct object *o)
{
    informer_learn(f->inf, o);
    object_unref(o);
}

static void heard(struct fixture *f, const char *want)
{
    testserver_turns(&f->server, 2);
    assert_string_equal(f->ear.text, want);
    f->ear.text[0] = '\0';
}

static uint64_t version_of(struct fixture *f, const char *name)
{
    struct object *o = informer_get(f->inf, "n", name);

    return o ? object_version(o) : 0;
}

/* The names under a key, in the order of the alphabet. */
static const char *found(struct fixture *f, size_t index, const char *namespace, const char *key)
{
    static char names[64];
    OWN(informer_walk_done) struct informer_walk w = { 0 };
    size_t n = 0;
    struct object *o;

    informer_walk(&w, f->inf, index, namespace, key);
    while ((o = informer_walk_next(&w)))
        names[n++] = object_name(o)[0];
    names[n] = '\0';
    for (size_t i = 1; i < n; i++)
        for (size_t j = i; j && names[j - 1] > names[j]; j--) {
            char swap = names[j];

            names[j] = names[j - 1];
            names[j - 1] = swap;
        }
    assert_int_equal(informer_count_of(f->inf, index, namespace, key), n);
    return names;
}

static void test_a_list_then_a_watch_keep_the_copy_up(void **state)
{
    struct fixture f;

    (void)state;
    open_informer(&f, (struct informer_spec){ 0 });
    assert_false(informer_is_synced(f.inf));
    list(&f, 10, pod("a", 3, ""), pod("b", 4, ""));
    assert_true(informer_is_synced(f.inf));
    assert_int_equal(f.server.watched_from, 10);
    heard(&f, "+a3! +b4! S ");
    event(&f, KUBE_MODIFIED, pod("a", 11, ""), 11);
    event(&f, KUBE_ADDED, pod("c", 12, ""), 12);
    event(&f, KUBE_DELETED, pod("b", 13, ""), 13);
    assert_int_equal(version_of(&f, "a"), 11); /* the copy first, listeners later */
    assert_string_equal(f.ear.text, "");
    heard(&f, "~a3>11 +c12 -b13 ");
    assert_int_equal(informer_count(f.inf), 2);
    assert_null(informer_get(f.inf, "n", "b"));
    assert_null(informer_get(f.inf, "other", "a"));
    close_informer(&f);
}

static void test_pages_are_one_list(void **state)
{
    struct fixture f;
    struct object *a;

    (void)state;
    open_informer(&f, (struct informer_spec){ 0 });
    a = pod("a", 3, "");
    testserver_list(&f.server, 10, "more", &a, 1);
    object_unref(a);
    assert_false(informer_is_synced(f.inf));
    assert_string_equal(f.server.calls[0]->next, "more");
    list(&f, 10, pod("b", 4, ""), NULL);
    assert_true(informer_is_synced(f.inf));
    heard(&f, "+a3! +b4! S ");
    close_informer(&f);
}

static void test_after_410_the_difference_is_told(void **state)
{
    struct fixture f;

    (void)state;
    open_informer(&f, (struct informer_spec){ 0 });
    list(&f, 10, pod("a", 3, ""), pod("b", 4, ""));
    event(&f, KUBE_ADDED, pod("c", 11, ""), 11);
    heard(&f, "+a3! +b4! S +c11 ");
    testserver_end_watch(&f.server, 410);
    assert_int_equal(informer_count(f.inf), 3); /* still readable */
    list(&f, 50, pod("b", 40, ""), pod("c", 11, ""));
    heard(&f, "~b4>40 -a3 ");
    assert_int_equal(f.server.watched_from, 50);
    close_informer(&f);
}

static void test_a_name_that_is_another_object_now_goes_and_comes(void **state)
{
    struct fixture f;
    struct object *again;

    (void)state;
    open_informer(&f, (struct informer_spec){ 0 });
    list(&f, 10, pod("a", 3, ""), NULL);
    heard(&f, "+a3! S ");
    again = testserver_object(kind_find("", "v1", "pods"),
                              "{\"metadata\":{\"name\":\"a\",\"namespace\":\"n\",\"uid\":\"x\","
                              "\"resourceVersion\":\"60\"}}");
    testserver_end_watch(&f.server, 410);
    list(&f, 70, again, NULL);
    heard(&f, "-a3 +a60 ");
    close_informer(&f);
}

static void test_refusals_are_tried_again(void **state)
{
    struct fixture f;

    (void)state;
    open_informer(&f, (struct informer_spec){ 0 });
    testserver_refuse(&f.server, KUBE_LIST, 403);
    testserver_refuse(&f.server, KUBE_LIST, 0);
    assert_false(informer_is_synced(f.inf));
    list(&f, 10, pod("a", 3, ""), NULL);
    heard(&f, "+a3! S ");
    close_informer(&f);
}

static void test_what_we_wrote_is_there_at_once_and_older_events_do_not_undo_it(void **state)
{
    struct fixture f;

    (void)state;
    open_informer(&f, (struct informer_spec){ 0 });
    list(&f, 10, pod("a", 3, ""), NULL);
    heard(&f, "+a3! S ");
    learn(&f, pod("a", 20, ""));
    learn(&f, pod("b", 21, ""));
    assert_int_equal(version_of(&f, "a"), 20);
    assert_int_equal(version_of(&f, "b"), 21);
    event(&f, KUBE_MODIFIED, pod("a", 15, ""), 15);
    event(&f, KUBE_MODIFIED, pod("a", 20, ""), 20);
    event(&f, KUBE_ADDED, pod("b", 21, ""), 21);
    heard(&f, "~a3>20 +b21 ");
    learn(&f, pod("a", 19, ""));
    assert_int_equal(version_of(&f, "a"), 20);
    event(&f, KUBE_DELETED, pod("a", 22, ""), 22);
    learn(&f, pod("a", 20, "")); /* the watch is past it: no ghost */
    assert_null(informer_get(f.inf, "n", "a"));
    heard(&f, "-a22 ");
    close_informer(&f);
}

static void test_a_new_object_of_our_own_survives_the_old_ones_end(void **state)
{
    struct fixture f;

    (void)state;
    open_informer(&f, (struct informer_spec){ 0 });
    list(&f, 10, pod("a", 3, ""), NULL);
    learn(&f, testserver_object(kind_find("", "v1", "pods"),
                                "{\"metadata\":{\"name\":\"a\",\"namespace\":\"n\",\"uid\":\"x\","
                                "\"resourceVersion\":\"30\"}}"));
    event(&f, KUBE_DELETED, pod("a", 25, ""), 25);
    heard(&f, "+a3! S -a3 +a30 ");
    assert_int_equal(version_of(&f, "a"), 30);
    close_informer(&f);
}

static void test_a_list_under_way_does_not_hide_what_we_wrote_meanwhile(void **state)
{
    struct fixture f;

    (void)state;
    open_informer(&f, (struct informer_spec){ 0 });
    learn(&f, pod("a", 20, ""));
    learn(&f, pod("b", 21, ""));
    learn(&f, pod("c", 9, "")); /* gone again when the list was made */
    list(&f, 10, pod("a", 3, ""), NULL);
    heard(&f, "+a20! +b21! +c9! -c9 S ");
    assert_int_equal(version_of(&f, "a"), 20);
    assert_int_equal(version_of(&f, "b"), 21);
    close_informer(&f);
}

static void test_what_was_undone_goes_back_with_the_next_list(void **state)
{
    struct fixture f;

    (void)state;
    open_informer(&f, (struct informer_spec){ 0 });
    list(&f, 10, pod("a", 3, ""), NULL);
    learn(&f, pod("a", 20, "")); /* the disk failed: it never happened */
    learn(&f, pod("b", 21, ""));
    testserver_end_watch(&f.server, 410);
    list(&f, 10, pod("a", 3, ""), NULL);
    heard(&f, "+a3! S ~a3>20 +b21 ~a20>3 -b21 ");
    event(&f, KUBE_MODIFIED, pod("a", 11, ""), 11);
    assert_int_equal(version_of(&f, "a"), 11);
    close_informer(&f);
}

static void test_indexes_follow_their_objects(void **state)
{
    struct fixture f;
    struct object *o;

    (void)state;
    open_informer(&f, (struct informer_spec){ 0 });
    list(&f, 10, colored("a", 3, "red"), colored("b", 4, "red"));
    assert_string_equal(found(&f, BY_COLOR, "n", "red"), "ab");
    assert_string_equal(found(&f, BY_COLOR, "other", "red"), "");
    assert_string_equal(found(&f, BY_NAMESPACE, "n", ""), "ab");
    event(&f, KUBE_MODIFIED, colored("a", 11, "blue"), 11);
    event(&f, KUBE_ADDED, pod("c", 12, ""), 12);
    assert_string_equal(found(&f, BY_COLOR, "n", "red"), "b");
    assert_string_equal(found(&f, BY_COLOR, "n", "blue"), "a");
    assert_string_equal(found(&f, BY_NAMESPACE, "n", ""), "abc");
    event(&f, KUBE_DELETED, colored("b", 13, "red"), 13);
    assert_string_equal(found(&f, BY_COLOR, "n", "red"), "");
    o = testserver_object(
        kind_find("", "v1", "pods"),
        "{\"metadata\":{\"name\":\"d\",\"namespace\":\"m\",\"uid\":\"ud\",\"resourceVersion\":\"14\","
        "\"ownerReferences\":[{\"uid\":\"first\"},{\"uid\":\"boss\",\"controller\":true}]},"
        "\"spec\":{\"nodeName\":\"here\"}}");
    event(&f, KUBE_ADDED, o, 14);
    assert_string_equal(found(&f, BY_NODE, "whatever", "here"), "d");
    assert_string_equal(found(&f, BY_OWNER, "m", "boss"), "d");
    assert_string_equal(found(&f, BY_OWNER, "m", "first"), "");
    close_informer(&f);
}

/* Elsewhere in memory and otherwise as before; nobody is told. */
static void test_what_is_packed_is_the_same(void **state)
{
    struct fixture f;
    OWN(informer_walk_done) struct informer_walk w = { 0 };
    const struct object *before, *after;
    size_t packed = 0, n;

    (void)state;
    open_informer(&f, (struct informer_spec){ .trim = informer_trim_managed });
    list(&f, 10, colored("a", 3, "red"), colored("b", 4, "red"));
    event(&f, KUBE_ADDED, colored("c", 11, "red"), 11);
    heard(&f, "+a3! +b4! S +c11 ");
    before = informer_get(f.inf, "n", "b");
    informer_walk_all(&w, f.inf);
    while ((n = informer_pack(&w, 2)) > 0) {
        packed += n;
        if (packed == 2) /* between two turns */
            event(&f, KUBE_DELETED, colored("c", 12, "red"), 12);
    }
    informer_walk_done(&w);
    assert_int_equal(packed, 3);
    after = informer_get(f.inf, "n", "b");
    assert_ptr_not_equal(after, before);
    assert_int_equal(object_version(after), 4);
    assert_string_equal(object_label(after, "color"), "red");
    assert_string_equal(found(&f, BY_COLOR, "n", "red"), "ab");
    heard(&f, "-c12 ");
    event(&f, KUBE_MODIFIED, colored("b", 13, "blue"), 13);
    assert_string_equal(found(&f, BY_COLOR, "n", "red"), "a");
    close_informer(&f);
}

static void test_a_walk_goes_on_while_the_copy_changes(void **state)
{
    struct fixture f;
    OWN(informer_walk_done) struct informer_walk w = { 0 };
    struct object *first, *second, *moved;
    char name[2] = "";

    (void)state;
    open_informer(&f, (struct informer_spec){ 0 });
    list(&f, 10, colored("a", 3, "red"), colored("b", 4, "red"));
    event(&f, KUBE_ADDED, colored("c", 11, "red"), 11);
    informer_walk(&w, f.inf, BY_COLOR, "n", "red");
    first = informer_walk_next(&w); /* c, b, a: the newest place first */
    assert_string_equal(object_name(first), "c");
    event(&f, KUBE_DELETED, colored("c", 12, "red"), 12);
    event(&f, KUBE_DELETED, colored("b", 13, "red"), 13); /* the walk stood there */
    event(&f, KUBE_ADDED, colored("z", 14, "red"), 14);
    /* a changes another key: it stays in its place here */
    moved = testserver_object(kind_find("", "v1", "pods"),
                              "{\"metadata\":{\"name\":\"a\",\"namespace\":\"n\",\"uid\":\"ua\","
                              "\"resourceVersion\":\"15\",\"labels\":{\"color\":\"red\"}},"
                              "\"spec\":{\"nodeName\":\"here\"}}");
    event(&f, KUBE_MODIFIED, moved, 15);
    second = informer_walk_next(&w);
    assert_non_null(second);
    name[0] = object_name(second)[0];
    assert_string_equal(name, "a");
    assert_int_equal(object_version(second), 15);
    assert_null(informer_walk_next(&w));
    assert_string_equal(object_name(first), "c"); /* borrowed until we return */
    informer_walk_done(&w);
    close_informer(&f);
}

static void test_a_listener_that_comes_later_hears_all_once(void **state)
{
    struct fixture f;
    struct ear late = { "" };

    (void)state;
    open_informer(&f, (struct informer_spec){ 0 });
    list(&f, 10, pod("a", 3, ""), NULL);
    event(&f, KUBE_MODIFIED, pod("a", 11, ""), 11); /* yet to be told when it comes */
    informer_listen(f.inf, &listener, &late);
    assert_string_equal(late.text, "");
    event(&f, KUBE_ADDED, pod("b", 12, ""), 12);
    heard(&f, "+a3! S ~a3>11 +b12 ");
    assert_string_equal(late.text, "+a11! S +b12 ");
    close_informer(&f);
}

static void test_what_the_selectors_leave_out_is_not_learnt(void **state)
{
    struct fixture f;
    struct informer *none = NULL;
    struct err e;

    (void)state;
    open_informer(&f, (struct informer_spec){ .labels = "color=red", .namespace = "n" });
    list(&f, 10, colored("a", 3, "red"), NULL);
    learn(&f, colored("b", 20, "blue"));
    learn(&f, colored("a", 21, "blue"));
    heard(&f, "+a3! S -a21 ");
    assert_int_equal(informer_count(f.inf), 0);
    assert_int_equal(informer_new(&f.server.base,
                                  &(struct informer_spec){ .kind = kind_find("", "v1", "pods"),
                                                           .labels = "a in (" },
                                  &none, &e),
                     -1);
    close_informer(&f);
}

static void test_less_of_an_object_is_kept(void **state)
{
    struct fixture f;

    (void)state;
    open_informer(&f, (struct informer_spec){ .trim = informer_trim_managed });
    list(&f, 10, pod("a", 3, ",\"managedFields\":[{\"manager\":\"m\"}]"), pod("b", 4, ""));
    assert_null(json_get(object_meta(informer_get(f.inf, "n", "a")), "managedFields"));
    assert_int_equal(version_of(&f, "a"), 3);
    assert_int_equal(version_of(&f, "b"), 4);
    close_informer(&f);
}

static struct informer *to_close;

static void close_it(void *ctx, struct object *o, bool is_initial)
{
    (void)o;
    (void)is_initial;
    hear(ctx, "closed ");
    informer_close(to_close);
}

static void test_a_listener_may_close_it(void **state)
{
    static const struct informer_listener closer = { .on_add = close_it };
    struct testserver server;
    struct ear ear = { "" };
    struct object *items[] = { pod("a", 3, ""), pod("b", 4, "") };
    struct err e;

    (void)state;
    testserver_init(&server);
    assert_int_equal(informer_new(&server.base,
                                  &(struct informer_spec){ .kind = kind_find("", "v1", "pods") },
                                  &to_close, &e),
                     0);
    informer_listen(to_close, &closer, &ear);
    informer_listen(to_close, &listener, &ear);
    informer_start(to_close);
    testserver_list(&server, 10, NULL, items, LEN(items));
    object_unref(items[0]);
    object_unref(items[1]);
    testserver_done(&server);
    assert_string_equal(ear.text, "closed ");
}

static void test_it_is_closed_in_any_state(void **state)
{
    struct fixture f;

    (void)state;
    open_informer(&f, (struct informer_spec){ 0 }); /* a list under way */
    close_informer(&f);
    open_informer(&f, (struct informer_spec){ 0 });
    testserver_refuse(&f.server, KUBE_LIST, 500); /* waiting to try again */
    close_informer(&f);
    open_informer(&f, (struct informer_spec){ 0 });
    list(&f, 10, pod("a", 3, ""), NULL); /* something to tell */
    close_informer(&f);
    assert_string_equal(f.ear.text, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_list_then_a_watch_keep_the_copy_up),
        cmocka_unit_test(test_pages_are_one_list),
        cmocka_unit_test(test_after_410_the_difference_is_told),
        cmocka_unit_test(test_a_name_that_is_another_object_now_goes_and_comes),
        cmocka_unit_test(test_refusals_are_tried_again),
        cmocka_unit_test(test_what_we_wrote_is_there_at_once_and_older_events_do_not_undo_it),
        cmocka_unit_test(test_a_new_object_of_our_own_survives_the_old_ones_end),
        cmocka_unit_test(test_a_list_under_way_does_not_hide_what_we_wrote_meanwhile),
        cmocka_unit_test(test_what_was_undone_goes_back_with_the_next_list),
        cmocka_unit_test(test_indexes_follow_their_objects),
        cmocka_unit_test(test_what_is_packed_is_the_same),
        cmocka_unit_test(test_a_walk_goes_on_while_the_copy_changes),
        cmocka_unit_test(test_a_listener_that_comes_later_hears_all_once),
        cmocka_unit_test(test_what_the_selectors_leave_out_is_not_learnt),
        cmocka_unit_test(test_less_of_an_object_is_kept),
        cmocka_unit_test(test_a_listener_may_close_it),
        cmocka_unit_test(test_it_is_closed_in_any_state),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
