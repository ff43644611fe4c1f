/* fields: what of a request's head a sandbox gets to see, and what of its answer the client.
 *
 * Owns:     nothing.
 * To there: method and raw target as they came; all fields in their order, but for those that belong to one connection,
 *           to the router (X-Sandbox-*, Authorization) or that say whence a request came, which we say ourselves
 *           (X-Forwarded-*). Repeats stay.
 * Back:     all but those that belong to one connection.
 */
#ifndef SILICA_ROUTER_FIELDS_H
#define SILICA_ROUTER_FIELDS_H

#include "http/serve.h"

/* Fills *to, which must be empty. is_trusted: the peer's own X-Forwarded-* go on, its address behind those it names.
 * ERR_LIMIT: it does not fit. */
int fields_request(const struct http_exchange *x, bool is_trusted, struct http_head *to,
                   struct err *e);
/* Adds the answer's fields to x's; its length, if it has one, is *ret_length, else UINT64_MAX. */
void fields_answer(struct http_exchange *x, const struct http_head *from, uint64_t *ret_length);

#endif
