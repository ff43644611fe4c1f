/* rest: the REST handlers, and how they read a request. */
#ifndef SILICA_RUNTIME_SANDBOXD_REST_H
#define SILICA_RUNTIME_SANDBOXD_REST_H

#include "runtime/runtime.h"

/* `path` is what follows /v1/files/, decoded once; borrowed. */
void sandboxd_get(struct runtime *rt, struct http_exchange *x, struct span path);
void sandboxd_put(struct runtime *rt, struct http_exchange *x, struct span path);
void sandboxd_delete(struct runtime *rt, struct http_exchange *x, struct span path);
void sandboxd_metadata(struct runtime *rt, struct http_exchange *x);

/* A query parameter, decoded (here `+` is a space); empty when absent. -1: longer than anybody means. */
int rest_query(const struct http_exchange *x, const char *name, struct buf *out, struct err *e);

#endif
