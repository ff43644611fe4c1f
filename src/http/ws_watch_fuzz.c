/* Any bytes as frames that pass by, cut anywhere: what is seen and what passes does not depend on the cut, but for the part of
 * a head that had passed before its length was known. What our own reader takes passes whole. */
#include "http/ws_watch.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MESSAGE_MAX 3000

static size_t run(struct ws_watch *w, struct span in, size_t step)
{
    size_t passed = 0;

    *w = (struct ws_watch){ .message_max = MESSAGE_MAX };
    for (size_t at = 0; at < in.n; at += step) {
        struct span piece = span_slice(in, at, at + step);
        size_t n = ws_watch_look(w, piece);

        assert(n <= piece.n && (n == piece.n || w->is_too_big));
        passed += n;
        if (n < piece.n) {
            assert(ws_watch_look(w, in) == 0);
            break;
        }
    }
    return passed;
}

/* A stream that ws takes to its end is all let through, and has as many messages. */
static void compare(struct span in, enum ws_role role, const struct ws_watch *seen, size_t passed)
{
    OWN(ws_done) struct ws w;
    uint64_t messages = 0;
    struct span rest = in, piece;
    enum ws_event ev;
    struct err e;
    size_t used;

    ws_init(&w, role, MESSAGE_MAX);
    while ((ev = ws_feed(&w, rest, &used, &piece, &e)) != WS_NEED_MORE) {
        if (ev == WS_IS_BAD || ev == WS_GOT_CLOSE)
            return;
        messages += ev == WS_GOT_DATA && w.is_last;
        rest = span_skip(rest, used);
    }
    assert(passed == in.n && seen->messages == messages && !seen->is_closed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const size_t steps[] = { 1, 2, 7, 100 };
    struct span in = span_of(data, size);
    struct ws_watch whole, cut;
    size_t passed = run(&whole, in, size + 1), n;

    EACH(s, steps) {
        n = run(&cut, in, *s);
        assert(cut.is_too_big == whole.is_too_big && cut.messages == whole.messages &&
               cut.is_closed == whole.is_closed);
        assert(n == passed || (whole.is_too_big && n > passed && !ws_watch_is_between(&cut)));
        assert(n != passed || ws_watch_is_between(&cut) == ws_watch_is_between(&whole));
    }
    compare(in, WS_SERVER, &whole, passed);
    compare(in, WS_CLIENT, &whole, passed);
    return 0;
}
