/* apiserver: the whole of one API server: store, certificates, listeners.
 *
 * Owns:     everything below; apiserver_close ends it all.
 * Used by:  cli/apiserver.c; later `silica up`.
 * Threads:  one loop; disk work on workers.
 */
#ifndef SILICA_APISERVER_APISERVER_H
#define SILICA_APISERVER_APISERVER_H

#include "base/log.h"
#include "apiserver/proven.h"
#include "apiserver/slices.h"
#include "apiserver/snapshots.h"
#include "apiserver/store.h"
#include "apiserver/usage.h"
#include "ev/timer.h"
#include "http/serve.h"
#include "kube/key_limit.h"

#define APISERVER_SANS_MAX 64

struct http_client;
struct kind;
struct pods;

/* A line of the token file. */
struct static_token {
    char *token, *user, *uid, *groups;
};

struct apiserver_config {
    const char *data; /* the directory; made when it is not there */
    const char *
        listen; /* "127.0.0.1:0"; NULL: the port of last time on loopback, else 6443 or a free one */
    int listen_fd;           /* listens already, and is taken; wins over `listen`. 0: none */
    const char *const *sans; /* more names of the server's certificate; NULL-terminated, or NULL */
    const char *token_file;  /* "token,user,uid[,groups]" lines; or NULL */
    uint32_t max_connections;
    uint64_t event_ttl_ms, events_max; /* 0: as limits.h says */
    struct usage_amount namespace_max; /* what a namespace may have; 0: any number */
    struct pods *pods;                 /* who runs Pods; outlives the server. NULL: nobody does */
    bool (*is_reserved)(const struct kind *kind, const char *namespace,
                        const char *name); /* what only the operator writes (reserved.h); or NULL */
    const char *vfs;                       /* the file system of SQLite, for tests; NULL */
};

struct call;

/* A document that depends on the tables alone: made when it is first asked for. */
struct api_document {
    struct api_document *next;
    char *path;
    struct buf bytes;
};

struct apiserver {
    struct ev_loop *loop;
    struct store *store;
    struct pki *pki;
    struct tls *tls;
    struct http_server *http;
    struct net_listener *listener;
    struct static_token *tokens;
    size_t token_count;
    struct proven proven; /* tokens of service accounts */
    char *data;
    char kubeconfig[4096]; /* path of the admin's */
    char address[128];     /* "127.0.0.1:40002" */
    const char *sans[APISERVER_SANS_MAX + 1];
    char *san_texts[APISERVER_SANS_MAX];
    size_t san_count;
    struct ev_timer renewal;
    uint64_t started_ms;
    struct collect *collect;
    struct expire *expire;
    struct api_document *documents;
    struct snapshots snapshots;
    struct slices slices;
    struct metrics *metrics;
    struct call *calls; /* under way */
    struct pods *pods;
    bool (*is_reserved)(const struct kind *kind, const char *namespace, const char *name);
    struct http_client *streams;   /* to pod sides */
    size_t stream_count;           /* calls that were passed on to them */
    struct key_limit stream_limit; /* of them, by namespace */
    struct key_limit watch_limit;  /* of watches, by user */
    struct log_limit unauthorized; /* requests */
    size_t stream_waiting_bytes;   /* of what they ask for, of those that have no answer yet */
};

int apiserver_open(struct ev_loop *loop, const struct apiserver_config *config,
                   struct apiserver **ret, struct err *e);
void apiserver_close(struct apiserver *s); /* not for callbacks; tolerates NULL */

/* route.c: what the HTTP server calls. */
void route_request(void *ctx, struct http_exchange *x);

#endif
