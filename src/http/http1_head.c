#include "http/http1_head.h"

#include "base/str.h"

#define LENGTH_MAX INT64_MAX /* a body longer than this is nobody's; sums with it cannot overflow */

enum err_code http1_head_code(int status)
{
    return status == 413 || status == 414 || status == 431 ? ERR_LIMIT : ERR_PROTOCOL;
}

static struct span piece_span(const struct http1 *p, struct http_piece piece)
{
    return span_of(p->head.text.p + piece.at, piece.n);
}

static struct http_piece piece_of(const struct http1 *p, struct span s)
{
    return (struct http_piece){ (uint32_t)(s.p - p->head.text.p), (uint32_t)s.n };
}

/* "HTTP/1.1", and nothing that merely resembles it. A minor version above ours is ours (RFC 9110 6.2). */
static int parse_version(struct http1 *p, struct span s, struct err *e)
{
    if (s.n != 8 || !span_starts(s, "HTTP/") || s.p[5] < '0' || s.p[5] > '9' || s.p[6] != '.' ||
        s.p[7] < '0' || s.p[7] > '9')
        return HTTP1_REFUSE(p, 400, e, "malformed protocol version");
    if (s.p[5] != '1')
        return HTTP1_REFUSE(p, 505, e, "protocol version %c.%c is not spoken here", s.p[5], s.p[7]);
    p->head.minor = s.p[7] != '0';
    return 0;
}

static bool is_host_byte(uint8_t c)
{
    /* RFC 3986 3.2.2, reg-name: unreserved, sub-delims, and the percent sign of an escape. */
    static const bool marks[128] = {
        ['-'] = 1,  ['.'] = 1, ['_'] = 1, ['~'] = 1, ['%'] = 1, ['!'] = 1, ['$'] = 1, ['&'] = 1,
        ['\''] = 1, ['('] = 1, [')'] = 1, ['*'] = 1, ['+'] = 1, [','] = 1, [';'] = 1, ['='] = 1
    };

    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') ||
           (c < sizeof marks && marks[c]);
}

bool http1_host_is_valid(struct span host)
{
    bool is_literal = host.n && host.p[0] == '[';
    size_t i = is_literal;
    uint64_t port;

    while (i < host.n && (is_host_byte(host.p[i]) || (is_literal && host.p[i] == ':')))
        i++;
    if (is_literal && (i < 3 || i == host.n || host.p[i++] != ']'))
        return false;
    if (i == host.n)
        return true;
    if (host.p[i] != ':' || i == 0)
        return false;
    return i + 1 == host.n || str_u64(span_skip(host, i + 1), 65535, &port); /* "host:" is legal */
}

/* scheme://authority[/path]: names where both are. */
static int parse_absolute(struct http1 *p, struct span target, struct err *e)
{
    size_t colon = span_find_str(target, SPAN("://"));
    struct span authority, rest;
    size_t end = 0;

    if (colon == SIZE_MAX || colon == 0)
        return HTTP1_REFUSE(p, 400, e, "malformed request target");
    for (size_t i = 0; i < colon; i++)
        if (!((target.p[i] | 0x20) >= 'a' && (target.p[i] | 0x20) <= 'z') &&
            (i == 0 || !memchr("0123456789+-.", target.p[i], 13)))
            return HTTP1_REFUSE(p, 400, e, "malformed scheme in the request target");
    rest = span_skip(target, colon + 3);
    while (end < rest.n && rest.p[end] != '/' && rest.p[end] != '?')
        end++;
    authority = span_slice(rest, 0, end);
    if (!authority.n || !http1_host_is_valid(authority))
        return HTTP1_REFUSE(p, 400, e, "malformed authority in the request target");
    if (end < rest.n && rest.p[end] == '?')
        return HTTP1_REFUSE(p, 400, e, "absolute request target without a path before its query");
    p->head.scheme = piece_of(p, span_slice(target, 0, colon));
    p->head.authority = piece_of(p, authority);
    return 0;
}

static int parse_target(struct http1 *p, struct span method, struct span target, struct err *e)
{
    /* Bytes from 0x80 up pass: curl sends a path as it was typed. A fragment never belongs here. */
    if (!http_value_is_valid(target) || span_find(target, '\t') != SIZE_MAX ||
        span_find(target, '#') != SIZE_MAX)
        return HTTP1_REFUSE(p, 400, e, "invalid byte in the request target");
    if (span_is(method, "CONNECT")) {
        size_t colon = target.p[target.n - 1] == ':' ? SIZE_MAX : span_find(target, ':');

        if (colon == SIZE_MAX || !http1_host_is_valid(target) || target.p[target.n - 1] == ']')
            return HTTP1_REFUSE(p, 400, e, "CONNECT wants a target of host and port");
        p->head.authority = p->head.target;
        return 0;
    }
    if (target.p[0] == '/')
        return 0;
    if (span_is(target, "*")) {
        if (!span_is(method, "OPTIONS"))
            return HTTP1_REFUSE(p, 400, e, "only OPTIONS may have the target '*'");
        return 0;
    }
    return parse_absolute(p, target, e);
}

