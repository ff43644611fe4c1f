/* testapi: an HTTPS server that answers as a test says, one step for each request, and remembers what it was asked.
 *
 * Used by:  tests only; what API servers really say is tested in tests/conformance.
 */
#ifndef SILICA_KUBECLIENT_TESTAPI_H
#define SILICA_KUBECLIENT_TESTAPI_H

#include "ev/timer.h"
#include "http/serve.h"
#include "kubeclient/kubeclient.h"
#include "net/listen.h"
#include "net/testca.h"
#include "net/testside.h"
#include "net/tls.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#define TESTAPI_ASKED_MAX 64

enum testapi_then { TESTAPI_END, TESTAPI_STAY, TESTAPI_CUT };

/* The body is sent byte by byte where the test says so. */
struct testapi_step {
    int status; /* 0: no answer, and the stream is cut */
    const char *body;
    enum testapi_then then;
    const char *retry_after;
};

struct testapi_asked {
    char line[512];                                 /* "GET /api/v1/pods?watch=true" */
    char authorization[128], agent[64], client[64]; /* client: the name in its certificate */
    char as[256]; /* all that begins with Impersonate-: "user=jane group=a " */
    bool is_h2;
    uint64_t at_ms;
};

struct testapi {
    struct ev_loop *loop;
    struct net_listener *l;
    struct http_server *server;
    struct tls *tls;
    struct testca *ca;
    uint16_t port;
    const struct testapi_step *steps;
    size_t left;
    struct testapi_asked asked[TESTAPI_ASKED_MAX];
    size_t n, accepted;
    struct http_exchange *open; /* of the last step that stays */
    struct ev_timer cut;
};

void testapi_open(struct testapi *t);
void testapi_close(struct testapi *t);
void testapi_script(struct testapi *t, const struct testapi_step *steps, size_t n);
#define TESTAPI_SCRIPT(t, ...)                                                                     \
    testapi_script(t, (const struct testapi_step[]){ __VA_ARGS__ },                                \
                   LEN(((const struct testapi_step[]){ __VA_ARGS__ })))
/* More of the answer that stays open, and its end. */
void testapi_say(struct testapi *t, const char *text, enum testapi_then then);
/* A kubeconfig for it, with this token or none. */
void testapi_kubeconfig(const struct testapi *t, const char *token, struct kubeconfig *ret);
struct kube_client *testapi_client(struct testapi *t, const char *token);
/* Until that many requests were made. */
void testapi_await(struct testapi *t, size_t n);

/* What became of one call. */
struct told {
    unsigned times;
    int code; /* -1: it was done */
    const char *reason;
    char message[512];
    char names[512]; /* of the object, or of all items: "a b c " */
    uint64_t version;
    bool is_in_verb;
};
void told_done(void *told, const struct kube_answer *answer);
bool told_is_there(void *told); /* for side_wait */
void told_call(struct testapi *t, struct kube_client *c, const struct kube_request *rq,
               struct told *r);

#endif
