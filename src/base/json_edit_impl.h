/* json_edit_impl: the inside of an edit. Private to base/json_edit.c and base/json_node.c. */
#ifndef SILICA_BASE_JSON_EDIT_IMPL_H
#define SILICA_BASE_JSON_EDIT_IMPL_H

#include "base/json_doc.h"
#include "base/json_edit.h"

/* A place in an opened container. */
struct json_item {
    const uint8_t
        *name; /* object: NULL is a hole, left by a removal until somebody counts places */
    uint32_t name_n;
    bool is_node;  /* else still the document's value */
    bool is_plain; /* the name: known to need no escape */
    union {
        struct json_node *node;
        const struct json *view;
    } u;
};

struct json_node {
    struct json v; /* a scalar itself; of an opened container the type, and in n its items */
    const struct json *view; /* the document's value, while nothing in it was opened or changed */
    struct json_edit *ed;
    struct json_item *items;
    struct json_index *index; /* of wide objects, made when first asked for a name */
    uint32_t cap;
    uint32_t holes;
};

/* Makes the items of a container, one level. False when it is none, or the edit is full. */
bool json_node_open(struct json_node *node);
/* The node at an item, made from the view when it is not there yet. */
struct json_node *json_node_of(struct json_edit *ed, struct json_item *item);
/* Squeezes holes out, so that items and positions agree. */
void json_node_compact(struct json_node *node);
void json_edit_fill(struct json_edit *ed);
/* A new container with n items, which are the caller's to fill; null when the edit is full. */
struct json_node *json_edit_room(struct json_edit *ed, enum json_type type, uint32_t n);
/* json_build.c: a document of the value, whose compact form has so many bytes; the caller's. NULL: it has to be parsed to be
 * known, or refused. */
struct json_doc *json_build(struct json_node *node, size_t bytes);
/* The held document of that root, or NULL. */
struct json_doc *json_edit_doc_of(const struct json_edit *ed, const struct json *root);

#endif
