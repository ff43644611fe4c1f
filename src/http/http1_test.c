/* Each row's bytes are fed whole and cut small; the transcript of events must be the same and as written. */
#include "http/http1.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define LOG_MAX_BYTES (64 * 1024)
#define HOST          "Host: h\r\n"

static void note(struct buf *log, const char *fmt, ...) PRINTF(2, 3);
static void note(struct buf *log, const char *fmt, ...)
{
    struct err e;
    va_list ap;

    va_start(ap, fmt);
    assert_int_equal(buf_vaddf(log, &e, fmt, ap), 0);
    va_end(ap);
}

static void note_head(struct buf *log, const struct http1 *p)
{
    const struct http_head *h = &p->head;

    if (p->kind == HTTP1_REQUEST)
        note(log, "%.*s %.*s 1.%d", SPAN_ARG(http_head_method(h)), SPAN_ARG(http_head_target(h)),
             h->minor);
    else
        note(log, "%d 1.%d", h->status, h->minor);
    if (h->authority.n)
        note(log, " @%.*s", SPAN_ARG(http_head_authority(h)));
    if (h->scheme.n)
        note(log, " %.*s:%.*s", SPAN_ARG(http_head_scheme(h)), SPAN_ARG(http_head_path(h)));
    if (p->content_length != UINT64_MAX)
        note(log, " len=%llu", (unsigned long long)p->content_length);
    note(log, "%s%s%s%s%s", p->is_chunked ? " chunked" : "", p->keep_alive ? " keep" : " close",
         p->expects_continue ? " continue" : "", p->is_upgrade ? " upgrade=" : "",
         p->is_switched ? " switched" : "");
    if (p->is_upgrade)
        note(log, "%.*s", SPAN_ARG(http1_upgrade(p)));
    note(log, "\n");
}

static void note_trailers(struct buf *log, const struct http1 *p)
{
    for (size_t i = 0; p->trailers && i < http_head_count(p->trailers); i++) {
        struct span name, value;

        http_head_field(p->trailers, i, &name, &value);
        note(log, "trailer %.*s=%.*s\n", SPAN_ARG(name), SPAN_ARG(value));
    }
}

struct run {
    enum http1_kind kind;
    const struct http1_limits *limits;
    const char *method; /* for responses */
};

/* Feeds in pieces of `cut` bytes and writes down what happens; body pieces are joined. */
static void transcribe(struct buf *log, const struct run *run, struct span in, size_t cut)
{
    OWN(http1_done) struct http1 p;
    enum http1_event ev = HTTP1_MORE;
    size_t at = 0, have = 0;
    bool in_body = false, is_last = false;
    struct err e = { 0 };

    http1_init(&p, run->kind, run->limits);
    if (run->method)
        http1_set_method(&p, span_cstr(run->method));
    do {
        struct span data = SPAN_NONE;
        size_t used = 0;

        ev = http1_feed(&p, span_slice(in, at, at + have), &used, &data, &e);
        assert_true(used <= have);
        at += used;
        have -= used;
        if (in_body && ev != HTTP1_DATA && ev != HTTP1_MORE)
            note(log, "\n"), in_body = false;
        switch (ev) {
        case HTTP1_MORE:
            assert_int_equal(have, 0);
            is_last = at == in.n;
            have = MIN(cut, in.n - at);
            break;
        case HTTP1_HEAD:
            note_head(log, &p);
            break;
        case HTTP1_DATA:
            assert_ptr_equal(data.p + data.n, in.p + at);
            note(log, "%s%.*s", in_body ? "" : "data ", SPAN_ARG(data));
            in_body = true;
            break;
        case HTTP1_END:
            note_trailers(log, &p);
            note(log, "end\n");
            if (p.is_switched) {
                note(log, "rest %.*s\n", SPAN_ARG(span_skip(in, at)));
                return;
            }
            http1_next(&p);
            break;
        case HTTP1_BAD:
            note(log, "BAD %d %s\n", p.bad_status, e.msg);
            assert_true(e.code == ERR_PROTOCOL || e.code == ERR_LIMIT);
            assert_int_equal(http1_feed(&p, SPAN("GET / HTTP/1.1\r\n"), &used, &data, &e),
                             HTTP1_BAD);
            return;
        }
    } while (!is_last);
    if (in_body)
        note(log, "\n");
    ev = http1_eof(&p, &e);
    note(log, "%s", ev == HTTP1_MORE ? "" : ev == HTTP1_END ? "eof ends it\n" : "cut\n");
}

