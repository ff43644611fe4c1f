/* overview: the page about this machine (page.h), made of what the API server says when somebody asks.
 *
 * Owns:     the calls under way, and who waits for them: everybody who comes meanwhile gets the same page, so that a page
 *           which is loaded over and over costs one round of calls at a time.
 * Rights:   the router's account must list pools, claims, sandboxes and events; what it may not is told on the page.
 * Used by:  hop, for GET / of a browser; `silica up` alone asks for it (--status-page).
 * Threads:  the loop's.
 */
#ifndef SILICA_ROUTER_OVERVIEW_H
#define SILICA_ROUTER_OVERVIEW_H

#include "http/serve.h"

struct kube_client;
struct overview;

/* status 200 and the document, borrowed for the call; else a text of why there is none. */
typedef void (*overview_fn)(void *ctx, int status, struct span text);

/* A request that waits; embedded by it, done and ctx are its own. Zeroes: it does not. */
struct overview_wait {
    struct overview_wait *next, **link;
    overview_fn done;
    void *ctx;
};

/* disk_fd: something on the disk of the data directory; -1: nothing is said of it. Borrowed. floor_bytes: base/disk_room.h. */
struct overview *overview_new(struct kube_client *client, int disk_fd, uint64_t floor_bytes);
/* Nobody waits any more, and the client has told of its calls. Tolerates NULL. */
void overview_free(struct overview *o);

/* A browser's request for the page: GET / that takes HTML and names no sandbox. */
bool overview_is_asked_for(const struct http_exchange *x);
/* done comes once, in a later turn, unless overview_cancel comes first. */
void overview_start(struct overview *o, struct overview_wait *wait);
void overview_cancel(struct overview_wait *wait); /* harmless when it does not wait */
/* The answer, with the fields that keep other pages away from it. */
void overview_answer(struct http_exchange *x, struct span html);

#endif
