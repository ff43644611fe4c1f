/* routes: the doors of the sandboxd contract (contract B). Each answers its exchange. */
#ifndef SILICA_RUNTIME_SANDBOXD_ROUTES_H
#define SILICA_RUNTIME_SANDBOXD_ROUTES_H

#include "runtime/runtime.h"

/* Everything below /v1. */
void sandboxd_rest(struct runtime *rt, struct http_exchange *x);
/* Every gRPC call, whatever its service. */
void sandboxd_grpc(struct runtime *rt, struct http_exchange *x);

#endif
