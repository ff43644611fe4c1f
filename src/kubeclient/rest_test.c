/* Calls against a server that answers as the test says. */
#include "kubeclient/testapi.h"

#define MAP(name)                                                                                  \
    "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"" name                 \
    "\",\"namespace\":\"a\",\"resourceVersion\":\"5\"}}"
#define ITEM(name)                                                                                 \
    "{\"metadata\":{\"name\":\"" name "\",\"namespace\":\"a\",\"resourceVersion\":\"5\"}}"
#define LIST(next, items)                                                                          \
    "{\"kind\":\"ConfigMapList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"9\","   \
    "\"continue\":\"" next "\"},\"items\":[" items "]}"
#define REFUSAL(code, reason)                                                                      \
    "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"message\":\"no: " reason  \
    "\",\"reason\":\"" reason "\",\"code\":" code "}"

static struct kube_request get_map(void)
{
    return (struct kube_request){
        .verb = KUBE_GET, .kind = kind_find("", NULL, "configmaps"), .namespace = "a", .name = "m"
    };
}

static struct kube_request create_map(void)
{
    struct kube_request rq = get_map();

    rq.verb = KUBE_CREATE;
    rq.body = SPAN(MAP("m"));
    return rq;
}

static struct kube_request list_maps(void)
{
    return (struct kube_request){ .verb = KUBE_LIST,
                                  .kind = kind_find("", NULL, "configmaps"),
                                  .namespace = "a" };
}

static void test_a_call_and_what_it_says_of_us(void **state)
{
    struct kube_request rq = get_map();
    struct kube_client *c;
    struct testapi t;
    struct told r;

    (void)state;
    testapi_open(&t);
    c = testapi_client(&t, "secret");
    TESTAPI_SCRIPT(&t, { 200, MAP("m") }, { 200, MAP("m") }, { 404, REFUSAL("404", "NotFound") });
    told_call(&t, c, &rq, &r);
    assert_int_equal(r.code, -1);
    assert_string_equal(r.names, "m");
    assert_string_equal(t.asked[0].line, "GET /api/v1/namespaces/a/configmaps/m");
    assert_string_equal(t.asked[0].authorization, "Bearer secret");
    assert_string_equal(t.asked[0].agent, "silica/" SILICA_VERSION);
    assert_true(t.asked[0].is_h2);
    told_call(&t, c, &rq, &r);
    told_call(&t, c, &rq, &r);
    assert_int_equal(r.code, 404);
    assert_string_equal(r.reason, "NotFound");
    assert_string_equal(r.message, "no: NotFound");
    assert_int_equal(t.accepted, 1); /* all on one connection */
    kube_client_free(c);
    testapi_close(&t);
}

/* method: G(et) or C(reate). */
static const struct try_row {
    const char *name;
    char method;
    struct testapi_step steps[3];
    size_t want_asked;
    int want_code;
    const char *want_message; /* a part */
} try_rows[] = {
    { "a read is said again after 503", 'G', { { 503, "" }, { 200, MAP("m") } }, 2, -1, "" },
    { "and after its stream was cut", 'G', { { 0 }, { 200, MAP("m") } }, 2, -1, "" },
    { "and in the middle of its answer",
      'G',
      { { 200, "{\"kind\":", TESTAPI_CUT }, { 200, MAP("m") } },
      2,
      -1,
      "" },
    { "a write is not", 'C', { { 503, "busy" } }, 1, 503, "the server answered 503: busy" },
    { "a write whose answer was cut may have been done",
      'C',
      { { 201, "{", TESTAPI_CUT } },
      1,
      0,
      "ended the call" },
    { "Retry-After says that a write was not done",
      'C',
      { { 429, "", TESTAPI_END, "0" }, { 503, "", TESTAPI_END, "0" }, { 201, MAP("m") } },
      3,
      -1,
      "" },
    { "429 without it is the caller's",
      'C',
      { { 429, REFUSAL("429", "TooManyRequests") } },
      1,
      429,
      "no: TooManyRequests" },
    { "500 is nobody's to repeat", 'G', { { 500, REFUSAL("500", "InternalError") } }, 1, 500, "" },
    { "a token that does not change is refused once",
      'G',
      { { 401, REFUSAL("401", "Unauthorized") } },
      1,
      401,
      "" },
    { "what is no JSON", 'G', { { 200, "<html>" } }, 1, 0, "cannot read the server's answer: " },
    { "what is another kind",
      'G',
      { { 200, "{\"kind\":\"Secret\"}" } },
      1,
      0,
      "it is no ConfigMap" },
    { "a proxy's page",
      'G',
      { { 418, "<b>\x1b[31mtea\n" } },
      1,
      418,
      "the server answered 418: <b> [31mtea " },
};

