/* Any bytes: the words are well formed, and quoting each of them again gives the same words back. */
#include "runtime/exec/pyrepr.h"
#include "runtime/exec/split.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define QUOTED_MAX_BYTES (1024 * 1024)

/* 'it'"'"'s' : what every shell reads back as the same word. */
static int quote(const char *word, struct buf *out, struct err *e)
{
    if (buf_addc(out, '\'', e) < 0)
        return -1;
    for (; *word; word++) {
        if (*word == '\'' ? buf_add(out, SPAN("'\"'\"'"), e) < 0
                          : buf_addc(out, (uint8_t)*word, e) < 0)
            return -1;
    }
    return buf_add(out, SPAN("' "), e);
}

static void read_back(const struct split *s)
{
    OWN(buf_done) struct buf line = BUF_INIT(QUOTED_MAX_BYTES);
    struct split again = { 0 };
    struct err e;

    for (size_t i = 0; i < s->argc; i++) {
        if (quote(s->argv[i], &line, &e) < 0)
            return;
    }
    assert(split_command(buf_span(&line), &again, &e) == 0);
    assert(again.argc == s->argc);
    for (size_t i = 0; i < s->argc; i++)
        assert(strcmp(again.argv[i], s->argv[i]) == 0);
    split_done(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    OWN(buf_done) struct buf text = BUF_INIT(QUOTED_MAX_BYTES);
    struct split s = { 0 };
    struct err e = { 0 };
    size_t bytes = 0;

    if (split_command(span_of(data, size), &s, &e) < 0) {
        assert(e.code == ERR_INVALID || e.code == ERR_LIMIT);
        assert(e.msg[0] && !s.argv);
        return 0;
    }
    assert(s.argc > 0 && s.argc <= size && !s.argv[s.argc]);
    for (size_t i = 0; i < s.argc; i++)
        bytes += strlen(s.argv[i]);
    assert(bytes <= size);
    read_back(&s);
    (void)pyrepr_timeout(s.argv, (double)size / 7, &text, &e);
    split_done(&s);
    return 0;
}
