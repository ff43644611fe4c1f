/* testserver: a client whose answers and events the test gives by hand, so that it decides what comes late, in which
 * order, and what never comes. Tests on a real store are in src/apiserver.
 *
 * Owns:     calls and watches until they are answered. Only for tests.
 */
#ifndef SILICA_KUBE_TESTSERVER_H
#define SILICA_KUBE_TESTSERVER_H

#include "ev/loop.h"
#include "kube/client.h"

#define TESTSERVER_CALLS_MAX 16

struct test_call {
    struct kube_call base;
    struct testserver *server;
    enum kube_verb verb;
    char name[64], next[64];
    struct object *object; /* of a write */
    kube_done_fn done;
    void *ctx;
    struct ev_task cancel;
};

struct testserver {
    struct kube_client base;
    struct test_call *calls[TESTSERVER_CALLS_MAX]; /* that wait for their answer, oldest first */
    size_t call_count;
    struct kube_watch watch; /* at most one */
    bool is_watched;
    uint64_t watched_from;
    struct kube_watch_events events;
    void *watch_ctx;
    struct ev_task watch_end;
};

void testserver_init(struct testserver *s);
/* Also the loop; everything must be answered and ended. */
void testserver_done(struct testserver *s);
void testserver_turns(struct testserver *s, int n);
/* Runs the loop, with its timers, until *is_done, some seconds at most. */
void testserver_run_until(struct testserver *s, const bool *is_done);
void testserver_run_ms(struct testserver *s, uint64_t ms);

/* Answers the oldest call, which must be of this verb. */
void testserver_answer(struct testserver *s, enum kube_verb verb, const struct kube_answer *a);
/* The same with a refusal of this code; 0: no answer came. */
void testserver_refuse(struct testserver *s, enum kube_verb verb, int code);
/* The oldest call is a list: these are its items. next NULL: the last page. */
void testserver_list(struct testserver *s, uint64_t version, const char *next,
                     struct object *const *items, size_t n);
void testserver_event(struct testserver *s, enum kube_event type, struct object *o,
                      uint64_t version);
void testserver_end_watch(struct testserver *s, int code);

/* The caller's to unref. JSON: the body of an object. */
struct object *testserver_object(const struct kind *kind, const char *json);

#endif
