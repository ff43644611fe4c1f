/* testserver: an HTTP server that says exactly the bytes a test gives it, right or wrong.
 *
 * Used by:  tests only.
 */
#ifndef SILICA_HTTP_TESTSERVER_H
#define SILICA_HTTP_TESTSERVER_H

#include "net/listen.h"
#include "net/testside.h"

#define TESTSERVER_CONNS_MAX 64

enum after { THEN_KEEP, THEN_CLOSE, THEN_RESET, THEN_SILENCE };

/* Said once the connection's input holds `when` (NULL: the end of a head); what came before is then forgotten. */
struct answer {
    const char *when;
    struct span bytes;
    enum after then;
};

struct testserver;

struct testserver_conn {
    struct testserver *server;
    struct conn *conn;
    struct buf in;
    size_t scanned; /* of in: `when` is not before it */
    struct ev_task task;
    struct span dripping;
    enum after then;
};

struct testserver {
    struct ev_loop *loop;
    struct net_listener *l;
    struct net_addr addr;
    uint16_t port;
    const struct answer *answers; /* the next one to give, whichever connection asks */
    size_t left;
    bool drips; /* a byte a turn */
    struct testserver_conn conns[TESTSERVER_CONNS_MAX];
    size_t conn_count;
    struct buf heard; /* everything that ever came, on all connections */
    /* TLS, or NULL */
    struct conn_filter_maker *maker;
};

void testserver_open(struct testserver *s, struct ev_loop *loop, const char *at);
void testserver_script(struct testserver *s, const struct answer *answers, size_t n);
void testserver_close(struct testserver *s);

#endif
