#include "http/grpc.h"

#include "base/str.h"

#define TIMEOUT_DIGITS_MAX 8

static const char *const names[GRPC_STATUS_COUNT] = {
    [GRPC_OK] = "OK",
    [GRPC_CANCELLED] = "CANCELLED",
    [GRPC_UNKNOWN] = "UNKNOWN",
    [GRPC_INVALID_ARGUMENT] = "INVALID_ARGUMENT",
    [GRPC_DEADLINE_EXCEEDED] = "DEADLINE_EXCEEDED",
    [GRPC_NOT_FOUND] = "NOT_FOUND",
    [GRPC_ALREADY_EXISTS] = "ALREADY_EXISTS",
    [GRPC_PERMISSION_DENIED] = "PERMISSION_DENIED",
    [GRPC_RESOURCE_EXHAUSTED] = "RESOURCE_EXHAUSTED",
    [GRPC_FAILED_PRECONDITION] = "FAILED_PRECONDITION",
    [GRPC_ABORTED] = "ABORTED",
    [GRPC_OUT_OF_RANGE] = "OUT_OF_RANGE",
    [GRPC_UNIMPLEMENTED] = "UNIMPLEMENTED",
    [GRPC_INTERNAL] = "INTERNAL",
    [GRPC_UNAVAILABLE] = "UNAVAILABLE",
    [GRPC_DATA_LOSS] = "DATA_LOSS",
    [GRPC_UNAUTHENTICATED] = "UNAUTHENTICATED",
};

static const enum err_code codes[GRPC_STATUS_COUNT] = {
    [GRPC_OK] = ERR_NONE,
    [GRPC_CANCELLED] = ERR_CANCELED,
    [GRPC_UNKNOWN] = ERR_INTERNAL,
    [GRPC_INVALID_ARGUMENT] = ERR_INVALID,
    [GRPC_DEADLINE_EXCEEDED] = ERR_TIMEOUT,
    [GRPC_NOT_FOUND] = ERR_NOT_FOUND,
    [GRPC_ALREADY_EXISTS] = ERR_EXISTS,
    [GRPC_PERMISSION_DENIED] = ERR_DENIED,
    [GRPC_RESOURCE_EXHAUSTED] = ERR_LIMIT,
    [GRPC_FAILED_PRECONDITION] = ERR_CONFLICT,
    [GRPC_ABORTED] = ERR_CONFLICT,
    [GRPC_OUT_OF_RANGE] = ERR_INVALID,
    [GRPC_UNIMPLEMENTED] = ERR_UNSUPPORTED,
    [GRPC_INTERNAL] = ERR_INTERNAL,
    [GRPC_UNAVAILABLE] = ERR_UNAVAILABLE,
    [GRPC_DATA_LOSS] = ERR_INTERNAL,
    [GRPC_UNAUTHENTICATED] = ERR_UNAUTHORIZED,
};

/* Statuses. */

const char *grpc_status_name(enum grpc_status status)
{
    return (unsigned)status < GRPC_STATUS_COUNT ? names[status] : names[GRPC_UNKNOWN];
}

enum grpc_status grpc_status_of(enum err_code code)
{
    return (enum grpc_status)err_map(code)->grpc;
}

enum err_code grpc_err_code(enum grpc_status status)
{
    return (unsigned)status < GRPC_STATUS_COUNT ? codes[status] : ERR_INTERNAL;
}

enum grpc_status grpc_status_of_reset(uint32_t h2_code)
{
    switch (h2_code) { /* the table of gRPC over HTTP/2, numbers of RFC 9113 section 7 */
    case 7:
        return GRPC_UNAVAILABLE; /* REFUSED_STREAM: nothing ran */
    case 8:
        return GRPC_CANCELLED;
    case 11:
        return GRPC_RESOURCE_EXHAUSTED; /* ENHANCE_YOUR_CALM */
    case 12:
        return GRPC_PERMISSION_DENIED; /* INADEQUATE_SECURITY */
    default:
        return GRPC_INTERNAL;
    }
}

enum grpc_status grpc_status_of_http(int http_status)
{
    switch (http_status) {
    case 400:
        return GRPC_INTERNAL;
    case 401:
        return GRPC_UNAUTHENTICATED;
    case 403:
        return GRPC_PERMISSION_DENIED;
    case 404:
        return GRPC_UNIMPLEMENTED;
    case 429:
    case 502:
    case 503:
    case 504:
        return GRPC_UNAVAILABLE;
    default:
        return GRPC_UNKNOWN;
    }
}

