/* scratch: a directory for one test, gone afterwards. Only for tests and fuzzers; aborts when it cannot. */
#ifndef SILICA_BASE_SCRATCH_H
#define SILICA_BASE_SCRATCH_H

#include "base/buf.h"

#include <sys/stat.h>

struct scratch {
    int fd;
    char path[64]; /* real, without links */
};

void scratch_make(struct scratch *s);
void scratch_remove(struct scratch *s);
/* All of these take paths below the scratch directory. */
void scratch_dir(const struct scratch *s, const char *path);
void scratch_file(const struct scratch *s, const char *path, const char *content);
void scratch_link(const struct scratch *s, const char *path, const char *target);
/* "scratch path/rest", valid until four more calls. */
const char *scratch_path(const struct scratch *s, const char *rest);
/* The file's content, or "(errno name)"; valid until the next call. */
const char *scratch_read(const struct scratch *s, const char *path);
mode_t scratch_mode(const struct scratch *s, const char *path); /* 07777 bits, of a link itself */
bool scratch_has(const struct scratch *s, const char *path);
/* Entries of a directory. */
unsigned scratch_count(const struct scratch *s, const char *path);

#endif
