#include "router/fields.h"

#include "base/str.h"
#include "http/grpc.h"
#include "http/limits.h"
#include "router/match.h"

/* Of what we say of the client and the target: one allocation for most */
#define ADDED_GUESS_BYTES 255

/* One connection's business (RFC 9110 7.6.1). The length alone rules nearly every field out. */
static bool is_hop(struct span name)
{
    switch (name.n) {
    case sizeof "te" - 1:
        return span_is(name, "te");
    case sizeof "trailer" - 1: /* upgrade */
        return span_is(name, "trailer") || span_is(name, "upgrade");
    case sizeof "connection" - 1: /* keep-alive */
        return span_is(name, "connection") || span_is(name, "keep-alive");
    case sizeof "proxy-connection" - 1:
        return span_is(name, "proxy-connection");
    case sizeof "transfer-encoding" - 1:
        return span_is(name, "transfer-encoding");
    case sizeof "proxy-authenticate" - 1:
        return span_is(name, "proxy-authenticate");
    case sizeof "proxy-authorization" - 1:
        return span_is(name, "proxy-authorization");
    }
    return false;
}

/* Said anew for the sandbox, or to us alone. */
static bool is_said_anew(struct span name)
{
    switch (name.n) {
    case sizeof "host" - 1:
        return span_is(name, "host");
    case sizeof "expect" - 1:
        return span_is(name, "expect");
    case sizeof "forwarded" - 1:
        return span_is(name, "forwarded");
    case sizeof "authorization" - 1:
        return span_is(name, "authorization");
    case sizeof "content-length" - 1:
        return span_is(name, "content-length");
    case sizeof "x-forwarded-for" - 1:
        return span_is(name, "x-forwarded-for");
    case sizeof "x-forwarded-host" - 1:
        return span_is(name, "x-forwarded-host");
    case sizeof "x-forwarded-proto" - 1:
        return span_is(name, "x-forwarded-proto");
    }
    return false;
}

static bool is_same_name(struct span token, struct span name)
{
    if (token.n != name.n)
        return false;
    for (size_t i = 0; i < name.n; i++)
        if (http_token_fold[token.p[i]] != name.p[i])
            return false;
    return true;
}

/* Connection names fields that go no further than this connection. */
static bool is_named(const struct http_head *head, struct span name)
{
    struct span list, token;
    size_t iter = 0;

    while ((list = http_head_next(head, "connection", &iter)).p)
        while (span_cut(&list, ',', &token))
            if (is_same_name(span_trim(token), name))
                return true;
    return false;
}

/* Does Connection name any field but those that never go on? Most say keep-alive, or nothing. */
static bool has_named(const struct http_head *head)
{
    struct span list, token;
    size_t iter = 0;

    while ((list = http_head_next(head, "connection", &iter)).p) {
        if (span_is(list, "keep-alive") || span_is(list, "close"))
            continue;
        while (span_cut(&list, ',', &token))
            if (!span_is_nocase(span_trim(token), "upgrade"))
                return true;
    }
    return false;
}

static bool is_passed(const struct http_exchange *x, struct span name)
{
    if (is_hop(name) || is_said_anew(name) || match_is_ours(name))
        return false;
    /* The page's origin says nothing to the sandbox, whose address it is not; servers refuse WebSockets for it. */
    if (span_is(name, "origin") && http_upgrade(x).p)
        return false;
    return true;
}

/* HTTP/2 cuts cookies into fields of their own; HTTP/1.1 has one (RFC 9113 8.2.3). */
static int add_cookies(const struct http_head *from, struct http_head *to, struct err *e)
{
    OWN(buf_done) struct buf all = BUF_INIT(HTTP_HEAD_MAX_BYTES);
    struct span one;
    size_t iter = 0;

    while ((one = http_head_next(from, "cookie", &iter)).p)
        if ((all.n && buf_add(&all, SPAN("; "), e) < 0) || buf_add(&all, one, e) < 0)
            return -1;
    return all.n ? http_head_add_ours(to, SPAN("cookie"), buf_span(&all), e) : 0;
}