/* Texts. */

int grpc_message_encode(struct span text, struct buf *out, struct err *e)
{
    for (size_t i = 0; i < text.n; i++) {
        uint8_t c = text.p[i];
        int r =
            c >= ' ' && c <= '~' && c != '%' ? buf_addc(out, c, e) : buf_addf(out, e, "%%%02X", c);

        if (r < 0)
            return -1;
    }
    return 0;
}

int grpc_message_decode(struct span value, struct buf *out, struct err *e)
{
    return str_percent_decode(value, out, e);
}

static const struct unit {
    char letter;
    uint64_t ns;
} units[] = { /* finest first */
              { 'n', 1 },
              { 'u', 1000 },
              { 'm', 1000 * 1000 },
              { 'S', 1000 * 1000 * 1000 },
              { 'M', 60ull * 1000 * 1000 * 1000 },
              { 'H', 3600ull * 1000 * 1000 * 1000 }
};

#define NS_PER_MS (1000 * 1000)

bool grpc_timeout_parse(struct span value, uint64_t *ret_ms)
{
    uint64_t n;

    if (value.n < 2 || value.n > TIMEOUT_DIGITS_MAX + 1 ||
        !str_u64(span_slice(value, 0, value.n - 1), UINT32_MAX, &n))
        return false;
    EACH(u, units) {
        if (value.p[value.n - 1] != (uint8_t)u->letter)
            continue;
        if (u->ns < NS_PER_MS)
            *ret_ms = (n * u->ns + NS_PER_MS - 1) / NS_PER_MS;
        else
            *ret_ms = n * (u->ns / NS_PER_MS);
        return true;
    }
    return false;
}

const char *grpc_timeout_format(char text[GRPC_TIMEOUT_TEXT_BYTES], uint64_t ms)
{
    EACH(u, units) {
        uint64_t per = u->ns / NS_PER_MS, n;

        if (per == 0)
            continue; /* finer than we are asked for */
        n = ms / per + (ms % per != 0);
        if (n > 99999999 && u->letter != 'H')
            continue;
        (void)snprintf(text, GRPC_TIMEOUT_TEXT_BYTES, "%u%c", (unsigned)MIN(n, (uint64_t)99999999),
                       u->letter);
        break;
    }
    return text;
}

/* Requests. */

bool grpc_content_type_is_ours(struct span value)
{
    struct span type = span_trim(span_slice(value, 0, span_find(value, ';')));

    return span_is_nocase(type, "application/grpc") ||
           span_is_nocase(type, "application/grpc+proto");
}

bool grpc_is_call(const struct http_head *request)
{
    return grpc_content_type_is_ours(http_head_get(request, "content-type"));
}

bool grpc_path_split(struct span path, struct span *ret_service, struct span *ret_method)
{
    size_t slash;

    if (path.n < 1 || path.p[0] != '/')
        return false;
    path = span_skip(path, 1);
    slash = span_find(path, '/');
    if (slash == SIZE_MAX || slash == 0 || slash + 1 == path.n)
        return false;
    if (span_find(span_skip(path, slash + 1), '/') != SIZE_MAX)
        return false;
    *ret_service = span_slice(path, 0, slash);
    *ret_method = span_skip(path, slash + 1);
    return true;
}

int grpc_call_read(const struct http_head *request, struct grpc_call *ret, struct err *e)
{
    struct span timeout = http_head_get(request, "grpc-timeout");
    struct span encoding = http_head_get(request, "grpc-encoding");
    struct span path = http_head_target(request);
    struct grpc_call call = { 0 };

    if (!span_is(http_head_method(request), "POST"))
        return err_set(e, ERR_PROTOCOL, "a call is a POST, not '%.*s'",
                       SPAN_ARG(http_head_method(request)));
    if (timeout.p) {
        if (!grpc_timeout_parse(timeout, &call.timeout_ms))
            return err_set(e, ERR_PROTOCOL, "malformed grpc-timeout '%.*s'",
                           SPAN_ARG(span_slice(timeout, 0, 32)));
        call.has_timeout = true;
    }
    if (encoding.n > 0 && !span_is_nocase(encoding, "identity"))
        return err_set(e, ERR_UNSUPPORTED, "grpc-encoding '%.*s' is not supported",
                       SPAN_ARG(span_slice(encoding, 0, 32)));
    if (!grpc_path_split(path, &call.service, &call.method))
        return err_set(e, ERR_UNSUPPORTED, "malformed method name '%.*s'",
                       SPAN_ARG(span_slice(path, 0, 128)));
    *ret = call;
    return 0;
}

