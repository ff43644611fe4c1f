/* request: the JSON object every route of this contract begins with.
 *
 * Owns:     the parsed document. A request that is no JSON object, or whose members have the wrong type, is answered
 *           with 400 or 422 and a sentence in `detail`; the handler then never runs.
 */
#ifndef SILICA_RUNTIME_PYDANTIC_REQUEST_H
#define SILICA_RUNTIME_PYDANTIC_REQUEST_H

#include "base/json.h"
#include "runtime/runtime.h"

/* Takes doc. */
typedef void (*pydantic_handle_fn)(struct runtime *rt, struct http_exchange *x,
                                   struct json_doc *doc);

void pydantic_request(struct runtime *rt, struct http_exchange *x, size_t max_bytes,
                      pydantic_handle_fn handle);

/* Members. False: it is missing or of another type, and the exchange was answered. */
bool pydantic_want_str(struct http_exchange *x, const struct json_doc *doc, const char *name,
                       struct span *ret);
/* With a default for absent and null. */
bool pydantic_want_u64(struct http_exchange *x, const struct json_doc *doc, const char *name,
                       uint64_t otherwise, uint64_t *ret);
bool pydantic_want_bool(struct http_exchange *x, const struct json_doc *doc, const char *name,
                        bool otherwise, bool *ret);

/* The answer to a failed file operation: 403, 404, 400, 413, 507 or 500 with the reason. */
void pydantic_file_error(struct http_exchange *x, const struct err *e);

#endif
