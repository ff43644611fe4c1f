/* Log files, cut anywhere, and lines that are none. */
#include "sandbox/logs.h"

#include "sandbox/limits.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define T1 "2026-11-16T09:30:00.123456789Z"

static void note(void *ctx, const struct logs_entry *entry)
{
    struct err e;

    assert_int_equal(buf_addf(ctx, &e, "[%.*s|%d|%c|%.*s]", SPAN_ARG(entry->time), entry->stream,
                              entry->is_end ? 'F' : 'P', SPAN_ARG(entry->text)),
                     0);
}

static const struct row {
    const char *name;
    struct span in;
    const char *out;
    uint64_t bad;
} rows[] = {
    { "a line", BYTES(T1 " stdout F hello\n"), "[" T1 "|0|F|hello]", 0 },
    { "both streams", BYTES("a stdout F x\nb stderr F y\n"), "[a|0|F|x][b|1|F|y]", 0 },
    { "an empty line", BYTES("a stdout F \n"), "[a|0|F|]", 0 },
    { "an empty line without its blank", BYTES("a stdout F\n"), "[a|0|F|]", 0 },
    { "blanks are text", BYTES("a stdout F  x  y \n"), "[a|0|F| x  y ]", 0 },
    { "a piece", BYTES("a stdout P he\na stdout F llo\n"), "[a|0|P|he][a|0|F|llo]", 0 },
    { "further tags", BYTES("a stdout F:x hello\n"), "[a|0|F|hello]", 0 },
    { "another stream", BYTES("a stdin F x\n"), "", 1 },
    { "another tag", BYTES("a stdout Q x\n"), "", 1 },
    { "a longer tag", BYTES("a stdout Fx x\n"), "", 1 },
    { "no stamp", BYTES("hello\n"), "", 1 },
    { "nothing in a line", BYTES("\n"), "", 1 },
    { "nothing", BYTES(""), "", 0 },
    { "cut at the end", BYTES("a stdout F x\nb stdout F y"), "[a|0|F|x]", 1 },
};

static void run(const struct row *r, size_t piece)
{
    OWN(buf_done) struct buf out = BUF_INIT(4096);
    struct logs l;

    logs_init(&l, note, &out);
    for (size_t at = 0; at < r->in.n; at += piece)
        logs_feed(&l, span_slice(r->in, at, at + MIN(piece, r->in.n - at)));
    logs_end(&l);
    if (strcmp(buf_cstr(&out), r->out) != 0 || l.bad != r->bad)
        fail_msg("%s: '%s', %llu bad", r->name, buf_cstr(&out), (unsigned long long)l.bad);
    logs_done(&l);
}

static void test_rows(void **state)
{
    (void)state;
    EACH(r, rows) {
        run(r, 1);
        run(r, 4096);
    }
}

static void test_too_long(void **state)
{
    OWN(buf_done) struct buf out = BUF_INIT(4096);
    OWN_MEM char *text = own_new(SANDBOX_LOG_ENTRY_MAX_BYTES + 100);
    struct logs l;

    (void)state;
    memset(text, 'x', SANDBOX_LOG_ENTRY_MAX_BYTES + 99);
    logs_init(&l, note, &out);
    logs_feed(&l, SPAN("a stdout F "));
    logs_feed(&l, span_cstr(text));
    logs_feed(&l, SPAN("\nb stdout F y\n"));
    assert_string_equal(buf_cstr(&out), "[b|0|F|y]");
    assert_int_equal(l.bad, 1);
    logs_done(&l);
}

int main(void)
{
    const struct CMUnitTest list[] = { cmocka_unit_test(test_rows),
                                       cmocka_unit_test(test_too_long) };

    return cmocka_run_group_tests(list, NULL, NULL);
}
