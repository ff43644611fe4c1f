#include "http/ws.h"

#include "base/str.h"

#include <string.h>

#define FIN              0x80
#define RESERVED         0x70
#define MASKED           0x80
#define LENGTH_16        126 /* the length follows in two bytes */
#define LENGTH_64        127 /* in eight */
#define REASON_MAX_BYTES (WS_CONTROL_MAX_BYTES - 2)

void ws_init(struct ws *w, enum ws_role role, uint64_t message_max)
{
    *w = (struct ws){ .role = role, .message_max = message_max, .piece = BUF_INIT(WS_PIECE_BYTES) };
}

void ws_done(struct ws *w)
{
    if (w)
        buf_done(&w->piece);
}

static int refuse(struct ws *w, uint16_t code)
{
    w->state = WS_AT_BROKEN;
    w->close_code = code;
    buf_done(&w->piece);
    return -1;
}

/* ---- text ---- */

/* One byte of a text; the sequences of RFC 3629 section 4, told by what their second byte may be. */
static bool utf8_step(struct ws *w, uint8_t c)
{
    if (w->utf8_left) {
        bool is_good = c >= w->utf8_low && c <= w->utf8_high;

        w->utf8_left--;
        w->utf8_low = 0x80;
        w->utf8_high = 0xbf;
        return is_good;
    }
    if (c < 0x80)
        return true;
    if (c < 0xc2 || c > 0xf4)
        return false;
    w->utf8_left = c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;
    w->utf8_low = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
    w->utf8_high = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
    return true;
}

/* The next piece of a text, and whether the text ends with it. */
static bool is_text(struct ws *w, struct span piece, bool is_last)
{
    uint64_t eight;

    for (size_t i = 0; i < piece.n;) {
        if (!w->utf8_left && piece.n - i >= sizeof eight) {
            memcpy(&eight, piece.p + i, sizeof eight);
            if ((eight & 0x8080808080808080u) == 0) { /* all ASCII */
                i += sizeof eight;
                continue;
            }
        }
        if (!utf8_step(w, piece.p[i++]))
            return false;
    }
    return !is_last || w->utf8_left == 0;
}

/* ---- the head of a frame ---- */

static size_t head_bytes(const struct ws *w)
{
    size_t n = 2;

    if (w->head_n < 2)
        return n;
    if ((w->head[1] & 0x7f) == LENGTH_16)
        n += 2;
    if ((w->head[1] & 0x7f) == LENGTH_64)
        n += 8;
    return w->head[1] & MASKED ? n + 4 : n;
}

static uint64_t read_be(const uint8_t *p, size_t n)
{
    uint64_t v = 0;

    while (n--)
        v = v << 8 | *p++;
    return v;
}

/* The first two bytes: what may stand there at all. */
static int judge_start(struct ws *w, struct err *e)
{
    uint8_t opcode = w->head[0] & 0x0f;
    bool is_masked = w->head[1] & MASKED, is_control = opcode >= WS_CLOSE;

    if (w->head[0] & RESERVED)
        return err_set(e, ERR_PROTOCOL, "frame with reserved bits, but no extension was agreed on");
    if ((opcode > WS_BINARY && opcode < WS_CLOSE) || opcode > WS_PONG)
        return err_set(e, ERR_PROTOCOL, "frame with unknown opcode %u", opcode);
    if (is_masked != (w->role == WS_SERVER))
        return err_set(e, ERR_PROTOCOL,
                       is_masked ? "masked frame from a server" : "frame without a mask");
    if (is_control && (!(w->head[0] & FIN) || (w->head[1] & 0x7f) > WS_CONTROL_MAX_BYTES))
        return err_set(e, ERR_PROTOCOL, "control frame that is long or in pieces");
    if (opcode == WS_CONTINUATION && !w->is_in_message)
        return err_set(e, ERR_PROTOCOL, "continuation of no message");
    if ((opcode == WS_TEXT || opcode == WS_BINARY) && w->is_in_message)
        return err_set(e, ERR_PROTOCOL, "new message inside another");
    return 0;
}

static int judge_length(struct ws *w, uint64_t n, struct err *e)
{
    uint8_t coded = w->head[1] & 0x7f;

    if ((coded == LENGTH_16 && n < LENGTH_16) || (coded == LENGTH_64 && n <= UINT16_MAX) ||
        n > INT64_MAX)
        return err_set(e, ERR_PROTOCOL, "frame whose length is not in its shortest form");
    return 0;
}

static void begin_data(struct ws *w, uint8_t opcode)
{
    if (opcode != WS_CONTINUATION) {
        w->opcode = (enum ws_opcode)opcode;
        w->message_bytes = 0;
        w->has_given = false;
        w->utf8_left = 0;
    }
    w->is_final = w->head[0] & FIN;
    w->is_in_message = !w->is_final;
}

