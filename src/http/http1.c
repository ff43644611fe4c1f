#include "http/http1.h"

#include "http/field.h"
#include "http/http1_head.h"
#include "http/limits.h"

/* Reserved at a message's first byte: most heads need no second allocation. A buf of 1023 bytes is a block of 1024, the
 * largest that the allocator hands out from its fast bins. */
#define FIRST_BYTES 1023
#define KEEP_BYTES  (8 * 1024) /* a larger head buffer is given back behind its message */

const struct http1_limits http1_limits_default = {
    .head_bytes = HTTP_HEAD_MAX_BYTES,
    .head_fields = HTTP_HEAD_MAX_FIELDS,
    .line_bytes = HTTP_LINE_MAX_BYTES,
    .trailer_bytes = HTTP_TRAILER_MAX_BYTES,
    .trailer_fields = HTTP_TRAILER_MAX_FIELDS,
    .chunk_ext_bytes = HTTP_CHUNK_EXT_MAX_BYTES,
    .body_bytes = UINT64_MAX,
};

void http1_init(struct http1 *p, enum http1_kind kind, const struct http1_limits *limits)
{
    *p = (struct http1){ .kind = (uint8_t)kind, .limits = limits ? limits : &http1_limits_default };
    http_head_init(&p->head, p->limits->head_bytes, p->limits->head_fields);
}

static void drop_trailers(struct http1 *p)
{
    http_head_done(p->trailers);
    free(take_ptr(&p->trailers));
}

void http1_done(struct http1 *p)
{
    if (!p)
        return;
    http_head_done(&p->head);
    drop_trailers(p);
}

void http1_set_method(struct http1 *p, struct span method)
{
    assert(p->kind == HTTP1_RESPONSE);
    p->answers_head = span_is(method, "HEAD");
    p->answers_connect = span_is(method, "CONNECT");
}

void http1_next(struct http1 *p)
{
    bool is_interim = p->head.status / 100 == 1 && p->head.status != 101;
    struct http1 fresh = { .kind = p->kind, .limits = p->limits, .head = p->head };

    assert(p->state == HTTP1_AT_END);
    fresh.answers_head = is_interim && p->answers_head;
    fresh.answers_connect = is_interim && p->answers_connect;
    drop_trailers(p);
    *p = fresh;
    if (p->head.text.cap > KEEP_BYTES)
        http_head_done(&p->head);
    else
        http_head_clear(&p->head);
}

void http1_release(struct http1 *p)
{
    if (p->state == HTTP1_AT_START || p->state == HTTP1_AT_START_LF)
        http_head_done(&p->head);
}

struct span http1_upgrade(const struct http1 *p)
{
    struct span list, first = SPAN_NONE;

    if (!p->is_upgrade && !p->is_switched)
        return SPAN_NONE;
    list = http_head_get(&p->head, "upgrade");
    (void)span_cut(&list, ',', &first);
    return span_trim(first);
}

/* The steps below return -1 with *e filled, or 0; feed() makes an event of it. */

static int start(struct http1 *p, uint8_t c, size_t *used, struct err *e)
{
    struct err unused;

    if (c == '\r' && p->kind == HTTP1_REQUEST && !p->had_blank_line) {
        p->had_blank_line = true;
        p->state = HTTP1_AT_START_LF;
        *used = 1;
        return 0;
    }
    /* Another protocol on this port (TLS begins with 0x16) is told at its first byte, not at a timeout. */
    if (!http_token_fold[c])
        return HTTP1_REFUSE(p, 400, e, "not HTTP: a message begins with byte 0x%02x", c);
    /* Fits: no more than the ceiling. */
    (void)buf_reserve(&p->head.text, MIN((size_t)FIRST_BYTES, p->head.text.max), &unused);
    p->line_at = 0;
    p->state = HTTP1_AT_FIRST_LINE;
    return 0;
}

static int start_lf(struct http1 *p, uint8_t c, size_t *used, struct err *e)
{
    if (c != '\n')
        return HTTP1_REFUSE(p, 400, e, "bare CR before a request");
    *used = 1;
    p->state = HTTP1_AT_START;
    return 0;
}

