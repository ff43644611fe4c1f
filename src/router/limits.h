/* Numbers of the router's room, with their reasons. */
#ifndef SILICA_ROUTER_LIMITS_H
#define SILICA_ROUTER_LIMITS_H

#include "http/limits.h"

/* A DNS label and its end: names of sandboxes and namespaces */
#define TARGET_NAME_BYTES 64
/* A uid is 36 characters; a longer one is nobody's */
#define TARGET_UID_BYTES 64
/* "<id>.<namespace>.svc.<domain>" */
#define PICK_HOST_BYTES 400
/* How long a request waits for a sandbox that the cache does not have yet: a watch is behind by milliseconds */
#define PICK_WAIT_MS 1000
/* Requests that wait so at once; more are refused at once, as a flood of wrong names must cost nothing */
#define PICK_WAITS_MAX 1024
/* For a sandbox to accept a connection; the contract's */
#define DIAL_CONNECT_MS 5000
/* Rows of one metric: namespaces are names that clients choose. What is beyond counts under the namespace "-" */
#define TALLY_ROWS_MAX 4096
/* Rows of that one namespace beyond it. The codes are the sandboxes' choice: what is beyond these, too, counts as one row */
#define TALLY_SPARE_ROWS 1000
/* Memory of ended requests that is kept for the next: as many as end in a few turns of the loop */
#define HOP_SPARES_MAX       128
#define HOP_SPARE_HEAD_BYTES 2048 /* of a head that is kept with them */
/* The head of a request as it is passed on: what the server took, and what we add */
#define ROUTER_HEAD_MAX_BYTES (HTTP_HEAD_MAX_BYTES + 4096)
/* Kept connections to sandboxes. The shortest time that servers are known to keep them is 5 s; who is first must be us, or
 * a request meets its end */
#define ROUTER_IDLE_MS           4000
#define ROUTER_IDLE_MAX          2048
#define ROUTER_IDLE_PER_HOST_MAX 256
/* Sockets inside Pods (sockets.h). The node is away for milliseconds when it was killed; who waits longer is told, and tried
 * again as a connection that nobody took */
#define SOCKETS_WAIT_MS      1000
#define SOCKETS_RETRY_MIN_MS 5
#define SOCKETS_RETRY_MAX_MS 200
#define SOCKETS_CONNECT_MS   10000 /* inside; who asked has a shorter patience */
#define SOCKETS_AHEAD_PODS   64    /* for which some are kept ahead */
#define SOCKETS_AHEAD_MS                                                                           \
    2000 /* unused ones are closed then: a network lives as long as a socket in it */
/* The page about this machine (page.h): objects asked for of each kind, rows shown of them, bytes of one text, warnings */
#define PAGE_OBJECTS_MAX    2000
#define PAGE_ROWS_MAX       500
#define PAGE_TEXT_MAX_BYTES 400
#define PAGE_WARNINGS_MAX   20
#define PAGE_MAX_BYTES                                                                             \
    (8 << 20) /* all of them at their longest, every character escaped, would be more: then 500 */
/* Between looks at the files of a certificate: stat() of two files */
#define SECURE_LOOK_MS 1000
/* For a connection through the tunnel to say who calls: its peer is a process of ours, which has the text at hand */
#define TUNNEL_PREFACE_MS   5000
#define TUNNEL_ARRIVALS_MAX 256 /* that have not said it yet; more are closed */
/* How long the API server's word on what a caller may counts. A right that was taken away ends within it; one that was given
 * is noticed sooner, as people try again. */
#define ACCESS_TTL_MS    2000
#define ACCESS_NO_TTL_MS 1000
#define ACCESS_ROWS_MAX  2048
/* Of clients; beyond it new connections are closed */
#define ROUTER_CONNECTIONS_MAX 20000
/* Of those who are not served, while they hear that */
#define ROUTER_REFUSALS_MAX 256
/* Between two lines of the log about them */
/* A client's connection between requests; the contract's */
#define ROUTER_CLIENT_IDLE_MS 120000

#endif
