#include "cli/vars.h"

static void keep(struct vars *vs, const char *name, const char *value)
{
    char *text;

    if (asprintf(&text, "%s=%s", name, value) < 0)
        abort();
    assert(vs->made_n < LEN(vs->made));
    vs->made[vs->made_n++] = text;
    vars_add(vs, text);
}

void vars_add(struct vars *vs, const char *var)
{
    assert(vs->n < VARS_MAX);
    vs->v[vs->n++] = var;
}

int vars_read(struct vars *vs, const struct opt_list *given, struct err *e)
{
    for (size_t i = 0; i < given->n; i++) {
        const char *var = given->v[i], *value = getenv(var);

        if (strchr(var, '=') == var || !*var)
            return err_set(e, ERR_USAGE, "--env: '%s' has no name", var);
        if (strchr(var, '='))
            vars_add(vs, var);
        else if (value)
            keep(vs, var, value);
    }
    return 0;
}

bool vars_is_given(const struct opt_list *given, const char *var)
{
    size_t n = (size_t)(strchr(var, '=') - var);

    for (size_t i = 0; i < given->n; i++)
        if (strncmp(given->v[i], var, n) == 0 && (given->v[i][n] == '=' || !given->v[i][n]))
            return true;
    return false;
}

void vars_add_term(struct vars *vs, const struct opt_list *given)
{
    const char *term = getenv("TERM");

    if (!vars_is_given(given, "TERM="))
        keep(vs, "TERM", term && *term ? term : "xterm");
}

void vars_done(struct vars *vs)
{
    for (size_t i = 0; i < vs->made_n; i++)
        free(vs->made[i]);
}