/* Takes line bytes; *ret_line.n is UINT32_MAX while the line goes on. */
static int take_line(struct http1 *p, struct http_head *h, struct span in, size_t *used,
                     struct http_piece *ret_line, struct err *e)
{
    int status = p->state == HTTP1_AT_FIRST_LINE ? 414 : 431;

    ret_line->n = UINT32_MAX;
    switch (http_line_take(h, p->line_at, p->limits->line_bytes, in, used)) {
    case HTTP_LINE_MORE:
        return 0;
    case HTTP_LINE_DONE:
        p->bad_status = 400;
        return http_line_end(h, p->line_at, ret_line, e);
    case HTTP_LINE_LONG:
        return HTTP1_REFUSE(p, status, e, "a line of the head is longer than %zu bytes",
                            p->limits->line_bytes);
    case HTTP_LINE_FULL:
        return HTTP1_REFUSE(p, status, e, "the head is larger than %zu bytes", h->text.max);
    }
    return 0;
}

static int first_line(struct http1 *p, struct span in, size_t *used, struct err *e)
{
    struct http_piece line;

    if (take_line(p, &p->head, in, used, &line, e) < 0)
        return -1;
    if (line.n == UINT32_MAX)
        return 0;
    if (http1_head_first(p, line, e) < 0)
        return -1;
    p->state = HTTP1_AT_FIELD_START;
    return 0;
}

/* A line of the head or of the trailers. */
static int field(struct http1 *p, struct http_head *h, struct span in, size_t *used, struct err *e)
{
    bool is_trailer = h == p->trailers;
    struct http_piece line;

    if (take_line(p, h, in, used, &line, e) < 0)
        return -1;
    if (line.n == UINT32_MAX)
        return 0;
    if (http_field_parse(h, line, HTTP_FIELD_STRICT, e) < 0) {
        p->bad_status = e->code == ERR_LIMIT ? 431 : 400;
        return -1;
    }
    p->state = is_trailer ? HTTP1_AT_TRAILER_START : HTTP1_AT_FIELD_START;
    return is_trailer ? http1_head_trailer(p, e) : http1_head_field(p, e);
}

static int field_start(struct http1 *p, struct span in, size_t *used, struct err *e)
{
    if (in.p[0] == '\r') {
        *used = 1;
        p->state = HTTP1_AT_HEAD_LF;
        return 0;
    }
    if (http1_head_lines(p, in, used, e) < 0)
        return -1;
    if (*used)
        return 0;
    p->line_at = (uint32_t)p->head.text.n;
    p->state = HTTP1_AT_FIELD;
    return 0;
}

static void trailer_start(struct http1 *p, uint8_t c, size_t *used)
{
    if (c == '\r') {
        *used = 1;
        p->state = HTTP1_AT_TRAILER_LF;
        return;
    }
    if (!p->trailers) {
        p->trailers = NEW(struct http_head);
        http_head_init(p->trailers, p->limits->trailer_bytes, p->limits->trailer_fields);
    }
    p->line_at = (uint32_t)p->trailers->text.n;
    p->state = HTTP1_AT_TRAILER;
}

static int chunk_size(struct http1 *p, uint8_t c, size_t *used, struct err *e)
{
    int digit = c >= '0' && c <= '9'                     ? c - '0'
                : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10
                                                         : -1;

    *used = 1;
    if (digit >= 0) {
        /* Fifteen digits cannot overflow, and no honest size needs them. */
        if (++p->digits > 15)
            return HTTP1_REFUSE(p, 400, e, "chunk size has too many digits");
        p->left = p->left * 16 + (unsigned)digit;
        return 0;
    }
    if (p->digits == 0 || (c != '\r' && c != ';'))
        return HTTP1_REFUSE(p, 400, e, "byte 0x%02x in a chunk size", c);
    p->state = c == '\r' ? HTTP1_AT_CHUNK_SIZE_LF : HTTP1_AT_CHUNK_EXT;
    return 0;
}

