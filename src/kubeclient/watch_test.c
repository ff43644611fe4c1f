/* Watches against a server that answers as the test says. */
#include "kubeclient/testapi.h"

#define MAP(version)                                                                               \
    "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"m\",\"namespace\":"    \
    "\"a\",\"resourceVersion\":\"" version "\"}}"
#define EVENT(type, version) "{\"type\":\"" type "\",\"object\":" MAP(version) "}\n"
#define ERROR(code)                                                                                \
    "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"message\":"       \
    "\"too old\",\"reason\":\"Expired\",\"code\":" code "}}\n"

struct seen {
    struct kube_watch *watch;
    char events[256]; /* "A5 M6 D7 B8 " */
    size_t n;
    unsigned ends;
    int code;
    char why[256];
    bool is_in_verb, stops; /* stops: at the next event */
};

static void on_event(void *ctx, enum kube_event type, struct object *o, uint64_t version)
{
    struct seen *s = ctx;

    assert_false(s->is_in_verb || s->ends);
    assert_int_equal(o == NULL, type == KUBE_BOOKMARK);
    if (o)
        assert_string_equal(object_name(o), "m");
    s->n += (size_t)snprintf(s->events + s->n, sizeof s->events - s->n, "%c%llu ", "AMDB"[type],
                             (unsigned long long)version);
    if (s->stops)
        kube_watch_stop(s->watch);
}

static void on_end(void *ctx, const struct status *why)
{
    struct seen *s = ctx;

    assert_false(s->is_in_verb);
    s->ends++;
    s->code = why->code;
    (void)snprintf(s->why, sizeof s->why, "%s", buf_cstr(&why->message));
}

static const struct kube_watch_events events = { on_event, on_end };

static bool has_ended(void *ctx)
{
    return ((struct seen *)ctx)->ends > 0;
}

static void watch(struct kube_client *c, struct seen *s)
{
    *s = (struct seen){ .is_in_verb = true };
    s->watch =
        kube_watch_start(c,
                         &(struct kube_watch_spec){ .kind = kind_find("", NULL, "configmaps"),
                                                    .namespace = "a",
                                                    .labels = "x",
                                                    .from_version = 4 },
                         &events, s);
    s->is_in_verb = false;
}

static const char *version_of(const struct testapi_asked *a)
{
    static char text[32];
    const char *at = strstr(a->line, "resourceVersion=");

    (void)snprintf(text, sizeof text, "%.*s", at ? (int)strcspn(at + 16, "&") : 0,
                   at ? at + 16 : "");
    return text;
}

static const struct row {
    const char *name;
    struct testapi_step steps[4];
    const char *want_events;
    const char *want_versions; /* of the requests */
    int want_code;
    const char *want_why; /* a part */
} rows[] = {
    { "every type of event, then 410 as an event",
      { { 200,
          EVENT("ADDED", "5") EVENT("MODIFIED", "6") EVENT("DELETED", "7") EVENT("BOOKMARK", "8")
              ERROR("410"),
          TESTAPI_STAY } },
      "A5 M6 D7 B8 ",
      "4 ",
      410,
      "too old" },
    { "an end, and 410 as a status",
      { { 200, EVENT("ADDED", "5") EVENT("BOOKMARK", "9") },
        { 410, "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"message\":\"old\",\"code\":410}" } },
      "A5 B9 ",
      "4 9 ",
      410,
      "old" },
    { "a cut in the middle of an event",
      { { 200, EVENT("ADDED", "5") "{\"type\":\"MOD", TESTAPI_CUT },
        { 200, EVENT("MODIFIED", "6") ERROR("410"), TESTAPI_STAY } },
      "A5 M6 ",
      "4 5 ",
      410,
      "" },
    { "no answer, 503, 429 and an event of a passing fault",
      { { 0 },
        { 503, "" },
        { 200, EVENT("ADDED", "5") ERROR("500"), TESTAPI_STAY },
        { 403, "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"message\":\"no\",\"code\":403}" } },
      "A5 ",
      "4 4 4 5 ",
      403,
      "no" },
    { "a refusal that is no Status",
      { { 404, "what?" } },
      "",
      "4 ",
      404,
      "the server answered 404: what?" },
    { "what is no JSON",
      { { 200, "{\"type\":}\n", TESTAPI_STAY } },
      "",
      "4 ",
      500,
      "cannot read the server's events" },
    { "another kind",
      { { 200, "{\"type\":\"ADDED\",\"object\":{\"kind\":\"Pod\"}}", TESTAPI_STAY } },
      "",
      "4 ",
      500,
      "not of a ConfigMap" },
    { "an event nobody knows",
      { { 200, EVENT("MOVED", "5"), TESTAPI_STAY } },
      "",
      "4 ",
      500,
      "unknown type" },
};

