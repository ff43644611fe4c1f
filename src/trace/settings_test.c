#include "trace/settings.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const char *const variables[] = {
    "OTEL_SDK_DISABLED",
    "OTEL_TRACES_EXPORTER",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_PROTOCOL",
    "OTEL_EXPORTER_OTLP_INSECURE",
    "OTEL_EXPORTER_OTLP_HEADERS",
    "OTEL_EXPORTER_OTLP_CLIENT_KEY",
    "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE",
    "OTEL_EXPORTER_OTLP_TIMEOUT",
    "OTEL_BSP_SCHEDULE_DELAY",
    "OTEL_RESOURCE_ATTRIBUTES",
    "OTEL_SERVICE_NAME",
    "OTEL_TRACES_SAMPLER",
    "OTEL_TRACES_SAMPLER_ARG",
};

/* "NAME=value", one a line. */
static void set_environment(const char *lines)
{
    struct span rest = span_cstr(lines), line;

    EACH(v, variables)
        (void)unsetenv(*v);
    while (span_cut(&rest, '\n', &line)) {
        size_t eq = span_find(line, '=');
        OWN_MEM char *name = span_dup(span_slice(line, 0, eq));
        OWN_MEM char *value = span_dup(span_skip(line, eq + 1));

        (void)setenv(name, value, 1);
    }
}

static int read_of(const char *lines, struct trace_settings *s, struct err *e)
{
    set_environment(lines);
    return trace_settings_read("a-service", s, e);
}

static const char *pair_of(const struct trace_pairs *list, const char *name)
{
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->v[i].name, name) == 0)
            return list->v[i].value;
    return "-";
}

static void test_who_asks_for_traces(void **state)
{
    static const struct {
        const char *lines;
        bool want;
    } rows[] = {
        { "", false },
        { "OTEL_EXPORTER_OTLP_ENDPOINT=", false },
        { "OTEL_EXPORTER_OTLP_ENDPOINT=http://a:1", true },
        { "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://a:1", true },
        { "OTEL_EXPORTER_OTLP_ENDPOINT=http://a:1\nOTEL_SDK_DISABLED=True", false },
        { "OTEL_EXPORTER_OTLP_ENDPOINT=http://a:1\nOTEL_SDK_DISABLED=false", true },
        { "OTEL_EXPORTER_OTLP_ENDPOINT=http://a:1\nOTEL_EXPORTER_OTLP_PROTOCOL=grpc", true },
        { "OTEL_EXPORTER_OTLP_ENDPOINT=http://a:1\nOTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf",
          false },
        { "OTEL_EXPORTER_OTLP_ENDPOINT=http://a:1\nOTEL_TRACES_EXPORTER=none", false },
        { "OTEL_EXPORTER_OTLP_ENDPOINT=http://a:1\nOTEL_TRACES_EXPORTER=otlp", true },
    };

    (void)state;
    EACH(r, rows) {
        set_environment(r->lines);
        if (trace_is_asked_for() != r->want)
            fail_msg("%s: not %d", r->lines, r->want);
    }
}

#define TO "OTEL_EXPORTER_OTLP_ENDPOINT="

static void test_collectors(void **state)
{
    static const struct {
        const char *lines, *host;
        uint16_t port;
        bool is_tls;
    } rows[] = {
        { "", "localhost", 4317, false },
        { TO "http://collector:1234", "collector", 1234, false },
        { TO "https://collector", "collector", 4317, true },
        { TO "http://10.0.0.1:4317/v1/traces", "10.0.0.1", 4317, false },
        { TO "http://[::1]:99", "::1", 99, false },
        { TO "http://[::1]", "::1", 4317, false },
        { TO "collector:55", "collector", 55, true },
        { TO "collector:55\nOTEL_EXPORTER_OTLP_INSECURE=true", "collector", 55, false },
        { TO "http://all:1\nOTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://traces:2", "traces", 2,
          false },
    };

    (void)state;
    EACH(r, rows) {
        struct trace_settings s;
        struct err e;

        if (read_of(r->lines, &s, &e) < 0)
            fail_msg("%s: %s", r->lines, e.msg);
        assert_string_equal(s.host, r->host);
        assert_int_equal(s.port, r->port);
        assert_int_equal(s.is_tls, r->is_tls);
        trace_settings_done(&s);
    }
}

static void test_lists(void **state)
{
    struct trace_settings s;
    struct err e;

    (void)state;
    assert_int_equal(read_of("OTEL_EXPORTER_OTLP_HEADERS=api-key=a%20b, X-Other = c=d ,,\n"
                             "OTEL_RESOURCE_ATTRIBUTES=Where=here,a=1,a=2\n"
                             "OTEL_EXPORTER_OTLP_TIMEOUT=250",
                             &s, &e),
                     0);
    assert_string_equal(pair_of(&s.headers, "api-key"), "a b");
    assert_string_equal(pair_of(&s.headers, "X-Other"), "c=d");
    assert_string_equal(pair_of(&s.attributes, "Where"), "here");
    assert_string_equal(pair_of(&s.attributes, "a"), "2"); /* the last counts */
    assert_string_equal(pair_of(&s.attributes, "service.name"), "a-service");
    assert_int_equal(s.timeout_ms, 250);
    trace_settings_done(&s);

    assert_int_equal(read_of("OTEL_RESOURCE_ATTRIBUTES=service.name=mine", &s, &e), 0);
    assert_string_equal(pair_of(&s.attributes, "service.name"), "mine");
    trace_settings_done(&s);

    assert_int_equal(
        read_of("OTEL_RESOURCE_ATTRIBUTES=service.name=mine\nOTEL_SERVICE_NAME=ours", &s, &e), 0);
    assert_string_equal(pair_of(&s.attributes, "service.name"), "ours");
    trace_settings_done(&s);
}

