/* logs: the output of a sandbox's main command as its keeper wrote it down (isolate/logfile.h has the format), cut into
 * entries again.
 *
 *     2026-11-16T09:30:00.123456789Z stdout F a line
 *
 * Owns:     the entry between two feeds, SANDBOX_LOG_ENTRY_MAX_BYTES at most. Does no I/O.
 * Used by:  cli/logs.c.
 * Threads:  a reader belongs to one thread. Texts are borrowed for the callback.
 * Hostile:  what follows the stamp is the sandbox's own text, any bytes at all. What has no proper stamp is passed over
 *           and counted: a file that was cut, or that somebody else wrote.
 */
#ifndef SILICA_SANDBOX_LOGS_H
#define SILICA_SANDBOX_LOGS_H

#include "base/buf.h"
#include "sandbox/sandbox.h"

struct logs_entry {
    struct span time; /* as it stands there */
    enum sandbox_output stream;
    bool is_end; /* of a line; else more of it follows in a later entry of that stream */
    struct span text;
};

typedef void (*logs_fn)(void *ctx, const struct logs_entry *entry);

struct logs {
    struct buf held; /* an entry that is not whole yet */
    bool is_too_long;
    uint64_t bad; /* entries passed over */
    logs_fn each;
    void *ctx;
};

void logs_init(struct logs *l, logs_fn each, void *ctx);
void logs_feed(struct logs *l, struct span bytes);
/* Nothing more comes in this file; half an entry is dropped. */
void logs_end(struct logs *l);
void logs_done(struct logs *l);

#endif