/* Extensions are read over; only their amount is watched. */
static int chunk_ext(struct http1 *p, struct span in, size_t *used, struct err *e)
{
    size_t cr = span_find(in, '\r');
    struct span text = span_slice(in, 0, cr);
    size_t room = p->limits->chunk_ext_bytes - p->ext_bytes;

    if (!http_value_is_valid(span_slice(text, 0, room)))
        return HTTP1_REFUSE(p, 400, e, "control byte in a chunk extension");
    if (text.n > room)
        return HTTP1_REFUSE(p, 400, e, "more than %zu bytes of chunk extensions",
                            p->limits->chunk_ext_bytes);
    p->ext_bytes += (uint32_t)text.n;
    *used = text.n;
    if (cr == SIZE_MAX)
        return 0;
    *used = cr + 1;
    p->state = HTTP1_AT_CHUNK_SIZE_LF;
    return 0;
}

static int chunk_size_lf(struct http1 *p, uint8_t c, size_t *used, struct err *e)
{
    if (c != '\n')
        return HTTP1_REFUSE(p, 400, e, "bare CR behind a chunk size");
    *used = 1;
    p->digits = 0;
    if (p->left > p->limits->body_bytes - MIN(p->body_bytes, p->limits->body_bytes))
        return HTTP1_REFUSE(p, 413, e, "body of more than %llu bytes",
                            (unsigned long long)p->limits->body_bytes);
    p->state = p->left ? HTTP1_AT_CHUNK_DATA : HTTP1_AT_TRAILER_START;
    return 0;
}

/* One fixed byte, then the next state. */
static int expect(struct http1 *p, uint8_t c, uint8_t want, enum http1_state next, size_t *used,
                  struct err *e)
{
    if (c != want)
        return HTTP1_REFUSE(p, 400, e, "byte 0x%02x where %s belongs", c,
                            want == '\r' ? "CR" : "LF");
    *used = 1;
    p->state = (uint8_t)next;
    return 0;
}

static enum http1_event body(struct http1 *p, struct span in, uint64_t most, size_t *used,
                             struct span *ret_data)
{
    size_t n = (size_t)MIN((uint64_t)in.n, most);

    if (n == 0)
        return HTTP1_MORE;
    *ret_data = span_of(in.p, n);
    *used = n;
    p->body_bytes += n;
    return HTTP1_DATA;
}

static enum http1_event counted_body(struct http1 *p, struct span in, size_t *used,
                                     struct span *ret_data)
{
    enum http1_event ev;

    if (p->left == 0 && p->state == HTTP1_AT_LENGTH) {
        p->state = HTTP1_AT_END;
        return HTTP1_END;
    }
    ev = body(p, in, p->left, used, ret_data);
    p->left -= *used;
    if (p->left == 0 && p->state == HTTP1_AT_CHUNK_DATA)
        p->state = HTTP1_AT_CHUNK_CR;
    return ev;
}

static enum http1_event open_body(struct http1 *p, struct span in, size_t *used,
                                  struct span *ret_data, struct err *e)
{
    uint64_t room = p->limits->body_bytes - p->body_bytes;

    if (room == 0) {
        (void)HTTP1_REFUSE(p, 413, e, "body of more than %llu bytes",
                           (unsigned long long)p->limits->body_bytes);
        return HTTP1_BAD;
    }
    return body(p, in, room, used, ret_data);
}

static enum http1_event verdict(int r)
{
    return r < 0 ? HTTP1_BAD : HTTP1_MORE;
}

/* The states that end a head or a message: the LF of a blank line. */
static enum http1_event blank_lf(struct http1 *p, uint8_t c, size_t *used, struct err *e)
{
    bool is_head = p->state == HTTP1_AT_HEAD_LF;

    if (expect(p, c, '\n', HTTP1_AT_END, used, e) < 0)
        return HTTP1_BAD;
    if (!is_head)
        return HTTP1_END;
    return http1_head_finish(p, e) < 0 ? HTTP1_BAD : HTTP1_HEAD; /* which sets the state */
}

