#include "http/http1.h"

/* clang-format off */
static const char *const reasons[] = {
    [100] = "Continue",
    [101] = "Switching Protocols",
    [103] = "Early Hints",
    [200] = "OK",
    [201] = "Created",
    [202] = "Accepted",
    [203] = "Non-Authoritative Information",
    [204] = "No Content",
    [205] = "Reset Content",
    [206] = "Partial Content",
    [300] = "Multiple Choices",
    [301] = "Moved Permanently",
    [302] = "Found",
    [303] = "See Other",
    [304] = "Not Modified",
    [307] = "Temporary Redirect",
    [308] = "Permanent Redirect",
    [400] = "Bad Request",
    [401] = "Unauthorized",
    [402] = "Payment Required",
    [403] = "Forbidden",
    [404] = "Not Found",
    [405] = "Method Not Allowed",
    [406] = "Not Acceptable",
    [407] = "Proxy Authentication Required",
    [408] = "Request Timeout",
    [409] = "Conflict",
    [410] = "Gone",
    [411] = "Length Required",
    [412] = "Precondition Failed",
    [413] = "Request Entity Too Large",
    [414] = "Request URI Too Long",
    [415] = "Unsupported Media Type",
    [416] = "Requested Range Not Satisfiable",
    [417] = "Expectation Failed",
    [421] = "Misdirected Request",
    [422] = "Unprocessable Entity",
    [425] = "Too Early",
    [426] = "Upgrade Required",
    [428] = "Precondition Required",
    [429] = "Too Many Requests",
    [431] = "Request Header Fields Too Large",
    [499] = "Client Closed Request",
    [500] = "Internal Server Error",
    [501] = "Not Implemented",
    [502] = "Bad Gateway",
    [503] = "Service Unavailable",
    [504] = "Gateway Timeout",
    [505] = "HTTP Version Not Supported",
    [507] = "Insufficient Storage",
    [511] = "Network Authentication Required",
};
/* clang-format on */

const char *http1_reason(int status)
{
    return status >= 0 && (size_t)status < LEN(reasons) && reasons[status] ? reasons[status] : "";
}

/* Undoes a half-written head. */
static int roll_back(struct buf *out, size_t n)
{
    out->n = n;
    if (out->p)
        out->p[n] = '\0';
    return -1;
}

/* For bytes that were reserved. */
static void put(struct buf *out, struct span s)
{
    if (s.n)
        memcpy(out->p + out->n, s.p, s.n);
    buf_grown(out, s.n);
}

int http1_write_status(struct buf *out, int status, struct err *e)
{
    const char *reason = http1_reason(status);
    char line[16] = "HTTP/1.1 000 ";

    assert(status >= 100 && status <= 999);
    line[9] = (char)('0' + status / 100);
    line[10] = (char)('0' + status / 10 % 10);
    line[11] = (char)('0' + status % 10);
    if (buf_reserve(out, 13 + strlen(reason) + 2, e) < 0)
        return -1;
    put(out, span_of(line, 13)); /* the blank stays even without a reason (RFC 9112 4) */
    put(out, span_cstr(reason));
    put(out, SPAN("\r\n"));
    return 0;
}

static int put_field(struct buf *out, struct span name, struct span value, struct err *e)
{
    size_t n = name.n + value.n + 4;
    uint8_t *at;

    if (buf_reserve(out, n, e) < 0)
        return -1;
    at = out->p + out->n;
    memcpy(at, name.p, name.n);
    memcpy(at + name.n, ": ", 2);
    if (value.n)
        memcpy(at + name.n + 2, value.p, value.n);
    memcpy(at + n - 2, "\r\n", 2);
    buf_grown(out, n);
    return 0;
}

int http1_write_ours(struct buf *out, struct span name, struct span value, struct err *e)
{
    if (!http_value_is_valid(value))
        return err_set(e, ERR_INVALID, "cannot send header '%.*s': control byte in its value",
                       SPAN_ARG(name));
    return put_field(out, name, value, e);
}

