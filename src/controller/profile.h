/* profile: what `go tool pprof` opens: a profile.proto (github.com/google/pprof), gzipped.
 *
 *     struct profile *p = profile_new(&(struct profile_kind){ "samples", "count", "cpu", "nanoseconds", 10000000 });
 *     profile_add(p, (struct profile_frame[]){ { address, "name" } }, 1, 3, 30000000);
 *     profile_write(p, out, e); profile_free(p);
 *
 * Owns:     strings, functions and places until they are written. Does no I/O; times are the caller's.
 */
#ifndef SILICA_CONTROLLER_PROFILE_H
#define SILICA_CONTROLLER_PROFILE_H

#include "base/buf.h"
#include "controller/symbols.h"

#define PROFILE_MAX_BYTES (16u * 1024 * 1024)

struct profile;

/* Two values a sample has, and what it costs to have one. */
struct profile_kind {
    const char *first, *first_unit, *second, *second_unit;
    int64_t period; /* of the second one; 0: none */
};

struct profile_frame {
    uint64_t address; /* 0: none; then it is known by its name alone */
    const char *name; /* or NULL */
};

struct profile *profile_new(const struct profile_kind *kind);
void profile_times(struct profile *p, int64_t from_ns, int64_t lasted_ns);
/* Before the first sample: where the addresses are. */
void profile_map(struct profile *p, const struct symbols_mapping *m, bool has_names);
/* Innermost first. */
void profile_add(struct profile *p, const struct profile_frame *frames, size_t n, int64_t first,
                 int64_t second);
int profile_write(const struct profile *p, struct buf *out, struct err *e);
void profile_free(struct profile *p);

#endif
