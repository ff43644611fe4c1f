#include "kube/fieldset.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static unsigned seed = 20261116;

static unsigned chance(unsigned n)
{
    return (seed = seed * 1103515245u + 12345u) >> 16 & 0x7fff ? (seed >> 16) % n : 0;
}

/* Few names and little depth, so that two of them meet often. */
static struct json_node *make(struct json_edit *ed, unsigned depth)
{
    struct json_node *set = fieldset_new(ed);
    char name[8];

    for (unsigned n = chance(4); depth && n > 0; n--) {
        (void)snprintf(name, sizeof name, "f:%c", 'a' + (int)chance(4));
        if (!fieldset_find(set, span_cstr(name)))
            (void)json_node_set(set, name, make(ed, depth - 1));
    }
    if (depth < 4 && (chance(2) || json_node_count(set) == 0))
        fieldset_mark(set);
    return set;
}

static void assert_same(struct json_node *wire, struct json_node *set, const char *what)
{
    OWN(buf_done) struct buf a = BUF_INIT(65536), b = BUF_INIT(65536);
    struct json_node *want = fieldset_encode(set);
    struct err e;

    if (json_node_equal(wire, want))
        return;
    (void)json_node_write(wire, &a, &e);
    (void)json_node_write(want, &b, &e);
    fail_msg("%s: got %s, want %s", what, buf_cstr(&a), buf_cstr(&b));
}

/* Changes of what the wire has agree with changes of decoded sets, and leave the document as it is. */
static void the_wire_agrees_with_sets(void **state)
{
    (void)state;
    for (int i = 0; i < 20000; i++) {
        OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
        struct json_node *set = make(ed, 4), *other = make(ed, 4), *again;
        OWN(json_doc_done) struct json_doc *doc = NULL;
        struct err e;

        assert_int_equal(json_node_freeze(fieldset_encode(set), &doc, &e), 0);
        again = json_edit_doc(ed, doc);
        fieldset_wire_add(again, other);
        fieldset_add(set, other);
        assert_same(again, set, "added");
        other = make(ed, 4);
        fieldset_wire_subtract(again, other);
        fieldset_subtract(set, other);
        assert_same(again, set, "taken away");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(the_wire_agrees_with_sets) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
