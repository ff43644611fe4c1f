/* status_seen: what `silica status` tells of the API's objects: pools, claims, what is suspended, and every problem that waiting
 * does not heal, with what heals it.
 *
 * Owns:     the rows until they are shown, and the names that others refer to.
 * Used by:  status.c.
 */
#ifndef SILICA_CLI_STATUS_SEEN_H
#define SILICA_CLI_STATUS_SEEN_H

#include "base/json.h"
#include "up/place.h"

#define SEEN_NAMES_MAX_BYTES (64 << 20)
#define SEEN_ROWS_MAX_BYTES                                                                        \
    (256 * 1024) /* of the rows: what finds no room is counted, and not listed */

struct seen {
    struct json_out *out; /* NULL: as text */
    size_t claims, problems;
    struct buf rows, suspended;  /* as text, or as the items of an array; behind all others */
    struct buf templates, roles; /* for problem_of_pool and problem_of_binding */
};

/* clang-format off */
#define SEEN_INIT { .rows = BUF_INIT(SEEN_ROWS_MAX_BYTES), .suspended = BUF_INIT(SEEN_ROWS_MAX_BYTES), \
                    .templates = BUF_INIT(SEEN_NAMES_MAX_BYTES), .roles = BUF_INIT(SEEN_NAMES_MAX_BYTES) }
/* clang-format on */

/* Asks, and shows it. dir: the data directory. */
int seen_ask(struct seen *s, const struct place_info *info, const char *dir, struct err *e);
void seen_done(struct seen *s);

#endif
