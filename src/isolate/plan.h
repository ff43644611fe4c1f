/* plan: what will be done to make one sandbox, as data. A spec comes in, rows come out; the child of box_start walks
 * them and decides nothing. So what a sandbox sees can be read, printed and tested without any privilege.
 *
 * Owns:     its texts. Does no I/O but one look at what the host image is made of (plan_host_look).
 * Used by:  box.c, which makes it before it clones; mounts.c, which walks it in the child.
 * Order:    rows are done in order, and each stands on those before it. Binds are first taken hold of, all of them,
 *           while the child still is who called, then put in their place.
 */
#ifndef SILICA_ISOLATE_PLAN_H
#define SILICA_ISOLATE_PLAN_H

#include "isolate/box.h"
#include "isolate/limits.h"
#include "isolate/user_counts.h"
#include "isolate/userns.h"

#define PLAN_SHELL "/bin/sh"

enum plan_op {
    PLAN_DIR,    /* a directory of `mode` */
    PLAN_LINK,   /* a link at target that says `source` */
    PLAN_FILE,   /* a file whose content is `source` */
    PLAN_BIND,   /* the host's tree or file `source` */
    PLAN_TMPFS,  /* an empty tmpfs of `bytes` */
    PLAN_PROC,   /* the proc of the new PID namespace */
    PLAN_DEVPTS, /* terminals of its own */
    PLAN_WRITE,  /* `source` is written into the file: kernel settings of the new namespaces */
    PLAN_SEAL,   /* what is there becomes read-only */
    PLAN_HIDE, /* what is there becomes empty and unreadable: `source` of the new root covers it */
    PLAN_KEEP, /* what is there stays writable when the root is sealed */
    PLAN_SEAL_ROOT,
    PLAN_FRAME, /* the tree of that name which all sandboxes share */
    PLAN_TOUCH, /* an empty file of `mode`; what is there stays */
    PLAN_ALIAS, /* the directory `source` of the new root, at a second place */
};

/* Set-user-ID bits never count: every mount is nosuid. */
enum plan_flag {
    PLAN_RDONLY = 1 << 0,
    PLAN_NODEV = 1 << 1,
    PLAN_NOEXEC = 1 << 2,
    PLAN_OPTIONAL = 1 << 3, /* the host may not have it */
    PLAN_OF_USER = 1 << 4,  /* is the user's who runs commands, not the builder's of the root */
    PLAN_FOREIGN = 1 << 6,  /* a caller's: links on the way to the target may be anybody's */
    PLAN_IDMAP = 1 << 5,    /* what is 1000's on disk is 1000's inside */
};

struct plan_row {
    enum plan_op op;
    const char *target; /* inside, relative to the new root */
    const char *source;
    const char *sub; /* of a bind: what below the source; NULL: all of it */
    const char *
        memory; /* of a bind: the volume of the cellar that it is, whatever is at the source; NULL */
    unsigned flags; /* enum plan_flag */
    mode_t mode;
    uint64_t bytes;
};

/* What the host image depends on. */
struct plan_host {
    bool has_merged[4]; /* /bin, /sbin, /lib, /lib64 are links into /usr */
    bool has_dir[4];    /* or directories of their own */
    bool has_python;
    bool has_python3;
    bool has_frame;               /* /etc and /dev are there, made ahead (frame.h) */
    uint64_t counts[USER_COUNTS]; /* the most it may have (user_counts_of_sandbox) */
};

struct plan {
    struct plan_row rows[PLAN_ROWS_MAX];
    size_t n;
    char *texts[PLAN_ROWS_MAX * 2];
    size_t text_count;
    struct ids ids;
    uint64_t root_bytes;
    bool is_root_sealed;
    bool can_be_framed; /* it would take one */
    bool is_framed;     /* it takes the frame that there is */
    bool has_shared;    /* a writable tree that others of the host may enter */
    uint64_t nproc;     /* RLIMIT_NPROC, 0 for none: where no cgroup counts processes */
    const char *hostname;
    const char *cwd;
    const char
        *message; /* where PID 1 finds its command's last words, inside; NULL: nobody wants them */
};

void plan_host_look(struct plan_host *ret);
/* p is filled; -1 with ERR_INVALID for a spec that cannot be, ERR_LIMIT for too much of it, and ERR_UNSUPPORTED. p is to
 * be done with either way. */
int plan_make(struct plan *p, const struct box_spec *spec, const struct ids *ids,
              const struct plan_host *host, struct err *e);
/* What is the same in all sandboxes, below "etc" and "dev" of a tree that is mounted nowhere; rows in order. */
int plan_make_frame(struct plan *p, struct err *e);
/* What is below sandboxes that are born on the ground (ground.h). */
int plan_make_ground(struct plan *p, struct err *e);
void plan_done(struct plan *p);
const char *plan_op_name(enum plan_op op);

#endif
