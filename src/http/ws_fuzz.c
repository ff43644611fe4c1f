/* Any bytes as frames, to a server and to a client, cut anywhere: every feed makes progress, messages and verdict do not
 * depend on the cut, and what was read, written again, reads the same. */
#include "http/ws.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MESSAGE_MAX 5000

struct answer {
    struct buf log; /* what was read, as the frames of a server: borders count */
    enum ws_event last;
    enum err_code code;
    uint16_t close_code;
};

static void add(struct answer *a, enum ws_opcode opcode, struct span payload)
{
    struct err e;

    if (ws_write(&a->log, &(struct ws_frame){ .opcode = opcode }, payload, &e) < 0)
        abort();
}

static void on_event(struct answer *a, const struct ws *w, struct buf *msg, struct span data)
{
    struct err e;

    switch (a->last) {
    case WS_NEED_MORE:
    case WS_IS_BAD:
        return;
    case WS_GOT_DATA:
        assert(data.n > 0 || w->is_last);
        if (w->is_first)
            buf_clear(msg);
        if (buf_add(msg, data, &e) < 0)
            abort(); /* the ceiling did not hold */
        if (w->is_last)
            add(a, w->opcode, buf_span(msg));
        return;
    case WS_GOT_PING:
        add(a, WS_PING, data);
        return;
    case WS_GOT_PONG:
        add(a, WS_PONG, data);
        return;
    case WS_GOT_CLOSE:
        if (ws_write_close(&a->log, NULL, w->close_code, data, &e) < 0)
            abort();
        return;
    }
}

static void run(enum ws_role role, struct span in, size_t step, struct answer *a)
{
    OWN(ws_done) struct ws w;
    OWN(buf_done) struct buf msg = BUF_INIT(MESSAGE_MAX);
    struct err e = { 0 };

    *a = (struct answer){ .log = BUF_INIT(16 << 20), .last = WS_NEED_MORE };
    ws_init(&w, role, MESSAGE_MAX);
    while (in.n > 0 && a->last != WS_IS_BAD) {
        struct span piece = span_slice(in, 0, step), data = SPAN_NONE;
        size_t used = SIZE_MAX;

        a->last = ws_feed(&w, piece, &used, &data, &e);
        assert(used <= piece.n && (used > 0 || a->last == WS_IS_BAD || a->last == WS_GOT_DATA));
        assert(a->last != WS_NEED_MORE || used == piece.n);
        on_event(a, &w, &msg, data);
        in = span_skip(in, used);
    }
    a->close_code = w.close_code;
    a->code = a->last == WS_IS_BAD ? e.code : ERR_NONE;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct answer whole, cut, again;
    enum ws_role role;
    struct span in;

    if (size < 1)
        return 0;
    role = data[0] & 1 ? WS_CLIENT : WS_SERVER;
    in = span_of(data + 1, size - 1);
    run(role, in, SIZE_MAX, &whole);
    run(role, in, 1 + data[0] / 2, &cut);
    assert((whole.last == WS_IS_BAD) == (cut.last == WS_IS_BAD) && whole.code == cut.code);
    assert(whole.close_code == cut.close_code);
    assert(span_eq(buf_span(&whole.log), buf_span(&cut.log)));
    run(WS_CLIENT, buf_span(&whole.log), SIZE_MAX, &again);
    assert(again.last != WS_IS_BAD && span_eq(buf_span(&whole.log), buf_span(&again.log)));
    buf_done(&whole.log);
    buf_done(&cut.log);
    buf_done(&again.log);
    return 0;
}
