#include "proto/talk.h"

#include "base/str.h"

#define LENGTH_MAX       0xffffff
#define START_HEAD_BYTES 13 /* flags, columns, rows, how many arguments, how many variables */
#define START_TTY        1
#define START_CWD        2

static const struct rule {
    enum talk_side from;
    uint32_t min, max; /* of the bytes behind the head */
} rules[] = {
    [TALK_START] = { TALK_OWNER, START_HEAD_BYTES, TALK_START_MAX_BYTES },
    [TALK_INPUT] = { TALK_OWNER, 1, TALK_INPUT_MAX_BYTES },
    [TALK_END] = { TALK_OWNER, 0, 0 },
    [TALK_SIGNAL] = { TALK_OWNER, 1, 1 },
    [TALK_RESIZE] = { TALK_OWNER, 4, 4 },
    [TALK_CREDIT] = { TALK_OWNER, 4, 4 },
    [TALK_CANCEL] = { TALK_OWNER, 0, 0 },
    [TALK_STARTED] = { TALK_PID1, 0, 0 },
    [TALK_OUT] = { TALK_PID1, 1, TALK_PIECE_MAX_BYTES },
    [TALK_ERR] = { TALK_PID1, 1, TALK_PIECE_MAX_BYTES },
    [TALK_TAKEN] = { TALK_PID1, 0, 0 },
    [TALK_SHUT] = { TALK_PID1, 0, 0 },
    [TALK_EXIT] = { TALK_PID1, 1, 1 },
    [TALK_FAILED] = { TALK_PID1, 1, 1 + TALK_WORDS_MAX_BYTES },
};

static uint32_t read_be(const uint8_t *p, size_t n)
{
    uint32_t v = 0;

    while (n--)
        v = v << 8 | *p++;
    return v;
}

static void write_be(uint8_t *p, uint32_t v, size_t n)
{
    while (n--) {
        p[n] = (uint8_t)v;
        v >>= 8;
    }
}

/* ---- frames ---- */

void talk_init(struct talk *t, enum talk_side from)
{
    *t = (struct talk){ .from = from, .part = BUF_INIT(TALK_HEAD_BYTES + TALK_START_MAX_BYTES) };
}

void talk_done(struct talk *t)
{
    buf_done(&t->part);
}

/* The length of the whole frame, or 0: a head that cannot be. */
static size_t judge(const struct talk *t, const uint8_t *head, struct err *e)
{
    uint8_t kind = head[0];
    uint32_t n = read_be(head + 1, 3);

    if (kind < TALK_START || kind >= LEN(rules) || rules[kind].from != t->from) {
        (void)err_set(e, ERR_PROTOCOL, "no frame is of kind %u", kind);
        return 0;
    }
    if (n < rules[kind].min || n > rules[kind].max) {
        (void)err_set(e, ERR_PROTOCOL, "a frame of kind %u with %u bytes", kind, n);
        return 0;
    }
    return TALK_HEAD_BYTES + n;
}

static struct talk_frame frame_of(const uint8_t *p, size_t n)
{
    return (struct talk_frame){ (enum talk_kind)p[0], read_be(p + 4, 4),
                                span_of(p + TALK_HEAD_BYTES, n - TALK_HEAD_BYTES) };
}

/* Adds to the part what is missing of its first n bytes. True when they are there. */
static bool gather(struct talk *t, struct span in, size_t n, size_t *used)
{
    struct span piece = span_slice(in, *used, in.n);
    struct err e;

    if (t->part.n < n) {
        piece = span_slice(piece, 0, n - t->part.n);
        (void)buf_add(&t->part, piece, &e); /* fits: a judged length, or a head */
        *used += piece.n;
    }
    return t->part.n >= n;
}

enum feed talk_feed(struct talk *t, struct span in, size_t *ret_used, struct talk_frame *ret,
                    struct err *e)
{
    size_t used = 0, n;

