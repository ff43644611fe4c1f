#include "apiserver/owners.h"

#include "kube/kind.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Owned by each of the named, who are "" or "x" or "xy". */
static struct object *make(int uid, const char *owners)
{
    OWN(json_doc_done) struct json_doc *doc = NULL;
    struct object *o = NULL;
    char text[512];
    struct err e;
    int n = snprintf(text, sizeof text,
                     "{\"metadata\":{\"namespace\":\"n\",\"name\":\"o%d\",\"uid\":\"%d\","
                     "\"ownerReferences\":[",
                     uid, uid);

    for (const char *p = owners; *p; p++)
        n += snprintf(text + n, sizeof text - (size_t)n, "%s{\"uid\":\"%c\"}",
                      p == owners ? "" : ",", *p);
    (void)snprintf(text + n, sizeof text - (size_t)n, "]}}");
    assert_int_equal(json_parse(span_cstr(text), NULL, &doc, &e), 0);
    assert_int_equal(object_parse(kind_find("", "v1", "configmaps"), json_doc_root(doc), &o, &e),
                     0);
    return o;
}

static size_t count(const struct owners *w, const char *uid)
{
    const struct owner *o = owners_find(w, uid);

    return o ? o->n : 0;
}

static void add(struct owners *w, int uid, const char *owners)
{
    OWN(object_done) struct object *o = make(uid, owners);

    owners_add(w, 7, o);
}

static void drop(struct owners *w, int uid, const char *owners)
{
    OWN(object_done) struct object *o = make(uid, owners);

    owners_remove(w, o);
}

static void test_in_any_order(void **state)
{
    struct owners w = { 0 };

    (void)state;
    for (int i = 0; i < 100; i++)
        add(&w, i, i % 2 ? "xy" : "x");
    add(&w, 3, "xyy"); /* again, and twice */
    assert_int_equal(count(&w, "x"), 100);
    assert_int_equal(count(&w, "y"), 50);
    for (int i = 0; i < 100; i += 3) /* holes, filled from behind */
        drop(&w, i, "xy");
    drop(&w, 3, "xy"); /* gone already */
    assert_int_equal(count(&w, "x"), 66);
    assert_int_equal(count(&w, "y"), 33);
    for (size_t i = 0; i < 66; i++) {
        const struct dependent *d = owners_find(&w, "x")->dependents[i];

        assert_int_equal(d->at, i);
        assert_int_equal(d->ref.kind, 7);
    }
    while (owners_find(&w, "y"))
        owners_drop(&w, owners_find(&w, "y"), 0);
    for (int i = 99; i >= 0; i--)
        drop(&w, i, "xy");
    assert_null(owners_find(&w, "x"));
    assert_int_equal(w.by_uid.count + w.by_pair.count, 0);
    owners_done(&w);
}

static void test_what_is_left_goes_with_it(void **state)
{
    struct owners w = { 0 };

    (void)state;
    add(&w, 1, "xy");
    add(&w, 2, "y");
    owners_done(&w);
    assert_null(owners_find(&w, "y"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_any_order),
        cmocka_unit_test(test_what_is_left_goes_with_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
