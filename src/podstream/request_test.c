#include "podstream/request.h"

#include "podstream/status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#define POD "/api/v1/namespaces/ns-1/pods/pod.a"

static void test_paths(void **state)
{
    static const struct row {
        const char *path;
        bool want;
    } rows[] = {
        { POD "/exec", true },
        { POD "/attach", true },
        { POD "/portforward", true },
        { POD, false },
        { POD "/", false },
        { POD "/exec/", false },
        { POD "/exec/x", false },
        { POD "/log", true },
        { POD "/logs", false },
        { "/api/v1/namespaces/a/services/b/exec", false },
        { "/api/v1/pods/b/exec", false },
        { "/apis/v1/namespaces/a/pods/b/exec", false },
        { "", false },
    };

    (void)state;
    EACH(r, rows) {
        if (pod_request_is(span_cstr(r->path)) != r->want)
            fail_msg("%s", r->path);
    }
}

/* What a request says, as a line. */
static void describe(const struct pod_request *r, struct buf *out)
{
    struct err e;

    assert_int_equal(buf_addf(out, &e, "%d %s/%s/%s%s%s%s%s", r->verb, r->ns, r->pod, r->container,
                              r->has_stdin ? " in" : "", r->has_stdout ? " out" : "",
                              r->has_stderr ? " err" : "", r->has_tty ? " tty" : ""),
                     0);
    for (size_t i = 0; i < r->argc; i++)
        assert_int_equal(buf_addf(out, &e, " [%s]", r->argv[i]), 0);
    for (size_t i = 0; i < r->port_count; i++)
        assert_int_equal(buf_addf(out, &e, " :%u", r->ports[i]), 0);
    assert_null(r->argv[r->argc]);
    if (*r->uid)
        assert_int_equal(buf_addf(out, &e, " uid=%s", r->uid), 0);
    if (*r->caller)
        assert_int_equal(buf_addf(out, &e, " caller=%s", r->caller), 0);
    if (r->verb != POD_LOG)
        return;
    assert_int_equal(buf_addf(out, &e, " streams=%d%s%s%s since=%s", r->log.streams,
                              r->log.is_followed ? " follow" : "",
                              r->log.is_previous ? " previous" : "",
                              r->log.has_times ? " times" : "", r->log.since),
                     0);
    if (r->log.tail != UINT64_MAX || r->log.limit != UINT64_MAX)
        assert_int_equal(
            buf_addf(out, &e, " tail=%jd limit=%jd", (intmax_t)r->log.tail, (intmax_t)r->log.limit),
            0);
}

