#include "base/log.h"

#include "base/fd.h"
#include "base/json.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define TIME_BYTES (sizeof "2026-11-16T09:30:00.123Z" - 1)

static const struct err failure = { .code = ERR_DENIED,
                                    .msg = "cannot open '/x': Permission denied" };

/* clang-format off */
static const struct row { const char *name; struct log_kv kv; const char *text, *json; } rows[] = {
    { "number",       { "n", LOG_KIND_I64, { .i = -5 } },                     "n=-5",            "\"n\":-5" },
    { "unsigned",     { "n", LOG_KIND_U64, { .u = UINT64_MAX } },             "n=18446744073709551615", "\"n\":18446744073709551615" },
    { "double",       { "ms", LOG_KIND_DOUBLE, { .d = 12.5 } },               "ms=12.5",         "\"ms\":12.5" },
    { "not a number", { "ms", LOG_KIND_DOUBLE, { .d = NAN } },                "ms=\"nan\"",      "\"ms\":\"nan\"" },
    { "infinite",     { "ms", LOG_KIND_DOUBLE, { .d = -INFINITY } },          "ms=\"-inf\"",     "\"ms\":\"-inf\"" },
    { "true",         { "is", LOG_KIND_BOOL, { .u = 1 } },                    "is=true",         "\"is\":true" },
    { "bare word",    { "s", LOG_KIND_STR, { .s = "py311/a-b:c" } },          "s=py311/a-b:c",   "\"s\":\"py311/a-b:c\"" },
    { "empty",        { "s", LOG_KIND_STR, { .s = "" } },                     "s=\"\"",          "\"s\":\"\"" },
    { "nothing",      { "s", LOG_KIND_STR, { .s = NULL } },                   "s=\"\"",          "\"s\":\"\"" },
    { "blank",        { "s", LOG_KIND_STR, { .s = "a b" } },                  "s=\"a b\"",       "\"s\":\"a b\"" },
    { "equals",       { "s", LOG_KIND_STR, { .s = "a=b" } },                  "s=\"a=b\"",       "\"s\":\"a=b\"" },
    { "quotes",       { "s", LOG_KIND_STR, { .s = "\"\\" } },                 "s=\"\\\"\\\\\"",  "\"s\":\"\\\"\\\\\"" },
    { "newline",      { "s", LOG_KIND_STR, { .s = "a\nlevel=error" } },       "s=\"a\\nlevel=error\"", "\"s\":\"a\\nlevel=error\"" },
    { "terminal",     { "s", LOG_KIND_STR, { .s = "\x1b[31m\x7f" } },         "s=\"\\u001b[31m\\u007f\"", "\"s\":\"\\u001b[31m\\u007f\"" },
    { "characters",   { "s", LOG_KIND_STR, { .s = "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80" } },
      "s=\"\\u00e9\\u20ac\\ud83d\\ude00\"", "\"s\":\"\\u00e9\\u20ac\\ud83d\\ude00\"" },
    { "ill-formed",   { "s", LOG_KIND_STR, { .s = "a\xff\xe2\x82z" } },       "s=\"a\\ufffd\\ufffdz\"", "\"s\":\"a\\ufffd\\ufffdz\"" },
    { "NUL inside",   { "s", LOG_KIND_SPAN, { .span = BYTES("a\0b") } },      "s=\"a\\u0000b\"", "\"s\":\"a\\u0000b\"" },
    { "error",        { "err", LOG_KIND_ERR, { .err = &failure } },
      "err=\"cannot open '/x': Permission denied\"", "\"err\":\"cannot open '/x': Permission denied\"" },
};
/* clang-format on */

static void test_rows(void **state)
{
    EACH(r, rows) {
        OWN(buf_done) struct buf text = BUF_INIT(4096), json = BUF_INIT(4096);
        OWN(json_doc_done) struct json_doc *doc = NULL;
        char want[512];
        struct err e;

        log_format(&text, LOG_TEXT, LOG_WARN, "room.verb", &r->kv, 1);
        (void)snprintf(want, sizeof want, " level=warn event=room.verb %s\n", r->text);
        assert_memory_equal(text.p, "ts=20", 5);
        assert_string_equal(buf_cstr(&text) + 3 + TIME_BYTES, want);
        log_format(&json, LOG_JSON, LOG_ERROR, "room.verb", &r->kv, 1);
        (void)snprintf(want, sizeof want, "\",\"level\":\"error\",\"event\":\"room.verb\",%s}\n",
                       r->json);
        assert_string_equal(buf_cstr(&json) + 7 + TIME_BYTES, want);
        if (json_parse(buf_span(&json), NULL, &doc, &e) < 0)
            fail_msg("%s: %s", r->name, e.msg);
    }
}

static void test_long_value(void **state)
{
    OWN(buf_done) struct buf out = BUF_INIT(8192);
    char big[LOG_VALUE_MAX_BYTES + 2];
    struct log_kv kv;

    memset(big, 'x', sizeof big);
    kv = log_kv_span("v", span_of(big, LOG_VALUE_MAX_BYTES));
    log_format(&out, LOG_TEXT, LOG_INFO, "e", &kv, 1);
    assert_null(strstr(buf_cstr(&out), "..."));
    buf_clear(&out);
    memcpy(big + LOG_VALUE_MAX_BYTES - 1, "\xe2\x82", 2); /* the cut does not split a character */
    kv = log_kv_span("v", span_of(big, sizeof big));
    log_format(&out, LOG_TEXT, LOG_INFO, "e", &kv, 1);
    assert_non_null(strstr(buf_cstr(&out), "xx...\"\n"));
    assert_null(strstr(buf_cstr(&out), "fffd"));
}

