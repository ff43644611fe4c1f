/* Tokens and rights by the API server's word: each is asked about once, answers grow old, and there is room for so many. */
#include "router/caller.h"
#include "router/review.h"

#include "kube/testserver.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

static struct testserver server;
static struct review *review;

struct asker {
    struct review_wait wait;
    unsigned dones;
    struct refusal why;
};

static void on_done(void *ctx, const struct refusal *why)
{
    struct asker *a = ctx;

    a->dones++;
    a->why = *why;
}

static void begin(uint64_t ttl_ms, uint64_t rows, bool is_required)
{
    testserver_init(&server);
    review = review_new(&(struct review_config){ .client = &server.base,
                                                 .loop = server.base.loop,
                                                 .ttl_ms = ttl_ms,
                                                 .rows_max = rows,
                                                 .is_token_required = is_required,
                                                 .audiences = " a, ,b" });
}

static void end(void)
{
    review_free(review);
    testserver_done(&server);
}

static bool ask(struct asker *a, const char *token)
{
    a->wait.done = on_done;
    a->wait.ctx = a;
    return review_start(review, span_cstr(token), &a->wait, &a->why);
}

/* Answers the oldest question. */
static void say(bool is_known)
{
    const struct kind *kind = kind_find("authentication.k8s.io", "v1", "tokenreviews");
    struct object *o = testserver_object(kind, is_known ? "{\"status\":{\"authenticated\":true}}"
                                                        : "{\"status\":{}}");

    testserver_answer(&server, KUBE_CREATE, &(struct kube_answer){ .object = o });
    object_unref(o);
}

static void test_each_is_asked_about_once(void **state)
{
    struct asker a = { 0 }, b = { 0 }, c = { 0 };
    const struct json *spec;

    (void)state;
    begin(60000, 10, false);
    assert_true(ask(&a, "")); /* none, and none is wanted */
    assert_int_equal(a.why.status, 0);
    assert_false(ask(&a, "good"));
    assert_false(ask(&b, "good")); /* waits for the same answer */
    assert_int_equal(server.call_count, 1);
    spec = object_member(server.calls[0]->object, "spec");
    assert_string_equal(json_cstr(json_get(spec, "token")), "good");
    assert_int_equal(json_count(json_get(spec, "audiences")), 2);
    assert_false(ask(&c, "good"));
    review_cancel(&c.wait);
    say(true);
    assert_int_equal(a.dones + b.dones, 2);
    assert_int_equal(c.dones, 0);
    assert_int_equal(a.why.status | b.why.status, 0);
    assert_true(ask(&a, "good"));
    assert_int_equal(a.why.status, 0);
    assert_false(ask(&a, "bad"));
    say(false);
    assert_int_equal(a.why.status, 401);
    assert_true(ask(&a, "bad")); /* refusals count as long */
    assert_int_equal(a.why.status, 401);
    assert_int_equal(server.call_count, 0);
    end();
}

static void test_no_token_no_answer_no_text(void **state)
{
    struct asker a = { 0 };

    (void)state;
    begin(60000, 10, true);
    assert_true(ask(&a, ""));
    assert_int_equal(a.why.status, 401);
    assert_true(ask(&a, "\xff\xfe")); /* cannot be said in JSON, so it is nobody's */
    assert_int_equal(a.why.status, 401);
    assert_false(ask(&a, "who"));
    testserver_refuse(&server, KUBE_CREATE, 503);
    assert_int_equal(a.why.status, 500);
    assert_int_equal(strncmp(a.why.detail, "tokenreview: ", 13), 0);
    assert_true(ask(&a, "who"));
    assert_int_equal(strncmp(a.why.detail, "tokenreview (cached): ", 22), 0);
    end();
}

static void test_answers_grow_old(void **state)
{
    struct asker a = { 0 };

    (void)state;
    begin(1, 10, true);
    assert_false(ask(&a, "good"));
    say(true);
    testserver_run_ms(&server, 20);
    assert_false(ask(&a, "good"));
    say(false);
    assert_int_equal(a.why.status, 401);
    end();
}

