/* json_sink: where written JSON goes: a buf whose end runs ahead in a pointer, so that a byte costs a comparison and a store.
 * Private to base/json*.c.
 *
 *     struct json_sink s;
 *     if (json_sink_begin(&s, out, guess, e) < 0 || !json_sink_tree(&s, v, 0)) ...
 *     json_sink_end(&s);
 *
 * Every verb is false when the buf's ceiling is reached; *e says so. Then, or after json_sink_end, the buf is the caller's
 * again. */
#ifndef SILICA_BASE_JSON_SINK_H
#define SILICA_BASE_JSON_SINK_H

#include "base/json_doc.h"

struct json_sink {
    uint8_t *p, *end;
    struct buf *out;
    struct err *e;
};

/* Room for about so many bytes; it grows when there are more. */
int json_sink_begin(struct json_sink *s, struct buf *out, size_t guess, struct err *e);
void json_sink_end(struct json_sink *s);
bool json_sink_more(struct json_sink *s, size_t n);

/* At least n bytes at s->p; asks for exactly what is needed, so that a ceiling is reached only truly. */
static inline bool json_sink_room(struct json_sink *s, size_t n)
{
    return (size_t)(s->end - s->p) >= n || json_sink_more(s, n);
}

static inline bool json_sink_byte(struct json_sink *s, uint8_t byte)
{
    if (!json_sink_room(s, 1))
        return false;
    *s->p++ = byte;
    return true;
}

static inline bool json_sink_run(struct json_sink *s, const uint8_t *p, size_t n)
{
    if (!json_sink_room(s, n))
        return false;
    if (n)
        memcpy(s->p, p, n);
    s->p += n;
    return true;
}

/* Quoted and escaped, as json_write_str. */
bool json_sink_string(struct json_sink *s, struct span text, unsigned flags);
/* A whole value. */
bool json_sink_tree(struct json_sink *s, const struct json *v, unsigned flags);

#endif
