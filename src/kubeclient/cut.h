/* cut: takes whole values out of a stream of JSON, wherever the network cuts it.
 *
 * CUT_STREAM: objects one behind the other, as a watch sends its events. CUT_ITEMS: one object whose member "items" is an
 * array: first its elements, one at a time, and at the end the object itself with an empty array. So a list of any length
 * needs the memory of one element.
 *
 * Owns:     the value under way and the enveloping object, each with its ceiling.
 * Judges:   strings and nesting only. What it gives is parsed by the caller, and what is no JSON fails there.
 * Used by:  rest for lists, watch for events. Does no I/O.
 */
#ifndef SILICA_KUBECLIENT_CUT_H
#define SILICA_KUBECLIENT_CUT_H

#include "base/buf.h"
#include "http/feed.h"

enum cut_shape { CUT_STREAM, CUT_ITEMS };

enum cut_state {
    CUT_OUTSIDE, /* of the enveloping object: before and behind it */
    CUT_AROUND,  /* in it, but not in its items */
    CUT_BETWEEN, /* two values */
    CUT_VALUE,
    CUT_BROKEN,
};

struct cut_scan {
    uint32_t depth;
    bool is_in_string, is_escaped;
};

struct cut {
    enum cut_shape shape;
    enum cut_state state;
    struct buf value;    /* the one that is complete, or under way */
    struct buf envelope; /* CUT_ITEMS: all but the elements */
    struct cut_scan in_value, in_envelope;
    char name[8]; /* the beginning of the last text in the enveloping object itself */
    uint8_t name_n;
    bool is_value_whole, is_items; /* is_items: that text was a name, and it was "items" */
};

void cut_init(struct cut *c, enum cut_shape shape, size_t value_max_bytes);
void cut_done(struct cut *c);
/* FEED_DONE: c->value is whole and lives until the next feed; go on behind *ret_used. FEED_BAD: ERR_PROTOCOL, ERR_LIMIT. */
enum feed cut_feed(struct cut *c, struct span in, size_t *ret_used, struct err *e);
/* The stream is over. -1: in the middle of something. CUT_ITEMS: c->envelope is whole. */
int cut_end(const struct cut *c, struct err *e);

#endif
