/* state: what stands in a sandbox's directory about its life: which processes it is (state.json), how it ended
 * (exit.json).
 *
 * Owns:     nothing.
 * Used by:  keeper.c writes; engine.c and sweep.c read. Files are the owner's and read with care all the same: one of an
 *           older or newer version, or one that was cut short, is an error and not a crash.
 */
#ifndef SILICA_ISOLATE_STATE_H
#define SILICA_ISOLATE_STATE_H

#include "base/json.h"
#include "isolate/adopt.h"

struct state_run {
    struct box_record box;
    uint64_t created_ms;                       /* since 1970 */
    char unenforced[BOX_UNENFORCED_MAX_BYTES]; /* limits that best effort left out, or "" */
};

enum state_end {
    STATE_ENDED,     /* by itself, or by a signal */
    STATE_TIMED_OUT, /* the keeper killed it */
    STATE_LOST,      /* its keeper was killed, and it ended with that */
};

struct state_exit {
    enum state_end end;
    int code; /* as a shell says it */
    uint64_t ended_ms;
    bool is_oom; /* the kernel killed something of it over its memory limit */
};

const char *state_end_name(enum state_end end);

int state_put_run(int box_fd, const struct state_run *run, struct err *e);
int state_get_run(int box_fd, const char *name, struct state_run *ret, struct err *e);
int state_put_exit(int box_fd, const struct state_exit *x, struct err *e);
int state_get_exit(int box_fd, struct state_exit *ret, struct err *e);
/* The members "cgroups" and "in_v2" of an object. */
void state_put_cgroups(struct json_out *o, const struct cgroup *cg);
bool state_read_cgroups(const struct json *root, struct cgroup *cg);
/* A member's text into an array; false when it is none, or too long. */
bool state_copy_text(const struct json *v, char *into, size_t room);
int state_read_exit(const struct json *root, struct state_exit *ret, struct err *e);
/* The texts alone, for the fuzz target. */
int state_parse_run(struct span text, const char *name, struct state_run *ret, struct err *e);
int state_parse_exit(struct span text, struct state_exit *ret, struct err *e);

#endif
