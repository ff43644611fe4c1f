/* accept: what a client wants an answer to look like, read from its Accept field.
 *
 *     "application/json;as=Table;v=v1;g=meta.k8s.io, application/json"  ->  a table in JSON
 *
 * Owns:     nothing. Does no I/O.
 * Used by:  route.c, before a verb begins.
 */
#ifndef SILICA_APISERVER_ACCEPT_H
#define SILICA_APISERVER_ACCEPT_H

#include "base/buf.h"

enum call_form {
    FORM_OBJECT,
    FORM_TABLE,
    FORM_PARTIAL,      /* PartialObjectMetadata */
    FORM_PARTIAL_LIST, /* a list of them; becomes FORM_PARTIAL where a list is made */
};

struct accept {
    enum call_form form;
    bool is_yaml;
    bool is_type_known; /* of what was refused: only what was wanted behind the type was not */
};

/* The first that we can make; an empty field takes anything. False: none of them. */
bool accept_read(struct span field, struct accept *ret);
/* The field names this media type, whatever its parameters. */
bool accept_names(struct span field, const char *type);

#endif
