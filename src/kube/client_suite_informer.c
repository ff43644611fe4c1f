/* Rows of the suite: informers and leases on a real server. */
#include "kube/client_suite_impl.h"
#include "kube/informer.h"
#include "kube/lease.h"

#include <stdio.h>

enum { BY_COLOR };

static const struct informer_index indexes[] = { [BY_COLOR] = { informer_keys_label, "color",
                                                                false } };

#define NAMES 40

/* What a listener makes of what it hears: nothing else may be in the informer's copy. */
struct mirror {
    struct suite *suite;
    struct informer *inf;
    uint64_t versions[NAMES]; /* of "c0", "c1", ...; 0: not there */
    size_t initial;           /* of all names */
    size_t adds;              /* of those above */
    bool is_synced, is_last;  /* is_last: "last" came */
    bool is_changed;
};

static int number_of(const struct object *o)
{
    int n = -1;

    return sscanf(object_name(o), "c%d", &n) == 1 && n < NAMES ? n : -1;
}

static void wake(struct mirror *m)
{
    m->is_changed = true;
    ev_loop_stop(m->suite->loop);
}

static void on_add(void *ctx, struct object *o, bool is_initial)
{
    struct mirror *m = ctx;
    int n = number_of(o);

    m->initial += is_initial;
    m->is_last |= strcmp(object_name(o), "last") == 0;
    if (n >= 0) {
        m->adds++;
        assert_int_equal(m->versions[n], 0);
        m->versions[n] = object_version(o);
    }
    wake(m);
}

static void on_update(void *ctx, struct object *old, struct object *now)
{
    struct mirror *m = ctx;
    int n = number_of(now);

    if (n >= 0) {
        assert_int_equal(m->versions[n], object_version(old));
        assert_true(object_version(now) > object_version(old));
        m->versions[n] = object_version(now);
    }
    wake(m);
}

static void on_delete(void *ctx, struct object *last)
{
    struct mirror *m = ctx;
    int n = number_of(last);

    if (n >= 0) {
        assert_true(m->versions[n] != 0);
        m->versions[n] = 0;
    }
    wake(m);
}

static void on_synced(void *ctx)
{
    struct mirror *m = ctx;

    m->is_synced = true;
    wake(m);
}

static void open_mirror(struct suite *s, struct mirror *m, const char *labels)
{
    static const struct informer_listener listener = { on_add, on_update, on_delete, on_synced };
    struct err e;

    *m = (struct mirror){ .suite = s };
    assert_int_equal(informer_new(s->client,
                                  &(struct informer_spec){ .kind = s->config_maps,
                                                           .namespace = s->namespace,
                                                           .labels = labels,
                                                           .indexes = indexes,
                                                           .index_count = LEN(indexes) },
                                  &m->inf, &e),
                     0);
    informer_listen(m->inf, &listener, m);
    informer_start(m->inf);
    suite_until(s, &m->is_synced);
}

static void close_mirror(struct mirror *m)
{
    informer_close(m->inf);
    suite_turns(m->suite);
}

static size_t count_red(struct suite *s, struct mirror *m)
{
    return informer_count_of(m->inf, BY_COLOR, s->namespace, "red");
}

static void until_red(struct suite *s, struct mirror *m, size_t count)
{
    while (count_red(s, m) != count) {
        m->is_changed = false;
        suite_until(s, &m->is_changed);
    }
}

static void follows(struct suite *s)
{
    struct mirror m;
    struct object *o;

    (void)suite_create(s, s->config_maps,
                       "{\"metadata\":{\"name\":\"c0\",\"labels\":{\"color\":\"red\"}}}");
    open_mirror(s, &m, NULL);
    assert_non_null(informer_get(m.inf, s->namespace, "c0"));
    assert_int_equal(count_red(s, &m), 1);
    o = suite_create(s, s->config_maps,
                     "{\"metadata\":{\"name\":\"c1\",\"labels\":{\"color\":\"red\"}}}");
    until_red(s, &m, 2);
    assert_int_equal(object_version(informer_get(m.inf, s->namespace, "c1")), object_version(o));
    (void)suite_must(s, SUITE_RQ(s, .verb = KUBE_DELETE, .kind = s->config_maps, .name = "c0"));
    until_red(s, &m, 1);
    assert_null(informer_get(m.inf, s->namespace, "c0"));
    close_mirror(&m);
}