static void test_room_for_so_many(void **state)
{
    struct asker a = { 0 }, b = { 0 }, c = { 0 };

    (void)state;
    begin(60000, 2, true);
    assert_false(ask(&a, "one"));
    assert_false(ask(&b, "two"));
    assert_true(ask(&c, "three")); /* both places are waited for */
    assert_int_equal(c.why.status, 503);
    say(true);
    say(true);
    assert_true(ask(&a, "one")); /* asked for last, so it stays */
    assert_false(ask(&c, "three"));
    say(true);
    assert_true(ask(&a, "one"));
    assert_false(ask(&b, "two")); /* the one that went */
    say(true);
    end();
}

/* ---- rights ---- */

static bool ask_access(struct asker *a, const struct caller *c, const char *namespace,
                       const char *id, const char *uid)
{
    struct target t = { 0 };

    (void)snprintf(t.namespace, sizeof t.namespace, "%s", namespace);
    (void)snprintf(t.id, sizeof t.id, "%s", id);
    (void)snprintf(t.uid, sizeof t.uid, "%s", uid);
    a->wait.done = on_done;
    a->wait.ctx = a;
    return review_access(review, c, &t, &a->wait, &a->why);
}

static void say_allowed(bool is_allowed)
{
    const struct kind *kind = kind_find("authorization.k8s.io", "v1", "subjectaccessreviews");
    struct object *o = testserver_object(kind, is_allowed ? "{\"status\":{\"allowed\":true}}"
                                                          : "{\"status\":{\"allowed\":false}}");

    testserver_answer(&server, KUBE_CREATE, &(struct kube_answer){ .object = o });
    object_unref(o);
}

static const char *asked_for(const char *member)
{
    const struct json *spec = object_member(server.calls[0]->object, "spec");
    const char *text = json_cstr(json_get(json_get(spec, "resourceAttributes"), member));

    return text ? text : "(none)";
}

static void test_what_a_caller_may(void **state)
{
    struct caller *me, *you;
    struct asker a = { 0 };
    struct err e;

    (void)state;
    testserver_init(&server);
    review = review_new(&(struct review_config){ .what = REVIEW_ACCESS,
                                                 .client = &server.base,
                                                 .loop = server.base.loop,
                                                 .ttl_ms = 60000,
                                                 .no_ttl_ms = 1,
                                                 .rows_max = 10 });
    assert_int_equal(caller_parse(SPAN("{\"user\":\"me\",\"groups\":[\"g\"]}"), &me, &e), 0);
    assert_int_equal(caller_parse(SPAN("{\"user\":\"you\"}"), &you, &e), 0);

    assert_false(ask_access(&a, me, "a", "box", ""));
    assert_string_equal(asked_for("verb"), "create");
    assert_string_equal(asked_for("resource"), "pods");
    assert_string_equal(asked_for("subresource"), "portforward");
    assert_string_equal(asked_for("namespace"), "a");
    assert_string_equal(asked_for("name"), "box");
    say_allowed(true);
    assert_int_equal(a.why.status, 0);
    assert_true(ask_access(&a, me, "a", "box", ""));
    assert_int_equal(a.why.status, 0);

    /* Every other question is another one. */
    assert_false(ask_access(&a, you, "a", "box", ""));
    say_allowed(false);
    assert_int_equal(a.why.status, 403);
    assert_non_null(strstr(a.why.detail, "\"you\""));
    assert_false(ask_access(&a, me, "b", "box", ""));
    say_allowed(false);
    assert_int_equal(a.why.status, 403);
    assert_false(ask_access(&a, me, "a", "bo", ""));
    say_allowed(true);
    assert_false(ask_access(&a, me, "a", "box", "u")); /* by uid: any of the namespace */
    assert_string_equal(asked_for("name"), "(none)");
    say_allowed(false);
    assert_int_equal(a.why.status, 403);

    testserver_run_ms(&server, 20);
    assert_false(ask_access(&a, me, "b", "box", "")); /* a no is soon asked again */
    testserver_refuse(&server, KUBE_CREATE, 403);
    assert_int_equal(a.why.status, 500);
    caller_free(me);
    caller_free(you);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_is_asked_about_once),
        cmocka_unit_test(test_no_token_no_answer_no_text),
        cmocka_unit_test(test_answers_grow_old),
        cmocka_unit_test(test_room_for_so_many),
        cmocka_unit_test(test_what_a_caller_may),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
