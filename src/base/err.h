/* err: what went wrong, as a value.
 *
 * Owns:     nothing: no pointer inside, so it is safe in a cloned child and crosses a socketpair as bytes.
 * Used by:  every fallible function: `struct err *e` last, returns 0, or -1 with *e filled. On success *e
 *           and on failure every ret_* are untouched.
 * Messages: lower case, no full stop, what failed first, the subject quoted, the cause after a colon.
 */
#ifndef SILICA_BASE_ERR_H
#define SILICA_BASE_ERR_H

#include "base/own.h"

enum err_code {
    ERR_NONE = 0,
    ERR_INTERNAL,     /* our bug, or the system failed in a way nobody planned for */
    ERR_USAGE,        /* the command line is wrong */
    ERR_INVALID,      /* a value does not fit its rules */
    ERR_PROTOCOL,     /* a peer broke the protocol */
    ERR_LIMIT,        /* something is larger than its ceiling */
    ERR_NOT_FOUND,    /* */
    ERR_EXISTS,       /* */
    ERR_CONFLICT,     /* the state changed under the caller, or forbids this */
    ERR_DENIED,       /* not allowed to this caller */
    ERR_UNAUTHORIZED, /* no or wrong credentials */
    ERR_TIMEOUT,      /* a deadline passed */
    ERR_CANCELED,     /* the operation was called off, or the loop shut down */
    ERR_CLOSED,       /* the peer is gone */
    ERR_UNAVAILABLE,  /* not now; trying again may work */
    ERR_UNSUPPORTED,  /* we do not do this */
    ERR_BUSY,         /* too much at once */
    ERR_NO_SPACE,     /* disk or quota is full */
    ERR_GONE,         /* it was there once; what is asked for is too old */
    ERR_CODE_COUNT
};

struct err {
    enum err_code code; /* programs branch on this; err_map() has every protocol's number */
    int sys;            /* errno at the moment of failure, or 0 */
    char msg[480];      /* what failed, where, why; a cut ends in "..." */
    char hint[160];     /* what the user can do next, or "" */
};

/* How one code looks in each protocol we speak. */
struct err_map {
    const char *name; /* "not-found": stable, in logs and JSON */
    int http;
    int grpc;
    const char *kube_reason;
    int exit_code;
};

/* Our verdict. Returns -1. */
int err_set(struct err *e, enum err_code code, const char *fmt, ...) PRINTF(3, 4);
/* A failed system call: captures errno first thing, picks the code, appends ": <strerror>". Returns -1. */
int err_sys(struct err *e, const char *fmt, ...) PRINTF(2, 3);
/* The same for an errno that was kept. Returns -1. */
int err_errno(struct err *e, int sys, const char *fmt, ...) PRINTF(3, 4);
/* Puts "<context>: " before the message on its way up. Returns -1. */
int err_wrap(struct err *e, const char *fmt, ...) PRINTF(2, 3);
/* Says what the user can do next. */
void err_hint(struct err *e, const char *fmt, ...) PRINTF(2, 3);

const struct err_map *err_map(enum err_code code);
enum err_code err_code_of_errno(int sys);

#endif
