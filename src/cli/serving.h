/* serving: what the commands that serve have in common: rows of their tables, the log, a loop with signals, the client of
 * an API server, what is shown to monitors, and the line that says that all of it is there.
 *
 *     struct serving s = { 0 };
 *     if (serving_open(&s, &spec, e) < 0 || serving_connect(&s, file, &config, e) < 0)
 *         return -1;
 *     json_out_key(serving_line(&s), "listen"), ...;
 *     if (serving_ready(&s, e) < 0) ...
 *     ev_loop_run(s.loop);
 *     serving_close(&s);
 *
 * Owns:     what is in the struct. What a command makes on top of it is freed before it.
 * Used by:  apiserver.c, control.c, controller.c, node.c, parts.c, pod_backend.c, router.c, up_run.c.
 * Threads:  the loop's.
 */
#ifndef SILICA_CLI_SERVING_H
#define SILICA_CLI_SERVING_H

#include "base/json.h"
#include "base/log.h"
#include "base/opt.h"
#include "ev/child.h"

struct kube_client;
struct kubeclient_config;
struct resolver;
struct show;
struct show_config;

/* ---- rows of option tables ---- */

/* A descriptor that was not given. */
#define SERVING_NO_FD OPT_NO_FD

struct serving_log {
    const char *level, *format; /* format NULL: text */
};

/* clang-format off */
#define SERVING_READY_FD(at, when) \
    { "--ready-fd", NULL, OPT_FD, at, NULL, 0, 0, "N", "write one line of JSON to this descriptor when " when }
#define SERVING_LOG_LEVEL(at, group, more) \
    { "--log-level", NULL, OPT_STR, (at) + offsetof(struct serving_log, level), "info", 0, 0, "LEVEL", "debug, info, warn or error" more, group }
#define SERVING_LOG_FORMAT(at) \
    { "--log-format", NULL, OPT_STR, (at) + offsetof(struct serving_log, format), "text", 0, 0, "FORMAT", "text or json" }
#define SERVING_TLS_SAN(at) \
    { "--tls-san", NULL, OPT_LIST, at, NULL, 0, 0, "NAME", "another name or address in the server's certificate; may be repeated" }
#define SERVING_NAMESPACE_MAX(objects_at, bytes_at) \
    { "--namespace-max-objects", NULL, OPT_U64, objects_at, "50000", 0, 0, "N", "objects of one namespace; 0: any number; its annotation silica.dev/max-objects says otherwise" }, \
    { "--namespace-max-bytes", NULL, OPT_BYTES, bytes_at, "256MiB", 0, 0, "SIZE", "the same in bytes of their JSON; silica.dev/max-bytes" }
#define SERVING_MAX_PODS(at) \
    { "--max-pods", NULL, OPT_U64, at, "5500", 1, 1000000, "N", "Pods that the node takes; more wait until one has ended" }
#define SERVING_POD_PORT_MIN(at) \
    { "--pod-port-min", NULL, OPT_U64, at, "1024", 1, UINT16_MAX, "PORT", "the lowest port that is listened on at Pods' addresses: their authors choose the numbers" }
#define SERVING_DISK_FLOOR(at) \
    { "--disk-floor", "SILICA_DISK_FLOOR", OPT_BYTES, at, "0", 0, UINT64_MAX, "SIZE", "free space that sandboxes leave on the disk: with less, those that write most stand still; 0: the larger of 1 GiB and 2 %" }
#define SERVING_POD_ADDRESSES(at) \
    { "--pod-addresses", NULL, OPT_BOOL, at, NULL, 0, 0, NULL, "listen at the addresses of all claimed and directly made Pods; else where a session or an annotation asks" }
#define SERVING_CLUSTER(at) \
    { "--kubeconfig", NULL, OPT_STR, at, NULL, 0, 0, "FILE", "the cluster and who we are there; default: $KUBECONFIG, ~/.kube/config, the pod's service account", "Process" }
/* clang-format on */

/* Reads the level and the format. ERR_USAGE. */
int serving_log_read(const struct serving_log *o, enum log_level *ret_level,
                     enum log_format *ret_format, struct err *e);
/* The same, and opens the log on standard error. */
int serving_log_open(const struct serving_log *o, struct err *e);

/* ---- the process ---- */

/* TERM or INT came; is_again: not for the first time. */
typedef void (*serving_stop_fn)(void *ctx, bool is_again);

struct serving_spec {
    const char *stop_event; /* "node.stop": what the log calls a signal; NULL: it does not */
    serving_stop_fn stop;   /* NULL: the loop stops */
    void *ctx;
    uint64_t ready_fd;     /* who waits for the line, or SERVING_NO_FD */
    bool is_server;        /* clients connect to it: it may have as many descriptors as it can */
    bool ends_with_hangup; /* HUP is a signal to end, too */
    int news_signal;       /* one that only tells something: news(ctx); 0: none */
    ev_fn news;
};

struct serving {
    struct serving_spec spec;
    struct ev_loop *loop;
    struct ev_children *children;
    struct resolver *resolver; /* with the client, or by serving_resolve */
    struct kube_client *client;
    struct show *show;
    struct buf line;
    struct json_out out;
    bool is_stopping; /* a signal came */
    int exit_code;
};

/* Readies the process: broken pipes are errors, few arenas, signals as events. -1 may leave it half open, for
 * serving_close. */
int serving_open(struct serving *s, const struct serving_spec *spec, struct err *e);
int serving_resolve(struct serving *s, struct err *e);
/* s->client: of the kubeconfig, or of where such files are looked for. `config` says the rest; NULL: nothing. */
int serving_connect(struct serving *s, const char *kubeconfig,
                    const struct kubeclient_config *config, struct err *e);
/* s->show. */
int serving_show(struct serving *s, const struct show_config *config, struct err *e);
/* Lets monitors and the API server go, and turns the loop until what was asked of that has been told so. For who frees
 * something afterwards that was told; not for callbacks. */
void serving_disconnect(struct serving *s);
/* Tolerates what is half open. */
void serving_close(struct serving *s);

/* ---- what is said ---- */

/* Begins an object; the caller adds members. */
struct json_out *serving_line(struct serving *s);
/* Adds where monitors look. */
void serving_add_show(struct serving *s);
/* Ends the object and writes it as one line, where somebody waits for it. */
int serving_say(struct serving *s, struct err *e);
/* The same, and it was the last one: the descriptor is let go. */
int serving_ready(struct serving *s, struct err *e);

/* Appends which program this is, as public controllers do. */
int serving_write_build(const char *metric, struct buf *out, struct err *e);

#endif
