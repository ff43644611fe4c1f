/* selection: which objects a list, a watch or the delete of many is about.
 *
 * Owns:     the parsed selectors.
 * Used by:  pages.c, and the watches of both kinds: over HTTP and in this process.
 */
#ifndef SILICA_APISERVER_SELECTION_H
#define SILICA_APISERVER_SELECTION_H

#include "apiserver/op.h"
#include "kube/select.h"

struct selection {
    unsigned kind;                 /* its number on the shelf */
    const char *namespace;         /* "": all. Borrowed */
    struct selector *labels;       /* NULL: whatever they are */
    struct field_selector *fields; /* the same */
};

/* In the op's place. Texts as in a query; NULL or "": not said. -1: 400; what was parsed is kept all the same. */
int selection_init(struct selection *s, const struct op *op, const char *labels, const char *fields,
                   struct status *st);
void selection_done(struct selection *s);
/* Selectors only; kind and namespace fit already. */
bool selection_holds(const struct selection *s, const struct object *o);
/* The name that all of it has, or "". */
const char *selection_name(const struct selection *s);

/* What an event is to a reader: an object that begins or ceases to match comes or goes. False: nothing.
 * *ret, the caller's, is the object as he sees it: one that ceased to match is shown as it was, with the version at
 * which it went. */
bool selection_judge(const struct selection *s, const struct store_event *ev,
                     enum event_type *ret_type, struct object **ret);

#endif
