/* testdesk: a server under test, its handlers and its clients, all in one loop.
 *
 * Handlers: "/hello" answers at once, "/collect?max=N" the number of bytes it collected, "/echo" what it reads as it
 *           comes, "/read" reads and waits for the test to answer, "/big?n=N" N bytes at once, "/flow?n=N" N bytes as fast
 *           as the peer takes them, "/file?n=N&at=N" a stretch of desk.file. Any other path waits for the test.
 * Checks:   no event runs inside a verb (VERB), each exchange ends once, no event comes after its end.
 * Used by:  tests only.
 */
#ifndef SILICA_HTTP_TESTDESK_H
#define SILICA_HTTP_TESTDESK_H

#include "http/serve.h"
#include "net/testside.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define DESK_CALLS_MAX  8192
#define DESK_FILE_BYTES (8 << 20)

/* One exchange as its handler saw it. */
struct desk_call {
    struct desk *desk;
    struct http_exchange *x; /* NULL once over */
    char method[16], path[128];
    struct buf body;
    size_t chunks;
    unsigned ends, gones, drains;
    bool is_over;           /* answered or gone */
    struct err err;         /* of on_end */
    uint64_t left;          /* of /flow */
    bool is_paused_by_data; /* pauses at the first piece */
};

struct desk {
    struct ev_loop *loop;
    struct ev_pool *pool;
    struct http_server *server;
    struct desk_call *calls[DESK_CALLS_MAX];
    size_t n;
    int file_fd; /* DESK_FILE_BYTES of side_fill(), made at first use */
    bool is_in_verb;
    void (*serve)(struct desk *d, struct http_exchange *x); /* instead of the handlers above */
    bool pauses; /* new calls of /read pause at their first piece */
    bool is_drained;
};

#define VERB(desk_, call_)                                                                         \
    do {                                                                                           \
        (desk_)->is_in_verb = true;                                                                \
        call_;                                                                                     \
        (desk_)->is_in_verb = false;                                                               \
    } while (0)

/* config NULL: defaults, with deadlines no test runs into. Its on_request, ctx and file_pool are the desk's. */
void desk_open(struct desk *d, const struct http_server_config *config);
void desk_close(struct desk *d); /* all exchanges must be over then */
void desk_connect(struct desk *d, struct side *client);
/* The i-th call, once it is there. */
struct desk_call *desk_wait_call(struct desk *d, size_t i);
void desk_answer(struct desk_call *c, int status, const char *text);
/* Marks a call as over: before a verb that ends it. */
struct http_exchange *desk_take(struct desk_call *c);

/* Sends text. */
void desk_say(struct side *client, const char *text);
/* What the client got so far, without Date fields; static. */
const char *desk_heard(const struct side *client);
/* Waits until the client heard exactly this, nothing more within a moment; then forgets it. */
void desk_expect(struct side *client, const char *text);
/* Waits until what it heard holds this. */
void desk_expect_part(struct side *client, const char *part);
/* Waits for the end of the server's side. */
void desk_expect_end(struct side *client);
bool desk_wait(struct desk *d, side_fn is_over, void *ctx);

#endif
