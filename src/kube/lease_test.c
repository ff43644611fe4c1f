#include "kube/lease.h"

#include "kube/fence.h"
#include "kube/testserver.h"
#include "kube/time.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

struct fixture {
    struct testserver server;
    struct lease *lease;
    bool is_started, is_stopped, is_closed;
    char leaders[256]; /* each with a blank */
    uint64_t version;
};

static void on_started(void *ctx)
{
    ((struct fixture *)ctx)->is_started = true;
}

static void on_stopped(void *ctx)
{
    ((struct fixture *)ctx)->is_stopped = true;
}

static void on_leader(void *ctx, const char *identity)
{
    struct fixture *f = ctx;
    size_t n = strlen(f->leaders);

    (void)snprintf(f->leaders + n, sizeof f->leaders - n, "%s ", *identity ? identity : "nobody");
}

static void on_closed(void *ctx)
{
    ((struct fixture *)ctx)->is_closed = true;
}

static void open_lease(struct fixture *f, struct lease_spec spec)
{
    *f = (struct fixture){ .version = 100 };
    testserver_init(&f->server);
    spec.namespace = "n";
    spec.name = "lock";
    spec.identity = "me";
    spec.on_started = on_started;
    spec.on_stopped = on_stopped;
    spec.on_leader = on_leader;
    spec.ctx = f;
    f->lease = lease_start(&f->server.base, &spec);
}

/* Nothing is given back, or the test has answered that already. */
static void close_lease(struct fixture *f)
{
    if (!f->is_closed)
        lease_close(f->lease, on_closed, f);
    testserver_run_until(&f->server, &f->is_closed);
    testserver_done(&f->server);
}

static struct object *lease(const char *holder, int seconds, int transitions, uint64_t version)
{
    char json[512];

    (void)snprintf(json, sizeof json,
                   "{\"metadata\":{\"name\":\"lock\",\"namespace\":\"n\",\"uid\":\"u\","
                   "\"resourceVersion\":\"%llu\",\"labels\":{\"kept\":\"yes\"}},"
                   "\"spec\":{\"holderIdentity\":\"%s\",\"leaseDurationSeconds\":%d,"
                   "\"acquireTime\":\"2020-01-01T00:00:00.000000Z\","
                   "\"renewTime\":\"2099-01-01T00:00:00.000000Z\",\"leaseTransitions\":%d}}",
                   (unsigned long long)version, holder, seconds, transitions);
    return testserver_object(kind_find("coordination.k8s.io", "v1", "leases"), json);
}

/* The oldest call is a get: this is what it finds. Takes the reference. */
static void show(struct fixture *f, struct object *o)
{
    testserver_answer(&f->server, KUBE_GET, &(struct kube_answer){ .object = o });
    object_unref(o);
}

/* The oldest call is a write: it is done. What was written is the caller's to unref. */
static struct object *accept(struct fixture *f, enum kube_verb verb)
{
    struct object *written, *kept;

    for (int i = 0; i < 10000 && f->server.call_count == 0; i++)
        testserver_run_ms(&f->server, 1);
    assert_int_equal(f->server.call_count, 1);
    written = object_ref(f->server.calls[0]->object);
    kept = object_with_version(written, ++f->version);
    testserver_answer(&f->server, verb, &(struct kube_answer){ .object = kept });
    object_unref(kept);
    return written;
}

static int64_t number(const struct object *o, const char *path)
{
    int64_t n = -1;

    (void)json_i64(object_at(o, path), &n);
    return n;
}

static void accept_release(struct fixture *f)
{
    OWN(object_done) struct object *written = accept(f, KUBE_UPDATE);

    assert_string_equal(object_text(written, "spec.holderIdentity"), "");
    assert_int_equal(number(written, "spec.leaseDurationSeconds"), 1);
}

