#include "apiserver/addresses.h"

#include "apiserver/teststore.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void put(struct teststore *t, enum store_op op, const char *name, const char *address)
{
    OWN(json_doc_done) struct json_doc *doc = NULL;
    OWN(object_done) struct object *o = NULL, *now = NULL;
    char text[256];
    struct err e;

    (void)snprintf(
        text, sizeof text,
        "{\"metadata\":{\"namespace\":\"n\",\"name\":\"%s\"},\"spec\":{\"clusterIP\":\"%s\"}}",
        name, address);
    assert_int_equal(json_parse(span_cstr(text), NULL, &doc, &e), 0);
    assert_int_equal(object_parse(kind_find("", "v1", "services"), json_doc_root(doc), &o, &e), 0);
    assert_int_equal(
        store_write(t->store, &(struct store_change){ .op = op, .object = o }, &now, &e), 0);
}

static unsigned place(const char *address)
{
    unsigned high, low;

    assert_int_equal(sscanf(address, "10.96.%u.%u", &high, &low), 2);
    return high << 8 | low;
}

/* A quarter of all is taken before the first question: one that was left out would be met within some
 * hundred answers. */
static void no_address_is_given_twice(void **state)
{
    enum { TAKEN = 16384, ASKED = 300 };
    static bool is_taken[65536];
    struct teststore t;
    char address[ADDRESSES_TEXT_BYTES], name[16];
    struct err e;

    (void)state;
    teststore_begin(&t);
    assert_true(teststore_open(&t, (struct store_config){ 0 }, &e));
    for (unsigned i = 0; i < TAKEN; i++) {
        unsigned at = i * 4 + 1;

        (void)snprintf(address, sizeof address, "10.96.%u.%u", at >> 8, at & 0xff);
        (void)snprintf(name, sizeof name, "a%u", i);
        put(&t, STORE_CREATE, name, address);
        is_taken[at] = true;
    }
    for (unsigned i = 0; i < ASKED; i++) {
        assert_true(addresses_pick(store_addresses(t.store), address));
        assert_false(is_taken[place(address)]);
        assert_true(place(address) >= 16);
        is_taken[place(address)] = true;
        (void)snprintf(name, sizeof name, "b%u", i);
        put(&t, STORE_CREATE, name, address);
    }
    put(&t, STORE_UPDATE, "b0", "None");
    put(&t, STORE_DELETE, "b1", "None");
    assert_true(addresses_pick(store_addresses(t.store), address));
    teststore_end(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(no_address_is_given_twice) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
