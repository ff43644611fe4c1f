/* answer: how the python-runtime contract words its answers. Two styles: `message` for the handlers' own errors,
 * `detail` for what its framework says; validation errors are a list under `detail`.
 */
#ifndef SILICA_RUNTIME_PYTHON_ANSWER_H
#define SILICA_RUNTIME_PYTHON_ANSWER_H

#include "base/json.h"
#include "http/serve.h"

/* Sends what the builder holds as 200-style JSON; a body over its ceiling becomes a 500 that says so. */
void python_json(struct http_exchange *x, int status, struct json_out *o, struct buf *body);
void python_message(struct http_exchange *x, int status, const char *fmt, ...) PRINTF(3, 4);
void python_detail(struct http_exchange *x, int status, const char *text);
void python_denied(struct http_exchange *x); /* 403, on every file route alike */
void python_not_found(struct http_exchange *x);
void python_method_not_allowed(struct http_exchange *x, const char *allow);

/* One validation error, as a 422. `input` is JSON text. */
struct python_invalid {
    const char *type;
    const char *loc; /* after "body": NULL, a name, or the digits of an offset */
    bool loc_is_number;
    const char *msg;
    struct span input;
    const char *ctx_error; /* {"error":"..."}; "{}" for an empty object; NULL for no ctx */
};
void python_invalid(struct http_exchange *x, const struct python_invalid *v);

#endif