static void test_a_lease_that_is_not_there_is_made(void **state)
{
    struct fixture f;
    struct object *o;
    struct timespec t;

    (void)state;
    open_lease(&f, (struct lease_spec){ 0 });
    testserver_refuse(&f.server, KUBE_GET, 404);
    assert_false(f.is_started);
    o = accept(&f, KUBE_CREATE);
    assert_true(f.is_started);
    assert_true(lease_is_held(f.lease));
    assert_string_equal(object_text(o, "spec.holderIdentity"), "me");
    assert_int_equal(number(o, "spec.leaseDurationSeconds"), 15);
    assert_int_equal(number(o, "spec.leaseTransitions"), 0);
    assert_true(kube_time_parse(span_cstr(object_text(o, "spec.renewTime")), &t));
    assert_string_equal(object_text(o, "spec.renewTime"), object_text(o, "spec.acquireTime"));
    assert_int_equal(strlen(object_text(o, "spec.renewTime")),
                     strlen("2026-11-16T09:30:00.000000Z"));
    object_unref(o);
    lease_close(f.lease, on_closed, &f);
    accept_release(&f);
    close_lease(&f);
    assert_string_equal(f.leaders, "me ");
    assert_false(f.is_stopped);
}

static void test_it_is_renewed_without_another_look(void **state)
{
    struct fixture f;
    struct object *first, *second;

    (void)state;
    open_lease(&f, (struct lease_spec){ .retry_ms = 5 });
    show(&f, lease("", 1, 6, 50));
    first = accept(&f, KUBE_UPDATE);
    assert_int_equal(object_version(first), 50); /* optimistic: on what was seen */
    assert_string_equal(object_label(first, "kept"), "yes");
    assert_int_equal(number(first, "spec.leaseTransitions"), 7);
    second = accept(&f, KUBE_UPDATE);
    assert_int_equal(object_version(second), f.version - 1);
    assert_int_equal(number(second, "spec.leaseTransitions"), 7);
    assert_string_equal(object_text(second, "spec.acquireTime"),
                        object_text(first, "spec.acquireTime"));
    object_unref(first);
    object_unref(second);
    lease_close(f.lease, on_closed, &f);
    accept_release(&f);
    close_lease(&f);
}

static void test_a_lease_of_another_is_taken_when_it_has_not_changed_for_its_duration(void **state)
{
    struct fixture f;
    uint64_t start;

    (void)state;
    open_lease(&f, (struct lease_spec){ .retry_ms = 20 });
    start = ev_now_ms(f.server.base.loop);
    show(&f, lease("other", 1, 0, 50)); /* renewed in 2099, by its own words */
    assert_string_equal(f.leaders, "other ");
    while (f.server.call_count == 0 || f.server.calls[0]->verb == KUBE_GET) {
        if (f.server.call_count)
            show(&f, lease("other", 1, 0, 50));
        else
            testserver_run_ms(&f.server, 1);
    }
    assert_true(ev_now_ms(f.server.base.loop) - start >= 1000);
    object_unref(accept(&f, KUBE_UPDATE));
    assert_true(f.is_started);
    assert_string_equal(f.leaders, "other me ");
    lease_close(f.lease, on_closed, &f);
    accept_release(&f);
    close_lease(&f);
}

static void test_a_lease_that_changes_stays_with_its_holder(void **state)
{
    struct fixture f;

    (void)state;
    open_lease(&f, (struct lease_spec){ .retry_ms = 300, .renew_ms = 900 });
    for (int i = 0; i < 4; i++) /* 1.2 s at least */
        show(&f, lease("other", 1, i, 50 + (uint64_t)i));
    assert_false(f.is_started);
    close_lease(&f);
}

static void test_a_conflict_is_looked_into_at_once_and_a_new_name_ends_it(void **state)
{
    struct fixture f;

    (void)state;
    open_lease(&f, (struct lease_spec){ .retry_ms = 2 });
    show(&f, lease("", 1, 0, 50));
    object_unref(accept(&f, KUBE_UPDATE));
    testserver_refuse(&f.server, KUBE_UPDATE, 409);
    show(&f, lease("me", 15, 1, 60)); /* only touched: ours still */
    object_unref(accept(&f, KUBE_UPDATE));
    assert_true(lease_is_held(f.lease));
    testserver_refuse(&f.server, KUBE_UPDATE, 409);
    assert_false(f.is_stopped);
    show(&f, lease("other", 15, 2, 70));
    assert_true(f.is_stopped);
    assert_false(lease_is_held(f.lease));
    assert_string_equal(f.leaders, "me other ");
    close_lease(&f); /* nothing to give back */
}

static void test_without_a_renewal_it_is_over_in_time(void **state)
{
    struct fixture f;

    (void)state;
    open_lease(&f, (struct lease_spec){ .retry_ms = 2,
                                        .renew_ms = 800 }); /* a slow machine gets three tries in */
    show(&f, lease("", 1, 0, 50));
    object_unref(accept(&f, KUBE_UPDATE));
    for (int i = 0; i < 3; i++)
        testserver_refuse(&f.server, KUBE_UPDATE, 500);
    testserver_run_until(&f.server, &f.is_stopped); /* the last one is never answered */
    close_lease(&f);
}

