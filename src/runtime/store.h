/* store: a file that arrives in pieces, written by workers while the next piece arrives.
 *
 * Owns:     two pieces at most, and the writer behind them. What was not committed is removed.
 * Used by:  /upload and PUT; whoever reads a body.
 * Threads:  the loop's; the writer itself runs on the file pool, one step at a time.
 * Ends:     done(ctx, path, e) exactly once: after store_commit, or at the first failure (what is added then is
 *           dropped). Not after store_close.
 */
#ifndef SILICA_RUNTIME_STORE_H
#define SILICA_RUNTIME_STORE_H

#include "runtime/files/file_write.h"
#include "runtime/runtime.h"

struct store;

struct store_events {
    void (*on_room)(void *ctx); /* it was full and can take more */
    /* path: the absolute path written to, for messages; "" if it was refused. */
    void (*on_done)(void *ctx, const char *path, const struct err *e);
};

struct store *store_new(struct runtime *rt, const char *root, const struct store_events *events,
                        void *ctx);
/* A file begins; one that began before and was not committed is dropped. */
void store_begin(struct store *s, struct span path, const struct file_write_how *how);
/* False: it is full, hold the sender until on_room. The bytes were taken all the same. */
bool store_add(struct store *s, struct span bytes);
void store_commit(struct store *s);
/* Frees it once no worker holds it; no more events. */
void store_close(struct store *s);

#endif
