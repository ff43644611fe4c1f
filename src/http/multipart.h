/* multipart: form uploads (multipart/form-data, RFC 7578), cut into parts as they stream in.
 *
 * Owns:     the head of the part under way and its decoded names; never a part's data.
 * Used by:  the runtime's upload route. No I/O: the caller writes data to where it belongs.
 * Spans:    *ret_data is a part of `in`, or a few bytes that were held back because they could have begun a
 *           boundary; both live until the next call. name and filename live until the next part's head.
 * Leaves:   the size of a part and of the body to the caller, and whether a cut body matters.
 */
#ifndef SILICA_HTTP_MULTIPART_H
#define SILICA_HTTP_MULTIPART_H

#include "http/head.h"
#include "http/limits.h"

enum multipart_event {
    MULTIPART_MORE,      /* all input is used, the body goes on */
    MULTIPART_PART_HEAD, /* name, filename and head are set */
    MULTIPART_PART_DATA, /* *ret_data is the part's */
    MULTIPART_PART_END,
    MULTIPART_END, /* the closing boundary; whatever follows is read over */
    MULTIPART_BAD, /* *e and m->fault say why; the parser stays broken */
};

/* What is wrong, for callers whose contract words it. */
enum multipart_fault {
    MULTIPART_FINE,
    MULTIPART_NOT_FORM, /* the content type is another */
    MULTIPART_NO_BOUNDARY,
    MULTIPART_NO_NAME,         /* a part without a name */
    MULTIPART_TOO_MANY_FILES,  /* parts with a filename */
    MULTIPART_TOO_MANY_FIELDS, /* parts without */
    MULTIPART_HEAD_TOO_LARGE,
    MULTIPART_MALFORMED,
};

struct multipart_limits {
    size_t files, fields;           /* parts with and without a filename */
    size_t head_bytes, head_fields; /* of one part's head */
};
extern const struct multipart_limits multipart_limits_default;

enum multipart_state {
    MULTIPART_AT_PREAMBLE,
    MULTIPART_AT_TAIL, /* behind a delimiter: CRLF, "--", or it was data after all */
    MULTIPART_AT_TAIL_CR,
    MULTIPART_AT_TAIL_DASH,
    MULTIPART_AT_HEAD_START, /* a field or the blank line may come */
    MULTIPART_AT_HEAD,
    MULTIPART_AT_HEAD_LF,
    MULTIPART_AT_DATA,
    MULTIPART_AT_CLOSE, /* END is still to be told */
    MULTIPART_AT_EPILOGUE,
    MULTIPART_AT_BROKEN,
};

struct multipart {
    struct http_head head; /* of the part, Content-Type and all */
    struct span name,
        filename;      /* UTF-8, decoded; a filename may hold anything but NUL, CR and LF */
    bool has_filename; /* else it is a plain field; the filename may be empty */
    enum multipart_fault fault;
    const struct multipart_limits *limits;
    size_t file_count, field_count;
    struct buf text;  /* name and filename */
    uint32_t line_at; /* where the line under way began in the head's text */
    uint16_t delim_n;
    uint16_t held;  /* delimiter bytes matched at the end of the input so far */
    uint8_t unreal; /* of these, the CRLF that was taken as read: 2 or 0 */
    uint8_t state;  /* enum multipart_state */
    bool in_part, is_latin1;
    uint8_t delim[4 + HTTP_BOUNDARY_MAX_BYTES +
                  1]; /* CRLF "--" boundary, and a byte that proved it data */
};

/* Reads the boundary from the request's content type. -1: ERR_INVALID, and m->fault is NOT_FORM,
 * NO_BOUNDARY or MALFORMED. limits NULL means the defaults; they are borrowed. */
int multipart_init(struct multipart *m, struct span content_type,
                   const struct multipart_limits *limits, struct err *e);
void multipart_done(struct multipart *m);

/* Consumes some of `in`, returns one event. Call again with the rest until MULTIPART_MORE. */
enum multipart_event multipart_feed(struct multipart *m, struct span in, size_t *ret_used,
                                    struct span *ret_data, struct err *e);
/* The body has ended: 0 when its closing boundary came, else -1 with ERR_PROTOCOL. */
int multipart_finish(struct multipart *m, struct err *e);

#endif