static void check(const char *name, const struct run *run, struct span in, const char *want)
{
    static const size_t cuts[] = { SIZE_MAX, 1, 2, 3, 7, 64 };

    EACH(cut, cuts) {
        OWN(buf_done) struct buf log = BUF_INIT(LOG_MAX_BYTES);

        transcribe(&log, run, in, *cut);
        if (strcmp(buf_cstr(&log), want) != 0) {
            print_error("%s (pieces of %zu)\n", name, *cut);
            assert_string_equal(buf_cstr(&log), want);
        }
    }
}

struct row {
    const char *name;
    struct span in;
    const char *want;
};

static void check_rows(const struct row *rows, size_t n, struct run run)
{
    for (size_t i = 0; i < n; i++)
        check(rows[i].name, &run, rows[i].in, rows[i].want);
}

static const struct row good_requests[] = {
    { "nothing", BYTES(""), "" },
    { "get", BYTES("GET / HTTP/1.1\r\nHost: a.b:80\r\n\r\n"),
      "GET / 1.1 @a.b:80 len=0 keep\nend\n" },
    { "empty host", BYTES("GET / HTTP/1.1\r\nHost:\r\n\r\n"), "GET / 1.1 len=0 keep\nend\n" },
    { "v6 host", BYTES("GET / HTTP/1.1\r\nHost: [::1]:8\r\n\r\n"),
      "GET / 1.1 @[::1]:8 len=0 keep\nend\n" },
    { "two", BYTES("GET /1 HTTP/1.1\r\n" HOST "\r\nGET /2 HTTP/1.1\r\n" HOST "\r\n"),
      "GET /1 1.1 @h len=0 keep\nend\nGET /2 1.1 @h len=0 keep\nend\n" },
    { "blank line first", BYTES("\r\nGET / HTTP/1.1\r\n" HOST "\r\n"),
      "GET / 1.1 @h len=0 keep\nend\n" },
    { "blank line, then closed", BYTES("GET / HTTP/1.1\r\n" HOST "\r\n\r\n"),
      "GET / 1.1 @h len=0 keep\nend\n" },
    { "1.0 closes", BYTES("GET / HTTP/1.0\r\n\r\n"), "GET / 1.0 len=0 close\nend\n" },
    { "1.0 keeps", BYTES("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"),
      "GET / 1.0 len=0 keep\nend\n" },
    { "1.1 closes", BYTES("GET / HTTP/1.1\r\n" HOST "connection: x, Close\r\n\r\n"),
      "GET / 1.1 @h len=0 close\nend\n" },
    { "close beats keep-alive", BYTES("GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n"),
      "GET / 1.0 len=0 close\nend\n" },
    { "1.7 is 1.1", BYTES("GET / HTTP/1.7\r\n" HOST "\r\n"), "GET / 1.1 @h len=0 keep\nend\n" },
    { "body", BYTES("POST /p HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhelloGET"),
      "POST /p 1.1 @h len=5 keep\ndata hello\nend\ncut\n" },
    { "length with zeros",
      BYTES("POST /p HTTP/1.1\r\n" HOST "Content-Length: \t 005 \r\n\r\nhello"),
      "POST /p 1.1 @h len=5 keep\ndata hello\nend\n" },
    { "body cut", BYTES("POST /p HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhel"),
      "POST /p 1.1 @h len=5 keep\ndata hel\ncut\n" },
    { "head cut", BYTES("POST /p HTTP/1.1\r\n" HOST "Content"), "cut\n" },
    { "expects",
      BYTES("PUT / HTTP/1.1\r\n" HOST "Expect: 100-Continue\r\nContent-Length: 1\r\n\r\nx"),
      "PUT / 1.1 @h len=1 keep continue\ndata x\nend\n" },
    { "expects nothing", BYTES("PUT / HTTP/1.1\r\n" HOST "Expect: 100-continue\r\n\r\n"),
      "PUT / 1.1 @h len=0 keep\nend\n" },
    { "1.0 cannot expect",
      BYTES("PUT / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\nx"),
      "PUT / 1.0 len=1 close\ndata x\nend\n" },
    { "upgrade",
      BYTES("GET /ws HTTP/1.1\r\n" HOST "Upgrade: websocket, h2c\r\nConnection: Upgrade\r\n\r\n"),
      "GET /ws 1.1 @h len=0 keep upgrade=websocket\nend\n" },
    { "upgrade not announced", BYTES("GET /ws HTTP/1.1\r\n" HOST "Upgrade: websocket\r\n\r\n"),
      "GET /ws 1.1 @h len=0 keep\nend\n" },
    { "absolute", BYTES("GET http://a:1/b?c HTTP/1.1\r\n" HOST "\r\n"),
      "GET http://a:1/b?c 1.1 @a:1 http:/b?c len=0 keep\nend\n" },
    { "absolute, no path", BYTES("GET https://a HTTP/1.1\r\nHost: a\r\n\r\n"),
      "GET https://a 1.1 @a https:/ len=0 keep\nend\n" },
    { "asterisk", BYTES("OPTIONS * HTTP/1.1\r\n" HOST "\r\n"),
      "OPTIONS * 1.1 @h len=0 keep\nend\n" },
    { "connect", BYTES("CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n"),
      "CONNECT a:443 1.1 @a:443 len=0 keep\nend\n" },
    { "raw utf-8 target", BYTES("GET /\xc3\xbc HTTP/1.1\r\n" HOST "\r\n"),
      "GET /\xc3\xbc 1.1 @h len=0 keep\nend\n" },
    { "odd but legal method", BYTES("M-SEARCH!~ / HTTP/1.1\r\n" HOST "\r\n"),
      "M-SEARCH!~ / 1.1 @h len=0 keep\nend\n" },
    { "tab and utf-8 in a value", BYTES("GET / HTTP/1.1\r\n" HOST "X:\ta\tb\xc3\xbc \r\n\r\n"),
      "GET / 1.1 @h len=0 keep\nend\n" },
};