static void test_a_call_that_hangs_is_given_up(void **state)
{
    struct fixture f;

    (void)state;
    open_lease(&f, (struct lease_spec){ .retry_ms = 2, .renew_ms = 20 });
    testserver_run_ms(&f.server, 60);
    show(&f, lease("", 1, 0, 50)); /* another try */
    object_unref(accept(&f, KUBE_UPDATE));
    assert_true(f.is_started);
    lease_close(f.lease, on_closed, &f);
    accept_release(&f);
    close_lease(&f);
}

static void test_closing_while_it_is_being_taken_gives_it_back(void **state)
{
    struct fixture f;

    (void)state;
    open_lease(&f, (struct lease_spec){ 0 });
    show(&f, lease("", 1, 0, 50));
    lease_close(f.lease, on_closed, &f);
    object_unref(accept(&f, KUBE_UPDATE));
    assert_false(f.is_started);
    testserver_refuse(&f.server, KUBE_UPDATE, 409); /* the one that gives it back; once is enough */
    close_lease(&f);
}

static void test_two_on_one_lease_do_not_both_take_it(void **state)
{
    struct fixture f;

    (void)state;
    open_lease(&f, (struct lease_spec){ .retry_ms = 2 });
    testserver_refuse(&f.server, KUBE_GET, 404);
    testserver_refuse(&f.server, KUBE_CREATE, 409); /* the other was quicker */
    show(&f, lease("other", 15, 0, 50));
    assert_false(f.is_started);
    close_lease(&f);
}

static void on_fenced(void *ctx, const struct kube_answer *answer)
{
    int *code = ctx;

    *code = answer->refusal ? answer->refusal->code : 200;
}

/* The process stands still for longer than the Lease lasts: it may read when it wakes, and not write, though no timer ran. */
static void test_who_stood_still_writes_nothing(void **state)
{
    struct kube_request rq = { .kind = kind_find("", "v1", "pods"), .namespace = "n", .name = "p" };
    struct fixture f;
    struct kube_client *fence;
    int code = -1;

    (void)state;
    open_lease(&f, (struct lease_spec){ .retry_ms = 800, .renew_ms = 1000 });
    testserver_refuse(&f.server, KUBE_GET, 404);
    object_unref(accept(&f, KUBE_CREATE));
    fence = fence_new(&f.server.base, f.lease);
    rq.verb = KUBE_DELETE;
    (void)kube_call_start(fence, &rq, on_fenced, &code);
    testserver_answer(&f.server, KUBE_DELETE, &(struct kube_answer){ 0 });
    assert_int_equal(code, 200);
    (void)nanosleep(&(struct timespec){ .tv_sec = 1, .tv_nsec = 100 * 1000 * 1000 }, NULL);
    assert_false(lease_is_held(f.lease));
    assert_false(f.is_stopped);
    (void)kube_call_start(fence, &rq, on_fenced, &code);
    assert_int_equal(f.server.call_count, 0);
    rq.verb = KUBE_GET;
    (void)kube_call_start(fence, &rq, on_fenced, &code);
    testserver_refuse(&f.server, KUBE_GET, 404);
    assert_int_equal(code, 404);
    testserver_turns(&f.server, 2);
    assert_int_equal(code, 0);
    assert_true(f.is_stopped);
    kube_client_free(fence);
    close_lease(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_lease_that_is_not_there_is_made),
        cmocka_unit_test(test_it_is_renewed_without_another_look),
        cmocka_unit_test(test_a_lease_of_another_is_taken_when_it_has_not_changed_for_its_duration),
        cmocka_unit_test(test_a_lease_that_changes_stays_with_its_holder),
        cmocka_unit_test(test_a_conflict_is_looked_into_at_once_and_a_new_name_ends_it),
        cmocka_unit_test(test_without_a_renewal_it_is_over_in_time),
        cmocka_unit_test(test_a_call_that_hangs_is_given_up),
        cmocka_unit_test(test_closing_while_it_is_being_taken_gives_it_back),
        cmocka_unit_test(test_two_on_one_lease_do_not_both_take_it),
        cmocka_unit_test(test_who_stood_still_writes_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