static int parse_request_line(struct http1 *p, struct span line, struct err *e)
{
    size_t first = span_find(line, ' ');
    struct span method, target, rest;
    size_t second;

    if (first == SIZE_MAX)
        return HTTP1_REFUSE(p, 400, e, "malformed request line");
    method = span_slice(line, 0, first);
    if (!http_name_is_valid(method))
        return HTTP1_REFUSE(p, 400, e, "invalid byte in the request method");
    rest = span_skip(line, first + 1);
    second = span_find(rest, ' ');
    if (second == SIZE_MAX && span_is(method, "GET") && rest.n && rest.p[0] == '/')
        return HTTP1_REFUSE(p, 505, e, "request line without a protocol version");
    if (second == SIZE_MAX || second == 0)
        return HTTP1_REFUSE(p, 400, e, "malformed request line");
    target = span_slice(rest, 0, second);
    if (parse_version(p, span_skip(rest, second + 1), e) < 0)
        return -1;
    p->head.method = piece_of(p, method);
    p->head.target = piece_of(p, target);
    return parse_target(p, method, target, e);
}

static int parse_status_line(struct http1 *p, struct span line, struct err *e)
{
    uint64_t status;

    if (line.n < 12 || line.p[8] != ' ' || (line.n > 12 && line.p[12] != ' '))
        return HTTP1_REFUSE(p, 400, e, "malformed status line");
    if (parse_version(p, span_slice(line, 0, 8), e) < 0)
        return -1;
    if (!str_u64(span_slice(line, 9, 12), 999, &status) || status < 100)
        return HTTP1_REFUSE(p, 400, e, "malformed status code");
    if (!http_value_is_valid(span_skip(line, 12)))
        return HTTP1_REFUSE(p, 400, e, "control byte in the reason phrase");
    p->head.status = (uint16_t)status;
    return 0;
}

int http1_head_first(struct http1 *p, struct http_piece line, struct err *e)
{
    return p->kind == HTTP1_REQUEST ? parse_request_line(p, piece_span(p, line), e)
                                    : parse_status_line(p, piece_span(p, line), e);
}

static int note_length(struct http1 *p, struct span value, struct err *e)
{
    uint64_t n;

    /* Even equal repeats: a peer behind us may join, drop or keep them. */
    if (p->has_length)
        return HTTP1_REFUSE(p, 400, e, "more than one content-length");
    if (!str_u64(value, LENGTH_MAX, &n))
        return HTTP1_REFUSE(p, 400, e, "malformed content-length");
    p->has_length = true;
    p->content_length = n;
    return 0;
}

/* Exactly "chunked", once. What else may be asked for is not done here (501), or frames nothing (400). */
static int note_coding(struct http1 *p, struct span value, struct err *e)
{
    struct span piece, last = SPAN_NONE;
    size_t count = 0, chunked = 0;

    if (p->has_coding)
        return HTTP1_REFUSE(p, 400, e, "more than one transfer-encoding");
    p->has_coding = true;
    if (span_is_nocase(value, "chunked"))
        return 0;
    while (span_cut(&value, ',', &piece)) {
        last = span_trim(piece);
        count++;
        chunked += span_is_nocase(last, "chunked");
        if (!http_name_is_valid(last))
            return HTTP1_REFUSE(p, 400, e, "malformed transfer-encoding");
    }
    if (count == 0 || chunked > 1 || (chunked == 1 && !span_is_nocase(last, "chunked")))
        return HTTP1_REFUSE(p, 400, e, "transfer-encoding must end in one 'chunked'");
    if (chunked == count)
        return HTTP1_REFUSE(p, 400, e, "malformed transfer-encoding");
    return HTTP1_REFUSE(p, 501, e, "transfer-encoding other than 'chunked'");
}

static int note_host(struct http1 *p, struct span value, struct err *e)
{
    if (p->has_host)
        return HTTP1_REFUSE(p, 400, e, "more than one host header");
    if (!http1_host_is_valid(value))
        return HTTP1_REFUSE(p, 400, e, "malformed host header");
    p->has_host = true;
    if (!p->head.authority.n)
        p->head.authority = piece_of(p, value);
    else /* the target's authority wins (RFC 9112 3.2.2): let no reader see another name */
        p->head.fields[p->head.field_count - 1].value = p->head.authority;
    return 0;
}

