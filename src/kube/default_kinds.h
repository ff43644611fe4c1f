/* default_kinds: defaults that depend on other members. Private to kube/default*.c. */
#ifndef SILICA_KUBE_DEFAULT_KINDS_H
#define SILICA_KUBE_DEFAULT_KINDS_H

#include "base/json_edit.h"
#include "kube/schema.h"

/* default_pod.c: is_pod false for the templates of other kinds, which get less. */
void default_pod_spec(struct json_node *spec, bool is_pod);
void default_pod_created(struct json_node *root);

/* The member as an object, made when it is not there. */
struct json_node *default_object_at(struct json_node *parent, const char *name);
/* Puts a text where nothing, null or "" is. */
void default_text_at(struct json_node *object, const char *name, const char *text);

/* default.c: an object of a core type. was: the same before, or NULL. */
void default_normalise(const struct schema_type *t, struct json_node *node, struct json_node *was);
/* default_custom.c: a whole custom object. was: as default_changed has it. */
void default_custom(const struct schema_type *t, struct json_node *root, struct json_node *was);

/* default_done.c */

/* Both are still views, and of one value. */
bool default_is_same_view(const struct json_node *a, const struct json_node *b);

/* Empty as Go means it: what omitempty leaves out. n: bytes, elements or members. */
bool default_is_empty(const struct schema_field *f, enum json_type type, size_t n, bool is_zero);
/* What Go writes for its zero is null. */
bool default_is_zero_null(const struct schema_field *f);
/* What a core kind puts where nothing is, as JSON; NULL: nothing. */
const char *default_preset(const struct schema_field *f);
/* A member that a typed decoder would not keep. f is NULL where the name is no field; is_without: default_is_empty. */
bool default_is_dropped(const struct schema_type *t, const struct schema_field *f, struct span name,
                        bool is_null, bool is_without);
/* Nothing would be changed in a field's value that is not null, in an object of a core type, or below a custom kind. */
bool default_is_done_field(const struct schema_field *f, const struct json *v);
bool default_is_done(const struct schema_type *t, const struct json *v);
bool default_is_custom_done_field(const struct schema_field *f, const struct json *v);
bool default_is_custom_done(const struct schema_type *t, const struct json *v);

#endif
