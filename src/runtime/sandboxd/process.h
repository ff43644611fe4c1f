/* process: the handlers of process.v1.ProcessService and of reflection, one per method. Each takes its exchange. */
#ifndef SILICA_RUNTIME_SANDBOXD_PROCESS_H
#define SILICA_RUNTIME_SANDBOXD_PROCESS_H

#include "runtime/runtime.h"

void process_execute(struct runtime *rt, struct http_exchange *x);
void process_start(struct runtime *rt, struct http_exchange *x);
void process_write_stdin(struct runtime *rt, struct http_exchange *x);
void process_send_signal(struct runtime *rt, struct http_exchange *x);
void process_resize_tty(struct runtime *rt, struct http_exchange *x);
void process_reflect(struct runtime *rt, struct http_exchange *x);

#endif
