/* store: all objects, in memory and on disk.
 *
 *     store_write -> the head, at once -> one commit for all that came meanwhile -> whoever waits, whoever watches
 *
 * Owns:     the head (what was written), the committed state (what is on disk), the history, the file.
 * Rule:     what leaves this process (an answer, an event, a spawn) waits for the commit that holds what it saw:
 *           store_wait. Readers in this process may take the head; all others take the committed state. When a commit
 *           fails, everything after the last one that held is undone, and its waiters hear why.
 * Used by:  the verbs of the API server; controllers in this process.
 * Threads:  the loop's. Writing and checkpointing run on workers, which get bytes.
 * Versions: one counter for all objects; it never goes back, not even over a crash.
 */
#ifndef SILICA_APISERVER_STORE_H
#define SILICA_APISERVER_STORE_H

#include "apiserver/history.h"
#include "apiserver/shelf.h"

struct addresses;
struct store;
struct usage;

struct store_config {
    const char *dir; /* exists */
    /* A new store counts on from here: above all that a store before it in this place can have told, so that who
     * watched that one hears 410 and not silence. */
    uint64_t first_version;
    /* For tests; 0 and NULL: as limits.h says. */
    const char *vfs;
    int checkpoint_pages;
    size_t history_max, history_max_bytes;
    uint64_t room_retry_ms;
    uint64_t fresh_ms, sweep_ms;
};

enum store_op { STORE_CREATE, STORE_UPDATE, STORE_DELETE };
enum store_view { STORE_HEAD, STORE_COMMITTED };

int store_open(struct ev_loop *loop, const struct store_config *config, struct store **ret,
               struct err *e);
/* Writes what is pending first; then no wait is left. Watches must have been stopped. Not for callbacks. */
void store_close(struct store *st);

/* Objects and version of a view, for as long as the caller holds the shelf: shelf_unref. */
struct shelf *store_snapshot(struct store *st, enum store_view view, uint64_t *ret_version);
/* The committed state with the objects of one kind as they were at `version`; the caller's. ERR_GONE: too long ago. */
int store_snapshot_at(struct store *st, unsigned kind, uint64_t version, struct shelf **ret,
                      struct err *e);
struct object *store_get(struct store *st, enum store_view view, const struct shelf_key *key);
uint64_t store_version(const struct store *st, enum store_view view);

/* o is what it becomes, or for a delete its last state; the store stamps the version on it. *ret, the caller's, is what is
 * on the head now. The caller has judged against the head in this same turn: the store only knows ERR_EXISTS and
 * ERR_NOT_FOUND, ERR_BUSY (too much is pending) and ERR_NO_SPACE. is_freeing: deletes, and what leads to them, also pass
 * while the disk is full. */
struct store_change {
    enum store_op op;
    struct object *object;
    bool is_freeing;
};
int store_write(struct store *st, const struct store_change *change, struct object **ret,
                struct err *e);

/* What stands on the head under the names of `o` is kept in less memory from now on (object_lean), if it is `o`; nobody is told,
 * as nothing is different. For objects that are seldom read. The object that stands there then, the caller's; NULL: another does,
 * or none. */
struct object *store_lean(struct store *st, struct object *o);

/* Embedded by who waits. */
struct store_wait {
    struct store_wait *next;
    uint64_t version;
    void (*done)(void *ctx, const struct err *e);
    void *ctx;
    struct ev_task task;
    struct store *store; /* while it waits */
};
/* done(ctx, NULL) when all up to `version` is on disk, or why it never will be. Never inside the call. */
void store_wait(struct store *st, struct store_wait *w, uint64_t version,
                void (*done)(void *ctx, const struct err *e), void *ctx);
void store_wait_cancel(struct store_wait *w); /* harmless when it does not wait */

/* ERR_GONE when the history begins after `version`. */
int store_watch(struct store *st, struct store_watch *w, uint64_t version, struct err *e);

/* What happened to objects of a kind on the head after `version`, oldest first. False: the history begins later. */
bool store_changes(struct store *st, unsigned kind, uint64_t version,
                   void (*fn)(void *ctx, const struct store_event *ev), void *ctx);
/* An index beside it; the store's. */
struct addresses *store_addresses(struct store *st);
/* What each namespace has on the head; the store's. */
struct usage *store_usage(struct store *st);

struct store_stats {
    uint64_t commits, rows, failed_commits;
    size_t objects, pending, watches;
    size_t superseded, superseded_bytes; /* states kept for watches that come back */
    bool is_full;
};
void store_stats(const struct store *st, struct store_stats *ret);

#endif
