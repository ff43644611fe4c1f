/* typed_place: where in a schema a value stands. Private to typed*.c. */
#ifndef SILICA_KUBE_TYPED_PLACE_H
#define SILICA_KUBE_TYPED_PLACE_H

#include "kube/typed.h"

enum place_shape {
    PLACE_LEAF,   /* a scalar, or something atomic */
    PLACE_STRUCT, /* the fields of `type` */
    PLACE_MAP,    /* any names */
    PLACE_LIST,   /* elements with an identity */
};

struct place {
    enum place_shape shape;
    const struct schema_type *type;   /* of a struct; of elements that are objects */
    const struct schema_field *field; /* of maps and lists */
};

struct place place_of_type(const struct schema_type *type);
/* Of a member of a struct or map. */
struct place place_of_member(const struct place *p, struct span name);
struct place place_of_element(const struct place *p);
/* The element's identity as an element of a path, in the arena; SPAN_NONE: it has none. */
struct span place_identity(const struct place *p, struct json_node *element);
struct span place_identity_of(const struct place *p, const struct json *element,
                              struct json_edit *ed);

#endif
