/* userns: which ids of the host a sandbox's ids are, and telling the kernel so.
 *
 * Three kinds of caller (design: the table of callers): root gives each sandbox 65,536 ids that nobody else has (id_range.h); an
 * account with a range in /etc/subuid gives that range, where it is asked for; else an account gives one id, its own.
 *
 * A range is the same for all sandboxes of an account, so a file that one leaves behind is the same id's in the next: 0 is
 * the account itself, which owns what it shows of its own, and N is id N - 1 of the range.
 *
 * Owns:     nothing.
 * Used by:  box.c: ids_choose before the clone, ids_write after it, from the parent.
 */
#ifndef SILICA_ISOLATE_USERNS_H
#define SILICA_ISOLATE_USERNS_H

#include "base/buf.h"

#include <sys/types.h>

enum ids_kind {
    IDS_ONE,  /* the one id inside is the caller */
    IDS_ROOT, /* a range, written by ourselves */
    IDS_ENGINE, /* the caller and its range as they are on the host: of the namespace that a spawner stays in */
    IDS_RANGE, /* the caller as id 0, and its range above it, written by newuidmap and newgidmap */
};

struct ids {
    enum ids_kind kind;
    uid_t uid; /* of commands, inside */
    gid_t gid;
    const gid_t *groups; /* besides; borrowed from whoever asked */
    size_t group_count;
    uid_t outside_uid; /* what `uid` is on the host; of IDS_RANGE, what 0 is: the caller */
    gid_t outside_gid;
    uint32_t base; /* first id of the range on the host, and of that for groups */
    uint32_t gid_base;
    uint32_t count;
    /* We are in a namespace of IDS_ENGINE: what newuidmap would be asked for is ours to write. Set-user-ID programs have
     * no rights in it anyway. */
    bool is_nested;
};

/* uid_map as /proc/self has it: are ids base..base+count-1 ours to give? */
bool ids_map_covers(struct span map, uint32_t base, uint32_t count);
/* The same of the user namespace that we are in. */
bool ids_may_give(bool is_gid, uint32_t base, uint32_t count);
/* The caller's line of /etc/subuid or /etc/subgid, by name or by number: the first that has `want` ids or more. */
bool ids_find_range(struct span file, struct span name, uid_t uid, uint32_t want,
                    uint32_t *ret_base);
/* The name of a uid out of /etc/passwd; empty when it has none. */
struct span ids_find_name(struct span passwd, uid_t uid);
/* What this caller has to give. base: of the range that was taken for it (id_range.h); 0: none. wants_range: more than one id,
 * where an account has them; ERR_UNSUPPORTED where not. */
int ids_choose(uint32_t base, uid_t uid, gid_t gid, bool wants_range, struct ids *ret,
               struct err *e);
/* The namespace that a spawner of this account stays in: all that it has to give, each id as itself. One id where it has no
 * range that can be had: then *ret_why says why not, and is ERR_NONE else. */
int ids_open_engine(int *ret_fd, struct err *ret_why, struct err *e);
/* The map lines, for the kernel or for newuidmap. */
int ids_lines(const struct ids *ids, bool is_gid, struct buf *out, struct err *e);
/* Writes both maps of the process that has just been cloned. */
int ids_write(const struct ids *ids, pid_t pid, struct err *e);

#endif