/* What a trusted peer says of a field, else what we see ourselves. */
static int add_seen(const struct http_exchange *x, bool is_trusted, const char *name,
                    struct span ours, struct http_head *to, struct err *e)
{
    struct span theirs = is_trusted ? http_field(x, name) : SPAN_NONE;
    struct span value = theirs.n ? theirs : ours;

    return value.n ? http_head_add_ours(to, span_cstr(name), value, e) : 0;
}

static int add_forwarded(const struct http_exchange *x, bool is_trusted, struct http_head *to,
                         struct err *e)
{
    OWN(buf_done) struct buf path = BUF_INIT(HTTP_HEAD_MAX_BYTES);
    const struct http_head *from = http_req(x);
    char text[NET_ADDR_TEXT_BYTES];
    struct span ip = span_cstr(net_addr_ip_text(http_peer(x), text)), one;
    size_t iter = 0;

    while (is_trusted && (one = http_head_next(from, "x-forwarded-for", &iter)).p)
        if (one.n && (buf_add(&path, one, e) < 0 || buf_add(&path, SPAN(", "), e) < 0))
            return -1;
    if (path.n && buf_add(&path, ip, e) < 0)
        return -1;
    if (ip.n &&
        http_head_add_ours(to, SPAN("x-forwarded-for"), path.n ? buf_span(&path) : ip, e) < 0)
        return -1;
    return add_seen(x, is_trusted, "x-forwarded-host", http_head_authority(from), to, e) < 0 ||
                   add_seen(x, is_trusted, "x-forwarded-proto",
                            http_filter(x) ? SPAN("https") : SPAN("http"), to, e) < 0
               ? -1
               : 0;
}

static int add_hop(const struct http_exchange *x, struct http_head *to, struct err *e)
{
    struct span protocol = http_upgrade(x);

    if (protocol.p && (http_head_add_ours(to, SPAN("connection"), SPAN("Upgrade"), e) < 0 ||
                       http_head_add_ours(to, SPAN("upgrade"), protocol, e) < 0))
        return -1;
    if (http_head_has_token(http_req(x), "te", "trailers"))
        return http_head_add_ours(to, SPAN("te"), SPAN("trailers"), e);
    return 0;
}

int fields_request(const struct http_exchange *x, bool is_trusted, struct http_head *to,
                   struct err *e)
{
    const struct http_head *from = http_req(x);
    bool has_names = has_named(from), is_h2 = http_is_h2(x);

    http_head_reserve(to, from->text.n + ADDED_GUESS_BYTES);
    if (http_head_set_request(to, http_head_method(from), http_head_path(from), e) < 0)
        return -1;
    for (size_t i = 0; i < http_head_count(from); i++) {
        struct span name, value;

        http_head_field(from, i, &name, &value);
        if (!is_passed(x, name) || (has_names && is_named(from, name)) ||
            (is_h2 && span_is(name, "cookie")))
            continue;
        if (http_head_add_from(to, from, i, e) < 0)
            return -1;
    }
    if (is_h2 && add_cookies(from, to, e) < 0)
        return -1;
    return add_forwarded(x, is_trusted, to, e) < 0 || add_hop(x, to, e) < 0 ? -1 : 0;
}

void fields_answer(struct http_exchange *x, const struct http_head *from, uint64_t *ret_length)
{
    bool has_names = has_named(from);
    struct span name, value;

    *ret_length = UINT64_MAX;
    for (size_t i = 0; i < http_head_count(from); i++) {
        http_head_field(from, i, &name, &value);
        if (span_is(name, "content-length"))
            (void)str_u64(value, UINT64_MAX - 1, ret_length);
        else if (!is_hop(name) && !(has_names && is_named(from, name)))
            http_answer_pass_from(x, from, i);
    }
}
