/* opt: one option table per program. Flags, environment twins, --help, the man page's list and the range
 * checks all come from it, so they cannot disagree.
 *
 *     static const struct opt opts[] = {
 *         OPT_MS_ROW("--dial-timeout", "ROUTER_DIAL_TIMEOUT", dial_ms, 3000, 50, 60000, "wait for ..."),
 *
 * Owns:     nothing: string values point into argv or the environment.
 * Order:    a flag wins over its environment variable, that over the default. `--x V`, `--x=V`, `-x` as Go
 *           writes long flags with one dash, `--no-x` for booleans, and letters where a row has one are accepted.
 */
#ifndef SILICA_BASE_OPT_H
#define SILICA_BASE_OPT_H

#include "base/buf.h"

enum opt_kind {
    OPT_BOOL,  /* bool */
    OPT_U64,   /* uint64_t */
    OPT_MS,    /* uint64_t milliseconds: "500ms", "2m", "1.5" seconds */
    OPT_BYTES, /* uint64_t: "64KiB" */
    OPT_FD,    /* uint64_t: a descriptor that the caller left open, or OPT_NO_FD */
    OPT_STR,   /* const char * */
    OPT_LIST,  /* struct opt_list: may be given several times */
};

#define OPT_LIST_MAX 64
#define OPT_NO_FD    UINT64_MAX

struct opt_list {
    const char *v[OPT_LIST_MAX];
    size_t n;
};

struct opt {
    const char *flag; /* "--listen"; an alias is another row with the same offset and no help */
    const char *env;  /* or NULL */
    enum opt_kind kind;
    size_t offset;     /* of the field in the program's option struct */
    const char *text;  /* default as text, parsed like a given value; NULL leaves the field zero */
    uint64_t min, max; /* for numbers; max 0 means no ceiling but the type's */
    const char *arg;   /* what --help calls the value: "HOST:PORT" */
    const char *help;  /* NULL hides the row (aliases) */
    const char
        *group;  /* heading above this row, for it and those after it; NULL: none of its own */
    char letter; /* 'e': also "-e"; booleans together, as in "-it". 0: none */
};

struct opt_program {
    const char *name;
    const char *usage;   /* after the name, one or more lines */
    const char *example; /* the commonest call, shown first */
    const struct opt *opts;
    size_t opt_count;
    const char *epilog; /* shown last, or NULL */
};

/* Fills the struct at `into`. *ret_rest is the index of the first argument that is not an option ("--" is
 * skipped). -1 with ERR_USAGE naming the argument (or the variable) that is wrong. */
int opt_parse(const struct opt_program *prog, int argc, char **argv, void *into, int *ret_rest,
              struct err *e);
/* True when the flag or its variable was given, rather than its default taken; only after opt_parse. */
bool opt_was_given(const struct opt_program *prog, int argc, char **argv, const char *flag);
/* Stores what somewhere else says of an option; `source` names that in messages. Texts are borrowed; a list gets one more. */
int opt_set(const struct opt *o, const char *source, const char *text, void *into, struct err *e);
void opt_help(const struct opt_program *prog, struct buf *out);
/* The options as roff list items below their groups' headings, for the man page. */
void opt_roff(const struct opt_program *prog, struct buf *out);

#endif
