/* local_impl: what the files of the client on the store share; only for local*.c. */
#ifndef SILICA_APISERVER_LOCAL_IMPL_H
#define SILICA_APISERVER_LOCAL_IMPL_H

#include "apiserver/local.h"
#include "apiserver/op.h"
#include "apiserver/user.h"

struct local_call;
struct local_watch;

/* Lives until the last of its calls and watches has ended. */
struct local {
    struct kube_client base;
    struct apiserver *s; /* NULL: the client is freed */
    struct snapshots snapshots;
    char *manager;
    struct user self; /* who asks, where that is asked for */
    bool is_deputy;   /* of tenants: local_client_be_deputy */
    size_t refs;
    struct local_call *calls;
    struct local_watch *watches;
};

struct local *local_ref(struct local *l);
void local_unref(struct local *l);

/* The place that kind, version, namespace and name are; what is not said is "". 404. */
int local_op(struct local *l, const struct kind *kind, const char *version, struct op *ret,
             struct status *st);
/* Code 0: no answer came, and none will. */
void local_say_canceled(struct status *st);

/* What a call found; the call's own. */
struct local_answer {
    struct object *object;
    struct json_doc *body; /* of what is no kind */
};
/* local_sub.c: op->sub is one, and not status. */
int local_sub(struct local *l, struct op *op, const struct kube_request *rq,
              struct local_answer *ret, struct status *st);

struct kube_call *local_call_start(struct kube_client *c, const struct kube_request *rq,
                                   kube_done_fn done, void *ctx);
void local_call_cancel(struct kube_call *call);
/* All of them, when the client is freed: no more of the store is touched. */
void local_calls_cancel(struct local *l);
void local_watches_stop(struct local *l);
struct kube_watch *local_watch_start(struct kube_client *c, const struct kube_watch_spec *spec,
                                     const struct kube_watch_events *events, void *ctx);
void local_watch_stop(struct kube_watch *w);

#endif
