#include "http/h2_impl.h"

#define FIELDS_ON_STACK  48          /* more go to the heap */
#define CHUNK_MIN_BYTES  (4096 - 64) /* small sends share a block */
#define FRAME_HEAD_BYTES 9

/* Heads. */

/* What belongs to one HTTP/1 connection and must not go on (RFC 9113 8.2.2); the authority is a
 * pseudo field. */
static bool is_left_out(struct span name, struct span value, bool has_authority)
{
    static const char *const bound[] = { "connection",        "keep-alive", "proxy-connection",
                                         "transfer-encoding", "upgrade",    "http2-settings" };

    EACH(b, bound) {
        if (span_is(name, *b))
            return true;
    }
    if (span_is(name, "te"))
        return !span_is_nocase(value, "trailers");
    return has_authority && span_is(name, "host");
}

static void put(nghttp2_nv *v, size_t *n, struct span name, struct span value)
{
    v[(*n)++] = (nghttp2_nv){ (uint8_t *)(uintptr_t)name.p, (uint8_t *)(uintptr_t)value.p, name.n,
                              value.n, NGHTTP2_NV_FLAG_NONE };
}

static void put_pseudo(nghttp2_nv *v, size_t *n, struct span name, struct span value)
{
    if (value.n > 0)
        put(v, n, name, value);
}

/* May it go on the wire? A head can come from another connection, so its bytes are not trusted. */
static int check(const struct http_head *head, struct err *e)
{
    struct span parts[] = { http_head_method(head), http_head_target(head),
                            http_head_authority(head), http_head_scheme(head),
                            http_head_protocol(head) };
    struct span name, value;

    EACH(part, parts) {
        if (!http_value_is_valid(*part))
            return err_set(e, ERR_INVALID, "the first line holds a control byte");
    }
    for (size_t i = 0; i < http_head_count(head); i++) {
        http_head_field(head, i, &name, &value);
        if (!http_name_is_valid(name))
            return err_set(e, ERR_INVALID, "'%.*s' is no field name", SPAN_ARG(name));
        if (!http_value_is_valid(value))
            return err_set(e, ERR_INVALID, "field '%.*s' holds a control byte", SPAN_ARG(name));
    }
    return 0;
}

/* Fills v, which has room for the head's fields and six more, and returns how many it used.
 * Values are borrowed from the head and from `status`. */
static size_t fill(nghttp2_nv *v, const struct http_head *head, char status[4])
{
    bool is_request = http_head_method(head).n > 0;
    struct span name, value, scheme = http_head_scheme(head);
    size_t n = 0;

    if (is_request) {
        put_pseudo(v, &n, SPAN(":method"), http_head_method(head));
        put_pseudo(v, &n, SPAN(":scheme"), scheme.n ? scheme : SPAN("http"));
        put_pseudo(v, &n, SPAN(":authority"), http_head_authority(head));
        put_pseudo(v, &n, SPAN(":path"), http_head_target(head));
        put_pseudo(v, &n, SPAN(":protocol"), http_head_protocol(head));
    } else if (head->status > 0) {
        status[0] = (char)('0' + head->status / 100);
        status[1] = (char)('0' + head->status / 10 % 10);
        status[2] = (char)('0' + head->status % 10);
        put_pseudo(v, &n, SPAN(":status"), span_of(status, 3));
    }
    for (size_t i = 0; i < http_head_count(head); i++) {
        http_head_field(head, i, &name, &value);
        if (!is_left_out(name, value, is_request && http_head_authority(head).n > 0))
            put(v, &n, name, value);
    }
    return n;
}

enum submit { SUBMIT_REQUEST, SUBMIT_RESPONSE, SUBMIT_INFO, SUBMIT_TRAILERS };

static int submit(struct h2_stream *s, enum submit kind, const struct http_head *head, bool is_end,
                  struct err *e)
{
    nghttp2_data_provider body = { .source.ptr = s, .read_callback = h2_on_read };
    nghttp2_session *session = s->h->session;
    nghttp2_nv few[FIELDS_ON_STACK];
    OWN_MEM nghttp2_nv *many = NULL;
    nghttp2_nv *v = few;
    char status[4];
    size_t n;
    int r = 0;

    if (check(head, e) < 0)
        return -1;
    if (http_head_count(head) + 6 > LEN(few))
        v = many = own_array(http_head_count(head) + 6, sizeof v[0]);
    n = fill(v, head, status);
    switch (kind) {
    case SUBMIT_REQUEST:
        r = nghttp2_submit_request(session, NULL, v, n, is_end ? NULL : &body, s);
        break;
    case SUBMIT_RESPONSE:
        r = nghttp2_submit_response(session, s->id, v, n, is_end ? NULL : &body);
        break;
    case SUBMIT_INFO:
        r = nghttp2_submit_headers(session, NGHTTP2_FLAG_NONE, s->id, NULL, v, n, NULL);
        break;
    case SUBMIT_TRAILERS:
        r = nghttp2_submit_trailer(session, s->id, v, n);
        break;
    }
    if (r < 0)
        return err_set(e, ERR_INTERNAL, "cannot send a head: %s", nghttp2_strerror(r));
    return r;
}

