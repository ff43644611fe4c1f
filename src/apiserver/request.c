#include "apiserver/request.h"

#include "base/str.h"

#define PARTS_MAX 12

/* Decodes one part of the path. A slash that came as an escape would be read as two parts by someone else. */
static bool take_part(struct span raw, char *out, size_t n)
{
    OWN(buf_done) struct buf text = BUF_INIT(n - 1);
    struct err e;

    if (raw.n == 0 || str_percent_decode(raw, &text, &e) < 0)
        return false;
    if (span_find(buf_span(&text), '/') != SIZE_MAX || span_find(buf_span(&text), '\0') != SIZE_MAX)
        return false;
    memcpy(out, buf_cstr(&text), text.n + 1);
    return true;
}

static size_t cut(struct span path, struct span parts[PARTS_MAX + 1])
{
    struct span rest = span_skip(path, 1);
    size_t n = 0;

    while (n <= PARTS_MAX && span_cut(&rest, '/', &parts[n]))
        n++;
    return n;
}

static enum request_verb verb_of(struct span method, bool has_name, bool is_watch)
{
    if (span_is(method, "GET") || span_is(method, "HEAD"))
        return has_name ? VERB_GET : is_watch ? VERB_WATCH : VERB_LIST;
    if (span_is(method, "POST"))
        return VERB_CREATE;
    if (span_is(method, "PUT"))
        return VERB_UPDATE;
    if (span_is(method, "PATCH"))
        return VERB_PATCH;
    if (span_is(method, "DELETE"))
        return has_name ? VERB_DELETE : VERB_DELETE_COLLECTION;
    return VERB_NONE;
}

/* What follows the version: [namespaces/NS/]RESOURCE[/NAME[/SUB]]; namespaces themselves are a resource too. */
static bool read_resource(const struct span *parts, size_t n, struct request *r)
{
    bool is_namespaced =
        n >= 3 && span_is(parts[0], "namespaces") &&
        !(n == 3 && (span_is(parts[2], "status") || span_is(parts[2], "finalize")));

    if (is_namespaced) {
        if (!take_part(parts[1], r->namespace, sizeof r->namespace))
            return false;
        parts += 2, n -= 2;
    }
    if (n > 3 || !take_part(parts[0], r->resource, sizeof r->resource))
        return false;
    if (n > 1 && !take_part(parts[1], r->name, sizeof r->name))
        return false;
    if (n > 2 && !take_part(parts[2], r->subresource, sizeof r->subresource))
        return false;
    return true;
}

bool request_read(struct span method, struct span path, bool is_watch, struct request *ret)
{
    struct span parts[PARTS_MAX + 1];
    size_t n = cut(path, parts), at, version_at;
    bool is_old_watch = false;

    *ret = (struct request){ .verb = VERB_NONE };
    if (path.n == 0 || path.p[0] != '/' || n > PARTS_MAX)
        return false;
    if (n >= 3 && span_is(parts[0], "api")) {
        at = 2;
    } else if (n >= 4 && span_is(parts[0], "apis")) {
        if (!take_part(parts[1], ret->group, sizeof ret->group))
            return false;
        at = 3;
    } else {
        return true;
    }
    version_at = at - 1;
    if (n > at + 1 && span_is(parts[at], "watch")) { /* the old way to ask for one */
        at++;
        is_watch = true;
        is_old_watch = true;
    }
    if (!take_part(parts[version_at], ret->version, sizeof ret->version) ||
        !read_resource(parts + at, n - at, ret))
        return false;
    ret->verb = verb_of(method, ret->name[0] != '\0', is_watch);
    if (is_old_watch && ret->verb == VERB_GET)
        return false;
    ret->has_bad_method = ret->verb == VERB_NONE;
    return true;
}

bool request_decode(struct span raw, struct buf *out)
{
    OWN(buf_done) struct buf plain = BUF_INIT(out->max);
    struct err e;

    buf_clear(out);
    for (size_t i = 0; i < raw.n; i++)
        if (buf_addc(&plain, raw.p[i] == '+' ? ' ' : raw.p[i], &e) < 0)
            return false;
    return str_percent_decode(buf_span(&plain), out, &e) == 0 &&
           span_find(buf_span(out), '\0') == SIZE_MAX; /* a C string would end there */
}

const char *request_verb_name(enum request_verb verb)
{
    static const char *const names[] = { "",       "get",   "list",   "watch",           "create",
                                         "update", "patch", "delete", "deletecollection" };

    return names[verb];
}
