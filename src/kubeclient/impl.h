/* impl: what the files of the client share. Not for others. */
#ifndef SILICA_KUBECLIENT_IMPL_H
#define SILICA_KUBECLIENT_IMPL_H

#include "ev/loop.h"
#include "ev/timer.h"
#include "kubeclient/access.h"
#include "kubeclient/cut.h"
#include "kubeclient/kubeclient.h"
#include "kubeclient/limits.h"
#include "kube/backoff.h"
#include "kubeclient/counts.h"
#include "kubeclient/pace.h"
#include "kubeclient/request.h"

struct rest_call;
struct rest_watch;

struct kubeclient {
    struct kube_client base;
    struct access *access;
    struct http_client *http;
    struct bucket bucket;
    struct counts *counts, own_counts;
    uint64_t timeout_ms, page_items;
    struct rest_call *calls;
    struct rest_watch *watches;
    void (*reached)(void *ctx, const struct err *e); /* or NULL */
    void *ctx;
    bool is_lost; /* nobody answered the last time */
    bool is_closing;
};

/* The head of an answer, as far as tries depend on it. */
struct rest_verdict {
    int status; /* 0: no answer */
    bool has_retry;
    uint64_t retry_ms; /* Retry-After */
};

/* Signed and sent. -1: it cannot be said, or nobody knows who we are. */
int rest_send(struct kubeclient *c, const struct rest_request *r, struct span target,
              const struct http_call_spec *how, struct http_call **ret, struct err *e);
void rest_verdict_read(const struct http_head *head, struct rest_verdict *ret);
/* What the server said instead of what was asked for: a Status, or any other text. */
void rest_refusal(struct status *st, int http_status, struct span body);
/* No answer came, or none that can be read: code 0. */
void rest_no_answer(struct status *st, const struct err *e);
/* Failures after which the server may well answer again. Where nobody was reached that is decided by the reason: a
 * certificate that is not believed will not be, later. A server that was is asked again whatever it did. */
bool rest_is_passing(const struct http_call *call, const struct err *e);
/* A request has ended; e NULL: with an answer. */
void rest_note_reach(struct kubeclient *c, const struct err *e);
/* The client goes with the last thing that points to it. */
void rest_let_go(struct kubeclient *c);

struct kube_call *rest_call_start(struct kube_client *c, const struct kube_request *rq,
                                  kube_done_fn done, void *ctx);
void rest_call_cancel(struct kube_call *call);
void rest_calls_end(struct kubeclient *c);

struct kube_watch *rest_watch_start(struct kube_client *c, const struct kube_watch_spec *spec,
                                    const struct kube_watch_events *events, void *ctx);
void rest_watch_stop(struct kube_watch *w);
void rest_watches_end(struct kubeclient *c);

#endif
