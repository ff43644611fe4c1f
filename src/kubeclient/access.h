/* access: how a server is reached and who we are there, kept up to date.
 *
 * Owns:     the TLS settings, the token of the moment, the credential of a plugin. Files that others rotate are looked at
 *           again; a plugin runs when there is no credential, when it ends, and when the server refused it.
 * Used by:  rest. A call asks access_is_ready(), waits if not, and then has its head signed.
 * Threads:  the loop's.
 */
#ifndef SILICA_KUBECLIENT_ACCESS_H
#define SILICA_KUBECLIENT_ACCESS_H

#include "http/client.h"
#include "kubeclient/kubeconfig.h"

struct access;
struct ev_children;

struct access_config {
    struct kubeconfig *kubeconfig; /* takes what is in it; *kubeconfig is empty afterwards */
    struct ev_children *children;  /* for plugins; NULL: those fail */
    bool is_attended;              /* plugins may ask on our standard input */
};

/* Somebody who waits for a credential. Embedded by its owner. */
struct access_waiter {
    struct access_waiter **at, *next;           /* at NULL: does not wait */
    void (*fn)(void *ctx, const struct err *e); /* e NULL: ask again whether it is ready */
    void *ctx;
};

/* Reads certificates and keys: what is wrong with them is said here. */
int access_new(struct ev_loop *loop, const struct access_config *config, struct access **ret,
               struct err *e);
/* Nobody may wait any more. */
void access_free(struct access *a);
/* Whose connections are made anew when our certificate changes. */
void access_set_http(struct access *a, struct http_client *http);

const struct kubeconfig *access_kubeconfig(const struct access *a);
/* Whom to call; valid as long as the access. */
struct http_target access_target(const struct access *a);

bool access_is_ready(struct access *a);
/* Runs the plugin. fn comes once, in a later turn, unless access_leave came first. */
void access_wait(struct access *a, struct access_waiter *w);
void access_leave(struct access_waiter *w);

/* Adds what says who we are. -1: a file that should say it cannot be read. */
int access_sign(struct access *a, struct http_head *head, struct err *e);
/* Changes whenever we are said differently. Taken before a call, it tells access_renew what the server refused. */
unsigned access_generation(const struct access *a);
/* After 401: true when there is something else to try. */
bool access_renew(struct access *a, unsigned generation);

#endif
