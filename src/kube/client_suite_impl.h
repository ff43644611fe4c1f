/* client_suite_impl: what the rows of the suite are written with; only for client_suite_*.c.
 *
 * Each row has a client and a namespace of its own. Asking runs the loop until the answer is there; whatever is asked for
 * or made is kept until the row has ended, so rows free nothing.
 */
#ifndef SILICA_KUBE_CLIENT_SUITE_IMPL_H
#define SILICA_KUBE_CLIENT_SUITE_IMPL_H

#include "ev/timer.h"
#include "kube/client_suite.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define SUITE_DEADLINE_MS 20000 /* of one wait: then the row fails instead of hanging */

struct kept;

struct suite {
    const struct client_suite *target;
    struct ev_loop *loop;
    struct kube_client *client;
    struct kept *kept;
    char namespace[64];
    const struct kind *namespaces, *config_maps, *pods, *accounts, *sandboxes, *deployments;
    struct ev_timer deadline;
    bool is_late;
};

/* An answer, kept. */
struct result {
    bool is_there; /* the callback came */
    bool is_refused;
    int calls; /* of the callback */
    int code;
    char reason[64], message[1024];
    char fields[512]; /* of the causes: "spec.replicas spec.x" */
    struct object *object;
    struct json_doc *body;
    struct object **items;
    size_t item_count;
    uint64_t version;
    char *next;
    struct suite *suite;
};

/* client_suite.c */

/* Runs the loop until *is_done; fails the row after the deadline. */
void suite_until(struct suite *s, const bool *is_done);
/* Some turns of the loop, for what must not happen. */
void suite_turns(struct suite *s);
/* A moment, before something is looked at again that comes by itself. */
void suite_pause(struct suite *s);
/* Starts it; the result is filled later. */
struct result *suite_start(struct suite *s, const struct kube_request *rq, struct kube_call **ret);
/* Starts it and waits. */
struct result *suite_ask(struct suite *s, const struct kube_request *rq);
/* The same, and fails the row when it was refused. */
struct result *suite_must(struct suite *s, const struct kube_request *rq);
/* The same, and fails the row unless it was refused just so. */
struct result *suite_refused(struct suite *s, const struct kube_request *rq, int code,
                             const char *reason);
/* From JSON (apiVersion and kind are not needed). The row's until its end. */
struct object *suite_object(struct suite *s, const struct kind *kind, const char *fmt, ...)
    PRINTF(3, 4);
/* A changed copy: the member at "spec.x" or "data.k" gets a JSON value; NULL removes it. */
struct object *suite_with(struct suite *s, struct object *o, const char *path, const char *json);
/* Created in the row's namespace (where its kind has one). */
struct object *suite_create(struct suite *s, const struct kind *kind, const char *fmt, ...)
    PRINTF(3, 4);
struct object *suite_get(struct suite *s, const struct kind *kind, const char *name);
/* Names of a list's items: "a b c". Lives as long as the row. */
const char *suite_names(struct suite *s, const struct result *r);
/* The value at a path as JSON text. */
const char *suite_text(struct suite *s, const struct object *o, const char *path);
/* A request in the row's namespace. */
#define SUITE_RQ(s, ...) (&(struct kube_request){ .namespace = (s)->namespace, __VA_ARGS__ })

/* A watch, and what it told: "+name ~name -name ". */
struct seen {
    struct suite *suite;
    struct kube_watch *watch;
    char text[2048];
    size_t bookmarks;
    uint64_t version;      /* of the last event */
    bool is_over, is_same; /* is_same: the text is what is waited for */
    const char *wanted;
    int ends, code;
    char message[256];
    struct object *last;
    size_t stop_after; /* events; 0: never */
};
struct seen *suite_watch(struct suite *s, const struct kube_watch_spec *spec);
/* Waits until the text is this. */
void suite_sees(struct seen *seen, const char *wanted);
void suite_stop(struct seen *seen);

/* The rows. */
struct suite_row {
    const char *name;
    void (*run)(struct suite *s);
    bool needs_versions;
};
extern const struct suite_row suite_write_rows[], suite_read_rows[], suite_watch_rows[],
    suite_life_rows[], suite_sub_rows[], suite_informer_rows[]; /* each ended by a NULL name */

#endif