static const struct row chunked_requests[] = {
    { "chunks",
      BYTES("POST / HTTP/1.1\r\n" HOST
            "Transfer-Encoding: Chunked\r\n\r\n3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n"),
      "POST / 1.1 @h chunked keep\ndata abc0123456789\nend\n" },
    { "no data", BYTES("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
      "POST / 1.1 @h chunked keep\nend\n" },
    { "extensions",
      BYTES("POST / HTTP/1.1\r\n" HOST
            "Transfer-Encoding: chunked\r\n\r\n1;a=b;\"c\"\r\nx\r\n0;\r\n\r\n"),
      "POST / 1.1 @h chunked keep\ndata x\nend\n" },
    { "trailers",
      BYTES("POST / HTTP/1.1\r\n" HOST
            "Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nX-Sum: 1\r\nb:\r\n\r\n"),
      "POST / 1.1 @h chunked keep\ndata x\ntrailer x-sum=1\ntrailer b=\nend\n" },
    { "then another",
      BYTES("POST / HTTP/1.1\r\n" HOST
            "Transfer-Encoding: chunked\r\n\r\n000\r\n\r\nGET / HTTP/1.0\r\n\r\n"),
      "POST / 1.1 @h chunked keep\nend\nGET / 1.0 len=0 close\nend\n" },
    { "cut in a chunk",
      BYTES("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n5\r\nab"),
      "POST / 1.1 @h chunked keep\ndata ab\ncut\n" },
    { "cut before the last",
      BYTES("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n"),
      "POST / 1.1 @h chunked keep\ndata ab\ncut\n" },
    { "cut in the blank line",
      BYTES("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n0\r\n\r"),
      "POST / 1.1 @h chunked keep\ncut\n" },
};

static void test_good_requests(void **state)
{
    check_rows(good_requests, LEN(good_requests), (struct run){ HTTP1_REQUEST, NULL, NULL });
    check_rows(chunked_requests, LEN(chunked_requests), (struct run){ HTTP1_REQUEST, NULL, NULL });
}

#define LINE(line)     BYTES(line "\r\n" HOST "\r\n")
#define FIELD(line)    BYTES("POST / HTTP/1.1\r\n" HOST line "\r\n\r\n")
#define CHUNKED(bytes) BYTES("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n" bytes)
#define CHUNKED_HEAD   "POST / 1.1 @h chunked keep\n"

static const struct row bad_lines[] = {
    { "tls", BYTES("\x16\x03\x01"), "BAD 400 not HTTP: a message begins with byte 0x16\n" },
    { "two blank lines", BYTES("\r\n\r\nGET / HTTP/1.1\r\n"),
      "BAD 400 not HTTP: a message begins with byte 0x0d\n" },
    { "bare LF first", BYTES("\nGET / HTTP/1.1\r\n"),
      "BAD 400 not HTTP: a message begins with byte 0x0a\n" },
    { "bare CR first", BYTES("\rGET / HTTP/1.1\r\n"), "BAD 400 bare CR before a request\n" },
    { "0.9", BYTES("GET /\r\n"), "BAD 505 request line without a protocol version\n" },
    { "not 0.9", BYTES("HELO there\r\n"), "BAD 400 malformed request line\n" },
    { "one word", BYTES("GET\r\n"), "BAD 400 malformed request line\n" },
    { "two blanks", LINE("GET  / HTTP/1.1"), "BAD 400 malformed request line\n" },
    { "blank in the target", LINE("GET /a b HTTP/1.1"), "BAD 400 malformed protocol version\n" },
    { "blank behind", LINE("GET / HTTP/1.1 "), "BAD 400 malformed protocol version\n" },
    { "tab between", LINE("GET\t/ HTTP/1.1"), "BAD 400 invalid byte in the request method\n" },
    { "lower case version", LINE("GET / http/1.1"), "BAD 400 malformed protocol version\n" },
    { "two digit version", LINE("GET / HTTP/1.10"), "BAD 400 malformed protocol version\n" },
    { "2.0", LINE("PRI * HTTP/2.0"), "BAD 505 protocol version 2.0 is not spoken here\n" },
    { "0.9 by name", LINE("GET / HTTP/0.9"), "BAD 505 protocol version 0.9 is not spoken here\n" },
    { "method", LINE("G(T / HTTP/1.1"), "BAD 400 invalid byte in the request method\n" },
    { "bare LF", BYTES("GET / HTTP/1.1\nHost: h\r\n\r\n"), "BAD 400 a line ends in a bare LF\n" },
    { "bare CR", LINE("GET /a\rb HTTP/1.1"), "BAD 400 invalid byte in the request target\n" },
    { "tab in the target", LINE("GET /a\tb HTTP/1.1"),
      "BAD 400 invalid byte in the request target\n" },
    { "NUL in the target", LINE("GET /a\0b HTTP/1.1"),
      "BAD 400 invalid byte in the request target\n" },
    { "fragment", LINE("GET /a#b HTTP/1.1"), "BAD 400 invalid byte in the request target\n" },
    { "asterisk", LINE("GET * HTTP/1.1"), "BAD 400 only OPTIONS may have the target '*'\n" },
    { "no form", LINE("GET a/b HTTP/1.1"), "BAD 400 malformed request target\n" },
    { "no scheme", LINE("GET ://a/b HTTP/1.1"), "BAD 400 malformed request target\n" },
    { "bad scheme", LINE("GET ht_tp://a/b HTTP/1.1"),
      "BAD 400 malformed scheme in the request target\n" },
    { "digit scheme", LINE("GET 1http://a/b HTTP/1.1"),
      "BAD 400 malformed scheme in the request target\n" },
    { "userinfo", LINE("GET http://u@a/b HTTP/1.1"),
      "BAD 400 malformed authority in the request target\n" },
    { "no authority", LINE("GET http:///b HTTP/1.1"),
      "BAD 400 malformed authority in the request target\n" },
    { "query at once", LINE("GET http://a?b HTTP/1.1"),
      "BAD 400 absolute request target without a path before its query\n" },
    { "connect without port", LINE("CONNECT a HTTP/1.1"),
      "BAD 400 CONNECT wants a target of host and port\n" },
    { "connect to v6 without port", LINE("CONNECT [::1] HTTP/1.1"),
      "BAD 400 CONNECT wants a target of host and port\n" },
    { "connect to a path", LINE("CONNECT /a HTTP/1.1"),
      "BAD 400 CONNECT wants a target of host and port\n" },
};

static const struct row bad_fields[] = {
    { "no host", BYTES("GET / HTTP/1.1\r\n\r\n"), "BAD 400 no host header\n" },
    { "two hosts", FIELD("Host: h"), "BAD 400 more than one host header\n" },
    { "two hosts in 1.0", BYTES("GET / HTTP/1.0\r\n" HOST HOST "\r\n"),
      "BAD 400 more than one host header\n" },
    { "host list", BYTES("GET / HTTP/1.1\r\nHost: a, b\r\n\r\n"),
      "BAD 400 malformed host header\n" },
    { "host with path", BYTES("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"),
      "BAD 400 malformed host header\n" },
    { "host with user", BYTES("GET / HTTP/1.1\r\nHost: u@a\r\n\r\n"),
      "BAD 400 malformed host header\n" },
    { "host port", BYTES("GET / HTTP/1.1\r\nHost: a:65536\r\n\r\n"),
      "BAD 400 malformed host header\n" },
    { "host port text", BYTES("GET / HTTP/1.1\r\nHost: a:8x\r\n\r\n"),
      "BAD 400 malformed host header\n" },
    { "only a port", BYTES("GET / HTTP/1.1\r\nHost: :80\r\n\r\n"),
      "BAD 400 malformed host header\n" },
    { "open bracket", BYTES("GET / HTTP/1.1\r\nHost: [::1\r\n\r\n"),
      "BAD 400 malformed host header\n" },
    { "behind a bracket", BYTES("GET / HTTP/1.1\r\nHost: [::1]a\r\n\r\n"),
      "BAD 400 malformed host header\n" },
    { "blank before colon", FIELD("A : b"), "BAD 400 blank in or behind a header name\n" },
    { "folded", FIELD("A: b\r\n c: d"), "BAD 400 folded header line\n" },
    { "folded by tab", FIELD("A: b\r\n\tc"), "BAD 400 folded header line\n" },
    { "folded at once", BYTES("GET / HTTP/1.1\r\n Host: h\r\n\r\n"),
      "BAD 400 folded header line\n" },
    { "no colon", FIELD("abc"), "BAD 400 header line without a colon\n" },
    { "no name", FIELD(": b"), "BAD 400 header line without a name\n" },
    { "byte in name", FIELD("a\"b: c"), "BAD 400 byte 0x22 in a header name\n" },
    { "high byte in name", FIELD("a\xc3: c"), "BAD 400 byte 0xc3 in a header name\n" },
    { "NUL in value", FIELD("A: b\0c"), "BAD 400 control byte in the value of header 'a'\n" },
    { "CR in value", FIELD("A: b\rc"), "BAD 400 control byte in the value of header 'a'\n" },
    { "escape in a long value", FIELD("A: 0123456789012345\x1b"),
      "BAD 400 control byte in the value of header 'a'\n" },
    { "DEL in value",
      FIELD("A: 01234567\x7f"
            "890"),
      "BAD 400 control byte in the value of header 'a'\n" },
    { "bare LF", FIELD("A: b\nc: d"), "BAD 400 a line ends in a bare LF\n" },
    { "bare LF ends the head", BYTES("GET / HTTP/1.1\r\n" HOST "\n"),
      "BAD 400 a line ends in a bare LF\n" },
    { "CR CR LF", BYTES("GET / HTTP/1.1\r\n" HOST "\r\r\n"),
      "BAD 400 byte 0x0d where LF belongs\n" },
};

static const struct row bad_framing[] = {
    { "both", FIELD("Content-Length: 3\r\nTransfer-Encoding: chunked"),
      "BAD 400 both transfer-encoding and content-length\n" },
    { "both, other order", FIELD("Transfer-Encoding: chunked\r\nContent-Length: 3"),
      "BAD 400 both transfer-encoding and content-length\n" },
    { "two lengths", FIELD("Content-Length: 3\r\nContent-Length: 4"),
      "BAD 400 more than one content-length\n" },
    { "equal lengths", FIELD("Content-Length: 3\r\nContent-Length: 3"),
      "BAD 400 more than one content-length\n" },
    { "length list", FIELD("Content-Length: 3, 3"), "BAD 400 malformed content-length\n" },
    { "plus", FIELD("Content-Length: +3"), "BAD 400 malformed content-length\n" },
    { "minus", FIELD("Content-Length: -3"), "BAD 400 malformed content-length\n" },
    { "hex", FIELD("Content-Length: 0x3"), "BAD 400 malformed content-length\n" },
    { "blank inside", FIELD("Content-Length: 3 3"), "BAD 400 malformed content-length\n" },
    { "empty", FIELD("Content-Length:"), "BAD 400 malformed content-length\n" },
    { "overflow", FIELD("Content-Length: 18446744073709551619"),
      "BAD 400 malformed content-length\n" },
    { "coding in 1.0", BYTES("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"),
      "BAD 400 transfer-encoding in HTTP/1.0\n" },
    { "two codings", FIELD("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"),
      "BAD 400 more than one transfer-encoding\n" },
    { "chunked twice", FIELD("Transfer-Encoding: chunked, chunked"),
      "BAD 400 transfer-encoding must end in one 'chunked'\n" },
    { "chunked not last", FIELD("Transfer-Encoding: chunked, gzip"),
      "BAD 400 transfer-encoding must end in one 'chunked'\n" },
    { "chunked and a comma", FIELD("Transfer-Encoding: chunked,"),
      "BAD 400 malformed transfer-encoding\n" },
    { "quoted", FIELD("Transfer-Encoding: \"chunked\""), "BAD 400 malformed transfer-encoding\n" },
    { "parameter", FIELD("Transfer-Encoding: chunked;a=b"),
      "BAD 400 malformed transfer-encoding\n" },
    { "vertical tab",
      FIELD("Transfer-Encoding: \x0b"
            "chunked"),
      "BAD 400 control byte in the value of header 'transfer-encoding'\n" },
    { "empty coding", FIELD("Transfer-Encoding:"),
      "BAD 400 transfer-encoding must end in one 'chunked'\n" },
    { "gzip", FIELD("Transfer-Encoding: gzip, chunked"),
      "BAD 501 transfer-encoding other than 'chunked'\n" },
    { "identity", FIELD("Transfer-Encoding: identity"),
      "BAD 501 transfer-encoding other than 'chunked'\n" },
    { "xchunked", FIELD("Transfer-Encoding: xchunked"),
      "BAD 501 transfer-encoding other than 'chunked'\n" },
    { "connect with body", BYTES("CONNECT a:1 HTTP/1.1\r\n" HOST "Content-Length: 1\r\n\r\n"),
      "BAD 400 CONNECT with a body\n" },
};

static const struct row bad_chunks[] = {
    { "no digits", CHUNKED("\r\n"), CHUNKED_HEAD "BAD 400 byte 0x0d in a chunk size\n" },
    { "0x", CHUNKED("0x3\r\nabc\r\n"), CHUNKED_HEAD "BAD 400 byte 0x78 in a chunk size\n" },
    { "minus", CHUNKED("-3\r\nabc\r\n"), CHUNKED_HEAD "BAD 400 byte 0x2d in a chunk size\n" },
    { "blank", CHUNKED("3 \r\nabc\r\n"), CHUNKED_HEAD "BAD 400 byte 0x20 in a chunk size\n" },
    { "overflow", CHUNKED("10000000000000003\r\nabc\r\n"),
      CHUNKED_HEAD "BAD 400 chunk size has too many digits\n" },
    { "zeros", CHUNKED("0000000000000003\r\n"),
      CHUNKED_HEAD "BAD 400 chunk size has too many digits\n" },
    { "bare LF", CHUNKED("3\nabc\r\n"), CHUNKED_HEAD "BAD 400 byte 0x0a in a chunk size\n" },
    { "bare CR", CHUNKED("3\rabc\r\n"), CHUNKED_HEAD "BAD 400 bare CR behind a chunk size\n" },
    { "LF in extension", CHUNKED("3;a\nabc\r\n"),
      CHUNKED_HEAD "BAD 400 control byte in a chunk extension\n" },
    { "data too long", CHUNKED("3\r\nabcd\r\n"),
      CHUNKED_HEAD "data abc\nBAD 400 byte 0x64 where CR belongs\n" },
    { "LF behind data", CHUNKED("3\r\nabc\n"),
      CHUNKED_HEAD "data abc\nBAD 400 byte 0x0a where CR belongs\n" },
    { "length in a trailer", CHUNKED("0\r\nContent-Length: 3\r\n\r\n"),
      CHUNKED_HEAD "BAD 400 'content-length' in a trailer\n" },
    { "folded trailer", CHUNKED("0\r\na: b\r\n c\r\n\r\n"),
      CHUNKED_HEAD "BAD 400 folded header line\n" },
};

static void test_bad_requests(void **state)
{
    struct run run = { HTTP1_REQUEST, NULL, NULL };

    check_rows(bad_lines, LEN(bad_lines), run);
    check_rows(bad_fields, LEN(bad_fields), run);
    check_rows(bad_framing, LEN(bad_framing), run);
    check_rows(bad_chunks, LEN(bad_chunks), run);
}

static void test_limits(void **state)
{
    static const struct http1_limits tight = { 64, 3, 40, 24, 2, 8, 5 };
    static const struct row rows[] = {
        { "long target", BYTES("GET /0123456789012345678901234567890123456789 HTTP/1.1\r\n"),
          "BAD 414 a line of the head is longer than 40 bytes\n" },
        { "no end of line", BYTES("GET /0123456789012345678901234567890123456789"),
          "BAD 414 a line of the head is longer than 40 bytes\n" },
        { "long field", FIELD("A: 012345678901234567890123456789012345678"),
          "BAD 431 the head is larger than 64 bytes\n" },
        { "long line", BYTES("G / HTTP/1.1\r\nA: 012345678901234567890123456789012345678\r\n"),
          "BAD 431 a line of the head is longer than 40 bytes\n" },
        { "many fields", FIELD("a:\r\nb:\r\nc:"), "BAD 431 more than 3 header fields\n" },
        { "declared body", FIELD("Content-Length: 6"), "BAD 413 body of 6 bytes; at most 5\n" },
        { "largest body", BYTES("P / HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\n01234"),
          "P / 1.1 @h len=5 keep\ndata 01234\nend\n" },
    };
    static const struct http1_limits chunky = { 4096, 20, 4096, 24, 2, 8, 5 };
    static const struct row chunk_rows[] = {
        { "chunks", CHUNKED("3\r\nabc\r\n3\r\ndef\r\n"),
          CHUNKED_HEAD "data abc\nBAD 413 body of more than 5 bytes\n" },
        { "extension", CHUNKED("3;01234567\r\nabc\r\n0;8\r\n"),
          CHUNKED_HEAD "data abc\nBAD 400 more than 8 bytes of chunk extensions\n" },
        { "trailer bytes", CHUNKED("0\r\nA: 012345678901234567890123456789\r\n\r\n"),
          CHUNKED_HEAD "BAD 431 the head is larger than 24 bytes\n" },
        { "trailer fields", CHUNKED("0\r\na:\r\nb:\r\nc:\r\n\r\n"),
          CHUNKED_HEAD "BAD 431 more than 2 header fields\n" },
    };
    static const struct row open_rows[] = {
        { "open body", BYTES("HTTP/1.1 200 OK\r\n\r\n0123456789"),
          "200 1.1 close\ndata 01234\nBAD 502 body of more than 5 bytes\n" },
    };

    check_rows(rows, LEN(rows), (struct run){ HTTP1_REQUEST, &tight, NULL });
    check_rows(chunk_rows, LEN(chunk_rows), (struct run){ HTTP1_REQUEST, &chunky, NULL });
    check_rows(open_rows, LEN(open_rows), (struct run){ HTTP1_RESPONSE, &chunky, NULL });
}

static void test_responses(void **state)
{
    static const struct row rows[] = {
        { "counted", BYTES("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 204\r\n\r\n"),
          "200 1.1 len=2 keep\ndata ok\nend\n204 1.1 len=0 keep\nend\n" },
        { "until close", BYTES("HTTP/1.0 200 OK\r\n\r\nall of it"),
          "200 1.0 close\ndata all of it\neof ends it\n" },
        { "empty until close", BYTES("HTTP/1.1 200 \r\n\r\n"), "200 1.1 close\neof ends it\n" },
        { "interim",
          BYTES(
              "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 304 X\r\nContent-Length: 9\r\n\r\n"),
          "103 1.1 len=0 keep\nend\n304 1.1 len=0 keep\nend\n" },
        { "switch", BYTES("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n\x01zz"),
          "101 1.1 len=0 keep switched\nend\nrest \x01zz\n" },
        { "chunked",
          BYTES(
              "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n1\r\na\r\n0\r\nt: u\r\n\r\n"),
          "200 1.1 chunked close\ndata a\ntrailer t=u\nend\n" },
        { "host may repeat", BYTES("HTTP/1.1 204 No\r\nHost: a b\r\nHost: c\r\n\r\n"),
          "204 1.1 len=0 keep\nend\n" },
        { "cut", BYTES("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab"),
          "200 1.1 len=5 keep\ndata ab\ncut\n" },
        { "blank line first", BYTES("\r\nHTTP/1.1 200 OK\r\n"),
          "BAD 502 not HTTP: a message begins with byte 0x0d\n" },
        { "two digits", BYTES("HTTP/1.1 20 OK\r\n"), "BAD 502 malformed status line\n" },
        { "four digits", BYTES("HTTP/1.1 2000 OK\r\n"), "BAD 502 malformed status line\n" },
        { "not digits", BYTES("HTTP/1.1 2x0 OK\r\n"), "BAD 502 malformed status code\n" },
        { "below 100", BYTES("HTTP/1.1 099 OK\r\n"), "BAD 502 malformed status code\n" },
        { "h2", BYTES("HTTP/2.0 200 OK\r\n"), "BAD 502 protocol version 2.0 is not spoken here\n" },
        { "no version", BYTES("ICY/1.1. 200 OK\r\n"), "BAD 502 malformed protocol version\n" },
        { "reason", BYTES("HTTP/1.1 200 O\0K\r\n"), "BAD 502 control byte in the reason phrase\n" },
        { "both",
          BYTES("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n"),
          "BAD 502 both transfer-encoding and content-length\n" },
    };
    static const struct row head_rows[] = {
        { "to HEAD",
          BYTES("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"),
          "100 1.1 len=0 keep\nend\n200 1.1 len=0 keep\nend\n" },
        { "the method is forgotten",
          BYTES(
              "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx"),
          "200 1.1 len=0 keep\nend\n200 1.1 len=1 keep\ndata x\nend\n" },
    };
    static const struct row connect_rows[] = {
        { "tunnel", BYTES("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nraw"),
          "200 1.1 len=0 keep switched\nend\nrest raw\n" },
        { "refused", BYTES("HTTP/1.1 403 No\r\nContent-Length: 1\r\n\r\nx"),
          "403 1.1 len=1 keep\ndata x\nend\n" },
    };

    check_rows(rows, LEN(rows), (struct run){ HTTP1_RESPONSE, NULL, NULL });
    check_rows(head_rows, LEN(head_rows), (struct run){ HTTP1_RESPONSE, NULL, "HEAD" });
    check_rows(connect_rows, LEN(connect_rows), (struct run){ HTTP1_RESPONSE, NULL, "CONNECT" });
}

/* What an absolute target says wins over Host, for every reader of the head. */
static void read_head(struct http1 *p, struct span in, size_t cut)
{
    enum http1_event ev = HTTP1_MORE;
    struct span data;
    struct err e;

    http1_init(p, HTTP1_REQUEST, NULL);
    for (size_t at = 0, used; ev == HTTP1_MORE && at < in.n; at += used)
        ev = http1_feed(p, span_slice(in, at, at + cut), &used, &data, &e);
    assert_int_equal(ev, HTTP1_HEAD);
}

/* Names and values of every length around a register's, with all that may stand in them: the same whole and byte by byte. */
static void test_fields_of_all_lengths(void **state)
{
    static const char names[] = "X-Ab_Z0'9-longer.Than~Two^Registers!of|16*bYtes";
    static const char values[] = "v\tal ue \xc3\xa4@[`{~ \t of more than two registers' 16 bytes";

    (void)state;
    for (size_t n = 1; n < sizeof names; n++) {
        OWN(buf_done) struct buf in = BUF_INIT(LOG_MAX_BYTES);
        OWN(http1_done) struct http1 whole, cut;

        note(&in, "GET / HTTP/1.1\r\n" HOST);
        for (size_t v = 0; v < sizeof values; v++)
            note(&in, "%.*s:%s%.*s%s\r\n", (int)n, names, v % 3 ? " " : "", (int)v, values,
                 v % 5 ? "" : "\t ");
        note(&in, "\r\nAnd a body behind it");
        read_head(&whole, buf_span(&in), in.n);
        read_head(&cut, buf_span(&in), 1);
        assert_int_equal(http_head_count(&whole.head), sizeof values + 1);
        for (size_t i = 0; i < http_head_count(&whole.head); i++) {
            struct span a[2], b[2];

            http_head_field(&whole.head, i, &a[0], &a[1]);
            http_head_field(&cut.head, i, &b[0], &b[1]);
            assert_true(span_eq(a[0], b[0]) && span_eq(a[1], b[1]));
            assert_int_equal(a[0].n, i ? n : strlen("host"));
            for (size_t k = 0; i && k < n; k++)
                assert_int_equal(a[0].p[k], http_token_fold[(uint8_t)names[k]]);
        }
    }
}

static void test_authority_wins(void **state)
{
    OWN(http1_done) struct http1 p;
    struct span data;
    struct err e;
    size_t used;

    http1_init(&p, HTTP1_REQUEST, NULL);
    assert_int_equal(
        http1_feed(&p, SPAN("GET http://real/ HTTP/1.1\r\nHost: other\r\n\r\n"), &used, &data, &e),
        HTTP1_HEAD);
    assert_true(span_is(http_head_get(&p.head, "host"), "real"));
    assert_true(span_is(http_head_authority(&p.head), "real"));
}

/* Ten thousand idle connections must be cheap: nothing is held before a byte and after a release. */
static void test_idle_is_small(void **state)
{
    OWN(http1_done) struct http1 p;
    struct span data;
    struct err e;
    size_t used;

    assert_true(sizeof p <= 256);
    http1_init(&p, HTTP1_REQUEST, NULL);
    assert_null(p.head.text.p);
    assert_int_equal(http1_feed(&p, SPAN("GET / HTTP/1.0\r\na: b\r\n\r\n"), &used, &data, &e),
                     HTTP1_HEAD);
    http1_release(&p); /* not now */
    assert_true(span_is(http_head_get(&p.head, "a"), "b"));
    assert_int_equal(http1_feed(&p, SPAN_NONE, &used, &data, &e), HTTP1_END);
    http1_next(&p);
    assert_non_null(p.head.text.p);
    http1_release(&p);
    assert_null(p.head.text.p);
    assert_null(p.head.fields);
}

/* Behind END nothing is taken until the caller says what follows; a head that had to grow is given back. */
static void test_next(void **state)
{
    OWN(buf_done) struct buf in = BUF_INIT(64 * 1024);
    OWN(http1_done) struct http1 p;
    struct span data;
    struct err e;
    size_t used;

    http1_init(&p, HTTP1_REQUEST, NULL);
    assert_int_equal(buf_addf(&in, &e, "GET / HTTP/1.0\r\na: %020000d\r\n\r\n", 1), 0);
    assert_int_equal(http1_feed(&p, buf_span(&in), &used, &data, &e), HTTP1_HEAD);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(http1_feed(&p, buf_span(&in), &used, &data, &e), HTTP1_END);
        assert_int_equal(used, 0);
    }
    assert_int_equal(http1_eof(&p, &e), HTTP1_MORE);
    http1_next(&p);
    assert_null(p.head.text.p);
    assert_int_equal(http1_feed(&p, SPAN("GET"), &used, &data, &e), HTTP1_MORE);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(http1_eof(&p, &e), HTTP1_BAD);
        assert_int_equal(e.code, ERR_CLOSED);
        assert_int_equal(p.bad_status, 400);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_requests),
        cmocka_unit_test(test_bad_requests),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_responses),
        cmocka_unit_test(test_fields_of_all_lengths),
        cmocka_unit_test(test_authority_wins),
        cmocka_unit_test(test_idle_is_small),
        cmocka_unit_test(test_next),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
