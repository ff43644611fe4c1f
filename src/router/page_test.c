#include "router/page.h"

#include "kube/kind.h"
#include "router/limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define EXTENSIONS "extensions.agents.x-k8s.io"

static struct object *make(const char *group, const char *plural, const char *text)
{
    OWN(json_doc_done) struct json_doc *doc = NULL;
    struct object *o = NULL;
    struct err e = { 0 };

    if (json_parse(span_cstr(text), NULL, &doc, &e) < 0 ||
        object_parse(kind_find(group, NULL, plural), json_doc_root(doc), &o, &e) < 0)
        fail_msg("%s", e.msg);
    return o;
}

static void show(const struct page *p, struct buf *out)
{
    struct err e = { 0 };

    if (page_write(p, out, &e) < 0)
        fail_msg("%s", e.msg);
}

static bool has(const struct buf *html, const char *text)
{
    return strstr(buf_cstr(html), text) != NULL;
}

static void test_an_empty_machine(void **state)
{
    OWN(buf_done) struct buf html = BUF_INIT(PAGE_MAX_BYTES);

    (void)state;
    show(&(struct page){ 0 }, &html);
    assert_true(has(&html, "<!doctype html>") && has(&html, "None."));
    assert_true(has(&html, "All pools are full, all claims and sandboxes are ready."));
    assert_false(has(&html, "<script"));
}

static void test_what_is_wrong_is_told(void **state)
{
    OWN(buf_done) struct buf html = BUF_INIT(PAGE_MAX_BYTES);
    struct object *pool =
        make(EXTENSIONS, "sandboxwarmpools",
             "{\"metadata\":{\"name\":\"p\",\"namespace\":\"n\"},\"spec\":{\"replicas\":"
             "4,\"sandboxTemplateRef\":{\"name\":\"t\"}},\"status\":{\"readyReplicas\":3}}");
    struct object *claim = make(
        EXTENSIONS, "sandboxclaims",
        "{\"metadata\":{\"name\":\"c\",\"namespace\":\"n\"},\"status\":{\"conditions\":[{\"type\":"
        "\"Ready\",\"status\":\"False\",\"reason\":\"TemplateNotFound\",\"message\":\"no such\"}]}}");
    struct object *sleeper = make(
        "agents.x-k8s.io", "sandboxes",
        "{\"metadata\":{\"name\":\"s\",\"namespace\":\"n\"},\"spec\":{\"operatingMode\":\"Suspended\"}}");
    const struct page page = { .pools = { &pool, 1, false },
                               .claims = { &claim, 1, true },
                               .sandboxes = { &sleeper, 1, false } };

    (void)state;
    show(&page, &html);
    assert_true(has(&html, "2 of the pools, claims and sandboxes are not full, or not ready."));
    assert_true(has(&html, "<td>4</td><td class=bad>3</td>"));
    assert_true(has(&html,
                    "not ready</td><td>TemplateNotFound: no such<br>heals: <code>kubectl apply "
                    "what it names, or kubectl delete sandboxclaim -n n c</code></td>"));
    assert_true(has(&html, "suspended"));
    assert_true(has(&html, "There are more"));
    object_unref(pool);
    object_unref(claim);
    object_unref(sleeper);
}

static void test_words_of_others_stay_words(void **state)
{
    OWN(buf_done) struct buf html = BUF_INIT(PAGE_MAX_BYTES);
    char text[4096], long_one[1500];
    struct object *claim;
    struct page page = { 0 };

    (void)state;
    memset(long_one, 'x', sizeof long_one - 1);
    long_one[sizeof long_one - 1] = '\0';
    memcpy(long_one + PAGE_TEXT_MAX_BYTES - 1, "\xc3\xa4", 2); /* would be cut in two */
    (void)snprintf(
        text, sizeof text,
        "{\"metadata\":{\"name\":\"c\",\"namespace\":\"n\"},\"status\":{\"conditions\":[{"
        "\"type\":\"Ready\",\"status\":\"False\",\"reason\":\"<script>alert(1)</script>\","
        "\"message\":\"\\u0007' \\\" & <b> %s\"}]}}",
        long_one);
    claim = make(EXTENSIONS, "sandboxclaims", text);
    page.claims = (struct page_list){ &claim, 1, false };
    show(&page, &html);
    assert_true(has(&html, "&lt;script&gt;alert(1)&lt;/script&gt;"));
    assert_true(has(&html, "&#39; &quot; &amp; &lt;b&gt; xxx"));
    assert_false(has(&html, "<script") || has(&html, "<b>") || has(&html, "\a"));
    assert_true(has(&html, "xxx...</td>"));
    object_unref(claim);
}

static void test_the_latest_warnings_come_first(void **state)
{
    OWN(buf_done) struct buf html = BUF_INIT(PAGE_MAX_BYTES);
    struct object *events[PAGE_WARNINGS_MAX + 6];
    struct page page = { .events = { events, LEN(events), false } };
    char text[512];

    (void)state;
    for (size_t i = 0; i < LEN(events); i++) {
        (void)snprintf(
            text, sizeof text,
            "{\"metadata\":{\"name\":\"e%zu\",\"namespace\":\"n\"},\"type\":\"%s\",\"reason\":"
            "\"Why%02zu\",\"message\":\"m\",\"lastTimestamp\":\"2026-01-01T00:00:%02zuZ\","
            "\"involvedObject\":{\"kind\":\"Pod\",\"name\":\"p\"}}",
            i, i == 25 ? "Normal" : "Warning", (i * 7) % LEN(events), (i * 7) % LEN(events));
        events[i] = make("", "events", text);
    }
    show(&page, &html);
    assert_true(has(&html, "Why24") && has(&html, "Why25"));
    assert_true(strstr(buf_cstr(&html), "Why25") < strstr(buf_cstr(&html), "Why24"));
    assert_false(has(&html, "Why19")); /* of the one that is no warning */
    assert_false(has(&html, "Why04")); /* there are twenty later ones */
    for (size_t i = 0; i < LEN(events); i++)
        object_unref(events[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_empty_machine),
        cmocka_unit_test(test_what_is_wrong_is_told),
        cmocka_unit_test(test_words_of_others_stay_words),
        cmocka_unit_test(test_the_latest_warnings_come_first),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
