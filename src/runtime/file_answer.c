#include "runtime/file_answer.h"

#include "base/time.h"
#include "http/range.h"

/* Content may contain it only by malice against oneself */
#define MULTI_BOUNDARY "silica-byteranges-7c1f0e9d52ab"
/* Several ranges are put together in memory; more than this gets the whole file */
#define MULTI_MAX_BYTES (8 * 1024 * 1024)

static bool date_is(struct span value, time_t *ret)
{
    char text[TIME_TEXT_BYTES];

    if (!value.p || value.n >= sizeof text)
        return false;
    memcpy(text, value.p, value.n);
    text[value.n] = '\0';
    return time_http_parse(text, ret);
}

/* 304, 412, or 0 to go on (RFC 9110 13.2.2, for dates and tags). */
static int judge_conditions(const struct http_exchange *x, const struct file_read *file)
{
    struct span none = http_field(x, "if-none-match"), match = http_field(x, "if-match");
    bool has_tag = file->etag[0] != '\0';
    time_t date;

    if (match.p && !span_is(match, "*") &&
        !(has_tag && span_find_str(match, span_cstr(file->etag)) != SIZE_MAX))
        return 412;
    if (!match.p && date_is(http_field(x, "if-unmodified-since"), &date) &&
        file->st.st_mtime > date)
        return 412;
    if (none.p)
        return span_is(none, "*") ||
                       (has_tag && span_find_str(none, span_cstr(file->etag)) != SIZE_MAX)
                   ? 304
                   : 0;
    if (date_is(http_field(x, "if-modified-since"), &date) && file->st.st_mtime <= date)
        return 304;
    return 0;
}

/* If-Range: the ranges count only while the file is the one the client knows. */
static struct span wanted_ranges(const struct http_exchange *x, const struct file_read *file)
{
    struct span known = http_field(x, "if-range");
    time_t date;

    if (!known.p || (file->etag[0] && span_is(known, file->etag)) ||
        (date_is(known, &date) && date == file->st.st_mtime))
        return http_field(x, "range");
    return SPAN_NONE;
}

static void answer_unsatisfiable(struct http_exchange *x, uint64_t size, bool has_range)
{
    OWN(buf_done) struct buf text = BUF_INIT(128);
    struct err e;

    if (has_range && http_range_write_none(&text, size, &e) == 0)
        http_answer_field(x, "content-range", buf_span(&text));
    http_answer(x, 416, "text/plain; charset=utf-8", SPAN("invalid range: failed to overlap\n"));
}

static void answer_one(struct http_exchange *x, struct file_read *file, struct http_range r)
{
    OWN(buf_done) struct buf text = BUF_INIT(128);
    struct err e;

    (void)http_range_write(&text, r, (uint64_t)file->st.st_size, &e);
    http_answer_field(x, "content-type", SPAN("application/octet-stream"));
    http_answer_field(x, "content-range", buf_span(&text));
    http_answer_begin(x, 206, r.length);
    http_answer_file(x, take_fd(&file->fd), r.start, r.length);
    http_answer_end(x, NULL);
}

/* Small pieces, so they are read here: a page cache hit each, as the file was just opened. */
static bool answer_several(struct http_exchange *x, struct file_read *file,
                           const struct http_ranges *ranges)
{
    const struct http_byteranges how = { MULTI_BOUNDARY, "application/octet-stream",
                                         (uint64_t)file->st.st_size };
    OWN(buf_done) struct buf body = BUF_INIT(MULTI_MAX_BYTES);
    struct err e;

    for (size_t i = 0; i < ranges->n; i++) {
        const struct http_range *r = &ranges->v[i];

        if (http_range_write_part(&body, &how, *r, &e) < 0 ||
            buf_reserve(&body, r->length, &e) < 0 ||
            pread(file->fd, body.p + body.n, r->length, (off_t)r->start) != (ssize_t)r->length)
            return false;
        buf_grown(&body, r->length);
        if (buf_add(&body, SPAN("\r\n"), &e) < 0)
            return false;
    }
    if (http_range_write_end(&body, &how, &e) < 0)
        return false;
    http_answer(x, 206, "multipart/byteranges; boundary=" MULTI_BOUNDARY, buf_span(&body));
    return true;
}

void file_answer(struct http_exchange *x, struct file_read *file)
{
    enum http_range_rules rules =
        file->etag[0] && span_starts(http_path(x), "/v1/") ? HTTP_RANGE_GO : HTTP_RANGE_STARLETTE;
    uint64_t size = (uint64_t)file->st.st_size;
    int condition = judge_conditions(x, file);
    char text[TIME_TEXT_BYTES];
    struct http_ranges ranges = { 0 };

    http_answer_field(x, "last-modified", span_cstr(time_http(text, file->st.st_mtime)));
    http_answer_field(x, "accept-ranges", SPAN("bytes"));
    if (condition) {
        http_answer(x, condition, NULL, SPAN_NONE);
        return;
    }
    switch (http_range_parse(wanted_ranges(x, file), size, rules, &ranges)) {
    case HTTP_RANGE_MALFORMED:
        if (rules == HTTP_RANGE_GO)
            answer_unsatisfiable(x, size, false);
        else
            http_answer(x, 400, "text/plain; charset=utf-8", SPAN("Malformed range header."));
        return;
    case HTTP_RANGE_UNSATISFIABLE:
        answer_unsatisfiable(x, size, true);
        return;
    case HTTP_RANGE_PARTIAL:
        if (ranges.n == 1) {
            answer_one(x, file, ranges.v[0]);
            return;
        }
        if (answer_several(x, file, &ranges))
            return;
        break;
    case HTTP_RANGE_WHOLE:
        break;
    }
    http_answer_field(x, "content-type", SPAN("application/octet-stream"));
    http_answer_begin(x, 200, size);
    http_answer_file(x, take_fd(&file->fd), 0, size);
    http_answer_end(x, NULL);
}
