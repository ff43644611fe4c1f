/* answer: how the sandboxd contract words its REST answers: JSON with a newline behind it, errors as a code and a
 * message; what no route knows gets plain text, as its framework has it.
 */
#ifndef SILICA_RUNTIME_SANDBOXD_ANSWER_H
#define SILICA_RUNTIME_SANDBOXD_ANSWER_H

#include "base/json.h"
#include "http/serve.h"

enum sandboxd_code {
    SANDBOXD_INVALID_ARGUMENT,  /* 400 */
    SANDBOXD_PERMISSION_DENIED, /* 403 */
    SANDBOXD_NOT_FOUND,         /* 404 */
    SANDBOXD_CONFLICT,          /* 409 */
    SANDBOXD_INTERNAL,          /* 500 */
    SANDBOXD_UNAVAILABLE,       /* 503 */
};

void sandboxd_error(struct http_exchange *x, enum sandboxd_code code, const char *message);
void sandboxd_errorf(struct http_exchange *x, enum sandboxd_code code, const char *fmt, ...)
    PRINTF(3, 4);

/* Where a file operation failed decides what EACCES means. */
enum sandboxd_stage {
    SANDBOXD_RESOLVING, /* the path or the root itself: escapes are 403, all else but a missing file 500 */
    SANDBOXD_WORKING, /* the file was found: no permission is 403 */
};
void sandboxd_file_error(struct http_exchange *x, enum sandboxd_stage stage, const struct err *e);

/* 200 with what the builder holds. */
void sandboxd_json(struct http_exchange *x, struct json_out *o, struct buf *body);
/* The JSON builder of this contract: `<`, `>` and `&` are escaped. */
void sandboxd_json_begin(struct json_out *o, struct buf *body);

void sandboxd_no_route(struct http_exchange *x);
void sandboxd_wrong_method(struct http_exchange *x, const char *allow);

#endif
