/* serve: what a controller shows of itself over HTTP: /metrics on one address, /healthz and /readyz on another.
 *
 * Owns:     both listeners and their connections. No credential is asked for, nothing can be changed here; the addresses
 *           are the operator's choice.
 * Used by:  `silica controller`.
 * Threads:  the loop's.
 */
#ifndef SILICA_CONTROLLER_SERVE_H
#define SILICA_CONTROLLER_SERVE_H

#include "base/buf.h"

struct ev_loop;
struct serve;

struct serve_config {
    /* HOST:PORT, or ":PORT" for all addresses; "0" and "": not served. */
    const char *metrics, *health;
    /* Appends what /metrics shows beside the process's own figures; NULL: nothing. */
    int (*write)(void *ctx, struct buf *out, struct err *e);
    void *ctx;
};

int serve_open(struct ev_loop *loop, const struct serve_config *config, struct serve **ret,
               struct err *e);
/* The real addresses; NULL where it is not served. They live as long as it. */
const char *serve_metrics_address(const struct serve *s);
const char *serve_health_address(const struct serve *s);
void serve_close(struct serve *s); /* not for callbacks; tolerates NULL */

#endif
