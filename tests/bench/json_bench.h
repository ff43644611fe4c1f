/* json_bench: one JSON library as the bench sees it. The peers live in a file of their own, because
 * jansson's header and ours claim the same names. */
#ifndef SILICA_BENCH_JSON_BENCH_H
#define SILICA_BENCH_JSON_BENCH_H

#include "base/buf.h"

struct json_bench_lib {
    const char *name;
    void *(*parse)(struct span text); /* NULL when refused */
    size_t (*write)(void *doc);       /* compact, to a block of its own; bytes written */
    void (*drop)(void *doc);
};

extern const struct json_bench_lib json_bench_jansson, json_bench_cjson;

#endif
