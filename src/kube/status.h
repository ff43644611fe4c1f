/* status: the answers that are no object: metav1.Status, as the public server words it.
 *
 *     OWN(status_done) struct status st = STATUS_INIT;
 *     status_not_found(&st, kind, "demo");
 *     status_write(&st, &body, e);       with st.code as the HTTP status
 *
 * Owns:     the message and the causes. Names of kinds are constants.
 * Used by:  the API server for every refusal, and for the success of a delete; clients read them.
 */
#ifndef SILICA_KUBE_STATUS_H
#define SILICA_KUBE_STATUS_H

#include "kube/cause.h"

struct kind;

#define STATUS_TEXT_MAX_BYTES (128 * 1024) /* a message holds all causes once */

struct status {
    int code;           /* HTTP; 0: nothing was said yet */
    const char *reason; /* "NotFound"; a constant */
    struct buf message;
    struct buf name;   /* details; empty: left out */
    struct buf uid;    /* the same */
    const char *group; /* details; NULL or "": left out */
    const char
        *kind; /* details: plural of the resource, or the kind for Invalid; NULL: no details */
    int retry_after_s; /* 0: left out */
    struct causes causes;
};

#define STATUS_INIT                                                                                \
    {                                                                                              \
        .message = BUF_INIT(STATUS_TEXT_MAX_BYTES), .name = BUF_INIT(1024), .uid = BUF_INIT(256),  \
        .causes = CAUSES_INIT                                                                      \
    }

void status_done(struct status *st);
/* Forgets what was said. */
void status_clear(struct status *st);

/* Each replaces what was said before and returns -1, so that a refusal is one line. */
int status_not_found(struct status *st, const struct kind *k, const char *name);
/* No kind stands behind the path: "the server could not find the requested resource". */
int status_no_resource(struct status *st);
int status_exists(struct status *st, const struct kind *k, const char *name);
/* "Operation cannot be fulfilled on pods "x": <why>". */
int status_conflict(struct status *st, const struct kind *k, const char *name, const char *fmt, ...)
    PRINTF(4, 5);
/* The resourceVersion was not the newest one: the text every client retries on. */
int status_modified(struct status *st, const struct kind *k, const char *name);
/* Server-side apply; st->causes is filled already. */
int status_apply_conflict(struct status *st, const char *fmt, ...) PRINTF(2, 3);
/* st->causes is filled already; the message lists them. */
int status_invalid(struct status *st, const struct kind *k, const char *name);
int status_bad_request(struct status *st, const char *fmt, ...) PRINTF(2, 3);
/* `pods "x" is forbidden: <why>`; name may be "". k NULL: "forbidden: <why>". */
int status_forbidden(struct status *st, const struct kind *k, const char *name, const char *fmt,
                     ...) PRINTF(4, 5);
int status_unauthorized(struct status *st);
/* k NULL: it is not said of what. */
int status_method(struct status *st, const struct kind *k, const char *verb);
/* 410: a watch or a continue token that is too old. */
int status_expired(struct status *st, const char *fmt, ...) PRINTF(2, 3);
int status_too_large(struct status *st, size_t limit_bytes);
int status_media_type(struct status *st, const char *fmt, ...) PRINTF(2, 3);
int status_not_acceptable(struct status *st, const char *fmt, ...) PRINTF(2, 3);
int status_too_many(struct status *st, int retry_after_s, const char *fmt, ...) PRINTF(3, 4);
int status_timeout(struct status *st, const char *fmt, ...) PRINTF(2, 3);
/* 504 with a cause and a moment to try again: a resourceVersion that is not there yet. */
int status_too_new(struct status *st, uint64_t wanted, uint64_t there);
/* 503, with or without a moment to try again. */
int status_unavailable(struct status *st, int retry_after_s, const char *fmt, ...) PRINTF(3, 4);
/* 500 without a reason: errors that the public server passes on as they are. */
int status_bare(struct status *st, const char *fmt, ...) PRINTF(2, 3);
int status_internal(struct status *st, const char *fmt, ...) PRINTF(2, 3);
/* By err_map; ERR_INVALID, ERR_USAGE and ERR_PROTOCOL are BadRequest: nothing is known of fields. */
int status_of_err(struct status *st, const struct err *e);
/* The answer to a delete; code 200. Returns 0. */
int status_success(struct status *st, const struct kind *k, const char *name, const char *uid);

/* Appends the JSON body. */
int status_write(const struct status *st, struct buf *out, struct err *e);

/* A Status that came over the wire (a JSON object of kind Status), for clients. False: it is none. */
bool status_read(const struct json *body, struct status *ret);

#endif