int http1_write_field(struct buf *out, struct span name, struct span value, struct err *e)
{
    if (!http_name_is_valid(name))
        return err_set(e, ERR_INVALID, "cannot send header '%.*s': its name is not a token",
                       SPAN_ARG(name));
    return http1_write_ours(out, name, value, e);
}

int http1_write_field_u64(struct buf *out, const char *name, uint64_t value, struct err *e)
{
    char digits[20];
    size_t at = sizeof digits;

    do
        digits[--at] = (char)('0' + value % 10);
    while (value /= 10);
    return http1_write_field(out, span_cstr(name), span_of(digits + at, sizeof digits - at), e);
}

int http1_write_head_end(struct buf *out, struct err *e)
{
    return buf_add(out, SPAN("\r\n"), e);
}

int http1_write_fields(struct buf *out, const struct http_head *h, struct err *e)
{
    for (size_t i = 0; i < http_head_count(h); i++) {
        struct span name, value;

        http_head_field(h, i, &name, &value);
        if (i < h->sound ? put_field(out, name, value, e) < 0
                         : http1_write_field(out, name, value, e) < 0)
            return -1;
    }
    return 0;
}

static int write_request_line(struct buf *out, const struct http_head *h, struct err *e)
{
    struct span method = http_head_method(h), target = http_head_target(h);

    if (!http_name_is_valid(method))
        return err_set(e, ERR_INVALID, "cannot send a request: its method is not a token");
    if (!target.n || !http_value_is_valid(target) || span_find(target, ' ') != SIZE_MAX ||
        span_find(target, '\t') != SIZE_MAX)
        return err_set(e, ERR_INVALID,
                       "cannot send a request: blank or control byte in its target");
    if (buf_reserve(out, method.n + target.n + 12, e) < 0)
        return -1;
    put(out, method);
    put(out, SPAN(" "));
    put(out, target);
    put(out, SPAN(" HTTP/1.1\r\n"));
    return 0;
}

int http1_write_request(struct buf *out, const struct http_head *h, struct err *e)
{
    size_t before = out->n;

    if (write_request_line(out, h, e) < 0)
        return roll_back(out, before);
    /* First among the fields, as RFC 9110 7.2 likes it, unless the caller placed it. */
    if (!http_head_get(h, "host").p &&
        http1_write_ours(out, SPAN("host"), http_head_authority(h), e) < 0)
        return roll_back(out, before);
    if (http1_write_fields(out, h, e) < 0 || http1_write_head_end(out, e) < 0)
        return roll_back(out, before);
    return 0;
}

int http1_write_response(struct buf *out, const struct http_head *h, struct err *e)
{
    size_t before = out->n;

    if (http1_write_status(out, h->status, e) < 0 || http1_write_fields(out, h, e) < 0 ||
        http1_write_head_end(out, e) < 0)
        return roll_back(out, before);
    return 0;
}

int http1_write_chunk_head(struct buf *out, uint64_t n, struct err *e)
{
    char text[18] = { [16] = '\r', [17] = '\n' };
    size_t at = 16;

    assert(n > 0);
    for (; n; n >>= 4)
        text[--at] = "0123456789abcdef"[n & 15];
    return buf_add(out, span_of(text + at, sizeof text - at), e);
}

int http1_write_chunk(struct buf *out, struct span data, struct err *e)
{
    size_t before = out->n;

    if (data.n == 0)
        return 0;
    if (http1_write_chunk_head(out, data.n, e) < 0 || buf_add(out, data, e) < 0 ||
        buf_add(out, SPAN("\r\n"), e) < 0)
        return roll_back(out, before);
    return 0;
}

int http1_write_last_chunk(struct buf *out, const struct http_head *trailers, struct err *e)
{
    size_t before = out->n;

    if (buf_add(out, SPAN("0\r\n"), e) < 0 ||
        (trailers && http1_write_fields(out, trailers, e) < 0) || buf_add(out, SPAN("\r\n"), e) < 0)
        return roll_back(out, before);
    return 0;
}
