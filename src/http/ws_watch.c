#include "http/ws_watch.h"

#include <string.h>

#define FIN       0x80
#define OPCODE    0x0f
#define MASKED    0x80
#define LENGTH    0x7f
#define LENGTH_16 126 /* the length follows in two bytes */
#define LENGTH_64 127 /* in eight */

static size_t length_bytes(const struct ws_watch *w)
{
    unsigned said = w->head[1] & LENGTH;

    return said == LENGTH_16 ? 2 : said == LENGTH_64 ? 8 : 0;
}

/* What must be there of it, as far as can be said yet. */
static size_t head_bytes(const struct ws_watch *w)
{
    if (w->head_n < 2)
        return 2;
    return 2 + length_bytes(w) + (w->head[1] & MASKED ? 4 : 0);
}

static uint64_t payload_bytes(const struct ws_watch *w)
{
    size_t n = length_bytes(w);
    uint64_t value = 0;

    for (size_t i = 0; i < n; i++)
        value = value << 8 | w->head[2 + i];
    return n ? value : w->head[1] & LENGTH;
}

static bool is_control(const struct ws_watch *w)
{
    return w->head[0] & 0x08;
}

/* The head is whole. False: its message is too long. */
static bool begin_frame(struct ws_watch *w)
{
    uint64_t n = payload_bytes(w);

    if (!is_control(w)) {
        bool is_new = (w->head[0] & OPCODE) != WS_CONTINUATION;
        uint64_t before = is_new ? 0 : w->message_bytes;

        w->message_bytes = n > UINT64_MAX - before ? UINT64_MAX : before + n;
        w->is_too_big = w->message_max && w->message_bytes > w->message_max;
    }
    w->left = n;
    return !w->is_too_big;
}

static void end_frame(struct ws_watch *w)
{
    if ((w->head[0] & OPCODE) == WS_CLOSE)
        w->is_closed = true;
    if (!is_control(w) && w->head[0] & FIN)
        w->messages++;
    w->head_n = 0;
}

bool ws_watch_is_between(const struct ws_watch *w)
{
    return w->head_n == 0;
}

size_t ws_watch_look(struct ws_watch *w, struct span in)
{
    size_t at = 0, frame_at = 0, n;

    if (w->is_too_big)
        return 0;
    while (at < in.n) {
        if (w->head_n == 0)
            frame_at = at;
        if (w->head_n < head_bytes(w)) {
            w->head[w->head_n++] = in.p[at++];
            if (w->head_n < head_bytes(w))
                continue;
            if (!begin_frame(w)) {
                /* What was let through of its head before now is a frame half begun. */
                w->head_n = (uint8_t)(w->head_n - (at - frame_at));
                return frame_at;
            }
        } else {
            n = (size_t)MIN((uint64_t)(in.n - at), w->left);
            at += n;
            w->left -= n;
        }
        if (w->left == 0)
            end_frame(w);
    }
    return at;
}
