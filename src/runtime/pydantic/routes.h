/* routes: the handlers of the pydantic exec contract (contract E). All but health take a JSON object by POST. */
#ifndef SILICA_RUNTIME_PYDANTIC_ROUTES_H
#define SILICA_RUNTIME_PYDANTIC_ROUTES_H

#include "runtime/runtime.h"

void pydantic_health(struct runtime *rt, struct http_exchange *x);
void pydantic_exec(struct runtime *rt, struct http_exchange *x);
void pydantic_read(struct runtime *rt, struct http_exchange *x);
void pydantic_write(struct runtime *rt, struct http_exchange *x);
void pydantic_edit(struct runtime *rt, struct http_exchange *x);
void pydantic_ls(struct runtime *rt, struct http_exchange *x);
void pydantic_glob(struct runtime *rt, struct http_exchange *x);
void pydantic_grep(struct runtime *rt, struct http_exchange *x);

#endif