static void learns(struct suite *s)
{
    struct mirror m;
    struct object *o;

    open_mirror(s, &m, NULL);
    o = suite_create(s, s->config_maps, "{\"metadata\":{\"name\":\"c0\"}}");
    informer_learn(m.inf, o);
    assert_non_null(informer_get(m.inf, s->namespace, "c0"));
    assert_int_equal(object_version(informer_get(m.inf, s->namespace, "c0")), object_version(o));
    o = suite_must(s, SUITE_RQ(s, .verb = KUBE_UPDATE, .kind = s->config_maps, .name = "c0",
                               .object = suite_with(s, o, "data", "{\"a\":\"b\"}")))
            ->object;
    informer_learn(m.inf, o);
    assert_int_equal(object_version(informer_get(m.inf, s->namespace, "c0")), object_version(o));
    (void)suite_create(s, s->config_maps, "{\"metadata\":{\"name\":\"last\"}}");
    suite_until(s, &m.is_last); /* the watch has told all of it by now */
    assert_int_equal(m.adds, 1);
    assert_int_equal(m.versions[0], object_version(o));
    close_mirror(&m);
}

static void many_pages(struct suite *s)
{
    enum { AT_ONCE = 50, COUNT = INFORMER_PAGE * 2 + 2 * AT_ONCE };
    struct mirror m;

    for (int i = 0; i < COUNT; i += AT_ONCE) {
        struct result *made[AT_ONCE];

        for (int j = 0; j < AT_ONCE; j++)
            made[j] = suite_start(
                s,
                SUITE_RQ(s, .verb = KUBE_CREATE, .kind = s->config_maps,
                         .object = suite_object(s, s->config_maps,
                                                "{\"metadata\":{\"name\":\"p%d\"}}", i + j)),
                NULL);
        for (int j = 0; j < AT_ONCE; j++)
            suite_until(s, &made[j]->is_there);
    }
    open_mirror(s, &m, NULL);
    assert_true(informer_count(m.inf) >= COUNT);
    assert_int_equal(m.initial, informer_count(m.inf));
    assert_non_null(informer_get(m.inf, s->namespace, "p0"));
    assert_non_null(informer_get(m.inf, s->namespace, "p1099"));
    close_mirror(&m);
}

/* One of: create, change (also of the label that one informer selects by), delete. */
static struct result *change(struct suite *s, unsigned dice)
{
    static const char *const bodies[] = {
        "{\"data\":{\"k\":\"%u\"}}", "{\"metadata\":{\"labels\":{\"color\":\"red\",\"k\":\"%u\"}}}",
        "{\"metadata\":{\"labels\":{\"color\":\"blue\",\"k\":\"%u\"}}}"
    };
    char name[16], body[128];

    (void)snprintf(name, sizeof name, "c%u", dice % NAMES);
    dice /= NAMES;
    if (dice % 5 == 0)
        return suite_start(
            s, SUITE_RQ(s, .verb = KUBE_DELETE, .kind = s->config_maps, .name = name), NULL);
    if (dice % 5 < 3)
        return suite_start(
            s,
            SUITE_RQ(s, .verb = KUBE_CREATE, .kind = s->config_maps,
                     .object = suite_object(s, s->config_maps,
                                            "{\"metadata\":{\"name\":\"%s\",\"labels\":"
                                            "{\"color\":\"red\"}}}",
                                            name)),
            NULL);
    (void)snprintf(body, sizeof body, bodies[dice / 5 % LEN(bodies)], dice);
    return suite_start(s,
                       SUITE_RQ(s, .verb = KUBE_PATCH, .patch = KUBE_PATCH_MERGE,
                                .kind = s->config_maps, .name = name, .body = span_cstr(body)),
                       NULL);
}

static void same_as_list(struct suite *s, struct mirror *m, const char *labels)
{
    struct result *list =
        suite_must(s, SUITE_RQ(s, .verb = KUBE_LIST, .kind = s->config_maps, .labels = labels));

    assert_int_equal(informer_count(m->inf), list->item_count);
    for (size_t i = 0; i < list->item_count; i++) {
        struct object *o = list->items[i], *ours;
        int n = number_of(o);

        ours = informer_get(m->inf, s->namespace, object_name(o));
        assert_non_null(ours);
        assert_int_equal(object_version(ours), object_version(o));
        if (n >= 0)
            assert_int_equal(m->versions[n], object_version(o));
    }
}