static void test_queries(void **state)
{
    static const struct row {
        const char *path, *query, *want; /* or the error */
    } rows[] = {
        { POD "/exec", "command=ls&stdout=1", "0 ns-1/pod.a/ out [ls]" },
        { POD "/exec", "command=sh&command=-c&command=echo+a%20b%26&stdout=True&stderr=true",
          "0 ns-1/pod.a/ out err [sh] [-c] [echo a b&]" },
        { POD "/exec", "container=main&command=a&stdin&tty=true&stderr=true&stdout=false",
          "0 ns-1/pod.a/main in tty [a]" },
        /* Of two the last counts: who sends requests on speaks last. */
        { POD "/portforward", "caller=me&caller=%7B%22user%22%3A%22a+b%22%7D",
          "2 ns-1/pod.a/ caller={\"user\":\"a b\"}" },
        { POD "/exec", "command=a&stdout=1&caller=me", "0 ns-1/pod.a/ out [a]" },
        { POD "/exec", "command=&command=%C3%A9&stdin=1", "0 ns-1/pod.a/ in [] [\xc3\xa9]" },
        { POD "/exec", "command=100%&stdin=1", "0 ns-1/pod.a/ in [100%]" },
        { POD "/exec", "other=1&command=a&stdin=1&&x", "0 ns-1/pod.a/ in [a]" },
        { POD "/attach", "stdout=true", "1 ns-1/pod.a/ out" },
        { POD "/portforward", "", "2 ns-1/pod.a/" },
        { POD "/portforward", "ports=80%2C8080&ports=1,65535",
          "2 ns-1/pod.a/ :80 :8080 :1 :65535" },
        { POD "/exec", "stdout=1", "you must specify at least one command for the container" },
        { POD "/exec", "command=a", "you must specify at least 1 of stdin, stdout, stderr" },
        { POD "/exec", "command=a&stdin=0&stdout=False",
          "you must specify at least 1 of stdin, stdout, stderr" },
        { POD "/exec", "command=a%00b&stdin=1", "a NUL byte in a parameter" },
        { POD "/exec", "command=a&stdin=1&container=../b", "not the name of a container: '../b'" },
        { POD "/portforward", "ports=0", "not a port: '0'" },
        { POD "/portforward", "ports=65536", "not a port: '65536'" },
        { POD "/portforward", "ports=80,x", "not a port: 'x'" },
        { POD "/exec", "container=a&uid=x&command=a&stdin=1&container=b&uid=0a-1",
          "0 ns-1/pod.a/b in [a] uid=0a-1" }, /* what whoever passed it on has added counts */
        { POD "/exec", "command=a&stdin=1&uid=a/b", "not the name of a uid: 'a/b'" },
        { POD "/log", "", "3 ns-1/pod.a/ streams=0 since=" },
        { POD "/log",
          "container=c&follow=true&previous&timestamps=1&tailLines=5&limitBytes=10&uid=u",
          "3 ns-1/pod.a/c uid=u streams=0 follow previous times since= tail=5 limit=10" },
        { POD "/log", "since=2026-11-16T09:30:00.123456789Z&stream=Stderr&tailLines=0",
          "3 ns-1/pod.a/ streams=2 since=2026-11-16T09:30:00.123456789Z tail=0 limit=-1" },
        { POD "/log", "since=2026-11-16T09%3A30%3A00Z&stream=All&follow=false",
          "3 ns-1/pod.a/ streams=0 since=2026-11-16T09:30:00Z" },
        { POD "/log", "tailLines=-1", "tailLines is not a number: '-1'" },
        { POD "/log", "limitBytes=", "limitBytes is not a number: ''" },
        { POD "/log", "since=yesterday", "not a time: 'yesterday'" },
        { POD "/log", "since=2026-11-16T09:30:00.Z", "not a time: '2026-11-16T09:30:00.Z'" },
        { POD "/log", "since=2026-11-16T09:30:00.5", "not a time: '2026-11-16T09:30:00.5'" },
        { POD "/log", "since=2026-11-16 09:30:00Z", "not a time: '2026-11-16 09:30:00Z'" },
        { "/api/v1/namespaces/../pods/b/exec", "", "not the name of a namespace: '..'" },
        { "/api/v1/namespaces/a/pods/B/exec", "", "not the name of a pod: 'B'" },
        { "/api/v1/namespaces/a/pods/b%2fc/exec", "", "not the name of a pod: 'b%2fc'" },
        { "/api/v1/namespaces/a/pods//exec", "", "not the name of a pod: ''" },
    };

    (void)state;
    EACH(row, rows) {
        OWN(buf_done) struct buf line = BUF_INIT(4096);
        struct pod_request *r = NULL;
        struct err e;

        if (pod_request_parse(span_cstr(row->path), span_cstr(row->query), &r, &e) == 0)
            describe(r, &line);
        else
            assert_int_equal(buf_addf(&line, &e, "%s", e.msg), 0);
        if (!span_is(buf_span(&line), row->want))
            fail_msg("%s?%s: %s", row->path, row->query, buf_cstr(&line));
        pod_request_free(r);
    }
}

/* Files are written through exec: a word of a megabyte passes, one beyond the ceiling is told. */
static void test_long_commands(void **state)
{
    OWN(buf_done) struct buf query = BUF_INIT(8 << 20);
    struct pod_request *r;
    struct err e;

    (void)state;
    assert_int_equal(buf_addf(&query, &e, "stdin=1&command="), 0);
    for (int i = 0; i < (1 << 20); i++)
        assert_int_equal(buf_addc(&query, 'x', &e), 0);
    assert_int_equal(pod_request_parse(SPAN(POD "/exec"), buf_span(&query), &r, &e), 0);
    assert_int_equal(strlen(r->argv[0]), 1 << 20);
    pod_request_free(r);
    assert_int_equal(buf_addf(&query, &e, "&command=%*s", 8192, "y"), 0);
    assert_int_equal(pod_request_parse(SPAN(POD "/exec"), buf_span(&query), &r, &e), -1);
    assert_int_equal(e.code, ERR_LIMIT);
    buf_clear(&query);
    for (int i = 0; i <= POD_COMMAND_MAX_WORDS; i++)
        assert_int_equal(buf_addf(&query, &e, "command=a&"), 0);
    assert_int_equal(pod_request_parse(SPAN(POD "/exec"), buf_span(&query), &r, &e), -1);
    assert_string_equal(e.msg, "a command of more than 65536 words");
    buf_clear(&query);
    for (int i = 0; i <= POD_PORTS_MAX; i++)
        assert_int_equal(buf_addf(&query, &e, "ports=1&"), 0);
    assert_int_equal(pod_request_parse(SPAN(POD "/portforward"), buf_span(&query), &r, &e), -1);
    assert_string_equal(e.msg, "more than 64 ports");
}

