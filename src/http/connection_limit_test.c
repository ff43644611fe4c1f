#include "http/connection_limit.h"

#include "http/limits.h"
#include "net/addr.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define MOST 64

/* A connection as a server has it. */
struct row {
    struct connection_slot slot;
    bool is_busy, is_closed;
};

struct world {
    struct connection_limit limit;
    struct row rows[4 * MOST];
    size_t n;
};

static bool close_idle(struct connection_slot *slot)
{
    struct row *row = CONTAINER(slot, struct row, slot);

    assert_false(row->is_closed);
    row->is_closed = !row->is_busy;
    return row->is_closed;
}

static struct connection_key key_of(char who)
{
    return (struct connection_key){ .is_owner = who == 'O', .bytes = { 1, (uint8_t)who } };
}

/* NULL: refused. */
static struct row *come(struct world *w, char who)
{
    struct connection_key key = key_of(who);
    struct row *row = &w->rows[w->n++];

    assert_true(w->n < LEN(w->rows));
    return connection_limit_add(&w->limit, &key, &row->slot) ? row : NULL;
}

static size_t open_rows(const struct world *w)
{
    size_t n = 0;

    for (size_t i = 0; i < w->n; i++)
        n += w->rows[i].slot.client != NULL;
    return n;
}

static void begin(struct world *w)
{
    *w = (struct world){ .limit = { .max = MOST, .close_idle = close_idle } };
}

static void finish(struct world *w)
{
    assert_int_equal(open_rows(w), w->limit.count);
    for (size_t i = 0; i < w->n; i++)
        connection_limit_remove(&w->limit, &w->rows[i].slot);
    assert_int_equal(w->limit.count, 0);
    assert_int_equal(w->limit.others, 0);
    for (size_t i = 0; i < CONNECTION_BUCKETS; i++)
        assert_null(w->limit.buckets[i]);
}

static void test_a_client_has_a_part(void **state)
{
    const size_t part = MOST / CONNECTION_CLIENT_PART;
    struct world w;

    (void)state;
    begin(&w);
    for (size_t i = 0; i < part; i++)
        assert_non_null(come(&w, 'a'));
    w.rows[0].is_busy = true;
    assert_non_null(come(&w, 'a'));
    assert_false(w.rows[0].is_closed); /* a request of it is under way */
    assert_true(w.rows[1].is_closed);  /* the oldest of the idle ones */
    assert_int_equal(w.limit.count, part);
    for (size_t i = 2; i < w.n; i++)
        w.rows[i].is_busy = true;
    assert_null(come(&w, 'a'));
    assert_non_null(come(&w, 'b')); /* the next client does not notice */
    assert_int_equal(w.limit.refused, 1);
    assert_int_equal(w.limit.closed, 1);
    finish(&w);
}

static void test_all_clients_leave_a_reserve(void **state)
{
    const size_t most = MOST - MOST / CONNECTION_RESERVE_PART;
    struct world w;
    size_t of_a = 0;

    (void)state;
    begin(&w);
    for (size_t i = 0; i < MOST / CONNECTION_CLIENT_PART; i++)
        assert_non_null(come(&w, 'a'));
    for (size_t i = 0; w.limit.others < most; i++) /* clients of one connection each */
        assert_non_null(come(&w, (char)('b' + i)));
    assert_non_null(come(&w, 'Z')); /* in the place of one of a, which has the most */
    for (size_t i = 0; i < w.n; i++)
        of_a += w.rows[i].is_closed;
    assert_true(of_a == 1 && w.rows[0].is_closed);
    assert_int_equal(w.limit.others, most);
    for (size_t i = 0; i < MOST - most; i++)
        assert_non_null(come(&w, 'O'));
    finish(&w);
}