static void many_changes(struct suite *s)
{
    enum { ROUNDS = 30, AT_ONCE = 20 };
    struct mirror all, red;
    unsigned seed = 11;

    open_mirror(s, &all, NULL);
    open_mirror(s, &red, "color=red");
    for (int round = 0; round < ROUNDS; round++) {
        struct result *done[AT_ONCE];

        for (int i = 0; i < AT_ONCE; i++) {
            seed = seed * 1103515245u + 12345u;
            done[i] = change(s, seed / 65536u);
        }
        for (int i = 0; i < AT_ONCE; i++) {
            suite_until(s, &done[i]->is_there);
            if (done[i]->is_refused)
                assert_true(done[i]->code == 404 || done[i]->code == 409);
            else if (done[i]->object && i % 3 != 0) {
                informer_learn(all.inf, done[i]->object);
                informer_learn(red.inf, done[i]->object);
            }
        }
    }
    (void)suite_create(s, s->config_maps,
                       "{\"metadata\":{\"name\":\"last\",\"labels\":{\"color\":\"red\"}}}");
    suite_until(s, &all.is_last);
    suite_until(s, &red.is_last);
    same_as_list(s, &all, NULL);
    same_as_list(s, &red, "color=red");
    close_mirror(&all);
    close_mirror(&red);
}

/* ---- leases ---- */

struct candidate {
    struct suite *suite;
    struct lease *lease;
    bool is_started, is_stopped, is_closed;
    char leader[16];
};

static void on_started(void *ctx)
{
    struct candidate *c = ctx;

    c->is_started = true;
    ev_loop_stop(c->suite->loop);
}

static void on_stopped(void *ctx)
{
    struct candidate *c = ctx;

    c->is_stopped = true;
    ev_loop_stop(c->suite->loop);
}

static void on_leader(void *ctx, const char *identity)
{
    struct candidate *c = ctx;

    (void)snprintf(c->leader, sizeof c->leader, "%s", identity);
}

static void on_closed(void *ctx)
{
    struct candidate *c = ctx;

    c->is_closed = true;
    ev_loop_stop(c->suite->loop);
}

static void run_for(struct suite *s, struct candidate *c, const char *identity)
{
    *c = (struct candidate){ .suite = s };
    c->lease = lease_start(s->client, &(struct lease_spec){ .namespace = s->namespace,
                                                            .name = "lock",
                                                            .identity = identity,
                                                            .duration_ms = 5000,
                                                            .renew_ms = 3000,
                                                            .retry_ms = 50,
                                                            .on_started = on_started,
                                                            .on_stopped = on_stopped,
                                                            .on_leader = on_leader,
                                                            .ctx = c });
}

static void withdraw(struct candidate *c)
{
    lease_close(c->lease, on_closed, c);
    suite_until(c->suite, &c->is_closed);
    suite_turns(c->suite);
}

static void one_leads(struct suite *s)
{
    const struct kind *leases = kind_find("coordination.k8s.io", "v1", "leases");
    struct candidate a, b;

    run_for(s, &a, "a");
    suite_until(s, &a.is_started);
    run_for(s, &b, "b");
    while (strcmp(b.leader, "a") != 0)
        ev_loop_turn(s->loop);
    assert_false(b.is_started);
    assert_string_equal(suite_text(s, suite_get(s, leases, "lock"), "spec.holderIdentity"),
                        "\"a\"");
    withdraw(&a); /* gives it back: b need not wait five seconds */
    suite_until(s, &b.is_started);
    assert_false(a.is_stopped);
    assert_string_equal(suite_text(s, suite_get(s, leases, "lock"), "spec.leaseTransitions"), "1");
    withdraw(&b);
    assert_string_equal(suite_text(s, suite_get(s, leases, "lock"), "spec.holderIdentity"), "\"\"");
}

static void another_takes_it(struct suite *s)
{
    const struct kind *leases = kind_find("coordination.k8s.io", "v1", "leases");
    struct candidate a;

    run_for(s, &a, "a");
    suite_until(s, &a.is_started);
    (void)suite_must(s, SUITE_RQ(s, .verb = KUBE_PATCH, .patch = KUBE_PATCH_MERGE, .kind = leases,
                                 .name = "lock",
                                 .body = SPAN("{\"spec\":{\"holderIdentity\":\"thief\"}}")));
    suite_until(s, &a.is_stopped);
    assert_false(lease_is_held(a.lease));
    withdraw(&a);
    assert_string_equal(suite_text(s, suite_get(s, leases, "lock"), "spec.holderIdentity"),
                        "\"thief\"");
}

const struct suite_row suite_informer_rows[] = {
    { "an informer follows what happens", follows },
    { "an informer learns our own writes at once, and hears of them once", learns },
    { "an informer takes a list in pages", many_pages },
    { "after many changes informers show what lists show", many_changes },
    { "of two who want a lease one leads, and hands over", one_leads },
    { "a lease that is taken away ends at once", another_takes_it },
    { 0 },
};
