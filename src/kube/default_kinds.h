/* default_kinds: defaults that depend on other members. Private to kube/default*.c. */
#ifndef SILICA_KUBE_DEFAULT_KINDS_H
#define SILICA_KUBE_DEFAULT_KINDS_H

#include "base/json_edit.h"

/* default_pod.c: is_pod false for the templates of other kinds, which get less. */
void default_pod_spec(struct json_node *spec, bool is_pod);
void default_pod_created(struct json_node *root);

/* The member as an object, made when it is not there. */
struct json_node *default_object_at(struct json_node *parent, const char *name);
/* Puts a text where nothing, null or "" is. */
void default_text_at(struct json_node *object, const char *name, const char *text);

#endif
