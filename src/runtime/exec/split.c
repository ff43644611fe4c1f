#include "runtime/exec/split.h"

/* Where the reader stands. A backslash remembers what it came from. */
enum split_state {
    SPLIT_BETWEEN, /* no word begun */
    SPLIT_WORD,
    SPLIT_SINGLE,
    SPLIT_DOUBLE,
    SPLIT_ESCAPE,        /* after a backslash outside quotes */
    SPLIT_DOUBLE_ESCAPE, /* after a backslash inside "..." */
};

struct reader {
    enum split_state state;
    char *text; /* the words, each with its NUL */
    size_t n;
    size_t words; /* finished ones */
};

/* Outside quotes: the state after this byte; a byte that belongs to the word is kept. */
static enum split_state outside(struct reader *r, uint8_t c)
{
    switch (c) {
    case ' ':
    case '\t':
    case '\r':
    case '\n':
        if (r->state == SPLIT_WORD) {
            r->text[r->n++] = '\0';
            r->words++;
        }
        return SPLIT_BETWEEN;
    case '\\':
        return SPLIT_ESCAPE;
    case '\'':
        return SPLIT_SINGLE;
    case '"':
        return SPLIT_DOUBLE;
    default:
        r->text[r->n++] = (char)c;
        return SPLIT_WORD;
    }
}

static void feed(struct reader *r, uint8_t c)
{
    switch (r->state) {
    case SPLIT_BETWEEN:
    case SPLIT_WORD:
        r->state = outside(r, c);
        return;
    case SPLIT_SINGLE:
        if (c == '\'')
            r->state = SPLIT_WORD;
        else
            r->text[r->n++] = (char)c;
        return;
    case SPLIT_DOUBLE:
        if (c == '"')
            r->state = SPLIT_WORD;
        else if (c == '\\')
            r->state = SPLIT_DOUBLE_ESCAPE;
        else
            r->text[r->n++] = (char)c;
        return;
    case SPLIT_ESCAPE:
        r->text[r->n++] = (char)c;
        r->state = SPLIT_WORD;
        return;
    case SPLIT_DOUBLE_ESCAPE:
        if (c != '"' && c != '\\')
            r->text[r->n++] = '\\';
        r->text[r->n++] = (char)c;
        r->state = SPLIT_DOUBLE;
        return;
    }
}

static int finish(struct reader *r, struct err *e)
{
    switch (r->state) {
    case SPLIT_SINGLE:
    case SPLIT_DOUBLE:
        return err_set(e, ERR_INVALID, "No closing quotation");
    case SPLIT_ESCAPE:
    case SPLIT_DOUBLE_ESCAPE:
        return err_set(e, ERR_INVALID, "No escaped character");
    case SPLIT_WORD:
        r->text[r->n++] = '\0';
        r->words++;
        break;
    case SPLIT_BETWEEN:
        break;
    }
    return r->words ? 0 : err_set(e, ERR_INVALID, "list index out of range");
}

int split_command(struct span command, struct split *ret, struct err *e)
{
    OWN(buf_done) struct buf text = BUF_INIT(SPLIT_MAX_BYTES);
    struct reader r = { .state = SPLIT_BETWEEN };
    char *at;

    /* A word never takes more bytes than it was written with, but for the NUL of the last one: a backslash
     * that is kept was read, and what ends a word before that was read too. */
    if (buf_reserve(&text, command.n + 1, e) < 0)
        return err_set(e, ERR_LIMIT, "[Errno 7] Argument list too long");
    r.text = (char *)text.p;
    for (size_t i = 0; i < command.n; i++)
        feed(&r, command.p[i]);
    if (finish(&r, e) < 0)
        return -1;
    if (span_find(command, '\0') != SIZE_MAX)
        return err_set(e, ERR_INVALID, "embedded null byte");
    ret->argv = own_array(r.words + 1, sizeof *ret->argv);
    ret->argc = r.words;
    ret->text = (char *)take_ptr(&text.p);
    at = ret->text;
    for (size_t i = 0; i < r.words; i++) {
        ret->argv[i] = at;
        at += strlen(at) + 1;
    }
    return 0;
}

void split_done(struct split *s)
{
    free(s->argv);
    free(s->text);
    *s = (struct split){ 0 };
}
