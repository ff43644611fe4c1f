/* select: which objects a list or watch is about: label selectors and field selectors.
 *
 * Owns:     a selector is one block on the heap with the texts it compares.
 * Used by:  the API server for its queries, controllers and informers for theirs.
 * Errors:   ERR_PROTOCOL (400, BadRequest) with the words of the public server, which clients show.
 * Threads:  immutable after the parse; match on any thread.
 */
#ifndef SILICA_KUBE_SELECT_H
#define SILICA_KUBE_SELECT_H

#include "kube/kind.h"
#include "kube/object.h"

/* Longer is ERR_LIMIT. The head of a request has less. */
#define SELECT_TEXT_MAX_BYTES (1024 * 1024)

struct selector;

/* "a=b,c!=d,e in (f,g),h notin (i),j,!k,l>5". The empty text selects everything. */
int selector_parse(struct span text, struct selector **ret, struct err *e);
/* Of a metav1.LabelSelector ({matchLabels, matchExpressions}). NULL or JSON null selects nothing, an
 * empty one everything. */
int selector_of(const struct json *label_selector, struct selector **ret, struct err *e);
/* Of a map of labels, all of which must be there with these values: what a Service has. NULL and an
 * empty map select everything. */
int selector_of_map(const struct json *map, struct selector **ret, struct err *e);
void selector_free(struct selector *s);
void selector_done(struct selector **s);

/* NULL selects everything. `labels` is metadata.labels, or NULL. */
bool selector_matches(const struct selector *s, const struct json *labels);
bool selector_matches_object(const struct selector *s, const struct object *o);
bool selector_is_everything(const struct selector *s);
/* The text that parses to the same, requirements as they were given and values sorted. */
int selector_write(const struct selector *s, struct buf *out, struct err *e);

struct field_selector;

/* "metadata.name=a,status.phase!=Running", with the fields that `kind` can be selected by. */
int field_selector_parse(const struct kind *kind, struct span text, struct field_selector **ret,
                         struct err *e);
void field_selector_free(struct field_selector *s);
void field_selector_done(struct field_selector **s);
/* NULL selects everything. */
bool field_selector_matches(const struct field_selector *s, const struct object *o);
/* The value that the field must have to match, or NULL: a watch of one name needs no other object. */
const char *field_selector_value(const struct field_selector *s, const char *field);

#endif