int h2_request(struct h2 *h, const struct http_head *head, bool is_end, void *user,
               struct h2_stream **ret, struct err *e)
{
    struct h2_stream *s;
    int id;

    assert(h->config.role == H2_CLIENT);
    if (h->lost != ERR_NONE || h->is_shut || !nghttp2_session_check_request_allowed(h->session))
        return err_set(e, ERR_UNAVAILABLE, "the HTTP/2 connection takes no new requests");
    if (http_head_method(head).n == 0 || http_head_target(head).n == 0)
        return err_set(e, ERR_INVALID, "a request needs a method and a path");
    s = h2_stream_new(h, 0);
    id = submit(s, SUBMIT_REQUEST, head, is_end, e);
    if (id < 0) {
        h2_stream_free(s);
        return -1;
    }
    s->id = id;
    s->user = user;
    s->is_responded = true;
    h2_stream_announce(s);
    s->is_finishing = is_end;
    *ret = s;
    return 0;
}

int h2_respond(struct h2_stream *s, const struct http_head *head, bool is_end, struct err *e)
{
    bool is_info = head->status < 200;

    if (s->is_reset || s->h->lost != ERR_NONE)
        return 0; /* nobody listens any more; on_close says so */
    if (head->status == 0 || s->is_responded)
        return err_set(e, ERR_INTERNAL, "%s", s->is_responded ? "answered twice" : "no status");
    if (submit(s, is_info ? SUBMIT_INFO : SUBMIT_RESPONSE, head, is_end, e) < 0)
        return -1;
    if (is_info)
        return 0;
    s->is_responded = true;
    if (is_end)
        s->is_finishing = true;
    return 0;
}

int h2_answer_431(struct h2_stream *s)
{
    OWN(http_head_done) struct http_head head;
    struct err e;

    http_head_init(&head, 256, 4);
    http_head_set_status(&head, 431);
    if (http_head_add(&head, SPAN("content-length"), SPAN("0"), &e) < 0)
        return -1;
    return h2_respond(s, &head, true, &e);
}

/* The queue. */

static void resume(struct h2_stream *s)
{
    if (!s->is_deferred)
        return;
    s->is_deferred = false;
    (void)nghttp2_session_resume_data(s->h->session, s->id);
}

static struct h2_chunk *chunk_add(struct h2_stream *s, size_t cap)
{
    struct h2_chunk *c = own_resize(NULL, 1, sizeof *c + cap);

    *c = (struct h2_chunk){ .p = c->inside, .cap = cap };
    if (s->last)
        s->last->next = c;
    else
        s->first = c;
    s->last = c;
    return c;
}

static void chunk_drop_first(struct h2_stream *s)
{
    struct h2_chunk *c = s->first;

    s->first = c->next;
    if (!s->first)
        s->last = NULL;
    if (c->p != c->inside)
        free(c->p);
    free(c);
}

void h2_queue_drop(struct h2_stream *s)
{
    while (s->first)
        chunk_drop_first(s);
    s->queued = 0;
    http_head_done(s->trailers_out);
    free(take_ptr(&s->trailers_out));
}

static size_t added(struct h2_stream *s, size_t n)
{
    s->queued += n;
    if (h2_is_full(s))
        s->was_full = true;
    resume(s);
    return s->queued;
}

static bool is_deaf(const struct h2_stream *s)
{
    return s->is_finishing || s->is_reset;
}

size_t h2_send(struct h2_stream *s, struct span bytes)
{
    struct h2_chunk *c = s->last;

    if (bytes.n == 0 || is_deaf(s))
        return s->queued;
    if (!c || c->cap - c->n < bytes.n)
        c = chunk_add(s, MAX(bytes.n, (size_t)CHUNK_MIN_BYTES));
    memcpy(c->p + c->n, bytes.p, bytes.n);
    c->n += bytes.n;
    return added(s, bytes.n);
}

size_t h2_send_buf(struct h2_stream *s, struct buf *bytes)
{
    struct h2_chunk *c;
    struct buf taken = BUF_INIT(0);

    if (bytes->n == 0 || is_deaf(s)) {
        buf_clear(bytes);
        return s->queued;
    }
    buf_move(&taken, bytes);
    c = chunk_add(s, 0);
    c->p = taken.p;
    c->n = c->cap = taken.n;
    return added(s, taken.n);
}

