/* json_edit: JSON values that can be changed, on top of documents that cannot.
 *
 *     struct json_edit *ed = json_edit_new(0);
 *     struct json_node *root = json_edit_doc(ed, doc);
 *     json_node_set(json_node_get(root, "status"), "phase", json_edit_cstr(ed, "Ready"));
 *     json_node_freeze(root, &changed, e);
 *
 * Owns:     an edit is one arena for all its nodes and texts; freeing it frees them all. A node starts
 *           as a view of an immutable value and is opened, one level at a time, where it is walked;
 *           what nobody walked into is never copied, and is written by json_write in one run.
 * Places:   a node stands in one place. A second place needs json_node_copy, which shares what is
 *           still a view. Putting a node below itself is our bug.
 * Ceilings: all memory of an edit, and the bytes it moves, are bounded. The first excess sticks: from
 *           then on nodes are null and changes are dropped, so callers need no checks on the way;
 *           json_node_write and json_node_freeze report it as ERR_LIMIT, json_edit_is_full tells.
 * Members:  keep their order; a new one comes last. Of duplicates in a document the last is seen, and
 *           json_node_set or json_node_remove takes them all.
 * Threads:  an edit belongs to one thread; documents it views may be shared.
 */
#ifndef SILICA_BASE_JSON_EDIT_H
#define SILICA_BASE_JSON_EDIT_H

#include "base/json.h"

/* A hostile patch can copy what it has copied. 20 times the largest body the API server takes. */
#define JSON_EDIT_MAX_BYTES (64u * 1024 * 1024)
/* Bytes moved by insertions and removals in arrays: seconds of work would pass before anybody looks. */
#define JSON_EDIT_MOVE_MAX_BYTES (1024ull * 1024 * 1024)

struct json_edit;
struct json_node;

/* max_bytes 0 takes JSON_EDIT_MAX_BYTES. */
struct json_edit *json_edit_new(size_t max_bytes);
void json_edit_free(struct json_edit *ed);
/* For OWN(): frees *ed. */
void json_edit_done(struct json_edit **ed);
/* Keeps a document until the edit is freed; returns it. Takes a reference of its own. */
struct json_doc *json_edit_hold(struct json_edit *ed, struct json_doc *doc);
bool json_edit_is_full(const struct json_edit *ed);

/* A value of a document, which must outlive the edit or be held by it. NULL gives NULL. */
struct json_node *json_edit_view(struct json_edit *ed, const struct json *v);
/* The root of a document, which is held. Frozen unchanged it is the document itself again. */
struct json_node *json_edit_doc(struct json_edit *ed, struct json_doc *doc);
struct json_node *json_edit_object(struct json_edit *ed);
struct json_node *json_edit_array(struct json_edit *ed);
/* Texts are copied. Ill-formed UTF-8 is written as U+FFFD. */
struct json_node *json_edit_str(struct json_edit *ed, struct span s);
struct json_node *json_edit_cstr(struct json_edit *ed, const char *s);
struct json_node *json_edit_i64(struct json_edit *ed, int64_t v);
struct json_node *json_edit_bool(struct json_edit *ed, bool v);
struct json_node *json_edit_null(struct json_edit *ed);
/* A number in JSON's grammar, as spelled; the caller knows that it is one. */
struct json_node *json_edit_number(struct json_edit *ed, struct span spelled);
/* A text in the arena, NUL-terminated; for names and texts that must live as long as the edit. */
struct span json_edit_text(struct json_edit *ed, struct span s);
/* The same of two texts, one behind the other. */
struct span json_edit_join(struct json_edit *ed, struct span a, struct span b);

struct json_edit *json_node_edit(const struct json_node *node);

/* As json.h has them: every accessor takes NULL and nodes of another type. */
enum json_type json_node_type(const struct json_node *node);
const char *json_node_type_name(const struct json_node *node);
struct span json_node_str(const struct json_node *node);
const char *json_node_cstr(const struct json_node *node);
struct span json_node_number(const struct json_node *node);
bool json_node_i64(const struct json_node *node, int64_t *ret);
bool json_node_double(const struct json_node *node, double *ret);
bool json_node_bool(const struct json_node *node, bool *ret);
/* The immutable value, when the node is still one; else NULL. Readers that walk whole trees take it. */
const struct json *json_node_view(const struct json_node *node);

/* The same, or the value of a scalar that was made here; NULL of a container that was opened, and of NULL. */
const struct json *json_node_plain(const struct json_node *node);

/* Elements or members. */
size_t json_node_count(struct json_node *node);
struct json_node *json_node_get_span(struct json_node *object, struct span name);
static inline struct json_node *json_node_get(struct json_node *object, const char *name)
{
    return json_node_get_span(object, span_of(name, strlen(name)));
}
/* Element i of an array, or NULL. */
struct json_node *json_node_at(struct json_node *array, size_t i);
/* Member i of an object in order, or SPAN_NONE and NULL. The span lives as long as the edit. */
struct span json_node_name_at(struct json_node *object, size_t i);
struct json_node *json_node_value_at(struct json_node *object, size_t i);

/* Puts child under a name: in the place of what was there, else last. The name is copied. A NULL
 * child removes the member. Not an object: our bug, nothing happens. Returns child. */
struct json_node *json_node_set(struct json_node *object, const char *name,
                                struct json_node *child);
struct json_node *json_node_set_span(struct json_node *object, struct span name,
                                     struct json_node *child);
/* True when it was there. */
bool json_node_remove(struct json_node *object, const char *name);
bool json_node_remove_span(struct json_node *object, struct span name);
/* Before element i; i == count appends; beyond is our bug and nothing happens. */
void json_node_insert(struct json_node *array, size_t i, struct json_node *child);
void json_node_append(struct json_node *array, struct json_node *child);
void json_node_replace_at(struct json_node *array, size_t i, struct json_node *child);
void json_node_remove_at(struct json_node *array, size_t i);

/* A second tree that says the same, in the edit `ed`; when that is another one than the node's, the
 * documents behind must be held there too. Too deep fills the edit. */
struct json_node *json_node_copy(struct json_edit *ed, struct json_node *node);
/* The same value: order of members ignored, numbers by value. NULL equals NULL. */
bool json_node_equal(struct json_node *a, struct json_node *b);
bool json_node_equal_value(struct json_node *a, const struct json *b);
/* True when containers are nested deeper than max. */
bool json_node_is_deeper(struct json_node *node, unsigned max);
/* Keeps the last of the members that share a name, in the whole tree. Returns how many went. */
size_t json_node_dedupe(struct json_node *node);

/* Takes members that are null away, at every depth; elements that are null stay. */
void json_node_prune(struct json_node *node);

/* Appends the compact form. ERR_LIMIT: the buf's ceiling, deeper than JSON_DEPTH_MAX, or the edit is
 * full; out is then as it was. */
int json_node_write(struct json_node *node, struct buf *out, struct err *e);
/* A document of the value, its compact bytes made already; the caller's to unref. */
int json_node_freeze(struct json_node *node, struct json_doc **ret, struct err *e);
/* Makes the node a view again, of a document that the edit holds: frozen later it is that document, and readers may walk it.
 * Nodes below it are dead from then on. */
int json_node_settle(struct json_node *node, struct err *e);
/* A document of a value of another one, of which nothing is kept. */
int json_doc_of(const struct json *v, struct json_doc **ret, struct err *e);

#endif
