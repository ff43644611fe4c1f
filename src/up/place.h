/* place: what `silica up` keeps of itself in its data directory, for the other commands and for the next start.
 *
 *     DIR/up.lock     held as long as it runs: by the kernel's word, no file's
 *     DIR/up.json     what runs: pid, addresses, the parts
 *     DIR/port        of the API server; router-port of the router: taken again at the next start
 *     DIR/logs/NAME/  what a part said: log, log.1
 *
 * Owns:     the descriptors.
 * Used by:  cli/up.c, which writes; down, status, env, kubeconfig, which read.
 */
#ifndef SILICA_UP_PLACE_H
#define SILICA_UP_PLACE_H

#include "base/json.h"
#include "isolate/dir.h"

#include <sys/types.h>

struct place {
    char *path;
    struct dir dir;
    int lock_fd; /* -1: not ours */
};

/* clang-format off */
#define PLACE_INIT { NULL, DIR_INIT, -1 }
/* clang-format on */

/* given: --data, or NULL. makes_it: as dir_open. */
int place_open(struct place *p, const char *given, bool makes_it, struct err *e);
void place_done(struct place *p);

/* Ours until place_done or our end. ERR_EXISTS: it runs already. Waits for what a killed one left to die. */
int place_take(struct place *p, struct err *e);
/* Somebody has it now. */
bool place_is_taken(const struct place *p);

/* The directory of a part's log, made where it is missing; the caller's. */
int place_open_log(const struct place *p, const char *part, int *ret_fd, struct err *e);

/* A listening socket. given: as said; NULL: on loopback, the port of last time (`file` remembers it), else `port`, else the
 * next free one up to PORTS_TRIED, else any. */
struct place_port {
    const char *given, *file, *option; /* option: for messages on `given` */
    uint16_t port;
};
int place_listen(const struct place *p, const struct place_port *port, int *ret_fd, struct err *e);
/* For the next start. Only of one that serves: a start that fails leaves nothing. */
int place_remember(const struct place *p, const char *file, int listen_fd, struct err *e);
/* "127.0.0.1:6443": what clients on this machine connect to. */
int place_address(int listen_fd, char *text, size_t n, struct err *e);

/* What runs. ERR_NOT_FOUND: nothing does. */
struct place_info {
    struct json_doc *doc; /* the texts are its */
    pid_t pid;
    const char *listen, *router, *kubeconfig; /* router: NULL where there is none */
    const struct json *parts;
};
int place_write(const struct place *p, struct span json, struct err *e);
int place_read(const struct place *p, struct place_info *ret, struct err *e);
void place_info_done(struct place_info *info);

#endif