static void test_rows(void **state)
{
    (void)state;
    EACH(r, rows) {
        char versions[128] = "";
        struct kube_client *c;
        struct testapi t;
        struct seen s;
        size_t n = 0;

        testapi_open(&t);
        c = testapi_client(&t, "secret");
        testapi_script(&t, r->steps, LEN(r->steps));
        watch(c, &s);
        assert_true(side_wait(t.loop, has_ended, &s));
        for (size_t i = 0; i < t.n; i++)
            n +=
                (size_t)snprintf(versions + n, sizeof versions - n, "%s ", version_of(&t.asked[i]));
        side_idle(t.loop, 5);
        if (strcmp(s.events, r->want_events) != 0 || strcmp(versions, r->want_versions) != 0 ||
            s.code != r->want_code || !strstr(s.why, r->want_why) || s.ends != 1)
            fail_msg("%s: '%s', '%s', %d %s", r->name, s.events, versions, s.code, s.why);
        kube_client_free(c);
        testapi_close(&t);
    }
}

static void test_a_watch_says_what_it_wants(void **state)
{
    struct kube_client *c;
    struct testapi t;
    struct seen s;
    unsigned seconds = 0;

    (void)state;
    testapi_open(&t);
    c = testapi_client(&t, "secret");
    TESTAPI_SCRIPT(&t, { 200, "", TESTAPI_STAY });
    watch(c, &s);
    testapi_await(&t, 1);
    assert_int_equal(sscanf(t.asked[0].line,
                            "GET /api/v1/namespaces/a/configmaps?watch=true&allowWatchBookmarks="
                            "true&labelSelector=x&resourceVersion=4&timeoutSeconds=%u",
                            &seconds),
                     1);
    assert_in_range(seconds, 300, 600);
    assert_string_equal(t.asked[0].authorization, "Bearer secret");
    kube_client_free(c);
    side_idle(t.loop, 10);
    assert_int_equal(s.ends, 1);
    assert_int_equal(s.code, 0);
    testapi_close(&t);
}

static void test_a_stopped_watch_is_silent_and_ends_once(void **state)
{
    struct kube_client *c;
    struct testapi t;
    struct seen s[3];

    (void)state;
    testapi_open(&t);
    c = testapi_client(&t, NULL);
    TESTAPI_SCRIPT(&t, { 200, EVENT("ADDED", "5") EVENT("ADDED", "6"), TESTAPI_STAY }, { 503, "" });
    watch(c, &s[0]);
    s[0].stops = true; /* inside its first event */
    assert_true(side_wait(t.loop, has_ended, &s[0]));
    assert_string_equal(s[0].events, "A5 ");
    watch(c, &s[1]);
    s[1].is_in_verb = true;
    kube_watch_stop(s[1].watch); /* before it was sent */
    kube_watch_stop(s[1].watch);
    s[1].is_in_verb = false;
    watch(c, &s[2]);
    testapi_await(&t, 2);
    side_idle(t.loop, 5);
    kube_watch_stop(s[2].watch); /* while it waits for its next try */
    side_idle(t.loop, 10);
    EACH(w, s) {
        assert_int_equal(w->ends, 1);
        assert_int_equal(w->code, 0);
    }
    kube_client_free(c);
    testapi_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_a_watch_says_what_it_wants),
        cmocka_unit_test(test_a_stopped_watch_is_silent_and_ends_once),
    };
    size_t before = side_fd_count();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);

    return failed || side_fd_count() != before;
}
