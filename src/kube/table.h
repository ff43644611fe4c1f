/* table: objects as rows for people, as `kubectl get` asks the server for them.
 *
 *     json_out_key(&o, "columnDefinitions"), table_columns(kind, version, &o);
 *     json_out_key(&o, "rows"), json_out_array_begin(&o);
 *     ... table_row(&view, object, &o) ...
 *
 * Owns:     nothing. Cells are computed from the object alone and from `now`.
 * Used by:  get, list and watch with `as=Table`. Core kinds have hand-made cells, as the public server
 *           has; custom kinds have the columns of their definition.
 */
#ifndef SILICA_KUBE_TABLE_H
#define SILICA_KUBE_TABLE_H

#include "kube/kind.h"
#include "kube/object.h"

#include <time.h>

/* The query parameter includeObject; Metadata is the default. */
enum table_include {
    TABLE_INCLUDE_METADATA,
    TABLE_INCLUDE_NONE,
    TABLE_INCLUDE_OBJECT,
};

struct table_view {
    const struct kind *kind;
    const struct kind_version *version; /* the object is in this version */
    time_t now;                         /* ages are counted from here */
    enum table_include include;
};

/* "", "Metadata", "None", "Object"; false for anything else. */
bool table_include_parse(struct span text, enum table_include *ret);
/* Writes the array of column definitions. */
void table_columns(const struct kind *k, const struct kind_version *v, struct json_out *o);
/* Writes {"cells":[...],"object":...}. */
void table_row(const struct table_view *view, const struct object *obj, struct json_out *o);
/* The whole of one object: the answer to a get as a table. */
int table_write_one(const struct table_view *view, const struct object *obj, struct buf *out,
                    struct err *e);
/* {"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{...}} */
void table_partial(const struct object *obj, struct json_out *o);

/* What a simple JSONPath (".a.b", "[0]", "[*]", "[?(@.k=='v')]") finds first; NULL: nothing. */
const struct json *table_path(const struct object *obj, const char *path);

#endif