/* However small the ceiling, the values that do not fit are left out whole and the line ends as a line. */
static void test_full_line(void **state)
{
    struct log_kv kv[3] = { log_kv_s("first", "aaaaaaaaaaaaaaaa bbbbbbbbbbbbbbbbbbbbbb"),
                            log_kv_s("second", "\x1b\x1b\x1b\x1b\x1b\x1b"), log_kv_i("third", 3) };

    for (size_t max = 80; max < 220; max++) {
        OWN(buf_done) struct buf out = BUF_INIT(max);
        OWN(json_doc_done) struct json_doc *doc = NULL;
        struct err e;

        log_format(&out, LOG_JSON, LOG_INFO, "event", kv, LEN(kv));
        if (json_parse(buf_span(&out), NULL, &doc, &e) < 0)
            fail_msg("at %zu: %s: %s", max, e.msg, buf_cstr(&out));
        assert_int_equal(out.p[out.n - 1], '\n');
        assert_true(max < 200 || json_count(json_doc_root(doc)) == 6);
    }
}

static void test_level(void **state)
{
    enum log_level level = LOG_OFF;

    assert_true(log_level_parse("debug", &level) && level == LOG_DEBUG);
    assert_true(log_level_parse("off", &level) && level == LOG_OFF);
    assert_false(log_level_parse("loud", &level) || log_level_parse("", &level));
    assert_int_equal(log_level_of_zap("debug"), LOG_DEBUG);
    assert_int_equal(log_level_of_zap("info"), LOG_INFO);
    assert_int_equal(log_level_of_zap("0"), LOG_INFO);
    assert_int_equal(log_level_of_zap("5"), LOG_DEBUG);
    assert_int_equal(log_level_of_zap("panic"), LOG_ERROR);
    log_set_level(LOG_WARN);
    assert_int_equal(log_level(), LOG_WARN);
    assert_false(log_is_on(LOG_INFO));
    assert_true(log_is_on(LOG_WARN) && log_is_on(LOG_ERROR));
}

/* What KV makes of each type, through a real descriptor; errno survives, and what is below the level costs nothing. */
static void test_event(void **state)
{
    OWN(buf_done) struct buf got = BUF_INIT(8192);
    OWN_FD int r = -1, w = -1;
    int ends[2], calls = 0;
    struct err e;

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    r = ends[0], w = ends[1];
    log_open(w, LOG_INFO, LOG_TEXT);
    errno = EAGAIN;
    log_info("exec.exit", KV("exec", "a b"), KV("code", -9), KV("port", (uint16_t)80),
             KV("ok", (bool)true), KV("n", (size_t)7), KV("at", 1.5), KV("s", SPAN("x")),
             KV("err", &failure));
    assert_int_equal(errno, EAGAIN);
    log_debug("never", KV("calls", ++calls));
    log_warn("bare");
    assert_int_equal(calls, 0);
    own_fd_close(&w);
    log_open(2, LOG_INFO, LOG_TEXT);
    assert_int_equal(fd_read_all(r, &got, &e), 0);
    assert_non_null(
        strstr(buf_cstr(&got),
               " level=info event=exec.exit exec=\"a b\" code=-9 port=80 ok=true n=7 at=1.5 "
               "s=x err=\"cannot open '/x': Permission denied\"\nts="));
    assert_non_null(strstr(buf_cstr(&got), " level=warn event=bare\n"));
}

static void test_lines_as_controllers_in_go_write_them(void **state)
{
    const struct log_kv kv[] = { KV("name", "a \"b\""), KV("n", 7) };
    OWN(buf_done) struct buf out = BUF_INIT(4096);
    OWN(json_doc_done) struct json_doc *doc = NULL;
    const struct json *line;
    double ts;
    struct err e;

    (void)state;
    log_format(&out, LOG_ZAP, LOG_WARN, "pool.refill.late", kv, LEN(kv));
    assert_int_equal(json_parse(buf_span(&out), NULL, &doc, &e), 0);
    line = json_doc_root(doc);
    assert_string_equal(json_cstr(json_get(line, "level")), "warn");
    assert_string_equal(json_cstr(json_get(line, "logger")), "pool");
    assert_string_equal(json_cstr(json_get(line, "msg")), "pool.refill.late");
    assert_true(json_double(json_get(line, "ts"), &ts) && ts > 1.7e9);
    assert_string_equal(json_cstr(json_get(line, "name")), "a \"b\"");
    assert_true(buf_cstr(&out)[out.n - 1] == '\n');
}

static void test_limit(void **state)
{
    struct log_limit l = { 0 };
    unsigned lines = 0;

    (void)state;
    for (uint64_t ms = 5000; ms < 5000 + 3 * LOG_LIMIT_MS; ms += 10)
        lines += log_limit_pass(&l, ms);
    assert_int_equal(lines, 3);
    assert_int_equal(l.count, 3 * LOG_LIMIT_MS / 10);
}

int main(void)
{
    const struct CMUnitTest list[] = { cmocka_unit_test(test_rows),
                                       cmocka_unit_test(test_long_value),
                                       cmocka_unit_test(test_full_line),
                                       cmocka_unit_test(test_level),
                                       cmocka_unit_test(test_event),
                                       cmocka_unit_test(test_limit),
                                       cmocka_unit_test(
                                           test_lines_as_controllers_in_go_write_them) };

    return cmocka_run_group_tests(list, NULL, NULL);
}
