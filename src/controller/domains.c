#include "controller/domains.h"

#include "base/fd.h"
#include "controller/limits.h"

#include <string.h>

static bool is_end(uint8_t c)
{
    return c == ',' || c == '\n';
}

static bool is_blank(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

int domains_parse(struct span text, struct domains *ret, struct err *e)
{
    struct domains d = { own_array(DOMAINS_MAX + 1, sizeof *d.names), span_dup(text) };
    size_t n = 0, begin = 0;

    for (size_t i = 0; i <= text.n; i++) {
        size_t from = begin, to = i;

        if (i < text.n && !is_end(text.p[i])) {
            if (d.texts[i] >= 'A' && d.texts[i] <= 'Z')
                d.texts[i] = (char)(d.texts[i] - 'A' + 'a');
            continue;
        }
        while (from < to && is_blank(text.p[from]))
            from++;
        while (to > from && is_blank(text.p[to - 1]))
            to--;
        begin = i + 1;
        if (from == to)
            continue;
        if (n == DOMAINS_MAX) {
            domains_done(&d);
            return err_set(e, ERR_LIMIT, "more than %d domains of labels", DOMAINS_MAX);
        }
        d.texts[to] = '\0'; /* there is one behind the last, too */
        d.names[n++] = d.texts + from;
    }
    *ret = d;
    return 0;
}

int domains_read(const char *file, struct domains *ret, struct err *e)
{
    OWN(buf_done) struct buf text = BUF_INIT(DOMAINS_FILE_MAX_BYTES);
    struct domains d;
    struct err why;

    if (fd_read_file(file, &text, &why) < 0) {
        if (why.code == ERR_NOT_FOUND)
            return 0;
        *e = why;
        return -1;
    }
    if (domains_parse(buf_span(&text), &d, e) < 0)
        return err_wrap(e, "'%s'", file);
    if (d.names[0])
        *ret = d;
    else
        domains_done(&d);
    return 0;
}

void domains_done(struct domains *d)
{
    free(d->names);
    free(d->texts);
    *d = (struct domains){ NULL, NULL };
}