/* The head is complete: what follows it? */
static int begin_frame(struct ws *w, struct err *e)
{
    uint8_t coded = w->head[1] & 0x7f, opcode = w->head[0] & 0x0f;
    size_t at = 2, width = coded == LENGTH_16 ? 2 : coded == LENGTH_64 ? 8 : 0;
    uint64_t n = width ? read_be(w->head + at, width) : coded;

    if (judge_length(w, n, e) < 0)
        return refuse(w, WS_PROTOCOL_ERROR);
    if (w->head[1] & MASKED)
        memcpy(w->mask, w->head + at + width, sizeof w->mask);
    w->frame_opcode = opcode;
    w->left = n;
    w->at = 0;
    w->head_n = 0;
    w->control_n = 0;
    w->state = opcode >= WS_CLOSE ? WS_AT_CONTROL : WS_AT_PAYLOAD;
    if (opcode >= WS_CLOSE)
        return 0;
    begin_data(w, opcode);
    if (n > w->message_max || w->message_bytes > w->message_max - n) {
        (void)err_set(e, ERR_LIMIT, "message of more than %llu bytes",
                      (unsigned long long)w->message_max);
        return refuse(w, WS_TOO_BIG);
    }
    w->message_bytes += n;
    return 0;
}

/* 1: complete, 0: more is needed. */
static int take_head(struct ws *w, struct span in, size_t *used, struct err *e)
{
    while (w->head_n < head_bytes(w)) {
        if (*used == in.n)
            return 0;
        w->head[w->head_n++] = in.p[(*used)++];
        if (w->head_n == 2 && judge_start(w, e) < 0)
            return refuse(w, WS_PROTOCOL_ERROR);
    }
    return begin_frame(w, e) < 0 ? -1 : 1;
}

/* ---- payload ---- */

/* `at` is the place in the frame: the mask goes round from there. */
static void unmask(uint8_t *to, struct span from, const uint8_t mask[4], uint64_t at)
{
    uint8_t turned[8];
    uint64_t key, eight;
    size_t i = 0;

    for (unsigned k = 0; k < sizeof turned; k++)
        turned[k] = mask[(at + k) % 4];
    memcpy(&key, turned, sizeof key);
    for (; from.n - i >= sizeof eight; i += sizeof eight) {
        memcpy(&eight, from.p + i, sizeof eight);
        eight ^= key;
        memcpy(to + i, &eight, sizeof eight);
    }
    for (; i < from.n; i++)
        to[i] = from.p[i] ^ turned[i % 4];
}

/* A client's frames are masked and must be copied; a server's stand in the input. */
static int next_piece(struct ws *w, struct span in, struct span *ret, struct err *e)
{
    *ret = span_slice(in, 0, (size_t)MIN(w->left, (uint64_t)WS_PIECE_BYTES));
    if (w->role == WS_CLIENT || ret->n == 0)
        return 0;
    buf_clear(&w->piece);
    if (buf_reserve(&w->piece, ret->n, e) < 0)
        return -1;
    unmask(w->piece.p, *ret, w->mask, w->at);
    buf_grown(&w->piece, ret->n);
    *ret = buf_span(&w->piece);
    return 0;
}

static enum ws_event give(struct ws *w, struct span in, size_t *used, struct span *ret_data,
                          struct err *e)
{
    struct span piece;
    bool is_last;

    if (next_piece(w, span_skip(in, *used), &piece, e) < 0) {
        (void)refuse(w, WS_INTERNAL_ERROR);
        return WS_IS_BAD;
    }
    *used += piece.n;
    w->at += piece.n;
    w->left -= piece.n;
    is_last = w->left == 0 && w->is_final;
    if (w->opcode == WS_TEXT && !is_text(w, piece, is_last)) {
        (void)err_set(e, ERR_PROTOCOL, "text that is not UTF-8");
        (void)refuse(w, WS_BAD_DATA);
        return WS_IS_BAD;
    }
    if (w->left == 0)
        w->state = WS_AT_HEAD;
    if (piece.n == 0 && !is_last)
        return WS_NEED_MORE;
    w->is_first = !w->has_given;
    w->is_last = is_last;
    w->has_given = true;
    *ret_data = piece;
    return WS_GOT_DATA;
}

static bool is_code(uint64_t code)
{
    return (code >= 1000 && code <= 1014 && code != 1004 && code != 1005 && code != 1006) ||
           (code >= 3000 && code <= 4999);
}

static enum ws_event end_close(struct ws *w, struct span *ret_data, struct err *e)
{
    struct span all = span_of(w->control, w->control_n);
    uint64_t code = all.n < 2 ? WS_NO_CODE : read_be(all.p, 2);

