#include "http/spdy_block.h"

#include <string.h>
#include <zlib.h>

#define DICTIONARY_BYTES 1423
/* To write: a window that just holds the dictionary. Heads here are a hundred bytes, and zlib's defaults would cost
 * 260 KiB for each connection. */
#define PACK_WINDOW_BITS 11
#define PACK_MEM_LEVEL   1
#define COUNT_BYTES      4 /* every number in a block */

struct spdy_packer {
    z_stream z;
};

struct spdy_unpacker {
    z_stream z;
};

/* The dictionary of SPDY/3 (its draft, section 2.6.10.1): words with their lengths, then text without. */
static const char *const words[] = {
    "options",
    "head",
    "post",
    "put",
    "delete",
    "trace",
    "accept",
    "accept-charset",
    "accept-encoding",
    "accept-language",
    "accept-ranges",
    "age",
    "allow",
    "authorization",
    "cache-control",
    "connection",
    "content-base",
    "content-encoding",
    "content-language",
    "content-length",
    "content-location",
    "content-md5",
    "content-range",
    "content-type",
    "date",
    "etag",
    "expect",
    "expires",
    "from",
    "host",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "last-modified",
    "location",
    "max-forwards",
    "pragma",
    "proxy-authenticate",
    "proxy-authorization",
    "range",
    "referer",
    "retry-after",
    "server",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "vary",
    "via",
    "warning",
    "www-authenticate",
    "method",
    "get",
    "status",
    "200 OK",
    "version",
    "HTTP/1.1",
    "url",
    "public",
    "set-cookie",
    "keep-alive",
    "origin",
};
static const char text[] =
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request"
    "401 Unauthorized403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented"
    "503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00"
    " Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,"
    "application/xml,application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age="
    "gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.";

static void put_be32(uint8_t p[COUNT_BYTES], size_t v)
{
    for (unsigned i = 0; i < COUNT_BYTES; i++)
        p[i] = (uint8_t)(v >> (24 - 8 * i));
}

static void make_dictionary(uint8_t ret[DICTIONARY_BYTES])
{
    size_t at = 0;

    EACH(word, words) {
        size_t n = strlen(*word);

        put_be32(ret + at, n);
        memcpy(ret + at + COUNT_BYTES, *word, n);
        at += COUNT_BYTES + n;
    }
    assert(at + sizeof text - 1 == DICTIONARY_BYTES);
    memcpy(ret + at, text, sizeof text - 1);
}

/* ---- writing ---- */

struct spdy_packer *spdy_packer_new(void)
{
    struct spdy_packer *p = NEW(struct spdy_packer);
    uint8_t dictionary[DICTIONARY_BYTES];

    make_dictionary(dictionary);
    /* These fail for want of memory or by our mistake. */
    if (deflateInit2(&p->z, Z_BEST_COMPRESSION, Z_DEFLATED, PACK_WINDOW_BITS, PACK_MEM_LEVEL,
                     Z_DEFAULT_STRATEGY) != Z_OK ||
        deflateSetDictionary(&p->z, dictionary, sizeof dictionary) != Z_OK)
        abort();
    return p;
}

void spdy_packer_free(struct spdy_packer *p)
{
    if (!p)
        return;
    (void)deflateEnd(&p->z);
    free(p);
}

static int add_counted(struct buf *plain, struct span s, struct err *e)
{
    uint8_t count[COUNT_BYTES];

    put_be32(count, s.n);
    return buf_add(plain, span_of(count, sizeof count), e) < 0 ? -1 : buf_add(plain, s, e);
}

/* Is there a field of this name before the i-th? */
static bool is_repeat(const struct http_head *head, size_t i, struct span name)
{
    struct span other, value;

    while (i-- > 0) {
        http_head_field(head, i, &other, &value);
        if (span_eq(other, name))
            return true;
    }
    return false;
}

static int add_field(struct buf *plain, const struct http_head *head, size_t i, struct err *e)
{
    OWN(buf_done) struct buf joined = BUF_INIT(plain->max);
    struct span name, value, first;

    http_head_field(head, i, &name, &first);
    if (buf_add(&joined, first, e) < 0)
        return -1;
    for (size_t k = i + 1; k < http_head_count(head); k++) {
        struct span other;

        http_head_field(head, k, &other, &value);
        if (span_eq(other, name) && (buf_addc(&joined, 0, e) < 0 || buf_add(&joined, value, e) < 0))
            return -1;
    }
    return add_counted(plain, name, e) < 0 ? -1 : add_counted(plain, buf_span(&joined), e);
}

static int add_plain(struct buf *plain, const struct http_head *head, struct err *e)
{
    uint8_t count[COUNT_BYTES] = { 0 };
    size_t names = 0;

    if (buf_add(plain, span_of(count, sizeof count), e) < 0)
        return -1;
    for (size_t i = 0; head && i < http_head_count(head); i++) {
        struct span name, value;

        http_head_field(head, i, &name, &value);
        if (!http_name_is_valid(name) || !http_value_is_valid(value))
            return err_set(e, ERR_INVALID, "a field that may not stand on the wire");
        if (is_repeat(head, i, name))
            continue;
        if (add_field(plain, head, i, e) < 0)
            return -1;
        names++;
    }
    put_be32(plain->p, names);
    return 0;
}

