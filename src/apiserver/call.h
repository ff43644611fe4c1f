/* call: one API request on its way: who asks, for what, and how the answer wants to look.
 *
 * Owns:     itself, from route_request until its answer has ended or the peer is gone; the body's tree; a snapshot or a
 *           watch while it reads.
 * Used by:  route.c makes it; read.c, watch.c, write.c, stream.c and discovery.c answer it.
 */
#ifndef SILICA_APISERVER_CALL_H
#define SILICA_APISERVER_CALL_H

#include "apiserver/accept.h"
#include "apiserver/apiserver.h"
#include "apiserver/op.h"
#include "apiserver/request.h"
#include "apiserver/selection.h"
#include "apiserver/user.h"
#include "kube/table.h"

#define CALL_BODY_MAX_BYTES    (3 << 20)  /* as the public server: then 413 */
#define CALL_ANSWER_MAX_BYTES  (64 << 20) /* one object in its largest form */
#define CALL_QUERY_MAX_BYTES   (1 << 20)
#define CALL_WARNING_MAX_BYTES 4096

struct call {
    struct call *next, **link;
    struct apiserver *s;
    struct http_exchange *x;
    struct user user;
    struct request req;
    struct op op; /* kind, version, names */
    enum call_form form;
    enum table_include include;
    bool is_yaml;          /* the answer is told in YAML */
    bool is_no_page;       /* the path is nobody's */
    struct selection want; /* of a list, a watch, a delete of many */
    struct store_wait wait;
    /* an answer that waits for its commit */
    int code;
    int told; /* the HTTP code that went out; 0: none yet */
    struct object *object;
    struct status status;
    /* a list or a watch under way */
    void *stream;
    void (*stream_free)(struct call *c);
    struct http_relay *relay; /* it was passed on: x is the relay's, and its end is the call's */
    struct key_limit_row *stream_row; /* where it counts in its namespace */
    size_t waiting_bytes;             /* of what was asked for, until the pod side answers */
    uint64_t began_us;
    struct buf manager;
    struct buf query;     /* of the last call_query */
    struct buf list_tail; /* what follows the items of a list in YAML */
};

/* Ends the call's life; the exchange is not touched any more. */
void call_free(struct call *c);
/* A decoded query parameter: NULL when it is absent. Lives until the next call of this. */
const char *call_query(struct call *c, const char *name);
/* The same as the caller's own. */
char *call_query_dup(struct call *c, const char *name);
bool call_query_bool(struct call *c, const char *name);

/* A query parameter that shall be a number; 400 in the public server's words. */
int call_not_a_number(struct call *c, const char *text);

/* The answers. Each ends the call. */
/* What is JSON goes out as YAML where that was asked for. */
void call_answer_bytes(struct call *c, int code, const char *type, struct span body);
void call_refuse(struct call *c); /* with c->status */
/* A path that is nobody's: plain text, as the public server's. */
void call_no_page(struct call *c);
/* Takes the reference. Waits for the commit of what the head holds, then sends it in the form that was asked for. */
void call_answer_object(struct call *c, int code, struct object *o);
/* c->status, after the commit of what the head holds: for refusals that were decided there, and deletes. */
void call_answer_status(struct call *c);

/* render.c: the bytes of an object as this call wants them; -1 with c->status. */
int render_object(struct call *c, struct object *o, struct buf *out);
/* One element of a list, or of a table's rows, with what stands between it and the one before. */
int render_item(struct call *c, struct object *o, bool is_first, struct buf *out);
/* What goes before and after the items of a list. remaining 0: not said. next NULL: this is the last part. */
int render_list_begin(struct call *c, uint64_t version, const char *next, uint64_t remaining,
                      struct buf *out);
int render_list_end(struct call *c, bool is_empty, struct buf *out);
/* An event of a watch; NULL object: a bookmark at `version`. */
int render_event(struct call *c, enum event_type type, struct object *o, struct buf *out);
int render_bookmark(struct call *c, uint64_t version, bool is_end_of_list, struct buf *out);

/* The verbs. Authorised already. */
void read_get(struct call *c);
void read_list(struct call *c);
void watch_begin(struct call *c);
void write_create(struct call *c);
void write_update(struct call *c);
void write_patch(struct call *c);
void write_delete(struct call *c);
void write_delete_collection(struct call *c);
/* Subresources other than status, which is the object itself. */
void sub_answer(struct call *c);
/* exec, attach, portforward, log: passed on to the pod side. */
void stream_answer(struct call *c);
/* Ends all that were passed on; each call goes in a later turn. */
void stream_close_all(struct apiserver *s);
/* True when the path was one of discovery's, and is answered. */
bool discovery_answer(struct call *c, struct span path);

#endif
