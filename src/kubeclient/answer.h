/* answer: the body of a response as objects.
 *
 * Owns:     the bytes, documents and objects of one call. Lists grow by pages; their objects are parsed as they come.
 * Used by:  rest. Does no I/O.
 */
#ifndef SILICA_KUBECLIENT_ANSWER_H
#define SILICA_KUBECLIENT_ANSWER_H

#include "kube/client.h"
#include "kubeclient/cut.h"

struct answer {
    enum kube_verb verb;
    const struct kind *kind;
    bool is_other; /* a subresource whose body is another kind's */
    bool is_cut;   /* the body is a list */
    struct buf body;
    struct cut cut;
    struct object **items;
    size_t n, room;
    uint64_t bytes;   /* of them all, on the wire */
    size_t page_from; /* items of the pages before */
    char *next;       /* what the last page ended with */
    uint64_t version;
    struct err broken; /* code 0: it is not */
    struct json_doc *doc;
    struct object *object;
};

void answer_init(struct answer *a, const struct kube_request *rq);
void answer_done(struct answer *a);

/* A response begins; what came of an earlier try was dropped before. */
void answer_begin(struct answer *a, int http_status);
/* -1: it cannot be read, or is too large; answer_is_broken says why. */
int answer_add(struct answer *a, struct span bytes);
bool answer_is_broken(const struct answer *a, struct err *ret);
/* What was not a list: for refusals. */
struct span answer_body(const struct answer *a);
/* The whole of a response that was no refusal. *ret lives as long as the answer. */
int answer_read(struct answer *a, struct kube_answer *ret, struct err *e);

/* Where the next page begins, or NULL. */
const char *answer_next(const struct answer *a);
void answer_begin_page(struct answer *a);
/* Forgets what came since answer_begin_page. */
void answer_drop_page(struct answer *a);
/* Forgets all of it. */
void answer_restart(struct answer *a);

#endif
