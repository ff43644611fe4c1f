/* json_doc: the inside of a document, shared by the parser and the verbs. Private to base/json*.c.
 * */
#ifndef SILICA_BASE_JSON_DOC_H
#define SILICA_BASE_JSON_DOC_H

#include "base/json.h"
#include "base/json_scan.h"

enum json_node_flags {
    JSON_FLAG_PLAIN = 1,  /* string: nothing in it needs an escape when written */
    JSON_FLAG_INT = 2,    /* number: no fraction, no exponent */
    JSON_FLAG_UNIQUE = 4, /* object: checked, no name twice */
};

#define JSON_COMPACT_MAX_BYTES INT32_MAX /* json_limits has this ceiling for what is parsed */

struct json_doc {
    uint32_t refs; /* atomic */
    uint32_t node_count;
    struct json
        *nodes; /* its own block, as it grows while the text must stay; of a lean one in this one */
    struct json_doc *
        other; /* atomic: its packed form, which is the cached compact form, or NULL; of a packed one its tree */
    size_t text_n : 62;
    size_t
        is_lean : 1; /* the text holds those strings and numbers that are not common, so it may be shorter than the compact form */
    size_t is_packed : 1; /* the text is the compact form and a NUL, and there are no nodes */
    /* The copy, strings unescaped in place; JSON_PAD_BYTES of NULs follow, of a lean one its nodes. */
    uint8_t text[];
};

/* json_pack.c: a packed document that has this compact form. */
struct json_doc *json_pack(struct span compact);
/* The tree of a packed one; made at the first call, and its own. */
const struct json_doc *json_unpack(const struct json_doc *packed);

/* Why a parse stopped. */
struct json_fault {
    enum err_code code;   /* ERR_INVALID or ERR_LIMIT */
    const char *what;     /* static text */
    const uint8_t *where; /* in the document's copy of the text; NULL for ERR_LIMIT */
};

/* Notes an ERR_INVALID; returns NULL. */
uint8_t *json_fault(struct json_fault *f, const char *what, const uint8_t *where);
/* Reads on in a string that began at `start` (behind the quote), from its first byte `p` that is
 * not plain. Fills the node and returns the place behind the closing quote; or NULL and a fault. */
uint8_t *json_string_rest(uint8_t *start, uint8_t *p, const uint8_t *end, struct json *node,
                          struct json_fault *f);
/* Appends s between quotes, escaped; ill-formed runs become U+FFFD. -1 and ERR_LIMIT: out is as it
 * was. */
int json_write_str(struct span s, unsigned flags, struct buf *out, struct err *e);

#endif
