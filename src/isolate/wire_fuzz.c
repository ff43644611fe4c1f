/* The texts of the data directory and of the keeper's socket. What was read and is written again reads the same. */
#include "isolate/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_ask(struct span text)
{
    OWN(buf_done) struct buf packet = BUF_INIT(WIRE_MAX_BYTES);
    struct wire_ask ask, again;
    struct err e;

    if (wire_read_ask(text, &ask, &e) < 0)
        return;
    if (ask.op == WIRE_CREATE && wire_write_create(&ask.spec, &packet, &e) == 0) {
        assert(wire_read_ask(buf_span(&packet), &again, &e) == 0);
        assert(strcmp(ask.name, again.name) == 0 && ask.spec.is_kept == again.spec.is_kept);
        assert(ask.spec.box.bind_count == again.spec.box.bind_count);
        wire_ask_done(&again);
    }
    wire_ask_done(&ask);
}

static void try_answer(struct span text)
{
    OWN(buf_done) struct buf packet = BUF_INIT(WIRE_MAX_BYTES);
    struct wire_answer a, again;
    struct err e;

    if (wire_read_answer(text, &a, &e) < 0 || wire_write_answer(&a, &packet, &e) < 0)
        return;
    assert(wire_read_answer(buf_span(&packet), &again, &e) == 0);
    assert(a.is_error == again.is_error && a.has_exit == again.has_exit);
    assert(!a.has_exit || a.exit.code == again.exit.code);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span text = span_of(data, size);
    struct state_run run;
    struct state_exit x;
    struct err e;

    try_ask(text);
    try_answer(text);
    if (state_parse_run(text, "fuzz", &run, &e) == 0)
        assert(run.box.pid > 0);
    if (state_parse_exit(text, &x, &e) == 0)
        assert(x.code >= 0 && x.code <= 255);
    return 0;
}
