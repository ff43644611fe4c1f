/* check: whether a body is an object of its type: field names and JSON types, before anything is made of it.
 *
 * Owns:     the list of issues, bounded. Does no validation: what a value means is validate.h.
 * Used by:  create, update and patch. Core kinds refuse a member of the wrong type here, with 400 and the
 *           public server's text; custom kinds only for metadata, their types are judged by validation.
 */
#ifndef SILICA_KUBE_CHECK_H
#define SILICA_KUBE_CHECK_H

#include "base/json_edit.h"
#include "kube/object.h"
#include "kube/schema.h"

#define CHECK_ISSUES_MAX     100 /* as the public server; more are not told */
#define CHECK_TEXT_MAX_BYTES (64 * 1024)

/* The query parameter fieldValidation; Warn is the default. */
enum check_mode {
    CHECK_WARN,
    CHECK_IGNORE,
    CHECK_STRICT,
};

/* "", "Ignore", "Warn", "Strict"; false for anything else. */
bool check_mode_parse(struct span text, enum check_mode *ret);

/* Unknown and duplicate fields: `unknown field "spec.x"`, one text each. */
struct check_issues {
    size_t at[CHECK_ISSUES_MAX]; /* starts in text, NUL-terminated */
    size_t n;
    struct buf text;
};

#define CHECK_ISSUES_INIT                                                                          \
    {                                                                                              \
        .text = BUF_INIT(CHECK_TEXT_MAX_BYTES)                                                     \
    }

void check_issues_done(struct check_issues *i);
const char *check_issue(const struct check_issues *i, size_t n);
/* Appends `strict decoding error: a, b`: the cause of a refusal when the mode is Strict. */
int check_issues_summary(const struct check_issues *i, struct buf *out, struct err *e);

/* Walks a body. ERR_INVALID: a member has a JSON type that its field cannot hold; the text follows
 * `Pod in version "v1" cannot be handled as a Pod: `. issues may be NULL: unknown and duplicate
 * fields are nobody's business then. */
int check_object(const struct schema_type *t, const struct json *body, struct check_issues *issues,
                 struct err *e);

/* The same of a tree, where unknown and duplicate fields are nobody's business: what is still a view is walked as it is, and
 * passed over where it is the member of `was` (or NULL), which was checked when it was written. ERR_LIMIT: the edit is full. */
int check_tree(const struct schema_type *t, struct json_node *body, const struct object *was,
               struct err *e);

#endif
