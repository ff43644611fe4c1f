#include "sandbox/logs.h"

#include "sandbox/limits.h"

void logs_init(struct logs *l, logs_fn each, void *ctx)
{
    *l = (struct logs){ .each = each, .ctx = ctx };
    l->held.max = SANDBOX_LOG_ENTRY_MAX_BYTES;
}

void logs_done(struct logs *l)
{
    buf_done(&l->held);
}

static bool cut_word(struct span *rest, struct span *ret)
{
    return span_cut(rest, ' ', ret) && ret->n;
}

/* "TIME stdout|stderr F|P[:more tags] text", where the text may be empty or hold blanks. */
static bool read_entry(struct span line, struct logs_entry *ret)
{
    struct span stream, tag;
    bool is_out;

    if (!cut_word(&line, &ret->time) || !cut_word(&line, &stream) || !cut_word(&line, &tag))
        return false;
    is_out = span_is(stream, "stdout");
    if ((!is_out && !span_is(stream, "stderr")) || (tag.p[0] != 'F' && tag.p[0] != 'P') ||
        (tag.n > 1 && tag.p[1] != ':'))
        return false;
    ret->stream = is_out ? SANDBOX_STDOUT : SANDBOX_STDERR;
    ret->is_end = tag.p[0] == 'F';
    ret->text = line;
    return true;
}

static void take_line(struct logs *l, struct span line)
{
    struct logs_entry entry;

    if (read_entry(line, &entry))
        l->each(l->ctx, &entry);
    else
        l->bad++;
}

static void hold(struct logs *l, struct span piece)
{
    struct err e;

    if (!l->is_too_long && buf_add(&l->held, piece, &e) < 0)
        l->is_too_long = true;
}

void logs_feed(struct logs *l, struct span bytes)
{
    while (bytes.n) {
        size_t end = span_find(bytes, '\n');
        struct span line = span_slice(bytes, 0, end);

        hold(l, line); /* an entry that is too long is passed over however the file was cut */
        if (end == SIZE_MAX)
            return;
        if (l->is_too_long)
            l->bad++;
        else
            take_line(l, buf_span(&l->held));
        buf_clear(&l->held);
        l->is_too_long = false;
        bytes = span_skip(bytes, end + 1);
    }
}

void logs_end(struct logs *l)
{
    if (l->held.n || l->is_too_long)
        l->bad++;
    buf_clear(&l->held);
    l->is_too_long = false;
}