int spdy_pack(struct spdy_packer *p, const struct http_head *head, struct buf *out, struct err *e)
{
    OWN(buf_done) struct buf plain = BUF_INIT(out->max);

    if (add_plain(&plain, head, e) < 0 ||
        buf_reserve(out, deflateBound(&p->z, plain.n) + 64, e) < 0)
        return -1;
    p->z.next_in = plain.p;
    p->z.avail_in = (uInt)plain.n;
    p->z.next_out = out->p + out->n;
    p->z.avail_out = (uInt)buf_room(out);
    if (deflate(&p->z, Z_SYNC_FLUSH) != Z_OK || p->z.avail_in || !p->z.avail_out)
        abort(); /* there is room for all of it */
    buf_grown(out, (size_t)(p->z.next_out - (out->p + out->n)));
    return 0;
}

/* ---- reading ---- */

struct spdy_unpacker *spdy_unpacker_new(void)
{
    struct spdy_unpacker *u = NEW(struct spdy_unpacker);

    if (inflateInit(&u->z) != Z_OK)
        abort();
    return u;
}

void spdy_unpacker_free(struct spdy_unpacker *u)
{
    if (!u)
        return;
    (void)inflateEnd(&u->z);
    free(u);
}

static int set_dictionary(struct spdy_unpacker *u, struct err *e)
{
    uint8_t dictionary[DICTIONARY_BYTES];

    make_dictionary(dictionary);
    if (inflateSetDictionary(&u->z, dictionary, sizeof dictionary) != Z_OK)
        return err_set(e, ERR_PROTOCOL, "head packed with another dictionary");
    return 0;
}

/* All of the block, even when nothing will be read from it: the next one builds on it. */
static int inflate_block(struct spdy_unpacker *u, struct span block, struct buf *plain,
                         struct err *e)
{
    u->z.next_in = (Bytef *)(uintptr_t)block.p; /* zlib does not write there */
    u->z.avail_in = (uInt)block.n;
    for (;;) {
        size_t room = MIN(plain->max - plain->n, (size_t)4096);
        int got;

        if (room == 0 || buf_reserve(plain, room, e) < 0)
            return err_set(e, ERR_LIMIT, "head of more than %zu bytes", plain->max - 1);
        u->z.next_out = plain->p + plain->n;
        u->z.avail_out = (uInt)room;
        got = inflate(&u->z, Z_SYNC_FLUSH);
        buf_grown(plain, room - u->z.avail_out);
        if (got == Z_NEED_DICT) {
            if (set_dictionary(u, e) < 0)
                return -1;
            continue;
        }
        if (got != Z_OK && got != Z_BUF_ERROR)
            return err_set(e, ERR_PROTOCOL, "head that cannot be unpacked");
        if (u->z.avail_out) /* nothing is held back */
            return u->z.avail_in ? err_set(e, ERR_PROTOCOL, "head that cannot be unpacked") : 0;
    }
}

static bool take_be32(struct span *in, uint32_t *ret)
{
    if (in->n < COUNT_BYTES)
        return false;
    *ret = (uint32_t)in->p[0] << 24 | (uint32_t)in->p[1] << 16 | (uint32_t)in->p[2] << 8 | in->p[3];
    *in = span_skip(*in, COUNT_BYTES);
    return true;
}

static bool take_counted(struct span *in, struct span *ret)
{
    uint32_t n;

    if (!take_be32(in, &n) || n > in->n)
        return false;
    *ret = span_slice(*in, 0, n);
    *in = span_skip(*in, n);
    return true;
}

/* SPDY's own names (":path") have a colon in front. */
static bool is_name(struct span name)
{
    struct span rest = name.n && name.p[0] == ':' ? span_skip(name, 1) : name;

    for (size_t i = 0; i < name.n; i++) {
        if (name.p[i] >= 'A' && name.p[i] <= 'Z')
            return false;
    }
    return http_name_is_valid(rest);
}

static int add_values(struct http_head *head, struct span name, struct span joined, struct err *e)
{
    for (;;) {
        size_t end = span_find(joined, 0);
        struct span one = span_slice(joined, 0, end);

        if (!http_value_is_valid(one))
            return err_set(e, ERR_INVALID, "head with a value that may not stand there");
        if (http_head_add(head, name, one, e) < 0)
            return err_set(e, ERR_INVALID, "head with too many fields");
        if (end == SIZE_MAX)
            return 0;
        joined = span_skip(joined, end + 1);
    }
}

static int read_fields(struct span in, struct http_head *head, struct err *e)
{
    struct span name, value;
    uint32_t count;

    if (!take_be32(&in, &count))
        return err_set(e, ERR_INVALID, "head that ends before its first field");
    for (uint32_t i = 0; i < count; i++) {
        if (!take_counted(&in, &name) || !take_counted(&in, &value))
            return err_set(e, ERR_INVALID, "head that ends inside a field");
        if (!is_name(name))
            return err_set(e, ERR_INVALID, "head with a name that may not stand there");
        if (add_values(head, name, value, e) < 0)
            return -1;
    }
    return in.n ? err_set(e, ERR_INVALID, "head with bytes behind its last field") : 0;
}

int spdy_unpack(struct spdy_unpacker *u, struct span block, size_t max_bytes,
                struct http_head *head, struct err *e)
{
    OWN(buf_done) struct buf plain = BUF_INIT(max_bytes + 1);

    if (inflate_block(u, block, &plain, e) < 0)
        return -1;
    return read_fields(buf_span(&plain), head, e);
}
