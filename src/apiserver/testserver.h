/* testserver: an API server in a directory of its own, for tests; and short ways to ask it, through the client interface.
 *
 * Owns:     the directory, which goes at the end with all that is in it; the loop; one client.
 */
#ifndef SILICA_APISERVER_TESTSERVER_H
#define SILICA_APISERVER_TESTSERVER_H

#include "apiserver/local.h"
#include "base/scratch.h"

struct testserver {
    struct scratch dir;
    struct ev_loop *loop;
    struct apiserver *server;
    struct kube_client *client;
    struct testanswer *answers;
};

/* What came of a call; lives as long as the server. */
struct testanswer {
    struct testanswer *next;
    struct ev_loop *loop;
    bool is_there;
    int code;           /* 0: it was done; -1: it was canceled */
    char message[1024]; /* of a refusal */
    struct object *object;
    size_t item_count;
};

/* vfs: a file system of SQLite, or NULL. Ends the program when it cannot. */
void testserver_begin(struct testserver *t, const char *vfs);
void testserver_end(struct testserver *t);

/* Asks, and runs the loop until the answer is there. */
const struct testanswer *testserver_ask(struct testserver *t, const struct kube_request *rq);
/* plural: "pods", or "roles.rbac.authorization.k8s.io". namespace "": none. */
const struct kind *testserver_kind(const char *plural);
const struct testanswer *testserver_create(struct testserver *t, const char *plural,
                                           const char *namespace, const char *json);
const struct testanswer *testserver_get(struct testserver *t, const char *plural,
                                        const char *namespace, const char *name);
const struct testanswer *testserver_delete(struct testserver *t, const char *plural,
                                           const char *namespace, const char *name,
                                           enum kube_propagation how);
/* Turns the loop until all that is written is on disk, and what follows from it is done too. */
void testserver_settle(struct testserver *t);

#endif
