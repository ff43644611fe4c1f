/* pages: a walk over the objects that a list, a watch's beginning or a collection's delete is about.
 *
 * Owns:     a reference to the shelf it walks.
 * Used by:  read.c, watch.c, write_delete.c; local.c for the lists of this process.
 */
#ifndef SILICA_APISERVER_PAGES_H
#define SILICA_APISERVER_PAGES_H

#include "apiserver/selection.h"
#include "apiserver/snapshots.h"

struct pages {
    struct shelf *shelf;
    uint64_t version;
    struct shelf_walk walk;
    const struct selection *want;
    size_t left; /* objects from here on, selected or not; known at the beginning */
    bool is_over;
};

/* The shelf is taken, `want` is borrowed. after NULL: from the beginning; else behind "namespace/name". */
void pages_init(struct pages *p, const struct selection *want, struct shelf *shelf,
                uint64_t version, const struct shelf_key *after);
void pages_done(struct pages *p);
/* The next object that is selected, borrowed; NULL at the end. Looks at no more than *budget others, and leaves in it
 * what is left: NULL with is_over false when that was not enough. */
struct object *pages_next(struct pages *p, size_t *budget);

/* Which state is walked, and from where. Texts as in a query: NULL or "": not said. */
struct pages_ask {
    struct store *store;
    enum store_view view;
    struct snapshots *snapshots; /* that continue tokens name */
    uint64_t now_ms;
    const char *next;        /* continue */
    const char *version;     /* resourceVersion */
    const char *match;       /* resourceVersionMatch */
    bool has_initial_events; /* sendInitialEvents was said, which is a watch's */
};
/* -1: 400, 410, 422 or 504 in the public server's words; p is then as it was. */
int pages_open(struct pages *p, const struct selection *want, const struct pages_ask *ask,
               struct status *st);
/* A resourceVersion: "" and NULL are 0, and not given. False: no number. */
bool pages_read_version(const char *text, uint64_t *ret, bool *ret_is_given);
/* What refusals of list options name. */
extern const struct kind pages_list_options;

#define PAGES_TOKEN_MAX_BYTES 4096

/* Continue tokens. */
int pages_token_write(uint64_t version, const struct object *last, struct buf *out, struct err *e);
struct pages_token {
    uint64_t version; /* 0: wherever the store is now */
    char namespace[320], name[320];
};
bool pages_token_read(struct span text, struct pages_token *ret);

#endif