static void test_tries(void **state)
{
    (void)state;
    EACH(row, try_rows) {
        struct kube_request rq = row->method == 'G' ? get_map() : create_map();
        struct kube_client *c;
        struct testapi t;
        struct told r;

        testapi_open(&t);
        c = testapi_client(&t, "secret");
        testapi_script(&t, row->steps, row->want_asked);
        told_call(&t, c, &rq, &r);
        if (t.n != row->want_asked || r.code != row->want_code ||
            !strstr(r.message, row->want_message))
            fail_msg("%s: %zu requests, %d %s", row->name, t.n, r.code, r.message);
        if (row->want_code == -1)
            assert_string_equal(r.names, "m");
        kube_client_free(c);
        testapi_close(&t);
    }
}

static void test_retry_after_is_obeyed(void **state)
{
    struct kube_request rq = create_map();
    struct kube_client *c;
    struct testapi t;
    struct told r;

    (void)state;
    testapi_open(&t);
    c = testapi_client(&t, NULL);
    TESTAPI_SCRIPT(&t, { 429, "", TESTAPI_END, "1" }, { 201, MAP("m") });
    told_call(&t, c, &rq, &r);
    assert_int_equal(r.code, -1);
    assert_true(t.asked[1].at_ms - t.asked[0].at_ms >= 1000);
    kube_client_free(c);
    testapi_close(&t);
}

static void test_the_deadline_ends_the_tries(void **state)
{
    struct kube_request rq = create_map();
    struct kubeconfig k;
    struct kube_client *c;
    struct testapi t;
    struct told r;
    struct err e;

    (void)state;
    testapi_open(&t);
    testapi_kubeconfig(&t, NULL, &k);
    net_listener_close(take_ptr(&t.l)); /* refused from now on */
    assert_int_equal(
        kubeclient_new(t.loop, &(struct kubeclient_config){ .kubeconfig = &k, .timeout_ms = 400 },
                       &c, &e),
        0);
    told_call(&t, c, &rq, &r);
    assert_int_equal(r.code, 0);
    assert_non_null(strstr(r.message, "Connection refused"));
    kube_client_free(c);
    testapi_close(&t);
}

static const struct list_row {
    const char *name;
    struct testapi_step steps[6];
    const char *want_lines; /* what differs between the requests */
    const char *want_names;
    int want_code;
} list_rows[] = {
    { "one page", { { 200, LIST("", ITEM("a") "," ITEM("b")) } }, "limit=2;", "a b ", -1 },
    { "nothing", { { 200, LIST("", "") } }, "limit=2;", "", -1 },
    { "three pages",
      { { 200, LIST("p2", ITEM("a") "," ITEM("b")) },
        { 200, LIST("p3", ITEM("c")) },
        { 200, LIST("", ITEM("d")) } },
      "limit=2;limit=2&continue=p2;limit=2&continue=p3;",
      "a b c d ",
      -1 },
    { "a page that is cut is fetched again, once",
      { { 200, LIST("p2", ITEM("a")) },
        { 200, "{\"items\":[" ITEM("b"), TESTAPI_CUT },
        { 200, LIST("", ITEM("b")) } },
      "limit=2;limit=2&continue=p2;limit=2&continue=p2;",
      "a b ",
      -1 },
    { "a list that grew too old begins anew, the second time without pages",
      { { 200, LIST("p2", ITEM("a")) },
        { 410, REFUSAL("410", "Expired") },
        { 200, LIST("p3", ITEM("x")) },
        { 410, REFUSAL("410", "Expired") },
        { 200, LIST("", ITEM("y") "," ITEM("z")) } },
      "limit=2;limit=2&continue=p2;limit=2;limit=2&continue=p3;;",
      "y z ",
      -1 },
    { "410 at once is the caller's", { { 410, REFUSAL("410", "Expired") } }, "limit=2;", "", 410 },
    { "an item that is no object", { { 200, LIST("", "5") } }, "limit=2;", "", 0 },
    { "a list that is none", { { 200, MAP("m") } }, "limit=2;", "", 0 },
};