static void test_samplers(void **state)
{
    static const struct {
        const char *lines;
        enum trace_sampler sampler;
        bool is_parent_heard;
        uint64_t below;
    } rows[] = {
        { "", TRACE_ALL, true, 0 },
        { "OTEL_TRACES_SAMPLER=always_off", TRACE_NONE, false, 0 },
        { "OTEL_TRACES_SAMPLER=parentbased_always_off", TRACE_NONE, true, 0 },
        { "OTEL_TRACES_SAMPLER=traceidratio\nOTEL_TRACES_SAMPLER_ARG=0.5", TRACE_RATIO, false,
          1ull << 62 },
        { "OTEL_TRACES_SAMPLER=traceidratio\nOTEL_TRACES_SAMPLER_ARG=0", TRACE_RATIO, false, 0 },
        { "OTEL_TRACES_SAMPLER=parentbased_traceidratio", TRACE_RATIO, true, UINT64_MAX },
    };

    (void)state;
    EACH(r, rows) {
        struct trace_settings s;
        struct err e;

        if (read_of(r->lines, &s, &e) < 0)
            fail_msg("%s: %s", r->lines, e.msg);
        assert_int_equal(s.sampler, r->sampler);
        assert_int_equal(s.is_parent_heard, r->is_parent_heard);
        assert_true(s.below == r->below);
        trace_settings_done(&s);
    }
}

static void test_what_is_wrong_is_named(void **state)
{
    static const struct {
        const char *lines, *says;
    } rows[] = {
        { TO "ftp://a:1", "OTEL_EXPORTER_OTLP_ENDPOINT: 'ftp://a:1' is no collector: it begins "
                          "neither with http:// nor with https://" },
        { TO "http://:1", "it names no host" },
        { TO "http://", "it names no host" },
        { TO "http://a:0", "its port is no number from 1 to 65535" },
        { TO "http://a:x", "its port is no number from 1 to 65535" },
        { TO "http://[::1", "its address is not closed" },
        { TO "http://[::1]x", "it names no host" },
        { TO "http://me:secret@a:1", "its" },
        { "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://:1", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: " },
        { "OTEL_EXPORTER_OTLP_PROTOCOL=http/json", "'http/json' is not spoken here, but grpc" },
        { "OTEL_EXPORTER_OTLP_INSECURE=perhaps", "'perhaps' is not true or false" },
        { "OTEL_EXPORTER_OTLP_HEADERS=a", "one of its parts is not NAME=VALUE" },
        { "OTEL_EXPORTER_OTLP_HEADERS==b", "one of its parts is not NAME=VALUE" },
        { "OTEL_EXPORTER_OTLP_HEADERS=a=b%0d%0ac", "'a' has a byte that cannot be sent" },
        { "OTEL_EXPORTER_OTLP_HEADERS=a b=c", "'a b' has a byte that cannot be sent" },
        { "OTEL_RESOURCE_ATTRIBUTES=a=%ff", "OTEL_RESOURCE_ATTRIBUTES: 'a' has a byte" },
        { "OTEL_RESOURCE_ATTRIBUTES=a=%00", "OTEL_RESOURCE_ATTRIBUTES: 'a' has a byte" },
        { "OTEL_TRACES_SAMPLER=some", "OTEL_TRACES_SAMPLER: 'some' is not known" },
        { "OTEL_TRACES_SAMPLER=traceidratio\nOTEL_TRACES_SAMPLER_ARG=2", "'2' is not from 0 to 1" },
        { "OTEL_EXPORTER_OTLP_TIMEOUT=soon", "no number of milliseconds" },
        { "OTEL_BSP_SCHEDULE_DELAY=0", "no number of milliseconds" },
        { "OTEL_EXPORTER_OTLP_CLIENT_KEY=k", "one is given without the other" },
    };

    (void)state;
    EACH(r, rows) {
        struct trace_settings s;
        struct err e;

        if (read_of(r->lines, &s, &e) == 0)
            fail_msg("%s: taken", r->lines);
        assert_int_equal(e.code, ERR_USAGE);
        if (!strstr(e.msg, r->says))
            fail_msg("%s: %s", r->lines, e.msg);
        assert_null(s.host); /* nothing is left */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_asks_for_traces),
        cmocka_unit_test(test_collectors),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_samplers),
        cmocka_unit_test(test_what_is_wrong_is_named),
    };

    return cmocka_run_group_tests_name("trace/settings", tests, NULL, NULL);
}
