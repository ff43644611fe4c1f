/* json_doc: the inside of a document, shared by the parser and the verbs. Private to base/json*.c. */
#ifndef SILICA_BASE_JSON_DOC_H
#define SILICA_BASE_JSON_DOC_H

#include "base/json.h"
#include "base/json_scan.h"

enum json_node_flags {
    JSON_FLAG_PLAIN = 1,  /* string: nothing in it needs an escape when written */
    JSON_FLAG_INT = 2,    /* number: no fraction, no exponent */
    JSON_FLAG_UNIQUE = 4, /* object: checked, no name twice */
};

struct json_doc {
    uint32_t refs; /* atomic */
    uint32_t node_count;
    struct json *nodes; /* its own block, as it grows while the text must stay */
    struct buf *bytes;  /* atomic: the cached compact form, or NULL */
    size_t text_n;
    uint8_t text[]; /* the copy, strings unescaped in place; JSON_PAD_BYTES of NULs follow */
};

/* Appends s between quotes, escaped; ill-formed runs become U+FFFD. -1 and ERR_LIMIT: out is as it was. */
int json_write_str(struct span s, unsigned flags, struct buf *out, struct err *e);

#endif
