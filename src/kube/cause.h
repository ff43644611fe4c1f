/* cause: what is wrong with an object, field by field, in the words clients know.
 *
 *     const struct field_path *spec = AT(NULL, "spec");
 *     causes_add(&causes, CAUSE_REQUIRED, AT(spec, "containers"), NULL, NULL);
 *
 * Owns:     a causes list owns its texts; bounded in number and bytes, what does not fit is counted.
 * Used by:  validation (writes them), status (shows them). Paths are chains on the walker's stack and
 *           become text only when something is wrong.
 */
#ifndef SILICA_KUBE_CAUSE_H
#define SILICA_KUBE_CAUSE_H

#include "base/json.h"

#define CAUSES_MAX            64 /* a body of wrong fields must not become a longer answer */
#define CAUSES_TEXT_MAX_BYTES (64 * 1024) /* the same */
#define CAUSE_PATH_MAX_BYTES  1024        /* a longer path is cut at its front, "..." says so */

enum field_step {
    FIELD_NAME,  /* ".name" */
    FIELD_INDEX, /* "[0]" */
    FIELD_KEY,   /* "[key]" */
};

struct field_path {
    const struct field_path *parent;
    enum field_step step;
    struct span name;
    size_t index;
};

/* clang-format off */
#define AT(up, member)  (&(const struct field_path){ (up), FIELD_NAME, span_cstr(member), 0 })
#define AT_SPAN(up, s)  (&(const struct field_path){ (up), FIELD_NAME, (s), 0 })
#define AT_INDEX(up, i) (&(const struct field_path){ (up), FIELD_INDEX, SPAN_NONE, (i) })
#define AT_KEY(up, s)   (&(const struct field_path){ (up), FIELD_KEY, (s), 0 })
/* clang-format on */

/* "spec.containers[0].name"; "<nil>" for NULL, as the public server says it. */
const char *field_path_text(const struct field_path *p, char text[CAUSE_PATH_MAX_BYTES]);

enum cause_type {
    CAUSE_NOT_FOUND,
    CAUSE_REQUIRED,
    CAUSE_DUPLICATE,
    CAUSE_INVALID,
    CAUSE_TYPE_INVALID, /* says "Invalid value" too; custom kinds */
    CAUSE_NOT_SUPPORTED,
    CAUSE_FORBIDDEN,
    CAUSE_TOO_LONG,
    CAUSE_TOO_MANY,
    CAUSE_TOO_FEW,
    CAUSE_INTERNAL,
    CAUSE_CONFLICT,    /* server-side apply: the message is the detail alone, here and below */
    CAUSE_TERMINATING, /* the namespace is on its way out */
    CAUSE_VERSION_TOO_LARGE, /* a resourceVersion of the future */
};

struct cause {
    enum cause_type type;
    size_t field_at, message_at; /* in causes.text, NUL-terminated: use the verbs */
};

struct causes {
    struct cause rows[CAUSES_MAX];
    size_t n;
    size_t dropped; /* beyond the ceilings */
    struct buf text;
};

#define CAUSES_INIT                                                                                \
    {                                                                                              \
        .text = BUF_INIT(CAUSES_TEXT_MAX_BYTES)                                                    \
    }

void causes_done(struct causes *c);
/* Adds one. bad is the value that is wrong, shown as JSON; NULL: none is shown. fmt may be NULL. */
void causes_add(struct causes *c, enum cause_type type, const struct field_path *at,
                const struct json *bad, const char *fmt, ...) PRINTF(5, 6);
/* The same for a value that is a text of ours; shown in quotes. */
void causes_add_text(struct causes *c, enum cause_type type, const struct field_path *at,
                     struct span bad, const char *fmt, ...) PRINTF(5, 6);
/* For values that have their final form already: numbers, JSON that is no longer at hand. */
void causes_add_shown(struct causes *c, enum cause_type type, const struct field_path *at,
                      const char *shown, const char *fmt, ...) PRINTF(5, 6);
/* One that came over the wire. A reason nobody knows becomes CAUSE_INTERNAL; the words stay. */
void causes_add_read(struct causes *c, struct span reason, struct span field, struct span message);
/* CAUSE_NOT_SUPPORTED with the list of what is; values is NULL-ended. */
void causes_add_unsupported(struct causes *c, const struct field_path *at, const struct json *bad,
                            const char *const *values);
/* "FieldValueInvalid": the reason in Status.details.causes. */
const char *cause_reason(enum cause_type type);
const char *cause_field(const struct causes *c, size_t i);
const char *cause_message(const struct causes *c, size_t i);
/* Appends "field: message", or "[a, b]" when there are several different ones. */
int causes_summary(const struct causes *c, struct buf *out, struct err *e);

#endif
