/* wire: what is said on the keeper's socket: one packet is one JSON object. The keeper says hello first, so a caller knows
 * that it was taken in; then each request has one answer, in order.
 *
 *     <- {"v":1,"keeper":4711}
 *     -> {"v":1,"op":"create","spec":{"name":"demo",...}}
 *     <- {"v":1,"name":"demo","unenforced":""}
 *     -> {"v":1,"op":"wait","name":"demo"}
 *     <- {"v":1,"name":"demo","end":"ended","code":0,"ended_ms":1794822600123}
 *     <- {"v":1,"error":{"code":"not-found","message":"there is no sandbox 'x'","hint":""}}
 *
 * Owns:     a read request owns its spec. No I/O.
 * Used by:  keeper.c and engine.c. The two may be of different versions: members they do not know are ignored, another
 *           "v" is refused in words.
 */
#ifndef SILICA_ISOLATE_WIRE_H
#define SILICA_ISOLATE_WIRE_H

#include "isolate/spec.h"
#include "isolate/state.h"

#define WIRE_VERSION 1

enum wire_op {
    WIRE_CREATE, /* answered when the sandbox runs, and its command with it */
    WIRE_WAIT,   /* answered when its main command has ended, or all of it */
    WIRE_REMOVE, /* kills it if it runs; answered when nothing of it is left */
    WIRE_CELLAR, /* answered with a descriptor of the namespace of volumes in memory; "name" says for whom */
    WIRE_RETIRE, /* another build is to keep what is made from now on: it ends, unless it has sandboxes, volumes or other callers */
};

struct wire_ask {
    enum wire_op op;
    char name[BOX_NAME_MAX_BYTES + 1];
    struct spec spec;     /* of WIRE_CREATE */
    struct buf spec_text; /* the same as JSON */
};

struct wire_answer {
    bool is_error;
    struct err e;
    bool is_hello;
    char name[BOX_NAME_MAX_BYTES + 1];
    char unenforced[BOX_UNENFORCED_MAX_BYTES];
    bool has_exit;
    struct state_exit exit;
};

int wire_write_create(const struct spec *spec, struct buf *out, struct err *e);
int wire_write_ask(enum wire_op op, const char *name, struct buf *out, struct err *e);
int wire_read_ask(struct span packet, struct wire_ask *ret, struct err *e);
void wire_ask_done(struct wire_ask *ask);

int wire_write_answer(const struct wire_answer *a, struct buf *out, struct err *e);
int wire_read_answer(struct span packet, struct wire_answer *ret, struct err *e);

#endif
