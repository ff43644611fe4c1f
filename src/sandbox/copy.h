/* copy: files and trees into a sandbox and out of it.
 *
 * The other side is `silica-runtime pack` or `unpack`, run as a command of the sandbox: an archive goes through its
 * standard streams. So no path of the sandbox is looked up on the host, and none of the host inside.
 *
 * Owns:     the command, the walk through our own files. Memory is bounded whatever is copied.
 * Used by:  src/cli. Reads and writes our disk on the loop's thread, some 100 KiB at a time: not for a loop that others
 *           wait for.
 * Events:   never inside a verb; on_done exactly once and last, also after sandbox_copy_cancel and sandbox_close.
 * Hostile:  what comes out is what PID 1's side claims: archive/unpack.h keeps it below the destination and under the
 *           name that was asked for, and the ceilings here keep it finite. Links come out as links, wherever they lead.
 */
#ifndef SILICA_SANDBOX_COPY_H
#define SILICA_SANDBOX_COPY_H

#include "archive/pack.h"
#include "sandbox/sandbox.h"

struct sandbox_copy;

/* e NULL: all of it is there; `note` is then what the other side has to say, such as what it passed over, or "". */
typedef void (*sandbox_copy_fn)(void *ctx, const char *note, const struct err *e);

/* All of it is copied but ctx. */
struct sandbox_copy_spec {
    bool is_out;                     /* from the sandbox to here */
    const char *inside;              /* a path there */
    const char *cwd;                 /* what it is relative to, inside; NULL: the root */
    const char *outside;             /* a path here */
    uint64_t max_bytes, max_entries; /* of what comes out; then ERR_LIMIT */
    sandbox_copy_fn on_done;
    void *ctx;
};

/* -1, and no event: our side cannot be read or written, ERR_CLOSED. */
int sandbox_copy(struct sandbox *s, const struct sandbox_copy_spec *spec, struct sandbox_copy **ret,
                 struct err *e);
/* So far. */
const struct archive_counts *sandbox_copy_counts(const struct sandbox_copy *c);
/* on_done gets ERR_CANCELED. Inward the other side is first let know, so that it leaves nothing temporary; a second call
 * does not wait for that. */
void sandbox_copy_cancel(struct sandbox_copy *c);

/* The other side's command line for `inside`: NULL-terminated, its texts borrowed. */
void sandbox_copy_command(bool is_out, const char *inside, const char *top, const char *ret[5]);

#endif