/* Heads. */

int grpc_response_head(struct http_head *head, struct err *e)
{
    http_head_clear(head);
    http_head_set_status(head, 200);
    return http_head_add(head, SPAN("content-type"), SPAN("application/grpc"), e);
}

static int add_status(struct http_head *head, enum grpc_status status, struct span message,
                      struct err *e)
{
    OWN(buf_done) struct buf text = BUF_INIT(3 * GRPC_MESSAGE_TEXT_BYTES);
    const char digits[] = { (char)('0' + status / 10), (char)('0' + status % 10) };
    size_t skip = status < 10 ? 1 : 0;

    assert(status < 100);
    if (http_head_add(head, SPAN("grpc-status"), span_of(digits + skip, 2 - skip), e) < 0)
        return -1;
    if (message.n == 0)
        return 0;
    message = span_slice(message, 0, GRPC_MESSAGE_TEXT_BYTES);
    message.n -= str_utf8_partial_tail(message); /* a cut must not halve a character */
    if (grpc_message_encode(message, &text, e) < 0)
        return -1;
    return http_head_add(head, SPAN("grpc-message"), buf_span(&text), e);
}

int grpc_trailers(struct http_head *trailers, enum grpc_status status, struct span message,
                  struct err *e)
{
    http_head_clear(trailers);
    return add_status(trailers, status, message, e);
}

int grpc_trailers_only(struct http_head *head, enum grpc_status status, struct span message,
                       struct err *e)
{
    if (grpc_response_head(head, e) < 0)
        return -1;
    return add_status(head, status, message, e);
}

int grpc_request_head(struct http_head *head, struct span authority, struct span path,
                      uint64_t timeout_ms, struct err *e)
{
    char text[GRPC_TIMEOUT_TEXT_BYTES];

    http_head_clear(head);
    if (http_head_set_request(head, SPAN("POST"), path, e) < 0 ||
        http_head_set_scheme(head, SPAN("http"), e) < 0 ||
        http_head_set_authority(head, authority, e) < 0 ||
        http_head_add(head, SPAN("te"), SPAN("trailers"), e) < 0 ||
        http_head_add(head, SPAN("content-type"), SPAN("application/grpc"), e) < 0 ||
        http_head_add(head, SPAN("user-agent"), SPAN("silica/" SILICA_VERSION), e) < 0)
        return -1;
    if (timeout_ms == 0)
        return 0;
    return http_head_add(head, SPAN("grpc-timeout"),
                         span_cstr(grpc_timeout_format(text, timeout_ms)), e);
}

enum grpc_status grpc_status_read(const struct http_head *trailers, struct buf *message)
{
    struct span status = http_head_get(trailers, "grpc-status");
    OWN(buf_done) struct buf text = BUF_INIT(64 * 1024);
    uint64_t number;
    struct err e;

    buf_clear(message);
    if (grpc_message_decode(http_head_get(trailers, "grpc-message"), &text, &e) == 0)
        (void)buf_add_capped(message, buf_span(&text));
    if (status.p)
        return str_u64(status, INT32_MAX, &number) ? (enum grpc_status)number : GRPC_UNKNOWN;
    if (trailers->status != 0 && trailers->status != 200)
        return grpc_status_of_http(trailers->status);
    return GRPC_UNKNOWN;
}

int grpc_status_err(const struct http_head *trailers, struct err *e)
{
    OWN(buf_done) struct buf message = BUF_INIT(GRPC_MESSAGE_TEXT_BYTES);
    enum grpc_status status = grpc_status_read(trailers, &message);

    if (status == GRPC_OK)
        return 0;
    if (message.n == 0)
        return err_set(e, grpc_err_code(status), "%s", grpc_status_name(status));
    return err_set(e, grpc_err_code(status), "%s", buf_cstr(&message));
}
