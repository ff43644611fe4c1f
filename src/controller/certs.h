/* certs: the certificates of the conversion webhook as the Secret keeps them, and what is to be done about them.
 *
 * Secret:   ca.crt (whom API servers believe), tls.crt, tls.key, as the public controller has them; so both may take the other's
 *           place. While a new pair comes into use also next.crt and next.key, and an annotation that says from when on.
 * Renewal:  in two steps, so that no moment has an API server that does not believe what it is shown. First the new authority
 *           goes into ca.crt beside the old one, and from there into the definitions; when they had time to be read, the new
 *           pair takes the old one's place. Nobody keeps an authority's key: each signs one certificate.
 * Owns:     a struct certs owns its texts. Does no I/O; `now` is the caller's.
 * Used by:  certs_keeper.
 */
#ifndef SILICA_CONTROLLER_CERTS_H
#define SILICA_CONTROLLER_CERTS_H

#include "base/buf.h"
#include "controller/webhook.h"

#include <time.h>

#define CERTS_MAX_BYTES (64 * 1024) /* of one PEM, then the Secret is not ours */
#define CERTS_NAMES_MAX 16

struct object;

struct certs {
    struct buf ca, cert, key;
    struct buf next_cert, next_key; /* empty: none waits */
    time_t next_from;
    uint64_t version; /* of the Secret; 0: it is not there yet */
};

#define CERTS_INIT                                                                                 \
    {                                                                                              \
        .ca = BUF_INIT(CERTS_MAX_BYTES), .cert = BUF_INIT(CERTS_MAX_BYTES),                        \
        .key = BUF_INIT(CERTS_MAX_BYTES), .next_cert = BUF_INIT(CERTS_MAX_BYTES),                  \
        .next_key = BUF_INIT(CERTS_MAX_BYTES)                                                      \
    }

/* What a server is called by those who look for it; ended by NULL. The first is its common name. */
struct certs_names {
    const char *at[CERTS_NAMES_MAX + 1];
    size_t n;
    struct buf texts; /* behind those that are made here */
};

void certs_done(struct certs *c); /* overwrites the keys */
/* A new authority and a pair it signed; what was there is gone. */
int certs_make(struct certs *c, const struct certs_names *names, struct err *e);
/* Of a Secret. ERR_INVALID: PEM that cannot be read, or a key of another certificate. A next pair that is of no use counts
 * as none. */
int certs_read(struct certs *c, const struct object *secret, struct err *e);
struct webhook_pair certs_pair(const struct certs *c);
/* When what is served now ends, in seconds since 1970. */
time_t certs_end(const struct certs *c, time_t now);

enum certs_step {
    CERTS_STAY,
    CERTS_STAGE,   /* a new pair is to wait beside the old one */
    CERTS_SWITCH,  /* the one that waited takes its place */
    CERTS_REPLACE, /* the old one is of no use to anybody: at once */
};
/* is_believed: all definitions have our ca.crt. */
enum certs_step certs_next(const struct certs *c, const struct certs_names *names, bool is_believed,
                           time_t now);
/* Makes the step; from: when a staged pair may be switched to. */
int certs_apply(struct certs *c, enum certs_step step, const struct certs_names *names, time_t from,
                struct err *e);
/* Appends the Secret as JSON: whole, or as a merge patch that only holds for the version it was read in. */
int certs_write(const struct certs *c, const char *name, bool is_patch, struct buf *out,
                struct err *e);

#endif
