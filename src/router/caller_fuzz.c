/* Any bytes as what is said of a caller: who is accepted can be told on, and is the same then. */
#include "router/caller.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct caller *c)
{
    OWN(buf_done) struct buf text = BUF_INIT(8 * CALLER_MAX_BYTES), said = BUF_INIT(1 << 20);
    struct caller *again;
    struct json_out out;
    struct err e;

    assert(c->user[0]);
    json_out_init(&out, &text, 0);
    json_out_object_begin(&out);
    caller_write(c, &out);
    json_out_object_end(&out);
    assert(json_out_end(&out, &e) == 0);
    if (text.n > CALLER_MAX_BYTES)
        return; /* a control character has six bytes, however it came */
    assert(caller_parse(buf_span(&text), &again, &e) == 0);
    assert(strcmp(c->user, again->user) == 0);
    caller_free(again);
    assert(caller_say(buf_span(&text), &said, &e) == 0);
    assert(caller_length(said.p) == text.n && said.n == CALLER_PREFACE_BYTES + text.n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct caller *c;
    struct err e;

    if (size >= CALLER_PREFACE_BYTES)
        assert(caller_length(data) <= CALLER_MAX_BYTES);
    if (caller_parse(span_of(data, size), &c, &e) < 0) {
        assert(e.code == ERR_INVALID || e.code == ERR_LIMIT);
        return 0;
    }
    check(c);
    caller_free(c);
    return 0;
}
