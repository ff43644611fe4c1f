/* apply_writing: one write on its way through managedFields; what apply.c and apply_track.c share.
 *
 * Owns:     nothing: everything lives in the edit of the object that is written.
 */
#ifndef SILICA_KUBE_APPLY_WRITING_H
#define SILICA_KUBE_APPLY_WRITING_H

#include "kube/apply.h"
#include "kube/managed.h"
#include "kube/typed.h"

/* One version of the API in which managers own fields: what changed there. */
struct writing_seen {
    const struct kind_version *version;
    struct typed_diff diff;
};

struct writing {
    const struct apply_by *by;
    struct json_edit *ed;
    const struct kind_version *version;
    struct json_node *live, *object; /* without managedFields */
    struct managed managed;
    struct writing_seen seen[4]; /* kinds have at most two versions */
    size_t seen_n;
};

/* Members of metadata that every object has, or that only the server sets, are nobody's. Ended by NULL. */
extern const char *const writing_nobodys[];

/* Fills all but `live` and `object`, with no managers yet. */
int writing_begin(struct writing *w, const struct apply_by *by, struct json_node *object,
                  struct err *e);
/* Fills `live`: NULL is the empty object. */
void writing_compare_with(struct writing *w, struct json_node *live);
const struct kind_version *writing_version_of(const struct kind *kind, struct span api_version);
struct span writing_api_version(const struct writing *w);
const char *writing_manager_name(const struct apply_by *by);
/* What an object has that nobody gave: core kinds have their spec and status, though empty. */
struct json_node *writing_empty_object(struct json_edit *ed, const struct schema_type *type);
/* The object in another version of its API; NULL when it cannot be converted. */
struct json_node *writing_in_version(const struct writing *w, struct json_node *object,
                                     const struct kind_version *from,
                                     const struct kind_version *to);
/* Fields that this request cannot change, and therefore does not own. */
struct json_node *writing_reset_fields(const struct writing *w);
/* What the manager owns and the write changes; NULL: nothing. */
struct json_node *writing_lost_fields(struct writing *w, struct manager *row);
/* Others lose what was changed or removed. */
void writing_settle_others(struct writing *w, const struct manager *self);
/* Managers in a version that is no longer served go. */
void writing_drop_unserved(struct writing *w);
/* Takes what is nobody's out of a set. */
void writing_strip(struct json_node *set);
/* The entry of an update, without its set. */
struct manager writing_updater(const struct writing *w, const char *manager);
/* What an update took, added and changed fields, joins what its manager had before. */
int writing_take_changes(struct writing *w, const char *manager, struct err *e);
void writing_write_managed(struct writing *w, struct json_node *object);
/* ERR_LIMIT when the edit is full. */
int writing_full(const struct writing *w, struct err *e);

#endif
