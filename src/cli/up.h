/* up: what `silica up` was asked for, and the supervisor that does it.
 *
 * Owns:     up_run: the parts, the listeners they inherit, and the data directory's lock, until it returns.
 * Used by:  up.c.
 */
#ifndef SILICA_CLI_UP_H
#define SILICA_CLI_UP_H

#include "cli/serving.h"
#include "isolate/box.h"
#include "up/config.h"
#include "up/place.h"

struct up_options {
    const char *data, *listen, *router_listen, *router_workers, *config;
    unsigned router_worker_count; /* of router_workers, or what is usual here */
    struct serving_log log;       /* of the parts */
    struct opt_list sans, allow_hosts;
    struct box_limits limits,
        all; /* of a sandbox that asks for none, and of all together; 0: the node's defaults */
    uint64_t ready_fd, pod_port_min, max_pods, namespace_objects, namespace_bytes;
    bool is_detached, is_child, is_loud, is_help, is_print, is_install, is_uninstall,
        is_every_address;
    struct config file; /* of `config` */
    uint64_t disk_floor_bytes;
};

/* What is told when it serves: the ready line, up.json, and what people read. */
struct up_addresses {
    char listen[128]; /* of the API server: "127.0.0.1:6443" */
    char router[160]; /* "http://127.0.0.1:8090"; "": there is none */
    char kubeconfig[4200];
};

/* Serves until TERM or INT, then ends the parts in order. place is taken already. 0: as asked. */
int up_run(const struct up_options *o, struct place *place, struct err *e);

/* up_config.c: reads --config; what a flag or a variable says wins. */
int up_config_read(struct up_options *o, int argc, char **argv, struct err *e);
/* What holds, as such a file. */
int up_config_print(const struct up_options *o, struct buf *out, struct err *e);
/* What the parts need of it, as files in the data directory: UP_WELCOME_FILE, where it says something of that, and the node's
 * table of images. */
int up_config_write(const struct up_options *o, const struct place *place, struct err *e);
#define UP_WELCOME_FILE "welcome.json"

/* up_unit.c: the unit of systemd, a system's for root, else a user's. On stdout where systemd does not run. argv: of `up`. */
int up_unit_install(const struct up_options *o, int argc, char **argv, struct err *e);
int up_unit_remove(struct err *e);

/* up_text.c */
void up_add_addresses(const struct up_addresses *a, struct json_out *out);
/* What a new user does next, on stdout. */
void up_greet(const struct up_addresses *a, const char *data, bool is_detached);

#endif
