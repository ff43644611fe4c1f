/* What a Pod's life wants next, and what it adds up to: one row per situation, written in short.
 *
 * A container is a word: letters before ':' say what it is (i init, s sidecar, a app), what follows says how it stands:
 *   -        not started             +        runs           +! runs, and must end
 *   =N       over with code N        *        (after +) TERM was sent
 *   +^       has a preStop hook      +^~, +^. that is under way, is over
 *   +>       its postStart hook is under way
 *   =N%      that was lost            =N&      over a little later than the others
 */
#include "node/life.h"

#include "base/buf.h"
#include "node/limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define NOW 1000000000ull /* of the clock that is passed in; what ended, ended 1 s before */

static void read_container(const char *word, struct life_container *c)
{
    const char *how = strchr(word, ':') + 1;

    *c =
        (struct life_container){ .name = "c", .is_init = *word != 'a', .is_sidecar = *word == 's' };
    if (*how == '+') {
        c->now.state = RUN_UP;
        c->now.has_box = c->is_started = true;
        c->now.began_ms = NOW - 5000;
        c->must_end = strchr(how, '!') != NULL;
        c->now.was_told = strchr(how, '*') != NULL;
        c->has_stop_hook = strchr(how, '^') != NULL;
        c->now.is_hooking = strchr(how, '~') != NULL;
        c->now.was_hooked = strchr(how, '.') != NULL;
        c->now.is_starting = strchr(how, '>') != NULL;
        c->end_by_ms = NOW + 7000;
    } else if (*how == '=') {
        c->now.has_box = true;
        c->now.began_ms = NOW - 5000;
        life_end(c, how[1] - '0', strchr(how, '&') ? NOW - 500 : NOW - 1000);
        c->now.is_lost = strchr(how, '%') != NULL;
        c->crashes = strchr(how, '#') ? (unsigned)(strchr(how, '#')[1] - '0') : 1;
    }
    if (strchr(how, '?')) { /* it could not be started */
        c->wait_reason = "ErrImagePull";
        c->retry_ms = NOW + 3000;
    }
    c->before.has_box = strchr(how, '<') != NULL;
}

static struct life_pod read_pod(const char *text, char policy, struct life_container *v)
{
    struct span rest = span_cstr(text), word;
    struct life_pod p = { .policy = policy == 'A'   ? LIFE_ALWAYS
                                    : policy == 'F' ? LIFE_ON_FAILURE
                                                    : LIFE_NEVER,
                          .v = v };

    while (span_cut(&rest, ' ', &word)) {
        OWN_MEM char *copy = span_dup(word);

        read_container(copy, &v[p.n++]);
    }
    return p;
}

static const char *step_text(const struct life_step *s)
{
    static const char *const names[] = {
        "rest", "start", "hook", "tell", "kill", "remove", "gone"
    };
    static char text[64];

    if (s->what == LIFE_REST && s->wait_ms == UINT64_MAX)
        return "rest";
    if (s->what == LIFE_REST)
        (void)snprintf(text, sizeof text, "rest %llu", (unsigned long long)s->wait_ms);
    else
        (void)snprintf(text, sizeof text, "%s %zu%s", names[s->what], s->at,
                       s->is_before ? " before" : "");
    return text;
}

static const struct row {
    const char *pod;
    char policy; /* Always, F: OnFailure, Never */
    const char *step, *phase;
} rows[] = {
    { "a:-", 'A', "start 0", "Pending" },
    { "a:+", 'A', "rest", "Running" },
    { "a:+ a:-", 'A', "start 1", "Pending" },
    { "a:+ a:+", 'A', "rest", "Running" },
    { "i:- a:-", 'A', "start 0", "Pending" },
    { "i:+ a:-", 'A', "rest", "Pending" },
    { "i:=0 a:-", 'A', "start 1", "Pending" },
    { "i:=0 i:- a:-", 'A', "start 1", "Pending" },
    { "i:=1 a:-", 'A', "start 0", "Pending" },
    { "i:=1 a:-", 'N', "rest", "Failed" },
    { "i:=1#2 a:-", 'F', "rest 9000", "Pending" },
    { "s:- a:-", 'A', "start 0", "Pending" },
    { "s:+ a:-", 'A', "start 1", "Pending" },
    { "s:=0 a:+", 'A', "start 0", "Running" },
    { "i:- a:+", 'A', "rest", "Running" }, /* its traces are gone, but the container ran */
    { "a:=0", 'A', "start 0", "Running" },
    { "a:=0", 'F', "rest", "Succeeded" },
    { "a:=0", 'N', "rest", "Succeeded" },
    { "a:=1", 'F', "start 0", "Running" },
    { "a:=1", 'N', "rest", "Failed" },
    { "a:=1#2", 'A', "rest 9000", "Running" },
    { "a:=1#3", 'A', "rest 19000", "Running" },
    { "a:=1#9", 'A', "rest 299000", "Running" },
    { "a:=1<#2", 'A', "rest 9000", "Running" }, /* what it said last time can still be read */
    { "a:=1<", 'A', "remove 0 before", "Running" },
    { "a:=0 a:+", 'N', "rest", "Running" },
    { "a:=1 a:=0", 'N', "rest", "Failed" },
    { "a:=7%", 'A', "start 0", "Running" },
    { "a:=7%", 'F', "start 0", "Running" },
    { "a:=7%", 'N', "rest", "Failed" },
    { "a:=7%#2", 'A', "rest 9000", "Running" },
    { "i:=0 a:=7%", 'A', "start 0", "Pending" }, /* what it made may be lost, too */
    { "i:=0& a:=7%", 'A', "start 1", "Running" },
    { "i:=0 i:=0& a:=7%", 'A', "start 0", "Pending" },
    { "i:=0& i:=0 a:=7%", 'A', "start 1", "Pending" },
    { "i:=0 a:=7%", 'N', "rest", "Failed" },
    { "i:=0 a:+ a:=7%", 'A', "start 2", "Running" },
    { "i:=0 a:=0 a:=7%", 'F', "start 0", "Pending" },
    { "s:=7% a:=7%", 'F', "start 0", "Pending" },
    { "a:-?", 'A', "rest 3000", "Pending" },
    { "a:-? a:-", 'A', "start 1", "Pending" },
    { "a:+!", 'A', "tell 0", "Running" },
    { "a:+!*", 'A', "rest 7000", "Running" },
    { "a:+!^", 'A', "hook 0", "Running" },
    { "a:+!^~", 'A', "rest 7000", "Running" },
    { "a:+!^.", 'A', "tell 0", "Running" },
    { "a:+^", 'A', "rest", "Running" },
    { "a:+> a:-", 'A', "rest", "Pending" },
    { "a:+>", 'A', "rest", "Pending" },
    { "a:+!> a:-", 'A', "tell 0", "Pending" },
};

