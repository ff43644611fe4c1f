/* path: which file a client's path names, as a directory descriptor and a last name.
 *
 * Owns:     a path_root owns the descriptor of the root directory; a path_at that of the directory it ends in.
 * Used by:  the file routes and the `cwd` of commands, on worker threads: every call may block on the disk.
 * Threads:  no state of the process is read or changed but, for a relative root, the working directory.
 *           A path_root may be shared by threads.
 *
 * Two steps, and the second is the guard. path_walk.c computes the *real path* by the rules of the contract,
 * which differ from each other and from the kernel's; what it reads may change behind its back, so its answer
 * is advice. Then the path is reached again from the root's descriptor, component by component, without `..`
 * and without following any link: whatever was swapped meanwhile, the descriptor we end with is below the
 * root. A link where the first step saw none is a lost race: both steps run again, PATH_TRIES times.
 *
 * The rules:
 * PATH_PYTHON    leading slashes are dropped; links are followed where they exist; components that do not
 *                exist are kept as text; `..` removes what is really before it; the end must be the root or
 *                below, whatever the way led through (`foo/../../app/q` below `/app` is `/app/q`).
 * PATH_SANDBOXD  `.`, `..` and `//` go first, as text (`/../x` is `/x`); a leading root is dropped; the rest is
 *                joined to the root, and refused if that leaves it; then links are followed. What does not
 *                exist is the nearest existing ancestor plus the remaining text, so a dangling link is itself.
 *                A file used as a directory, a loop, an unreadable directory and a NUL are errors.
 * PATH_PYDANTIC  the contract is silent and its sample server confines nothing. Ours: as PATH_SANDBOXD, where a
 *                leading root may also be spelt as configured. So relative paths, absolute paths below the
 *                root, and any other absolute path (taken as if the root were `/`, as in `{"path":"/"}`) all
 *                name something inside; what would leave is refused (403).
 */
#ifndef SILICA_RUNTIME_PATH_H
#define SILICA_RUNTIME_PATH_H

#include "base/buf.h"

#include <sys/stat.h>

#define PATH_TEXT_MAX_BYTES 4095 /* longer is ENAMETOOLONG; the kernel's own limit for one path */
/* The same for a real path: links may make it longer than what was sent */
#define PATH_REAL_MAX_BYTES 8191
#define PATH_LINKS_MAX      40 /* links followed for one path, then ELOOP; as the kernel counts */
#define PATH_TRIES          32 /* lost races before ERR_BUSY; each takes a rename in microseconds */

enum path_rules { PATH_PYTHON, PATH_SANDBOXD, PATH_PYDANTIC };

enum {
    PATH_KEEP_LAST_LINK =
        1, /* the last component is not followed if it is a link: for removing it */
};

struct path_root {
    int fd;           /* O_PATH */
    char *configured; /* as given, made absolute */
    char *real;       /* without links, no slash at the end; "" for `/` itself */
};
#define PATH_ROOT_NONE                                                                             \
    {                                                                                              \
        -1, NULL, NULL                                                                             \
    }

struct path_at {
    int dir_fd; /* O_PATH: the deepest directory on the way that exists; the parent if has_parent */
    bool has_parent; /* dir_fd and name are usable together; else path_make_parents() first */
    bool exists;     /* there is such an entry and it is no link; st tells what */
    bool is_link;    /* a link is there that was not followed: dangling, looping or to be kept */
    bool is_root;    /* the root itself: name is "." */
    int sys; /* why it does not exist: ENOENT, ENOTDIR, EACCES, ELOOP, ENAMETOOLONG; else 0 */
    struct stat st;   /* of the entry, when exists or is_link */
    const char *name; /* the last component, inside rel */
    const char *rel;  /* below the root, "" for the root; inside abs */
    char *abs;        /* for messages: the root's real path and rel */
    size_t
        missing_at; /* offset in rel where the components that do not exist begin, if !has_parent */
};
#define PATH_AT_NONE                                                                               \
    {                                                                                              \
        .dir_fd = -1                                                                               \
    }

/* Opens the root as it is now; cheap enough to be done for each request. ERR_NOT_FOUND when it is missing. */
int path_root_open(struct path_root *root, const char *text, struct err *e);
void path_root_close(struct path_root *root);
/* Creates the directory and its parents (mode minus umask) where missing; an existing one is success. */
int path_root_make(const char *text, mode_t mode, struct err *e);

/* Fills *ret, which the caller ends with path_at_done(), also when the path names nothing (see exists, sys).
 * -1: path_is_escape(e) tells that the path leaves the root (and, by PATH_PYTHON, that it holds a NUL); else
 * e->sys is what the system said: ENAMETOOLONG for text over its limit, and by the other rules also ENOTDIR,
 * ELOOP, EACCES; EINVAL for a NUL. ERR_BUSY: someone kept renaming. */
int path_resolve(const struct path_root *root, enum path_rules rules, struct span user, int flags,
                 struct path_at *ret, struct err *e);
bool path_is_escape(const struct err *e);
/* Creates what is missing between dir_fd and the last name, mode minus umask; never through a link. */
int path_make_parents(struct path_at *at, mode_t mode, struct err *e);
void path_at_done(struct path_at *at);

/* Resolves and opens in one: `open_flags` of open(2) without O_CREAT; O_NOFOLLOW and O_CLOEXEC are added. *ret
 * is filled as by path_resolve if ret is not NULL. -1: as path_resolve, or what open said. */
int path_open(const struct path_root *root, enum path_rules rules, struct span user, int open_flags,
              struct path_at *ret, int *ret_fd, struct err *e);
/* Opens `rel`, a text without links, `.` or `..`, below dir_fd; "" is dir_fd itself. A link on the way is
 * ELOOP. -1 with errno. */
int path_open_plain(int dir_fd, const char *rel, int open_flags);

#endif
