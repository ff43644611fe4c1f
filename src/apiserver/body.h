/* body: what a request carries, as a tree: JSON, YAML or Kubernetes protobuf, by its content type; none given is JSON.
 *
 * Used by:  write*.c, sub*.c.
 */
#ifndef SILICA_APISERVER_BODY_H
#define SILICA_APISERVER_BODY_H

#include "apiserver/call.h"

/* The content type without its parameters; "" when there is none. */
struct span body_type(const struct http_exchange *x);
/* type: what the body is when it does not say itself (protobuf does). It is an
 * object. -1 with c->status: 400 with the place, or 415. */
int body_read(struct call *c, struct span bytes, const struct schema_type *type,
              struct json_edit *ed, struct json_node **ret);

/* Every member is of the type that the table has; what is not in the table is let pass. For bodies that admit.h does not
 * judge: what is of another type would otherwise not be seen, and a delete that had conditions had none. */
int body_check(const struct schema_type *type, struct json_node *body, struct status *st);
/* Both. */
int body_read_as(struct call *c, struct span bytes, const struct schema_type *type,
                 struct json_edit *ed, struct json_node **ret);
/* The body did not come: 413 where it was too large. Returns true. */
bool body_is_bad(struct call *c, const struct err *e);

/* Both of JSON alone, which did not come over HTTP. */
int body_read_json(struct span bytes, const struct schema_type *type, struct json_edit *ed,
                   struct json_node **ret, struct status *st);

#endif
