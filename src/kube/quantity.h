/* quantity: amounts of resources as Kubernetes writes them: "100m", "1.5Gi", "2e3".
 *
 * Owns:     nothing. Exact down to one billionth, as the public implementation; larger amounts than an
 *           int64 are held at its maximum, smaller fractions are rounded up.
 */
#ifndef SILICA_KUBE_QUANTITY_H
#define SILICA_KUBE_QUANTITY_H

#include "base/buf.h"

#define QUANTITY_TEXT_BYTES 48

enum quantity_form {
    QUANTITY_DECIMAL,  /* 100m, 5k */
    QUANTITY_BINARY,   /* 5Ki */
    QUANTITY_EXPONENT, /* 5e3 */
};

struct quantity {
    __int128 nano; /* billionths */
    enum quantity_form form;
};

/* False: not a quantity. */
bool quantity_parse(struct span s, struct quantity *ret);
/* The canonical form: no fraction, the largest suffix that keeps it exact. */
const char *quantity_text(const struct quantity *q, char text[QUANTITY_TEXT_BYTES]);
/* Below 0, 0, above 0. */
int quantity_compare(const struct quantity *a, const struct quantity *b);
static inline bool quantity_is_whole(const struct quantity *q)
{
    return q->nano % 1000000000 == 0;
}

#endif
