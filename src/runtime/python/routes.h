/* routes: the handlers of the python-runtime contract (contract A), one per route. Each answers its exchange. */
#ifndef SILICA_RUNTIME_PYTHON_ROUTES_H
#define SILICA_RUNTIME_PYTHON_ROUTES_H

#include "runtime/runtime.h"

void python_execute(struct runtime *rt, struct http_exchange *x);
void python_upload(struct runtime *rt, struct http_exchange *x);
/* `path` is the rest of the URL, decoded once; these decode it again, as the contract has it. */
void python_download(struct runtime *rt, struct http_exchange *x, struct span path);
void python_list(struct runtime *rt, struct http_exchange *x, struct span path);
void python_exists(struct runtime *rt, struct http_exchange *x, struct span path);

#endif
