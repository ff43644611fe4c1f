/* show: what a daemon shows of itself over HTTP: /metrics on one address, /healthz and /readyz on another.
 *
 * Owns:     both listeners and their connections. No credential is asked for, nothing can be changed here; the addresses
 *           are the operator's choice.
 * Used by:  `silica controller`, `silica router`.
 * Threads:  the loop's.
 */
#ifndef SILICA_HTTP_SHOW_H
#define SILICA_HTTP_SHOW_H

#include "base/buf.h"

struct ev_loop;
struct http_exchange;
struct show;

struct show_config {
    /* HOST:PORT, or ":PORT" for all addresses; "0" and "": not served. */
    const char *metrics, *health;
    /* Appends what /metrics shows beside the process's own figures; NULL: nothing. */
    int (*write)(void *ctx, struct buf *out, struct err *e);
    /* Other paths of the metrics' address, read with GET: false: not its own, and 404. NULL: there are none. */
    bool (*other)(void *ctx, struct http_exchange *x);
    /* What /readyz says: NULL: ready, else why not (503). NULL: always ready. */
    const char *(*why_not_ready)(void *ctx);
    void *ctx;
};

int show_open(struct ev_loop *loop, const struct show_config *config, struct show **ret,
              struct err *e);
/* The real addresses; NULL where it is not served. They live as long as it. */
const char *show_metrics_address(const struct show *s);
const char *show_health_address(const struct show *s);
void show_close(struct show *s); /* not for callbacks; tolerates NULL */

#endif
