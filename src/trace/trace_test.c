#include "trace/trace.h"

#include "ev/loop.h"
#include "trace/limits.h"
#include "trace/settings.h"

#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define IDS "4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7"

struct rig {
    struct ev_loop *loop;
    struct tracer *tracer;
    struct http_head request, to;
};

/* Its collector is nobody: nothing here is told. */
static void open_rig(struct rig *r, enum trace_sampler sampler, bool is_parent_heard,
                     uint64_t below)
{
    struct trace_settings s;
    struct err e;

    assert_int_equal(ev_loop_new(&r->loop, &e), 0);
    assert_int_equal(trace_settings_read("test", &s, &e), 0);
    s.sampler = sampler;
    s.is_parent_heard = is_parent_heard;
    s.below = below;
    assert_int_equal(tracer_new(r->loop, NULL, &s, &r->tracer, &e), 0);
    trace_settings_done(&s);
    http_head_init(&r->request, 4096, 16);
    http_head_init(&r->to, 4096, 16);
}

static void close_rig(struct rig *r)
{
    tracer_free(r->tracer);
    ev_loop_free(r->loop);
    http_head_done(&r->request);
    http_head_done(&r->to);
}

static void say(struct http_head *h, const char *name, const char *value)
{
    struct err e;

    assert_int_equal(http_head_add(h, span_cstr(name), span_cstr(value), &e), 0);
}

/* What goes on of a request with these fields, in *r->to. */
static void pass(struct rig *r)
{
    struct trace_span *s = trace_begin(r->tracer, &r->request);
    struct err e;

    http_head_clear(&r->to);
    for (size_t i = 0; i < http_head_count(&r->request); i++)
        assert_int_equal(http_head_add_from(&r->to, &r->request, i, &e), 0);
    assert_int_equal(trace_pass(s, &r->to, &e), 0);
    trace_end(r->tracer, s, "test", NULL, 0, false);
}

static void test_a_parent_goes_on_as_ours(void **state)
{
    struct trace_context c;
    struct span parent;
    struct rig r;

    (void)state;
    open_rig(&r, TRACE_NONE, true, 0);
    say(&r.request, "traceparent", "00-" IDS "-01");
    say(&r.request, "tracestate", "a=1");
    say(&r.request, "x-other", "stays");
    say(&r.request, "tracestate", "b=2");
    pass(&r);
    parent = http_head_get(&r.to, "traceparent");
    assert_true(trace_context_parse(parent, &c));
    assert_memory_equal(parent.p, "00-" IDS, 36); /* the trace */
    assert_memory_not_equal(parent.p, "00-" IDS, 52);
    assert_int_equal(c.flags, TRACE_SAMPLED);
    assert_true(span_is(http_head_get(&r.to, "tracestate"), "a=1,b=2"));
    assert_true(span_is(http_head_get(&r.to, "x-other"), "stays"));
    assert_int_equal(http_head_count(&r.to), 3);
    close_rig(&r);
}

static void test_what_is_no_parent_begins_anew(void **state)
{
    static const struct {
        const char *name, *parent, *second, *trace_state;
    } rows[] = {
        { "none", NULL, NULL, NULL },
        { "a state alone", NULL, NULL, "a=1" },
        { "a bad one", "00-zz", NULL, "a=1" },
        { "two", "00-" IDS "-01", "00-" IDS "-01", "a=1" },
    };

    (void)state;
    EACH(row, rows) {
        struct trace_context c, again;
        struct rig r;

        open_rig(&r, TRACE_ALL, true, 0);
        if (row->parent)
            say(&r.request, "traceparent", row->parent);
        if (row->second)
            say(&r.request, "traceparent", row->second);
        if (row->trace_state)
            say(&r.request, "tracestate", row->trace_state);
        pass(&r);
        if (!trace_context_parse(http_head_get(&r.to, "traceparent"), &c) ||
            http_head_count(&r.to) != 1)
            fail_msg("%s: not one field of ours", row->name);
        pass(&r);
        assert_true(trace_context_parse(http_head_get(&r.to, "traceparent"), &again));
        assert_memory_not_equal(c.trace, again.trace, sizeof c.trace);
        assert_memory_not_equal(c.span, again.span, sizeof c.span);
        close_rig(&r);
    }
}

