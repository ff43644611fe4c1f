#include "runtime/files/file_ere.h"
#include "runtime/files/file_ere_program.h"
#include "base/str.h"

int file_ere_new(struct span pattern, bool ignore_case, struct file_ere **ret, struct err *e)
{
    struct file_ere *r;

    if (pattern.n > FILE_ERE_MAX_BYTES)
        return err_set(e, ERR_LIMIT, "a pattern of %zu bytes; at most %d", pattern.n,
                       FILE_ERE_MAX_BYTES);
    r = NEW(struct file_ere);
    r->steps = own_array(FILE_ERE_MAX_STEPS + 1, sizeof *r->steps);
    r->ignore_case = ignore_case;
    if (file_ere_parse(r, pattern, e) < 0) {
        file_ere_free(r);
        return -1;
    }
    r->steps[r->n++].op = OP_MATCH;
    r->now.at = own_array(r->n, sizeof *r->now.at);
    r->now.mark = own_array(r->n, sizeof *r->now.mark);
    r->next.at = own_array(r->n, sizeof *r->next.at);
    r->next.mark = own_array(r->n, sizeof *r->next.mark);
    r->todo = own_array(2 * r->n + 2, sizeof *r->todo);
    *ret = r;
    return 0;
}

void file_ere_free(struct file_ere *r)
{
    if (!r)
        return;
    free(r->steps);
    free(r->sets);
    free(r->now.at);
    free(r->now.mark);
    free(r->next.at);
    free(r->next.mark);
    free(r->todo);
    free(r);
}

uint32_t file_ere_decode(struct span s, size_t *ret_n)
{
    static const uint8_t lead_mask[5] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
    size_t need, n;
    uint32_t c;

    *ret_n = 1;
    if (s.p[0] < 0x80)
        return s.p[0];
    n = str_utf8_len(s, &need);
    if (!n)
        return 0x110000 + s.p[0];
    *ret_n = n;
    c = s.p[0] & lead_mask[n];
    for (size_t i = 1; i < n; i++)
        c = c << 6 | (s.p[i] & 0x3f);
    return c;
}

uint32_t file_ere_fold(const struct file_ere *r, uint32_t c)
{
    return r->ignore_case && c >= 'A' && c <= 'Z' ? c | 0x20 : c;
}

static bool set_has(const struct file_ere *r, const struct set *s, uint32_t c)
{
    bool found = false;

    for (size_t i = 0; i < s->n && !found; i++)
        found = s->ranges[i].low <= c && c <= s->ranges[i].high;
    if (!found && r->ignore_case && c < 0x80 && ((c | 0x20) >= 'a' && (c | 0x20) <= 'z'))
        for (size_t i = 0; i < s->n && !found; i++)
            found = s->ranges[i].low <= (c ^ 0x20) && (c ^ 0x20) <= s->ranges[i].high;
    return found != s->is_negated;
}

static bool is_word(struct span line, size_t at)
{
    uint8_t c = at < line.n ? line.p[at] : ' ';

    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '_' ||
           c >= 0x80;
}

/* Whether a step that takes no character lets a thread pass between at-1 and at. */
static bool passes(const struct step *step, struct span line, size_t at)
{
    bool is_edge = (at > 0 && is_word(line, at - 1)) != is_word(line, at);

    switch (step->op) {
    case OP_START:
        return at == 0;
    case OP_END:
        return at == line.n;
    case OP_WORD_EDGE:
        return is_edge;
    case OP_NOT_WORD_EDGE:
        return !is_edge;
    case OP_CHAR:
    case OP_ANY:
    case OP_SET:
    case OP_SPLIT:
    case OP_JUMP:
    case OP_MATCH:
        break;
    }
    return false;
}

/* Adds the step and all that is reached from it without a character. True when that includes the match. */
static bool add(struct file_ere *r, struct threads *t, uint32_t first, struct span line, size_t at)
{
    size_t todo_n = 0;

    r->todo[todo_n++] = first;
    while (todo_n) {
        uint32_t i = r->todo[--todo_n];
        const struct step *step = &r->steps[i];

        if (t->mark[i] == t->turn)
            continue;
        t->mark[i] = t->turn;
        switch (step->op) {
        case OP_MATCH:
            return true;
        case OP_JUMP:
            r->todo[todo_n++] = i + (uint32_t)step->to;
            break;
        case OP_SPLIT:
            r->todo[todo_n++] = i + (uint32_t)step->to;
            r->todo[todo_n++] = i + 1;
            break;
        case OP_START:
        case OP_END:
        case OP_WORD_EDGE:
        case OP_NOT_WORD_EDGE:
            if (passes(step, line, at))
                r->todo[todo_n++] = i + 1;
            break;
        case OP_CHAR:
        case OP_ANY:
        case OP_SET:
            t->at[t->n++] = i;
            break;
        }
    }
    return false;
}

static void start_turn(struct file_ere *r, struct threads *t)
{
    t->n = 0;
    if (++t->turn == 0) { /* wrapped after 4 G characters: old marks would look new */
        memset(t->mark, 0, r->n * sizeof *t->mark);
        t->turn = 1;
    }
}

bool file_ere_matches(struct file_ere *r, struct span line)
{
    size_t at = 0, n;

    start_turn(r, &r->now);
    for (;; at += n) {
        struct threads swap;
        uint32_t c;

        if (add(r, &r->now, 0, line, at)) /* a match may start anywhere */
            return true;
        if (at == line.n)
            return false;
        c = file_ere_decode(span_skip(line, at), &n);
        start_turn(r, &r->next);
        for (size_t i = 0; i < r->now.n; i++) {
            const struct step *step = &r->steps[r->now.at[i]];

            if (step->op == OP_CHAR ? step->arg != file_ere_fold(r, c)
                                    : step->op == OP_SET && !set_has(r, &r->sets[step->arg], c))
                continue;
            if (add(r, &r->next, r->now.at[i] + 1, line, at + n))
                return true;
        }
        swap = r->now;
        r->now = r->next;
        r->next = swap;
    }
}
