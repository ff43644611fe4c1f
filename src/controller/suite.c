#include "controller/suite_impl.h"

#include "base/time.h"
#include "controller/condition.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const struct client_suite *suite;

int suite_set_up(void **state)
{
    struct world *w = NEW(struct world);

    world_open(w, suite);
    *state = w;
    return 0;
}

int suite_tear_down(void **state)
{
    world_close(*state);
    free(*state);
    return 0;
}

bool suite_has_condition(const struct object *o, const char *type, const char *text)
{
    const struct json *c = condition_find(object_at(o, "status.conditions"), type);
    char have[1024];

    if (!c)
        return false;
    (void)snprintf(have, sizeof have, "%s %s %s", json_cstr(json_get(c, "status")),
                   json_cstr(json_get(c, "reason")), json_cstr(json_get(c, "message")));
    return strncmp(have, text, strlen(text)) == 0;
}

void suite_until_count(struct world *w, const struct kind *kind, size_t n)
{
    uint64_t end_ms = time_mono_ms() + WORLD_PATIENCE_MS;

    while (world_count(w, kind, NULL, NULL) != n && time_mono_ms() < end_ms)
        world_idle(w, 2);
    world_idle(w, 20);
    if (world_count(w, kind, NULL, NULL) != n)
        fail_msg("there are %zu of %s, not %zu", world_count(w, kind, NULL, NULL), kind->name, n);
}

int controller_suite_run(const struct client_suite *s)
{
    int failed = 0;

    suite = s;
    failed += suite_sandbox_run();
    failed += suite_pool_run();
    failed += suite_claim_run();
    failed += suite_fault_run();
    return failed;
}
