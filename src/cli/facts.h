/* facts: what protects a sandbox here, as rows for people and programs. Nothing is guessed from versions: the kernel is asked
 * what holds for a PID 1 that runs.
 *
 * Owns:     nothing; texts are in the rows.
 * Used by:  doctor.c, which makes sandboxes to look at; status.c, which looks at one that is there.
 */
#ifndef SILICA_CLI_FACTS_H
#define SILICA_CLI_FACTS_H

#include "base/err.h"
#include "base/json.h"

#include <sys/types.h>

#define FACTS_MAX 16

enum verdict { HOLDS, LACKS, BROKEN };

struct fact {
    const char *name;
    enum verdict verdict;
    char text[200];
    char hint[200]; /* what to do about it, or "" */
};

struct facts {
    struct fact v[FACTS_MAX];
    size_t n;
};

struct fact *facts_add(struct facts *f, const char *name, enum verdict verdict, const char *fmt,
                       ...) PRINTF(4, 5);
struct fact *facts_add_err(struct facts *f, const char *name, enum verdict verdict,
                           const struct err *e);
void fact_advise(struct fact *f, const char *hint);

/* Filter, privileges and capabilities of that process, by /proc. */
void facts_of_process(struct facts *f, pid_t pid);
/* Which ids a sandbox of this caller has, and how paths are fenced. */
void facts_of_host(struct facts *f);

bool facts_are_broken(const struct facts *f);
const char *verdict_name(enum verdict v);
/* An array of objects: name, verdict, text, hint. */
void facts_write(const struct facts *f, struct json_out *out);

#endif