static void test_lists(void **state)
{
    (void)state;
    EACH(row, list_rows) {
        struct kube_request rq = list_maps();
        struct kube_client *c;
        struct testapi t;
        struct told r;
        char lines[512] = "";
        size_t n = 0;

        testapi_open(&t);
        c = testapi_client(&t, NULL);
        testapi_script(&t, row->steps, LEN(row->steps));
        told_call(&t, c, &rq, &r);
        for (size_t i = 0; i < t.n; i++) {
            const char *query = strchr(t.asked[i].line, '?');

            n += (size_t)snprintf(lines + n, sizeof lines - n, "%s;", query ? query + 1 : "");
        }
        if (strcmp(lines, row->want_lines) != 0 || strcmp(r.names, row->want_names) != 0 ||
            r.code != row->want_code)
            fail_msg("%s: '%s', '%s', %d %s", row->name, lines, r.names, r.code, r.message);
        if (r.code == -1)
            assert_int_equal(r.version, 9);
        kube_client_free(c);
        testapi_close(&t);
    }
}

static void test_a_rate_is_kept(void **state)
{
    struct kube_request rq = get_map();
    struct kubeconfig k;
    struct kube_client *c;
    struct testapi t;
    struct told r[6] = { { 0 } };
    uint64_t began_ms;
    struct err e;

    (void)state;
    testapi_open(&t);
    testapi_kubeconfig(&t, NULL, &k);
    assert_int_equal(
        kubeclient_new(
            t.loop, &(struct kubeclient_config){ .kubeconfig = &k, .qps = 20, .burst = 2 }, &c, &e),
        0);
    TESTAPI_SCRIPT(&t, { 200, MAP("m") }, { 200, MAP("m") }, { 200, MAP("m") }, { 200, MAP("m") },
                   { 200, MAP("m") }, { 200, MAP("m") });
    began_ms = ev_now_ms(t.loop); /* the first may be long in coming: it has to connect */
    for (size_t i = 0; i < LEN(r); i++)
        (void)kube_call_start(c, &rq, told_done, &r[i]);
    for (size_t i = 0; i < LEN(r); i++)
        assert_true(side_wait(t.loop, told_is_there, &r[i]));
    assert_true(t.asked[5].at_ms - began_ms >= 190); /* four behind the burst, 50 ms each */
    kube_client_free(c);
    testapi_close(&t);
}

static void test_every_call_ends_once(void **state)
{
    struct kube_request rq = get_map();
    struct kube_client *c;
    struct kube_call *call;
    struct testapi t;
    struct told r[4] = { { 0 } };

    (void)state;
    testapi_open(&t);
    c = testapi_client(&t, NULL);
    TESTAPI_SCRIPT(&t, { 200, "{", TESTAPI_STAY }, { 200, "{", TESTAPI_STAY });
    call = kube_call_start(c, &rq, told_done, &r[0]);
    r[0].is_in_verb = true;
    kube_call_cancel(call); /* before it was sent */
    kube_call_cancel(call);
    r[0].is_in_verb = false;
    call = kube_call_start(c, &rq, told_done, &r[1]);
    testapi_await(&t, 1);
    kube_call_cancel(call); /* under way */
    (void)kube_call_start(c, &rq, told_done, &r[2]);
    testapi_await(&t, 2);
    (void)kube_call_start(c, &rq, told_done, &r[3]);
    kube_client_free(c);
    side_idle(t.loop, 20);
    EACH(told, r) {
        assert_int_equal(told->times, 1);
        assert_int_equal(told->code, 0);
    }
    assert_int_equal(t.n, 2);
    testapi_close(&t);
}

static void test_a_request_that_cannot_be_said(void **state)
{
    struct kube_request rq = get_map();
    struct kube_client *c;
    struct testapi t;
    struct told r;

    (void)state;
    testapi_open(&t);
    c = testapi_client(&t, NULL);
    rq.name = "a/b";
    told_call(&t, c, &rq, &r);
    assert_int_equal(r.code, 400);
    assert_string_equal(r.message, "'a/b' cannot be a name");
    assert_int_equal(t.n, 0);
    kube_client_free(c);
    testapi_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_call_and_what_it_says_of_us),
        cmocka_unit_test(test_tries),
        cmocka_unit_test(test_retry_after_is_obeyed),
        cmocka_unit_test(test_the_deadline_ends_the_tries),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_a_rate_is_kept),
        cmocka_unit_test(test_every_call_ends_once),
        cmocka_unit_test(test_a_request_that_cannot_be_said),
    };
    size_t before = side_fd_count();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);

    return failed || side_fd_count() != before;
}
