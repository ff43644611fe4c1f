/* Any bytes as an ask and as an answer: what is accepted can be said again, and is the same then. */
#include "net/inside.h"

#include <string.h>
#include <sys/socket.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_ask(struct span text)
{
    OWN(buf_done) struct buf said = BUF_INIT(INSIDE_ASK_MAX_BYTES);
    struct inside_ask ask, again;
    struct err e;

    if (inside_ask_read(text, &ask, &e) < 0) {
        assert(e.code == ERR_INVALID || e.code == ERR_LIMIT);
        return;
    }
    assert(ask.count >= 1 && ask.count <= INSIDE_COUNT_MAX && ask.pod[0]);
    assert(ask.family == AF_INET || ask.family == AF_INET6);
    assert(inside_ask_write(&ask, &said, &e) == 0);
    assert(inside_ask_read(buf_span(&said), &again, &e) == 0);
    assert(ask.id == again.id && ask.family == again.family && ask.count == again.count);
    assert(strcmp(ask.pod, again.pod) == 0);
}

static void try_answer(struct span text)
{
    OWN(buf_done) struct buf said = BUF_INIT(8 * INSIDE_ANSWER_MAX_BYTES);
    struct inside_answer answer, again;
    struct err e;

    if (inside_answer_read(text, &answer, &e) < 0) {
        assert(e.code == ERR_INVALID || e.code == ERR_LIMIT);
        return;
    }
    assert(!answer.is_unknown || answer.error[0]);
    assert(inside_answer_write(&answer, &said, &e) == 0);
    if (said.n > INSIDE_ANSWER_MAX_BYTES)
        return; /* a control character has six bytes, however it came */
    if (inside_answer_read(buf_span(&said), &again, &e) < 0)
        return; /* a character was cut in two */
    assert(answer.id == again.id && answer.is_unknown == again.is_unknown);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try_ask(span_of(data, size));
    try_answer(span_of(data, size));
    return 0;
}
