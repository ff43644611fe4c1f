/* "METHOD PATH[?QUERY]": whatever a request asks for, no part of what was understood could be read as two by somebody
 * else, and what names an object names one. */
#include "apiserver/request.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_part(const char *part, size_t room)
{
    assert(strnlen(part, room) < room);
    assert(!strchr(part, '/'));
}

static void check(const struct request *r)
{
    check_part(r->group, sizeof r->group);
    check_part(r->version, sizeof r->version);
    check_part(r->resource, sizeof r->resource);
    check_part(r->subresource, sizeof r->subresource);
    check_part(r->namespace, sizeof r->namespace);
    check_part(r->name, sizeof r->name);
    if (r->verb != VERB_NONE || r->has_bad_method)
        assert(r->version[0] && r->resource[0]);
    if (r->subresource[0])
        assert(r->name[0]);
    if (r->verb == VERB_LIST || r->verb == VERB_WATCH || r->verb == VERB_DELETE_COLLECTION)
        assert(!r->name[0]);
    assert(request_verb_name(r->verb));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span text = span_of(data, size), method, path, value;

    if (!span_cut(&text, ' ', &method) || !span_cut(&text, '?', &path))
        return 0;
    for (int is_watch = 0; is_watch < 2; is_watch++) {
        struct request r, again;

        if (!request_read(method, path, is_watch, &r))
            continue;
        check(&r);
        assert(request_read(method, path, is_watch, &again) && again.verb == r.verb);
    }
    while (span_cut(&text, '&', &value)) {
        OWN(buf_done) struct buf out = BUF_INIT(4096);

        if (request_decode(value, &out))
            assert(strlen(buf_cstr(&out)) == out.n && out.n <= value.n);
    }
    return 0;
}