    *ret_used = 0;
    if (t->is_broken) {
        (void)err_set(e, ERR_PROTOCOL, "the stream is broken");
        return FEED_BAD;
    }
    if (t->part.n >= TALK_HEAD_BYTES && t->part.n == TALK_HEAD_BYTES + read_be(t->part.p + 1, 3))
        buf_clear(&t->part); /* the caller is done with the one before */
    if (t->part.n == 0 && in.n >= TALK_HEAD_BYTES) {
        n = judge(t, in.p, e);
        if (n && in.n >= n) { /* the usual case: nothing is copied */
            buf_done(&t->part);
            *ret = frame_of(in.p, n);
            *ret_used = n;
            return FEED_DONE;
        }
    } else {
        if (!gather(t, in, TALK_HEAD_BYTES, &used)) {
            *ret_used = used;
            return FEED_MORE;
        }
        n = judge(t, t->part.p, e);
    }
    if (!n) {
        t->is_broken = true;
        return FEED_BAD;
    }
    if (!gather(t, in, n, &used)) {
        *ret_used = used;
        return FEED_MORE;
    }
    *ret = frame_of(t->part.p, n);
    *ret_used = used;
    return FEED_DONE;
}

static int add_head(struct buf *out, enum talk_kind kind, uint32_t call, size_t n, struct err *e)
{
    uint8_t head[TALK_HEAD_BYTES] = { (uint8_t)kind };

    assert(n >= rules[kind].min && n <= rules[kind].max && n <= LENGTH_MAX);
    if (buf_reserve(out, sizeof head + n, e) < 0)
        return -1;
    write_be(head + 1, (uint32_t)n, 3);
    write_be(head + 4, call, 4);
    return buf_add(out, span_of(head, sizeof head), e);
}

int talk_add(struct buf *out, enum talk_kind kind, uint32_t call, struct span bytes, struct err *e)
{
    if (add_head(out, kind, call, bytes.n, e) < 0)
        return -1;
    return buf_add(out, bytes, e);
}

int talk_add_number(struct buf *out, enum talk_kind kind, uint32_t call, uint32_t number,
                    struct err *e)
{
    uint8_t bytes[4];

    assert(rules[kind].min == rules[kind].max && rules[kind].max <= sizeof bytes);
    write_be(bytes, number, rules[kind].max);
    return talk_add(out, kind, call, span_of(bytes, rules[kind].max), e);
}

uint32_t talk_number(const struct talk_frame *f)
{
    return read_be(f->bytes.p, MIN(f->bytes.n, sizeof(uint32_t)));
}

/* ---- START ---- */

static int check_text(const char *what, const char *text, struct err *e)
{
    if (!str_utf8_valid(span_cstr(text)))
        return err_set(e, ERR_INVALID, "%s is not UTF-8", what);
    return 0;
}

static int check_var(const char *var, struct err *e)
{
    const char *eq = strchr(var, '=');

    if (!eq || eq == var)
        return err_set(e, ERR_INVALID, "a variable is NAME=value, not '%s'", var);
    return check_text("a variable", var, e);
}

/* What START takes behind its head, or 0 with *e. */
static size_t check_start(const struct talk_start *s, struct err *e)
{
    size_t n = START_HEAD_BYTES + (s->cwd ? strlen(s->cwd) + 1 : 0);

    if (!s->argc)
        return (void)err_set(e, ERR_INVALID, "no command"), 0;
    if (s->argc + s->env_count > TALK_TEXTS_MAX)
        return (void)err_set(e, ERR_LIMIT, "more than %d arguments and variables", TALK_TEXTS_MAX),
               0;
    if (s->cwd && check_text("the working directory", s->cwd, e) < 0)
        return 0;
    for (size_t i = 0; i < s->argc; i++) {
        if (check_text("an argument of the command", s->argv[i], e) < 0)
            return 0;
        n += strlen(s->argv[i]) + 1;
    }
    for (size_t i = 0; i < s->env_count; i++) {
        if (check_var(s->env[i], e) < 0)
            return 0;
        n += strlen(s->env[i]) + 1;
    }
    if (n > TALK_START_MAX_BYTES)
        return (void)err_set(e, ERR_LIMIT, "a command of %zu bytes; at most %d", n,
                             TALK_START_MAX_BYTES),
               0;
    return n;
}

