/* engine_impl: for engine.c (the keeper's callers) and engine_look.c (what stands in the directory). */
#ifndef SILICA_ISOLATE_ENGINE_IMPL_H
#define SILICA_ISOLATE_ENGINE_IMPL_H

#include "isolate/engine.h"

#include "isolate/dir.h"
#include "isolate/sweep.h"
#include "isolate/wire.h"

#include <signal.h>

struct engine {
    struct dir dir;
    char *path, *program;
    int fd; /* to the keeper; -1: not connected */
    bool starts_keeper;
    struct box_limits all;
};

int engine_connect(struct engine *en, bool starts_it, struct err *e);
/* A keeper that is there, and keeps nothing, makes room for the next one, which is started from our program. */
void engine_renew(struct engine *en);
/* One packet out, its answer in. timeout_ms 0: none. *ret is also filled with an error that the keeper tells. */
int engine_ask(struct engine *en, struct span packet, uint64_t timeout_ms, struct wire_answer *ret,
               struct err *e);
/* The same, with a descriptor that may come along; the caller's, -1: none came. */
int engine_ask_fd(struct engine *en, struct span packet, uint64_t timeout_ms,
                  struct wire_answer *ret, int *ret_fd, struct err *e);
/* ERR_CLOSED: it has ended. */
int engine_adopt(struct engine *en, const char *name, struct box **ret, struct err *e);
void engine_take_exit(struct engine_info *info, const struct state_exit *x);

#endif
