#include "node/notes.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void notes_add(struct notes *ns, const char *reason, const char *fmt, ...)
{
    OWN_MEM char *message = NULL;
    va_list ap;

    va_start(ap, fmt);
    if (vasprintf(&message, fmt, ap) < 0)
        abort();
    va_end(ap);
    for (size_t i = 0; i < ns->n; i++)
        if (strcmp(ns->v[i].reason, reason) == 0 && strcmp(ns->v[i].message, message) == 0)
            return;
    if (ns->n == NOTES_MAX) {
        ns->dropped++;
        return;
    }
    ns->v[ns->n++] = (struct note){ .reason = reason, .message = take_ptr(&message) };
}

void notes_done(struct notes *ns)
{
    for (size_t i = 0; i < ns->n; i++)
        free(ns->v[i].message);
    *ns = (struct notes){ 0 };
}
