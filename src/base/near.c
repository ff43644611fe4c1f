#include "base/near.h"

#include "base/own.h"

#include <string.h>

/* How many letters differ, by Levenshtein's rule. */
static size_t distance(const char *a, const char *b)
{
    size_t n = strlen(b), row[NEAR_NAME_MAX_BYTES + 1];

    for (size_t j = 0; j <= n; j++)
        row[j] = j;
    for (size_t i = 1; a[i - 1]; i++) {
        size_t corner = row[0];

        row[0] = i;
        for (size_t j = 1; j <= n; j++) {
            size_t above = row[j], change = corner + (a[i - 1] != b[j - 1]);
            size_t other = MIN(above, row[j - 1]) + 1; /* one more here, or there */

            row[j] = MIN(other, change);
            corner = above;
        }
    }
    return row[n];
}

void near_try(struct near *n, const char *known)
{
    size_t away;

    if (strlen(n->name) > NEAR_NAME_MAX_BYTES || strlen(known) > NEAR_NAME_MAX_BYTES)
        return;
    away = distance(n->name, known);
    if (away > NEAR_LETTERS_MAX || (n->best && away >= n->away))
        return;
    n->best = known;
    n->away = away;
}

bool near_hint(const struct near *n, struct err *e)
{
    if (n->best)
        err_hint(e, "did you mean '%s'?", n->best);
    return n->best;
}