/* With its NUL. There is room: add_head saw to it. */
static void add_text(struct buf *out, const char *text)
{
    struct err e;

    /* Fits. */
    (void)buf_add(out, span_of(text, strlen(text) + 1), &e);
}

int talk_add_start(struct buf *out, uint32_t call, const struct talk_start *s, struct err *e)
{
    uint8_t head[START_HEAD_BYTES];
    size_t n = check_start(s, e);

    if (!n || add_head(out, TALK_START, call, n, e) < 0)
        return -1;
    head[0] = (uint8_t)((s->has_tty ? START_TTY : 0) | (s->cwd ? START_CWD : 0));
    write_be(head + 1, s->cols, 2);
    write_be(head + 3, s->rows, 2);
    write_be(head + 5, (uint32_t)s->argc, 4);
    write_be(head + 9, (uint32_t)s->env_count, 4);
    /* Fits: add_head made room for all. */
    (void)buf_add(out, span_of(head, sizeof head), e);
    if (s->cwd)
        add_text(out, s->cwd);
    for (size_t i = 0; i < s->argc; i++)
        add_text(out, s->argv[i]);
    for (size_t i = 0; i < s->env_count; i++)
        add_text(out, s->env[i]);
    return 0;
}

/* Cuts the next text off [*at, end). NULL: there is none. */
static char *next_text(char **at, const char *end)
{
    char *text = *at;
    char *nul = text < end ? memchr(text, '\0', (size_t)(end - text)) : NULL;

    if (!nul)
        return NULL;
    *at = nul + 1;
    return text;
}

static int read_texts(struct talk_start *s, bool has_cwd, const char *end, struct err *e)
{
    char *at = s->text;

    if (has_cwd && !(s->cwd = next_text(&at, end)))
        return err_set(e, ERR_PROTOCOL, "the directory is missing");
    for (size_t i = 0; i < s->argc; i++)
        if (!(s->argv[i] = next_text(&at, end)))
            return err_set(e, ERR_PROTOCOL, "an argument is missing");
    for (size_t i = 0; i < s->env_count; i++)
        if (!(s->env[i] = next_text(&at, end)))
            return err_set(e, ERR_PROTOCOL, "a variable is missing");
    if (at != end)
        return err_set(e, ERR_PROTOCOL, "bytes behind the last text");
    if (check_start(s, e) == 0) {
        e->code = ERR_PROTOCOL;
        return -1;
    }
    return 0;
}

int talk_read_start(struct span bytes, struct talk_start *ret, struct err *e)
{
    struct talk_start s = { 0 };
    uint64_t argc, env_count;

    if (bytes.n < START_HEAD_BYTES)
        return err_set(e, ERR_PROTOCOL, "a start of %zu bytes", bytes.n);
    argc = read_be(bytes.p + 5, 4);
    env_count = read_be(bytes.p + 9, 4);
    if (bytes.p[0] & ~(START_TTY | START_CWD))
        return err_set(e, ERR_PROTOCOL, "a start with unknown flags");
    if (!argc || argc + env_count > TALK_TEXTS_MAX)
        return err_set(e, ERR_PROTOCOL, "a start with %llu arguments and %llu variables",
                       (unsigned long long)argc, (unsigned long long)env_count);
    s.has_tty = bytes.p[0] & START_TTY;
    s.cols = (uint16_t)read_be(bytes.p + 1, 2);
    s.rows = (uint16_t)read_be(bytes.p + 3, 2);
    s.argc = argc;
    s.env_count = env_count;
    s.argv = own_array(argc + 1 + env_count + 1, sizeof *s.argv);
    s.env = s.argv + argc + 1;
    s.text = span_dup(span_skip(bytes, START_HEAD_BYTES));
    if (read_texts(&s, bytes.p[0] & START_CWD, s.text + bytes.n - START_HEAD_BYTES, e) < 0) {
        talk_start_done(&s);
        return -1;
    }
    *ret = s;
    return 0;
}

void talk_start_done(struct talk_start *start)
{
    free(take_ptr(&start->argv)); /* env stands behind it */
    free(take_ptr(&start->text));
}
