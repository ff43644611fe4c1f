#include "podstream/log_filter.h"

#include <string.h>

void log_filter_init(struct log_filter *f, const struct pod_log_wish *wish, uint64_t skip)
{
    *f = (struct log_filter){ .wish = wish, .skip = skip, .left = wish->limit };
}

bool log_filter_is_full(const struct log_filter *f)
{
    return f->left == 0;
}

/* Both in UTC, with any number of digits behind the second: without their Z they stand in the order of texts. */
static bool is_before(struct span a, struct span b)
{
    int order;

    a = span_slice(a, 0, a.n - MIN(a.n, (size_t)1));
    b = span_slice(b, 0, b.n - MIN(b.n, (size_t)1));
    order = memcmp(a.p, b.p, MIN(a.n, b.n));
    return order < 0 || (order == 0 && a.n < b.n);
}

static bool is_wanted(const struct log_filter *f, const struct log_entry *entry)
{
    const struct pod_log_wish *wish = f->wish;

    if (wish->streams != POD_STREAMS_ALL &&
        (wish->streams == POD_STREAMS_STDOUT) != (entry->stream == POD_STDOUT))
        return false;
    return !*wish->since || !entry->time.n || !is_before(entry->time, span_cstr(wish->since));
}

static void add(struct log_filter *f, struct span bytes, struct buf *out)
{
    bytes = span_slice(bytes, 0, (size_t)MIN((uint64_t)bytes.n, f->left));
    f->left -= f->left == UINT64_MAX ? 0 : bytes.n;
    (void)buf_add_capped(out, bytes);
}

void log_filter_add(struct log_filter *f, const struct log_entry *entry, struct buf *out)
{
    if (f->skip) {
        f->skip -= entry->is_end;
        return;
    }
    if (!is_wanted(f, entry))
        return;
    if (f->wish->has_times && !f->is_inside_line[entry->stream]) {
        add(f, entry->time, out);
        add(f, SPAN(" "), out);
    }
    add(f, entry->text, out);
    if (entry->is_end)
        add(f, SPAN("\n"), out);
    f->is_inside_line[entry->stream] = !entry->is_end;
}
