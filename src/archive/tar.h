/* tar: trees as a stream of bytes, in the format of tar: ustar with pax headers written, GNU long names read too.
 *
 * Owns:     the head of one entry between calls (limits.h). Does no I/O.
 * Used by:  pack.c writes, unpack.c and sandbox/copy.c read: what another side of a wall says.
 * Threads:  a reader belongs to one thread. Data is borrowed from what was fed.
 * Hostile:  names are as they were sent: absolute, with `..`, with any byte but NUL. Who uses them judges them.
 */
#ifndef SILICA_ARCHIVE_TAR_H
#define SILICA_ARCHIVE_TAR_H

#include "base/buf.h"

#include <sys/types.h>

#define TAR_BLOCK_BYTES 512

enum tar_kind {
    TAR_FILE,
    TAR_DIR,
    TAR_LINK,  /* symbolic */
    TAR_OTHER, /* hard links, devices, pipes, what nobody knows: its content is passed over */
};

struct tar_entry {
    enum tar_kind kind;
    const char *path;
    const char *target; /* of a TAR_LINK; else "" */
    mode_t mode;        /* 07777 bits */
    uint64_t size;      /* of a TAR_FILE; else 0 */
    int64_t mtime;      /* seconds */
};

enum tar_step {
    TAR_MORE, /* all was used; the entry or its content goes on in what comes next */
    TAR_ENTRY, /* t->entry has it, until the next feed that is no TAR_DATA. `size` bytes of TAR_DATA follow */
    TAR_DATA, /* a piece of the content; t->left says how much is to come */
    TAR_END,  /* the end mark came; whatever follows is ignored */
    TAR_BAD,  /* *e says why, and it stays so */
};

enum tar_state { TAR_AT_HEAD, TAR_AT_EXTRA, TAR_AT_DATA, TAR_AT_PAD, TAR_AT_END, TAR_AT_FAULT };

struct tar_in {
    enum tar_state state;
    uint8_t block[TAR_BLOCK_BYTES];
    size_t have;   /* bytes in block */
    uint64_t left; /* bytes of content, or of what is passed over */
    size_t pad;    /* bytes from there to the next block */
    bool is_passed_over;
    char extra_type; /* what the content in `extra` is: 'x', 'L', 'K' */
    struct buf extra, path, target;
    bool has_path, has_target, has_size, has_mtime; /* said by an extra head, for the next entry */
    uint64_t next_size;
    int64_t next_mtime;
    struct tar_entry entry;
};

void tar_in_init(struct tar_in *t);
void tar_in_done(struct tar_in *t);
/* Takes what it can of `in` in one step; call again with what follows *ret_used. Where the stream is cut changes
 * nothing but the sizes of the pieces. */
enum tar_step tar_in_feed(struct tar_in *t, struct span in, size_t *ret_used, struct span *ret_data,
                          struct err *e);
/* The stream is over: -1 unless it said so itself, since one that was cut is not whole. */
int tar_in_finish(const struct tar_in *t, struct err *e);

/* The head of an entry; `size` bytes and tar_pad(size) zeroes must follow for a TAR_FILE. */
int tar_add_head(struct buf *out, const struct tar_entry *entry, struct err *e);
size_t tar_pad(uint64_t size);
int tar_add_pad(struct buf *out, uint64_t size, struct err *e);
int tar_add_end(struct buf *out, struct err *e);

#endif