static void test_what_is_next(void **state)
{
    struct life_container v[8];

    (void)state;
    EACH(r, rows) {
        struct life_pod p = read_pod(r->pod, r->policy, v);
        struct life_step step = life_next(&p, NOW);

        if (strcmp(step_text(&step), r->step) != 0 || strcmp(life_phase(&p), r->phase) != 0)
            fail_msg("'%s' %c: %s, %s; not %s, %s", r->pod, r->policy, step_text(&step),
                     life_phase(&p), r->step, r->phase);
    }
}

static const struct end_row {
    const char *pod;
    uint64_t end_by_ms;
    bool is_leaving;
    const char *step;
} end_rows[] = {
    { "a:-", NOW, true, "gone 0" },
    { "a:+", NOW + 500, true, "tell 0" },
    { "a:+* a:+", NOW + 500, true, "tell 1" },
    { "a:+* a:+*", NOW + 500, true, "rest 500" },
    { "a:+* a:+*", NOW, true, "kill 0" },
    { "a:+^ a:+^", NOW + 500, true, "hook 0" },
    { "a:+^~ a:+^", NOW + 500, true, "hook 1" },
    { "a:+^~ a:+", NOW + 500, true, "tell 1" },
    { "a:+^~ a:+*", NOW + 500, true, "rest 500" },
    { "a:+^.", NOW + 500, true, "tell 0" },
    { "a:+^~", NOW, true, "tell 0" }, /* it took all of the time */
    { "a:+^.*", NOW, true, "rest 2000" },
    { "a:+^.*", NOW - 2000, true, "kill 0" },
    { "a:+^", 0, true, "tell 0" }, /* by force: no hook */
    { "a:+^*", 0, true, "kill 0" },
    { "a:+", 0, true, "tell 0" },
    { "a:=0 a:+*", 0, true, "kill 1" },
    { "i:=0 a:=0", 0, true, "remove 0" },
    { "a:=0<", 0, true, "remove 0 before" },
    { "a:=0", 0, false, "rest" }, /* failed as a whole: what it said can still be read */
    { "a:+*", NOW + 100, false, "rest 100" },
};

static void test_how_it_ends(void **state)
{
    struct life_container v[8];

    (void)state;
    EACH(r, end_rows) {
        struct life_pod p = read_pod(r->pod, 'A', v);
        struct life_step step;

        p.is_ending = true;
        p.is_leaving = r->is_leaving;
        p.end_by_ms = r->end_by_ms;
        p.failed = r->is_leaving ? NULL : "SandboxLost";
        step = life_next(&p, NOW);
        if (strcmp(step_text(&step), r->step) != 0)
            fail_msg("'%s': %s, not %s", r->pod, step_text(&step), r->step);
    }
}

static void test_a_deadline(void **state)
{
    struct life_container v[8];
    struct life_pod p = read_pod("a:+", 'A', v);
    struct life_step step;

    (void)state;
    p.deadline_ms = NOW + 4000;
    step = life_next(&p, NOW);
    assert_string_equal(step_text(&step), "rest 4000");
    assert_false(life_is_late(&p, NOW));
    assert_true(life_is_late(&p, NOW + 4000));
    p = read_pod("a:=0", 'N', v); /* it has ended before */
    p.deadline_ms = NOW - 1;
    assert_false(life_is_late(&p, NOW));
    step = life_next(&p, NOW);
    assert_string_equal(step_text(&step), "rest");
}

static void test_attempts_are_counted(void **state)
{
    struct life_container c = { .name = "c" };

    (void)state;
    life_begin(&c);
    assert_int_equal(c.now.attempt, 0);
    c.now.state = RUN_UP;
    c.now.began_ms = 1000;
    c.is_ready = c.is_started = true;
    life_end(&c, 3, 2000);
    assert_true(!c.is_ready && !c.is_started && c.now.state == RUN_OVER);
    assert_int_equal(life_pause_ms(&c), 0);
    life_begin(&c);
    assert_int_equal(c.now.attempt, 1);
    assert_int_equal(c.before.exit_code, 3);
    c.now.began_ms = 3000;
    life_end(&c, 3, 4000);
    assert_int_equal(life_pause_ms(&c), LIFE_PAUSE_FIRST_MS);
    life_begin(&c);
    c.now.began_ms = 5000;
    life_end(&c, 3, 5000 + LIFE_STEADY_MS); /* it had settled */
    assert_int_equal(life_pause_ms(&c), 0);
    assert_int_equal(c.now.attempt, 2);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_next),
        cmocka_unit_test(test_how_it_ends),
        cmocka_unit_test(test_a_deadline),
        cmocka_unit_test(test_attempts_are_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