static unsigned count_recorded(enum trace_sampler sampler, bool is_parent_heard, uint64_t below,
                               const char *parent)
{
    struct trace_context c;
    unsigned count = 0;
    struct rig r;

    open_rig(&r, sampler, is_parent_heard, below);
    if (parent)
        say(&r.request, "traceparent", parent);
    for (int i = 0; i < 1000; i++) {
        pass(&r);
        assert_true(trace_context_parse(http_head_get(&r.to, "traceparent"), &c));
        count += c.flags;
    }
    close_rig(&r);
    return count;
}

static void test_which_are_recorded(void **state)
{
    unsigned half;

    (void)state;
    assert_int_equal(count_recorded(TRACE_ALL, true, 0, NULL), 1000);
    assert_int_equal(count_recorded(TRACE_NONE, true, 0, NULL), 0);
    assert_int_equal(count_recorded(TRACE_RATIO, true, 0, NULL), 0);
    assert_int_equal(count_recorded(TRACE_RATIO, true, UINT64_MAX, NULL), 1000);
    half = count_recorded(TRACE_RATIO, true, 1ull << 62, NULL);
    assert_in_range(half, 300, 700);
    /* A caller's word, where it is heard; where not, all of a trace get the same. */
    assert_int_equal(count_recorded(TRACE_NONE, true, 0, "00-" IDS "-01"), 1000);
    assert_int_equal(count_recorded(TRACE_ALL, true, 0, "00-" IDS "-00"), 0);
    assert_int_equal(count_recorded(TRACE_ALL, false, 0, "00-" IDS "-00"), 1000);
    assert_int_equal(count_recorded(TRACE_RATIO, false, 1ull << 62, "00-" IDS "-00") % 1000, 0);
}

/* Texts as long as a client may make them: what waits has a ceiling in bytes, too. */
static void test_long_texts_do_not_pile_up(void **state)
{
    static char text[TRACE_TEXT_MAX];
    const struct trace_attribute attributes[] = { { "a", span_of((uint8_t *)text, sizeof text), 0 },
                                                  { "b", span_of((uint8_t *)text, sizeof text),
                                                    0 } };
    struct mallinfo2 before, after;
    struct rig r;

    (void)state;
    open_rig(&r, TRACE_ALL, true, 0);
    memset(text, 0xff, sizeof text); /* each byte becomes three */
    before = mallinfo2();
    for (int i = 0; i < TRACE_QUEUE_MAX; i++)
        trace_end(r.tracer, trace_begin(r.tracer, &r.request), "test", attributes, LEN(attributes),
                  false);
    after = mallinfo2();
    /* Zero with a sanitizer, whose allocator tells nothing. Blocks of buf are up to twice what is in them. */
    assert_true(after.uordblks - before.uordblks < 2 * TRACE_QUEUE_MAX_BYTES + (1 << 20));
    close_rig(&r);
}

static void note(void *ctx)
{
    (*(unsigned *)ctx)++;
}

/* With something to tell and nobody there, and with nothing: once, and not inside the call. */
static void test_a_flush_ends(void **state)
{
    unsigned told = 0;
    struct rig r;

    (void)state;
    open_rig(&r, TRACE_ALL, true, 0);
    tracer_flush(r.tracer, 1000, note, &told);
    assert_int_equal(told, 0);
    while (!told)
        ev_loop_turn(r.loop);
    pass(&r);
    tracer_flush(r.tracer, 20, note, &told);
    assert_int_equal(told, 1);
    while (told == 1)
        ev_loop_turn(r.loop);
    assert_int_equal(told, 2);
    for (int i = 0; i < TRACE_QUEUE_MAX + 100; i++)
        pass(&r); /* more than can wait */
    close_rig(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_parent_goes_on_as_ours),
        cmocka_unit_test(test_what_is_no_parent_begins_anew),
        cmocka_unit_test(test_which_are_recorded),
        cmocka_unit_test(test_long_texts_do_not_pile_up),
        cmocka_unit_test(test_a_flush_ends),
    };

    (void)setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1", 1);
    return cmocka_run_group_tests_name("trace/trace", tests, NULL, NULL);
}