static void test_sizes(void **state)
{
    static const struct row {
        const char *in, *want;
    } rows[] = {
        { "{\"Width\":80,\"Height\":24}", "80x24 " },
        { "{\"Width\":80,\"Height\":24}\n{\"Height\":1,\"Width\":65535}", "80x24 65535x1 " },
        { "{\"Width\":0,\"Height\":24}{\"Width\":8,\"Height\":2}", "8x2 " },
        { "{\"Width\":65536,\"Height\":24}{\"Width\":-1,\"Height\":2}{}", "" },
        { "}}}{\"Width\":8,\"Height\":2}", "8x2 " },
        { "{\"Width\":\"8\",\"Height\":2}", "" },
        { "{\"Width\":8", "" },
    };

    (void)state;
    EACH(r, rows) {
        for (size_t step = 1; step <= strlen(r->in); step++) {
            OWN(buf_done) struct buf got = BUF_INIT(4096);
            OWN(pod_resize_done) struct pod_resize z;
            struct span rest = span_cstr(r->in);
            uint16_t cols, rows_;
            struct err e;
            size_t used;

            pod_resize_init(&z);
            while (rest.n) {
                if (pod_resize_feed(&z, span_slice(rest, 0, step), &used, &cols, &rows_))
                    assert_int_equal(buf_addf(&got, &e, "%ux%u ", cols, rows_), 0);
                rest = span_skip(rest, used);
            }
            if (!span_is(buf_span(&got), r->want))
                fail_msg("%s, by %zu: %s", r->in, step, buf_cstr(&got));
        }
    }
}

/* A flood without an end stays within its ceiling, and what follows is read. */
static void test_a_size_without_end(void **state)
{
    OWN(pod_resize_done) struct pod_resize z;
    uint16_t cols, rows;
    size_t used;

    (void)state;
    pod_resize_init(&z);
    for (int i = 0; i < 1000; i++)
        assert_false(pod_resize_feed(&z, SPAN("{{{{{{{{{{"), &used, &cols, &rows));
    assert_true(z.text.n <= POD_RESIZE_MAX_BYTES);
    assert_false(pod_resize_feed(&z, SPAN("}"), &used, &cols, &rows));
    assert_true(pod_resize_feed(&z, SPAN("{\"Width\":8,\"Height\":2}"), &used, &cols, &rows));
}

static void test_statuses(void **state)
{
    OWN(buf_done) struct buf out = BUF_INIT(STATUS_MAX_BYTES);
    struct err e;

    (void)state;
    status_of_exit(&out, 0);
    assert_string_equal(buf_cstr(&out), "{\"metadata\":{},\"status\":\"Success\"}");
    buf_clear(&out);
    status_of_exit(&out, 3);
    assert_string_equal(buf_cstr(&out),
                        "{\"metadata\":{},\"status\":\"Failure\",\"message\":\"command terminated "
                        "with non-zero exit code: exit status 3\",\"reason\":\"NonZeroExitCode\","
                        "\"details\":{\"causes\":[{\"reason\":\"ExitCode\",\"message\":\"3\"}]}}");
    buf_clear(&out);
    (void)err_set(&e, ERR_NOT_FOUND, "cannot run 'x': No such file or directory");
    status_of_error(&out, &e);
    assert_non_null(strstr(buf_cstr(&out), "\"reason\":\"NonZeroExitCode\""));
    assert_non_null(strstr(buf_cstr(&out), "\"message\":\"127\""));
    buf_clear(&out);
    (void)err_set(&e, ERR_UNAVAILABLE, "the sandbox is gone");
    status_of_error(&out, &e);
    assert_non_null(strstr(buf_cstr(&out), "\"message\":\"the sandbox is gone\""));
    assert_non_null(strstr(buf_cstr(&out), "\"details\":{\"causes\":[{\"reason\":\"ExitCode\","
                                           "\"message\":\"1\"}]}"));
    assert_null(strstr(buf_cstr(&out), "NonZeroExitCode"));
    buf_clear(&out);
    memset(e.msg, '\x01', sizeof e.msg - 1); /* the longest there can be, every byte escaped */
    status_of_error(&out, &e);
    assert_true(out.n > 6 * (sizeof e.msg - 1));
    buf_clear(&out);
    status_of_refusal(&out, 404, "NotFound", "no");
    assert_non_null(strstr(buf_cstr(&out), "\"code\":404"));
}

int main(void)
{
    const struct CMUnitTest all[] = {
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_queries),
        cmocka_unit_test(test_long_commands),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_a_size_without_end),
        cmocka_unit_test(test_statuses),
    };

    return cmocka_run_group_tests(all, NULL, NULL);
}
