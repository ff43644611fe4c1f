#include "controller/suite_impl.h"

#include "controller/condition.h"

#include <stdio.h>
#include <string.h>

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