int h2_finish(struct h2_stream *s, const struct http_head *trailers, struct err *e)
{
    if (is_deaf(s))
        return 0;
    if (trailers && http_head_count(trailers) > 0) {
        if (check(trailers, e) < 0) {
            h2_reset(s, H2_INTERNAL_ERROR);
            return -1;
        }
        s->trailers_out = NEW(struct http_head);
        http_head_init(s->trailers_out, trailers->text.n, trailers->field_count);
        if (http_head_copy(s->trailers_out, trailers, e) < 0)
            return -1;
    }
    s->is_finishing = true;
    resume(s);
    return 0;
}

void h2_reset(struct h2_stream *s, uint32_t code)
{
    if (s->is_reset)
        return;
    s->is_reset = true;
    h2_queue_drop(s);
    (void)nghttp2_submit_rst_stream(s->h->session, NGHTTP2_FLAG_NONE, s->id, code);
}

void h2_consume(struct h2_stream *s, size_t n)
{
    n = MIN(n, s->unconsumed);
    s->unconsumed -= n;
    (void)nghttp2_session_consume(s->h->session, s->id, n);
}

/* Framing. nghttp2 asks how much goes into the next DATA frame, then lets us write it: bytes are
 * copied once, from the queue to the connection's buffer. */

ssize_t h2_on_read(nghttp2_session *session, int32_t id, uint8_t *p, size_t max, uint32_t *flags,
                   nghttp2_data_source *source, void *ctx)
{
    struct h2_stream *s = source->ptr;
    size_t n = MIN(max, s->queued);
    struct err e;

    if (s->is_reset)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    if (n == 0 && !s->is_finishing) {
        s->is_deferred = true;
        return NGHTTP2_ERR_DEFERRED;
    }
    *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
    if (n < s->queued || !s->is_finishing)
        return (ssize_t)n;
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    if (s->trailers_out) {
        *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
        if (submit(s, SUBMIT_TRAILERS, s->trailers_out, true, &e) < 0)
            return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    }
    return (ssize_t)n;
}

int h2_on_write(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *frame_head, size_t n,
                nghttp2_data_source *source, void *ctx)
{
    struct h2 *h = ctx;
    struct h2_stream *s = source->ptr;
    struct err e;

    /* nghttp2 goes on to the next stream by itself, so this is where a pull stops. */
    if (h->out->n >= h->out_end)
        return NGHTTP2_ERR_WOULDBLOCK;
    if (buf_reserve(h->out, FRAME_HEAD_BYTES + n, &e) < 0) {
        h->is_out_full = true;
        return NGHTTP2_ERR_WOULDBLOCK; /* the frame waits for the next pull */
    }
    /* There is room for the frame: it was reserved. */
    (void)buf_add(h->out, span_of(frame_head, FRAME_HEAD_BYTES), &e);
    while (n > 0) {
        struct h2_chunk *c = s->first;
        size_t take = MIN(n, c->n - c->at);

        /* Fits: reserved above. */
        (void)buf_add(h->out, span_of(c->p + c->at, take), &e);
        c->at += take;
        n -= take;
        s->queued -= take;
        if (c->at == c->n)
            chunk_drop_first(s);
    }
    return 0;
}

int h2_pull(struct h2 *h, struct buf *out, size_t want, struct err *e)
{
    size_t start = out->n, end = want < SIZE_MAX - start ? start + want : SIZE_MAX;
    const uint8_t *p;
    ssize_t n = 1;

    h->out = out;
    h->out_end = end;
    h->is_out_full = false;
    while (out->n < end && n != 0) {
        size_t before = out->n;

        n = nghttp2_session_mem_send(h->session, &p);
        if (n < 0) {
            h2_lose(h, ERR_INTERNAL, H2_INTERNAL_ERROR, nghttp2_strerror((int)n));
            return err_set(e, ERR_INTERNAL, "cannot frame: %s", nghttp2_strerror((int)n));
        }
        if (n > 0 && buf_add(out, span_of(p, (size_t)n), e) < 0) {
            h2_lose(h, ERR_LIMIT, H2_INTERNAL_ERROR, "the output reached its ceiling");
            return -1;
        }
        if (out->n > before)
            n = 1; /* h2_on_write wrote a frame by itself */
    }
    h->out = NULL;
    if (h->is_out_full && out->n == start)
        return err_set(e, ERR_LIMIT, "a buffer of %zu bytes cannot take a frame", out->max);
    return h2_wants_write(h);
}

size_t h2_queued(const struct h2_stream *s)
{
    return s->queued;
}

bool h2_is_full(const struct h2_stream *s)
{
    return s->queued >= s->h->config.send_high;
}

void h2_set_user(struct h2_stream *s, void *user)
{
    s->user = user;
}

void *h2_user(const struct h2_stream *s)
{
    return s->user;
}

struct h2 *h2_of(const struct h2_stream *s)
{
    return s->h;
}

uint32_t h2_id(const struct h2_stream *s)
{
    return (uint32_t)s->id;
}

const struct http_head *h2_head(const struct h2_stream *s)
{
    return s->has_head ? &s->head : NULL;
}
