/* object: one version of one Kubernetes object, shared by everyone who looks at it.
 *
 * Owns:     references to one immutable json_doc per top-level member (metadata, spec, status, data,
 *           ...). Versions of an object share the members they have in common, with their serialised
 *           bytes; so a change of status costs one member, and a get, list or watch only copies bytes.
 *           apiVersion and kind are no members: the reader's API version decides them.
 * Version:  metadata.resourceVersion is a number here and is not in the metadata document: it changes
 *           with each write, and putting it into the answer is cheaper than a new document. 0: none.
 * Texts:    spans and strings live as long as the object.
 * Threads:  immutable and atomically counted: read and release on any thread.
 */
#ifndef SILICA_KUBE_OBJECT_H
#define SILICA_KUBE_OBJECT_H

#include "base/json_edit.h"

struct kind;
struct object;

/* No kind has a third of it. A body with more is refused before this matters. */
#define OBJECT_MEMBERS_MAX 64

struct object_member {
    const char *name;
    struct json_doc *doc;
};

/* The members of an object; "metadata" must be an object, and is added empty when it is not there.
 * Takes references of its own. ERR_INVALID: metadata is not an object. ERR_LIMIT: too many. */
int object_new(const struct kind *kind, const struct object_member *members, size_t n,
               struct object **ret, struct err *e);
/* From a body: each member becomes a document of its own, nulls too. Kind and version were
 * judged by the caller. ERR_INVALID: not an object, metadata is none, or a resourceVersion that is no
 * number. */
int object_parse(const struct kind *kind, const struct json *body, struct object **ret,
                 struct err *e);

struct object *object_ref(struct object *o);
void object_unref(struct object *o);
/* For OWN(): unrefs *o. */
void object_done(struct object **o);

const struct kind *object_kind(const struct object *o);
/* Never NULL: "" when it is not there. */
const char *object_name(const struct object *o);
const char *object_namespace(const struct object *o);
const char *object_uid(const struct object *o);
uint64_t object_version(const struct object *o);
int64_t object_generation(const struct object *o);
/* It has a deletionTimestamp. */
bool object_is_deleting(const struct object *o);
/* It has ownerReferences. */
bool object_has_owners(const struct object *o);
/* A member's value, or NULL. metadata is without its resourceVersion. */
const struct json *object_member(const struct object *o, const char *name);
const struct json *object_meta(const struct object *o);
/* The value at a path of names, "spec.nodeName", or NULL. Names that hold a dot cannot be reached. */
const struct json *object_at(const struct object *o, const char *path);
/* The text at a path, or NULL. */
const char *object_text(const struct object *o, const char *path);
/* The value of a label or annotation, or NULL. */
const char *object_label(const struct object *o, const char *key);
const char *object_annotation(const struct object *o, const char *key);
bool object_has_finalizer(const struct object *o, const char *name);
size_t object_finalizer_count(const struct object *o);

/* The owner that manages it; texts are never NULL. */
struct object_owner {
    const char *api_version, *kind, *name, *uid;
    bool is_blocking; /* blockOwnerDeletion */
};
/* False when no ownerReference is the controller. */
bool object_owner_controller(const struct object *o, struct object_owner *ret);

/* Members in their order, metadata first; NULL at the end. */
struct json_doc *object_member_at(const struct object *o, size_t i, const char **ret_name);
struct json_doc *object_member_doc(const struct object *o, const char *name);

/* The following make a new object that shares all other members; the caller unrefs it. */

/* A NULL doc leaves the member out. Metadata must be an object. The caller's reference stays his. */
int object_with(const struct object *o, const char *name, struct json_doc *doc, struct object **ret,
                struct err *e);
struct object *object_with_version(const struct object *o, uint64_t version);

/* The same in about half the memory, nothing shared: for copies that are looked at and seldom written (json_doc_lean). */
struct object *object_lean(const struct object *o);
/* The same as bytes alone (json_doc_packed), which others of its versions share: for what is kept, written out and seldom looked into. A
 * member becomes a tree again when somebody looks into it, and stays one. Names, uid, owners and finalizers cost no look. */
struct object *object_packed(const struct object *o);
/* No member is a tree. */
bool object_is_packed(const struct object *o);

/* What the server stamps. Zeroes and NULLs leave a field as it is. */
struct meta_change {
    const char *name;
    const char *name_space;
    const char *uid;
    const char *creation_timestamp;
    const char *deletion_timestamp;
    const int64_t *deletion_grace_seconds;
    int64_t generation;
    const struct json *managed_fields; /* JSON null: takes it away */
    const char *const *drop;           /* names that go, ended by NULL */
};
int object_with_meta(const struct object *o, const struct meta_change *change, struct object **ret,
                     struct err *e);

/* The whole object as a tree that can be changed: apiVersion and kind (unless api_version is NULL),
 * then the members, metadata with its resourceVersion. The members are views, held by the edit. */
struct json_node *object_thaw(const struct object *o, const char *api_version,
                              struct json_edit *ed);
/* The way back. Members that equal those of `base` (or NULL) are shared with it, so what did not
 * change is the same document; apiVersion and kind are not looked at. */
int object_freeze(const struct kind *kind, const struct object *base, struct json_node *root,
                  struct object **ret, struct err *e);
/* The same documents in all members: nothing to write. Versions are not compared. */
bool object_is_same(const struct object *a, const struct object *b);
/* Only these members differ (names ended by NULL), or fewer. */
bool object_differs_only(const struct object *a, const struct object *b, const char *const *names);

/* Appends the compact JSON, apiVersion and kind first; without both when api_version is NULL. No
 * member is serialised again. ERR_LIMIT: the buf's ceiling; out is then as it was. */
int object_write(const struct object *o, const char *api_version, struct buf *out, struct err *e);
/* About the bytes that object_write appends, and seldom fewer. */
size_t object_size(const struct object *o);
/* Of the members alone: the same in each form of a state (object_lean, object_packed). */
size_t object_text_size(const struct object *o);
/* The same object as another version or kind shows it, if it was made before: a reference, or NULL. */
struct object *object_other(const struct object *o, const struct kind *kind, const char *version);
/* Keeps `other` with the object as long as that lives; the first one stays. `version` is a constant. */
void object_keep_other(struct object *o, const char *version, struct object *other);
/* Bytes of heap behind it; members that others share are counted here too. */
size_t object_memory(const struct object *o);

#endif
