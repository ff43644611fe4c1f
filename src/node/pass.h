/* pass: one look at one Pod, from the moment its key is taken off the queue until that is given back.
 *
 * Owns:     itself; the record is its own meanwhile: nobody else changes it.
 * Used by:  work.c decides and calls the engine, work_api.c calls the API.
 * Life:     exactly one of pass_finish, pass_fail and what calls them ends it.
 */
#ifndef SILICA_NODE_PASS_H
#define SILICA_NODE_PASS_H

#include "node/node_impl.h"
#include "node/words.h"

struct pass {
    struct node *node;
    struct queue_item *item;
    struct record *record;
    struct crew_job job;
    enum life_what what; /* that is under way */
    size_t at;
    bool is_before;
    char box[RUN_NAME_BYTES];
    int rc;
    struct err e;
    struct engine_info info;
    bool wants_words; /* of its log, of a container that ends badly */
    char words[WORDS_LAST_BYTES + 1];
    uint64_t wait_ms;
};

/* It is as it should be now; it is looked at again in wait_ms (UINT64_MAX: when something happens). */
void pass_finish(struct pass *p, uint64_t wait_ms);
/* It comes again, each time twice as long after. */
void pass_fail(struct pass *p, const char *what, const char *why);
/* An Event: about a container, or with SIZE_MAX about the Pod. */
void pass_tell(struct pass *p, size_t at, bool is_warning, const char *reason, const char *message);

/* work_api.c. Each ends the pass. */
void pass_bind(struct pass *p, const struct object *pod);
/* What is not so in the status yet. */
void pass_write_status(struct pass *p, uint64_t wait_ms);
/* No sandbox of it is left here; then its volumes go, and then the Pod. */
void pass_leave(struct pass *p);

#endif