static void test_the_owner_has_all(void **state)
{
    struct world w;

    (void)state;
    begin(&w);
    for (size_t i = 0; i < 3; i++)
        assert_non_null(come(&w, 'a'));
    for (size_t i = 3; i < MOST; i++)
        come(&w, 'O')->is_busy = true;
    assert_non_null(come(&w, 'O'));
    assert_true(w.rows[0].is_closed); /* the others' idle ones first */
    w.rows[1].is_busy = w.rows[2].is_busy = true;
    w.rows[10].is_busy = false;
    assert_non_null(come(&w, 'O'));
    assert_true(w.rows[10].is_closed); /* then the owner's */
    w.rows[w.n - 1].is_busy = w.rows[w.n - 2].is_busy = true;
    assert_null(come(&w, 'O'));
    assert_null(come(&w, 'b'));
    assert_int_equal(w.limit.count, MOST);
    finish(&w);
}

/* The last idle one of a client makes room for a new one of the same client, whose row must not be lost between. */
static void test_a_ceiling_of_one(void **state)
{
    struct world w;

    (void)state;
    begin(&w);
    w.limit.max = 1;
    assert_non_null(come(&w, 'a'));
    assert_non_null(come(&w, 'a'));
    assert_true(w.rows[0].is_closed);
    assert_non_null(come(&w, 'O'));
    assert_true(w.rows[1].is_closed);
    assert_null(come(&w, 'a')); /* never in the owner's place */
    finish(&w);
}

static void test_without_a_ceiling_none_is_counted(void **state)
{
    struct world w;

    (void)state;
    begin(&w);
    w.limit.max = 0;
    for (size_t i = 0; i < 2 * MOST; i++)
        assert_non_null(come(&w, 'a'));
    assert_int_equal(w.limit.count, 0);
    finish(&w);
}

/* A search looks at so many busy ones and no more, and not at the same ones the next time. */
static void test_a_search_has_an_end(void **state)
{
    struct world w;
    size_t before;

    (void)state;
    begin(&w);
    w.limit.max = CONNECTION_CLIENT_PART * (CONNECTION_LOOKS_MAX + 2);
    for (size_t i = 0; i < CONNECTION_LOOKS_MAX + 2; i++)
        come(&w, 'a')->is_busy = true;
    w.rows[CONNECTION_LOOKS_MAX].is_busy = false;
    before = w.n;
    assert_null(come(&w, 'a'));
    assert_non_null(come(&w, 'a'));
    assert_true(w.rows[CONNECTION_LOOKS_MAX].is_closed);
    assert_int_equal(w.n, before + 2);
    finish(&w);
}

/* clang-format off */
static const struct same { const char *a, *b; bool is_same; } pairs[] = {
    { "192.0.2.1:80",        "192.0.2.1:81",            true },
    { "192.0.2.1:80",        "192.0.2.2:80",            false },
    { "[::ffff:192.0.2.1]:1", "192.0.2.1:2",            true },
    { "[2001:db8::1]:80",    "[2001:db8::ffff:2]:80",   true },  /* one /64 */
    { "[2001:db8::1]:80",    "[2001:db8:0:1::1]:80",    false },
};
/* clang-format on */

static void test_addresses(void **state)
{
    struct connection_key a, b;
    struct net_addr at;
    struct err e;

    (void)state;
    for (size_t i = 0; i < LEN(pairs); i++) {
        assert_int_equal(net_addr_parse(pairs[i].a, &at, &e), 0);
        connection_key_read(-1, &at, &a);
        assert_int_equal(net_addr_parse(pairs[i].b, &at, &e), 0);
        connection_key_read(-1, &at, &b);
        assert_int_equal(memcmp(a.bytes, b.bytes, sizeof a.bytes) == 0, pairs[i].is_same);
        assert_false(a.is_owner);
    }
}

int main(void)
{
    const struct CMUnitTest all[] = {
        cmocka_unit_test(test_a_client_has_a_part),
        cmocka_unit_test(test_all_clients_leave_a_reserve),
        cmocka_unit_test(test_the_owner_has_all),
        cmocka_unit_test(test_a_ceiling_of_one),
        cmocka_unit_test(test_without_a_ceiling_none_is_counted),
        cmocka_unit_test(test_a_search_has_an_end),
        cmocka_unit_test(test_addresses),
    };

    return cmocka_run_group_tests(all, NULL, NULL);
}