/* One step. HTTP1_MORE with nothing used and the same state: more input is needed. */
static enum http1_event step(struct http1 *p, struct span in, size_t *used, struct span *ret_data,
                             struct err *e)
{
    uint8_t c = in.n ? in.p[0] : 0;

    if (in.n == 0 && p->state != HTTP1_AT_LENGTH && p->state != HTTP1_AT_END &&
        p->state != HTTP1_AT_BROKEN)
        return HTTP1_MORE;
    switch ((enum http1_state)p->state) {
    case HTTP1_AT_START:
        return verdict(start(p, c, used, e));
    case HTTP1_AT_START_LF:
        return verdict(start_lf(p, c, used, e));
    case HTTP1_AT_FIRST_LINE:
        return verdict(first_line(p, in, used, e));
    case HTTP1_AT_FIELD_START:
        return verdict(field_start(p, in, used, e));
    case HTTP1_AT_FIELD:
        return verdict(field(p, &p->head, in, used, e));
    case HTTP1_AT_HEAD_LF:
    case HTTP1_AT_TRAILER_LF:
        return blank_lf(p, c, used, e);
    case HTTP1_AT_LENGTH:
    case HTTP1_AT_CHUNK_DATA:
        return counted_body(p, in, used, ret_data);
    case HTTP1_AT_CLOSE:
        return open_body(p, in, used, ret_data, e);
    case HTTP1_AT_CHUNK_SIZE:
        return verdict(chunk_size(p, c, used, e));
    case HTTP1_AT_CHUNK_EXT:
        return verdict(chunk_ext(p, in, used, e));
    case HTTP1_AT_CHUNK_SIZE_LF:
        return verdict(chunk_size_lf(p, c, used, e));
    case HTTP1_AT_CHUNK_CR:
        return verdict(expect(p, c, '\r', HTTP1_AT_CHUNK_LF, used, e));
    case HTTP1_AT_CHUNK_LF:
        return verdict(expect(p, c, '\n', HTTP1_AT_CHUNK_SIZE, used, e));
    case HTTP1_AT_TRAILER_START:
        trailer_start(p, c, used);
        return HTTP1_MORE;
    case HTTP1_AT_TRAILER:
        return verdict(field(p, p->trailers, in, used, e));
    case HTTP1_AT_END:
        return HTTP1_END;
    case HTTP1_AT_BROKEN:
        err_set(e, ERR_PROTOCOL, "the connection's HTTP is broken already");
        return HTTP1_BAD;
    }
    return HTTP1_BAD;
}

enum http1_event http1_feed(struct http1 *p, struct span in, size_t *ret_used,
                            struct span *ret_data, struct err *e)
{
    enum http1_event ev;
    size_t used = 0;
    uint8_t before;
    bool moved;

    do {
        size_t n = 0;

        before = p->state;
        ev = step(p, span_skip(in, used), &n, ret_data, e);
        used += n;
        moved = n != 0 || p->state != before;
    } while (ev == HTTP1_MORE && moved);
    if (ev == HTTP1_BAD) {
        if (p->kind == HTTP1_RESPONSE)
            p->bad_status = 502; /* what a gateway says of it; nobody else answers a response */
        p->state = HTTP1_AT_BROKEN;
    }
    *ret_used = used;
    return ev;
}

enum http1_event http1_eof(struct http1 *p, struct err *e)
{
    if (p->state == HTTP1_AT_START || p->state == HTTP1_AT_START_LF || p->state == HTTP1_AT_END)
        return HTTP1_MORE;
    if (p->state == HTTP1_AT_CLOSE || (p->state == HTTP1_AT_LENGTH && p->left == 0)) {
        p->state = HTTP1_AT_END;
        return HTTP1_END;
    }
    if (p->state != HTTP1_AT_BROKEN)
        p->bad_status = p->kind == HTTP1_RESPONSE ? 502 : 400;
    err_set(e, ERR_CLOSED, "the connection was closed in the middle of a %s%s",
            p->kind == HTTP1_REQUEST ? "request" : "response",
            p->state < HTTP1_AT_LENGTH ? "'s head" : "");
    p->state = HTTP1_AT_BROKEN;
    return HTTP1_BAD;
}
