#include "http/grpc_frame.h"

#include <string.h>

void grpc_frame_init(struct grpc_frame *f, size_t max_bytes)
{
    *f = (struct grpc_frame){ .state = GRPC_PREFIX, .msg = BUF_INIT(max_bytes) };
}

void grpc_frame_done(struct grpc_frame *f)
{
    if (f)
        buf_done(&f->msg);
}

static uint32_t read_be32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* The prefix is complete: is this a message we take? */
static int begin_body(struct grpc_frame *f, struct err *e)
{
    f->left = read_be32(f->prefix + 1);
    if (f->prefix[0] == 1)
        return err_set(e, ERR_PROTOCOL, "compressed message, but no encoding was agreed on");
    if (f->prefix[0] != 0)
        return err_set(e, ERR_PROTOCOL, "message with unknown flags 0x%02x", f->prefix[0]);
    if (f->left > f->msg.max)
        return err_set(e, ERR_LIMIT, "message of %zu bytes; at most %zu", f->left, f->msg.max);
    return 0;
}

enum feed grpc_frame_feed(struct grpc_frame *f, struct span in, size_t *ret_used, struct err *e)
{
    size_t used = 0, n;

    switch (f->state) {
    case GRPC_PREFIX:
        if (f->have == 0) /* the last message was read by now */
            f->msg.cap > GRPC_MESSAGE_KEEP_BYTES ? buf_done(&f->msg) : buf_clear(&f->msg);
        n = MIN(in.n, sizeof f->prefix - f->have);
        if (n > 0)
            memcpy(f->prefix + f->have, in.p, n);
        f->have += n;
        used += n;
        if (f->have < sizeof f->prefix)
            break;
        if (begin_body(f, e) < 0)
            goto broken;
        f->state = GRPC_BODY;
        FALLTHROUGH; /* the body may be here already, or be empty */
    case GRPC_BODY:
        n = MIN(in.n - used, f->left);
        /* Grows with what came, not with what the prefix promised: a promise costs the peer
         * nothing. */
        if (buf_add(&f->msg, span_slice(in, used, used + n), e) < 0)
            goto broken;
        f->left -= n;
        used += n;
        if (f->left > 0)
            break;
        f->state = GRPC_PREFIX;
        f->have = 0;
        *ret_used = used;
        return FEED_DONE;
    case GRPC_BROKEN:
        err_set(e, ERR_PROTOCOL, "the message stream is broken");
        goto broken;
    }
    *ret_used = used;
    return FEED_MORE;

broken:
    f->state = GRPC_BROKEN;
    buf_done(&f->msg);
    *ret_used = used;
    return FEED_BAD;
}

int grpc_frame_end(const struct grpc_frame *f, struct err *e)
{
    if (f->state == GRPC_PREFIX && f->have == 0)
        return 0;
    return err_set(e, ERR_PROTOCOL, "the stream ended inside a message");
}

int grpc_frame_add_prefix(struct buf *out, size_t n, struct err *e)
{
    uint8_t prefix[GRPC_PREFIX_BYTES];

    if (n > UINT32_MAX)
        return err_set(e, ERR_LIMIT, "message of %zu bytes; the length has 32 bits", n);
    prefix[0] = 0;
    prefix[1] = (uint8_t)(n >> 24);
    prefix[2] = (uint8_t)(n >> 16);
    prefix[3] = (uint8_t)(n >> 8);
    prefix[4] = (uint8_t)n;
    if (buf_reserve(out, sizeof prefix + n, e) < 0)
        return -1;
    return buf_add(out, span_of(prefix, sizeof prefix), e);
}

int grpc_frame_add(struct buf *out, struct span msg, struct err *e)
{
    if (grpc_frame_add_prefix(out, msg.n, e) < 0)
        return -1;
    return buf_add(out, msg, e);
}
