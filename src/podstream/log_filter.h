/* log_filter: entries of a container's log become the bytes a client asked for: since when, of which stream, from which line
 * on, with or without times, up to how many bytes.
 *
 * Owns:     nothing. Does no I/O, reads no clock. The wish is borrowed.
 * Used by:  backends that keep logs: they know how many lines there are, so they say how many come before the tail.
 * Order:    as the kubelet has it: the tail is counted first, in lines of the whole log, then the rest is chosen.
 */
#ifndef SILICA_PODSTREAM_LOG_FILTER_H
#define SILICA_PODSTREAM_LOG_FILTER_H

#include "podstream/backend.h"

struct log_entry {
    struct span time; /* "2026-11-16T09:30:00.123456789Z" */
    enum pod_output stream;
    bool is_end; /* of a line; else more of it follows in a later entry of that stream */
    struct span text;
};

struct log_filter {
    const struct pod_log_wish *wish;
    uint64_t skip;          /* lines before the first that is looked at */
    uint64_t left;          /* bytes */
    bool is_inside_line[2]; /* of each stream: no time goes before the rest of it */
};

/* skip: lines of the log that come before its tail. */
void log_filter_init(struct log_filter *f, const struct pod_log_wish *wish, uint64_t skip);
/* Appends what is to be seen of it. out has room for the entry and LOG_FILTER_EXTRA_BYTES, or drops its end. */
#define LOG_FILTER_EXTRA_BYTES 64
void log_filter_add(struct log_filter *f, const struct log_entry *entry, struct buf *out);
/* Nothing more is to be seen, whatever comes. */
bool log_filter_is_full(const struct log_filter *f);

#endif
