/* faults: a client that lets calls through to another one, but for those that a test wants to go wrong.
 *
 * Owns:     the rules. The client behind it is freed with it.
 * Faults:   a refusal that never reaches the server; an answer that is lost, or late, after the server did what was asked;
 *           something that others do just before a call gets there.
 * Tests only.
 */
#ifndef SILICA_CONTROLLER_FAULTS_H
#define SILICA_CONTROLLER_FAULTS_H

#include "kube/client.h"

struct faults;

enum fault_kind {
    FAULT_REFUSED, /* with `code`; the server hears nothing of it */
    FAULT_LOST,    /* done, and no answer */
    FAULT_LATE,    /* done, and the answer comes with faults_release */
    FAULT_FIRST,   /* `first` runs, unless it is NULL, then the call goes its way */
};

/* What is NULL or 0 fits everything. Texts are borrowed as long as the rule holds. */
struct fault {
    enum kube_verb verb;
    const struct kind *kind;
    const char *sub;     /* NULL: none; a rule is for the object or for one subresource */
    const char *manager; /* whose calls */
    unsigned times;      /* how often it happens */
    enum fault_kind what;
    int code; /* of a refusal: 409, 500 */
    void (*first)(void *ctx, const struct kube_request *rq);
    void *ctx;
};

/* Takes the client behind it. */
struct kube_client *faults_new(struct kube_client *inner, struct faults **ret);
/* Until it has happened so often; several are tried in the order they came. The rule as it is kept: its `times` are those that
 * are still to come. */
const struct fault *faults_add(struct faults *f, const struct fault *fault);
/* No rule holds any more. */
void faults_clear(struct faults *f);
/* The answers that were kept back are given, in later turns. */
void faults_release(struct faults *f);
/* How many of all are still to come. */
unsigned faults_left(const struct faults *f);

#endif
