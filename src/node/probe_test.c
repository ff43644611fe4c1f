#include "node/probe.h"

#include "node/testpod.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* A container that is asked whenever it is due; `is_well` says what it answers. Its story is written down: each counted
 * failure as "!", each change as "r" or "R" (not ready, ready), "S" (started), "K" (to be killed), with the second. */
struct story {
    struct probes ps;
    uint64_t now_ms;
    unsigned tries[PROBE_ROLES];
    char text[512];
};

typedef bool (*well_fn)(enum probe_role role, uint64_t now_ms);

static void tell(struct story *s, const char *what)
{
    size_t n = strlen(s->text);

    (void)snprintf(s->text + n, sizeof s->text - n, "%s%s%llu", n ? " " : "", what,
                   (unsigned long long)(s->now_ms / 1000));
}

static void run(struct story *s, const char *container, well_fn is_well, uint64_t end_ms)
{
    bool was_ready, was_started, was_doomed = false;

    s->now_ms = 0;
    s->text[0] = '\0';
    memset(s->tries, 0, sizeof s->tries);
    probes_init(&s->ps, testpod_value(container), 0);
    was_ready = probes_is_ready(&s->ps);
    was_started = probes_is_started(&s->ps);
    for (;;) {
        uint64_t due_ms;
        struct probe *p = probes_due(&s->ps, &due_ms);
        struct probe_news news;

        if (!p || due_ms > end_ms)
            return;
        assert_true(due_ms >= s->now_ms);
        s->now_ms = due_ms;
        s->tries[p->role]++;
        probe_begin(p);
        assert_ptr_not_equal(probes_due(&s->ps, &due_ms), p);
        news = probe_end(&s->ps, p, is_well(p->role, s->now_ms), s->now_ms);
        if (news.is_counted && !is_well(p->role, s->now_ms))
            tell(s, "!");
        if (probes_is_started(&s->ps) != was_started)
            tell(s, "S");
        if (probes_is_ready(&s->ps) != was_ready)
            tell(s, probes_is_ready(&s->ps) ? "R" : "r");
        if ((probes_killer(&s->ps) != NULL) != was_doomed)
            tell(s, "K");
        was_started = probes_is_started(&s->ps);
        was_ready = probes_is_ready(&s->ps);
        was_doomed = probes_killer(&s->ps) != NULL;
    }
}

static bool always(enum probe_role role, uint64_t now_ms)
{
    (void)role;
    (void)now_ms;
    return true;
}

static bool never(enum probe_role role, uint64_t now_ms)
{
    (void)role;
    (void)now_ms;
    return false;
}

static bool from_25_ms(enum probe_role role, uint64_t now_ms)
{
    (void)role;
    return now_ms >= 25;
}

static bool from_25_s(enum probe_role role, uint64_t now_ms)
{
    (void)role;
    return now_ms >= 25000;
}

static bool ill_from_20_to_50_s(enum probe_role role, uint64_t now_ms)
{
    (void)role;
    return now_ms < 20000 || now_ms >= 50000;
}

static bool every_other(enum probe_role role, uint64_t now_ms)
{
    (void)role;
    return now_ms / 10000 % 2 == 0;
}

static const struct row {
    const char *name, *container;
    well_fn is_well;
    const char *want;
} rows[] = {
    { "no probes", "{}", never, "" },
    { "ready at once", "{'readinessProbe':{}}", always, "R0" },
    { "ready as soon as it is", "{'readinessProbe':{'periodSeconds':5}}", from_25_ms, "R0" },
    { "after its delay", "{'readinessProbe':{'initialDelaySeconds':7}}", always, "R7" },
    { "never ready, and told once a period", "{'readinessProbe':{'periodSeconds':30}}", never,
      "!30 !60 !90" },
    { "not ready after three failures", "{'readinessProbe':{}}", ill_from_20_to_50_s,
      "R0 !20 !30 !40 r40 R50" },
    { "twice to be ready", "{'readinessProbe':{'successThreshold':2,'failureThreshold':1}}",
      ill_from_20_to_50_s, "R10 !20 r20 !30 !40 R60" },
    { "to and fro changes nothing", "{'readinessProbe':{'failureThreshold':2}}", every_other,
      "R0 !10 !30 !50 !70 !90" },
    { "dead after three failures", "{'livenessProbe':{}}", ill_from_20_to_50_s, "!20 !30 !40 K40" },
    { "dead from the start", "{'livenessProbe':{'initialDelaySeconds':5}}", never,
      "!15 !25 !35 K35" },
    { "one failure is enough", "{'livenessProbe':{'failureThreshold':1,'periodSeconds':1}}", never,
      "!1 K1" },
    { "a slow start", "{'startupProbe':{'failureThreshold':30,'periodSeconds':1}}", from_25_ms,
      "S0 R0" },
    { "a start that takes too long", "{'startupProbe':{'failureThreshold':2},'livenessProbe':{}}",
      from_25_s, "!10 !20 K20" },
    { "the others wait for it",
      "{'startupProbe':{'failureThreshold':9},'livenessProbe':{'failureThreshold':1},"
      "'readinessProbe':{'failureThreshold':1}}",
      from_25_s, "!10 !20 S30 R30" },
    { "and for their own delays", "{'startupProbe':{},'readinessProbe':{'initialDelaySeconds':9}}",
      always, "S0 R9" },
};

static void stories(void **state)
{
    (void)state;
    EACH(r, rows) {
        struct story s;

        run(&s, r->container, r->is_well, 95000);
        if (strcmp(s.text, r->want) != 0)
            fail_msg("%s: '%s', not '%s'", r->name, s.text, r->want);
    }
    testpod_free();
}

/* 1, 2, 4 ... 8192 ms apart, and one at each time that counts; then once a period. */
static void tries_are_few(void **state)
{
    struct story s;

    (void)state;
    run(&s, "{'readinessProbe':{}}", never, 9999);
    assert_in_range(s.tries[PROBE_READINESS], 13, 15);
    run(&s, "{'readinessProbe':{}}", never, 1000000);
    assert_in_range(s.tries[PROBE_READINESS], 100, 120);
    run(&s, "{'readinessProbe':{'periodSeconds':1}}", always, 60000);
    assert_int_equal(s.tries[PROBE_READINESS], 61);
    testpod_free();
}

static void adopted(void **state)
{
    const struct json *container = testpod_value("{'readinessProbe':{},'startupProbe':{}}");
    struct probes ps;
    uint64_t due_ms;
    struct probe *p;

    (void)state;
    probes_init(&ps, container, 0);
    probes_adopt(&ps, true, true);
    assert_true(probes_is_ready(&ps));
    p = probes_due(&ps, &due_ms);
    assert_int_equal(p->role, PROBE_READINESS);
    for (int i = 1; i <= 3; i++) {
        probe_begin(p);
        (void)probe_end(&ps, p, false, (uint64_t)i * 10000);
        assert_int_equal(probes_is_ready(&ps), i < 3);
    }
    testpod_free();
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(stories), cmocka_unit_test(tries_are_few),
                                        cmocka_unit_test(adopted) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