static void note_connection(struct http1 *p, struct span value)
{
    struct span token;

    while (span_cut(&value, ',', &token)) {
        token = span_trim(token);
        p->has_close |= span_is_nocase(token, "close");
        p->has_keep_alive |= span_is_nocase(token, "keep-alive");
        p->has_upgrade_token |= span_is_nocase(token, "upgrade");
    }
}

int http1_head_field(struct http1 *p, struct err *e)
{
    struct span name, value;

    p->head.sound = p->head.field_count; /* its bytes were looked at, each on its way here */
    http_head_field(&p->head, p->head.field_count - 1, &name, &value);
    switch (name.n) { /* the length alone rules nearly every field out */
    case sizeof "host" - 1:
        if (p->kind == HTTP1_REQUEST && span_is(name, "host"))
            return note_host(p, value, e);
        return 0;
    case sizeof "expect" - 1:
        p->has_expect |= span_is(name, "expect") && span_is_nocase(value, "100-continue");
        return 0;
    case sizeof "upgrade" - 1:
        p->has_upgrade |= span_is(name, "upgrade") && value.n;
        return 0;
    case sizeof "connection" - 1:
        if (span_is(name, "connection"))
            note_connection(p, value);
        return 0;
    case sizeof "content-length" - 1:
        return span_is(name, "content-length") ? note_length(p, value, e) : 0;
    case sizeof "transfer-encoding" - 1:
        return span_is(name, "transfer-encoding") ? note_coding(p, value, e) : 0;
    }
    return 0;
}

int http1_head_trailer(struct http1 *p, struct err *e)
{
    static const char *const framing[] = { "content-length", "transfer-encoding", "host", "trailer",
                                           "connection",     "authorization",     "te" };
    struct span name, value;

    http_head_field(p->trailers, p->trailers->field_count - 1, &name, &value);
    EACH(f, framing) {
        if (span_is(name, *f))
            return HTTP1_REFUSE(p, 400, e, "'%s' in a trailer", *f);
    }
    return 0;
}

static int read_counted(struct http1 *p, uint64_t n, struct err *e)
{
    if (n > p->limits->body_bytes)
        return HTTP1_REFUSE(p, 413, e, "body of %llu bytes; at most %llu", (unsigned long long)n,
                            (unsigned long long)p->limits->body_bytes);
    p->content_length = p->left = n;
    p->state = HTTP1_AT_LENGTH;
    return 0;
}

static int read_chunked(struct http1 *p)
{
    p->is_chunked = true;
    p->content_length = UINT64_MAX;
    p->state = HTTP1_AT_CHUNK_SIZE;
    return 0;
}

static int finish_request(struct http1 *p, struct err *e)
{
    bool is_connect = span_is(http_head_method(&p->head), "CONNECT");

    if (!p->has_host && p->head.minor)
        return HTTP1_REFUSE(p, 400, e, "no host header");
    if (is_connect && (p->has_coding || p->content_length))
        return HTTP1_REFUSE(p, 400, e, "CONNECT with a body");
    p->is_upgrade = p->head.minor && p->has_upgrade && p->has_upgrade_token;
    if (p->has_coding)
        read_chunked(p);
    else if (read_counted(p, p->content_length, e) < 0)
        return -1;
    p->expects_continue = p->head.minor && p->has_expect && p->content_length != 0;
    return 0;
}

static int finish_response(struct http1 *p, struct err *e)
{
    int status = p->head.status;

    p->is_switched = status == 101 || (p->answers_connect && status / 100 == 2);
    if (p->is_switched || status / 100 == 1 || status == 204 || status == 304 || p->answers_head)
        return read_counted(p, 0, e);
    if (p->has_coding)
        return read_chunked(p);
    if (p->has_length)
        return read_counted(p, p->content_length, e);
    p->content_length = UINT64_MAX;
    p->keep_alive = false;
    p->state = HTTP1_AT_CLOSE;
    return 0;
}

int http1_head_finish(struct http1 *p, struct err *e)
{
    if (p->has_coding && p->has_length)
        return HTTP1_REFUSE(p, 400, e, "both transfer-encoding and content-length");
    if (p->has_coding && !p->head.minor)
        return HTTP1_REFUSE(p, 400, e, "transfer-encoding in HTTP/1.0");
    p->keep_alive = !p->has_close && (p->head.minor || p->has_keep_alive);
    return p->kind == HTTP1_REQUEST ? finish_request(p, e) : finish_response(p, e);
}
