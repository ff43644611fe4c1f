/* blueprint: what templates and sandboxes share: podTemplate, volumeClaimTemplates, service.
 *
 * Owns:     nothing. Does no I/O.
 * Used by:  pools (members, staleness) and claims (cold starts, candidates).
 */
#ifndef SILICA_CONTROLLER_BLUEPRINT_H
#define SILICA_CONTROLLER_BLUEPRINT_H

#include "controller/names.h"

/* Of the template's blueprint as it is written: a quick answer only, since the same can be written otherwise. */
const char *blueprint_hash(char text[NAME_HASH_BYTES], const struct object *template);
/* Of its podTemplate alone; nobody reads it any more. */
const char *blueprint_pod_hash(char text[NAME_HASH_BYTES], const struct object *template);

/* A Sandbox's spec from the template, with its secure defaults. */
struct json_node *blueprint_spec(struct json_edit *ed, const struct object *template);

/* The sandbox is what the template would make now: Pod specs as the API understands them, volume claims by place, name and
 * spec. Labels and annotations do not count. */
bool blueprint_is_same(const struct object *sandbox, const struct object *template);

/* The sandbox was made from another blueprint than the template's present one. An orphan's label is not believed. */
bool blueprint_is_stale(const struct object *sandbox, const struct object *template);

#endif