    if (all.n == 1 || (all.n && !is_code(code))) {
        (void)err_set(e, ERR_PROTOCOL, "close frame without a proper code");
        (void)refuse(w, WS_PROTOCOL_ERROR);
        return WS_IS_BAD;
    }
    *ret_data = span_skip(all, 2);
    if (!str_utf8_valid(*ret_data)) {
        (void)err_set(e, ERR_PROTOCOL, "close frame whose reason is not UTF-8");
        (void)refuse(w, WS_BAD_DATA);
        return WS_IS_BAD;
    }
    w->close_code = (uint16_t)code;
    w->state = WS_AT_CLOSED;
    buf_done(&w->piece);
    return WS_GOT_CLOSE;
}

static enum ws_event take_control(struct ws *w, struct span in, size_t *used, struct span *ret_data,
                                  struct err *e)
{
    struct span part = span_slice(span_skip(in, *used), 0, (size_t)w->left);

    if (part.n && w->role == WS_SERVER)
        unmask(w->control + w->control_n, part, w->mask, w->at);
    else if (part.n)
        memcpy(w->control + w->control_n, part.p, part.n);
    *used += part.n;
    w->at += part.n;
    w->left -= part.n;
    w->control_n = (uint8_t)(w->control_n + part.n);
    if (w->left)
        return WS_NEED_MORE;
    w->state = WS_AT_HEAD;
    *ret_data = span_of(w->control, w->control_n);
    if (w->frame_opcode == WS_CLOSE)
        return end_close(w, ret_data, e);
    return w->frame_opcode == WS_PING ? WS_GOT_PING : WS_GOT_PONG;
}

enum ws_event ws_feed(struct ws *w, struct span in, size_t *ret_used, struct span *ret_data,
                      struct err *e)
{
    enum ws_event ev;
    int step;

    *ret_used = 0;
    for (;;) {
        switch (w->state) {
        case WS_AT_HEAD:
            if (*ret_used == in.n && w->head_n == 0 && !w->is_in_message)
                buf_done(&w->piece); /* a connection may idle for hours */
            step = take_head(w, in, ret_used, e);
            if (step <= 0)
                return step < 0 ? WS_IS_BAD : WS_NEED_MORE;
            break;
        case WS_AT_PAYLOAD:
            if (*ret_used == in.n && w->left)
                return WS_NEED_MORE;
            ev = give(w, in, ret_used, ret_data, e);
            if (ev != WS_NEED_MORE)
                return ev;
            break;
        case WS_AT_CONTROL:
            ev = take_control(w, in, ret_used, ret_data, e);
            if (ev != WS_NEED_MORE || w->left)
                return ev;
            break;
        case WS_AT_CLOSED:
            *ret_used = in.n;
            return WS_NEED_MORE;
        case WS_AT_BROKEN:
            (void)err_set(e, ERR_PROTOCOL, "the stream of frames is broken");
            return WS_IS_BAD;
        }
    }
}

/* ---- writing ---- */

static int write_head(struct buf *out, const struct ws_frame *f, uint64_t n, struct err *e)
{
    uint8_t head[WS_HEAD_MAX_BYTES];
    size_t at = 2, width = n < LENGTH_16 ? 0 : n <= UINT16_MAX ? 2 : 8;

    head[0] = (uint8_t)(f->opcode | (f->is_partial ? 0 : FIN));
    head[1] = width == 0 ? (uint8_t)n : width == 2 ? LENGTH_16 : LENGTH_64;
    for (size_t i = 0; i < width; i++)
        head[at++] = (uint8_t)(n >> (8 * (width - 1 - i)));
    if (f->mask) {
        head[1] |= MASKED;
        memcpy(head + at, f->mask, 4);
        at += 4;
    }
    return buf_add(out, span_of(head, at), e);
}

int ws_write_head(struct buf *out, enum ws_opcode opcode, uint64_t n, struct err *e)
{
    return write_head(out, &(struct ws_frame){ .opcode = opcode }, n, e);
}

int ws_write(struct buf *out, const struct ws_frame *f, struct span payload, struct err *e)
{
    if (buf_reserve(out, WS_HEAD_MAX_BYTES + payload.n, e) < 0 ||
        write_head(out, f, payload.n, e) < 0)
        return -1;
    if (!f->mask)
        return buf_add(out, payload, e);
    unmask(out->p + out->n, payload, f->mask, 0); /* its own inverse */
    buf_grown(out, payload.n);
    return 0;
}

int ws_write_close(struct buf *out, const uint8_t *mask, uint16_t code, struct span reason,
                   struct err *e)
{
    uint8_t payload[WS_CONTROL_MAX_BYTES] = { (uint8_t)(code >> 8), (uint8_t)code };
    struct span cut = span_slice(reason, 0, REASON_MAX_BYTES);
    size_t n = code == WS_NO_CODE ? 0 : 2;

    if (cut.n < reason.n)
        cut.n -= str_utf8_partial_tail(cut);
    if (n && cut.n && str_utf8_valid(cut)) {
        memcpy(payload + 2, cut.p, cut.n);
        n += cut.n;
    }
    return ws_write(out, &(struct ws_frame){ .opcode = WS_CLOSE, .mask = mask },
                    span_of(payload, n), e);
}
