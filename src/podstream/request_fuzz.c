/* Any bytes as the target of a request, and as sizes of a terminal in any pieces: what is accepted keeps its promises. */
#include "podstream/request.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_request(struct span target)
{
    size_t mark = span_find(target, '?');
    struct span path = span_slice(target, 0, mark);
    struct span query = mark == SIZE_MAX ? SPAN_NONE : span_skip(target, mark + 1);
    struct pod_request *r;
    struct err e;
    size_t bytes = 0;

    if (!pod_request_is(path))
        return;
    if (pod_request_parse(path, query, &r, &e) < 0) {
        assert(e.code == ERR_INVALID || e.code == ERR_LIMIT);
        return;
    }
    assert(r->ns[0] && r->pod[0] && !strchr(r->ns, '/') && !strchr(r->pod, '/'));
    assert(r->verb != POD_EXEC || r->argc > 0);
    assert(!strchr(r->container, '/') && !strchr(r->uid, '/'));
    assert(r->verb == POD_FORWARD || r->verb == POD_LOG || r->has_stdin || r->has_stdout ||
           r->has_stderr);
    assert(!r->has_tty || !r->has_stderr);
    for (size_t i = 0; i < r->argc; i++)
        bytes += strlen(r->argv[i]);
    assert(!r->argv[r->argc] && bytes <= query.n);
    for (size_t i = 0; i < r->port_count; i++)
        assert(r->ports[i] > 0);
    pod_request_free(r);
}

static uint64_t try_sizes(struct span in, size_t step)
{
    OWN(pod_resize_done) struct pod_resize z;
    uint64_t sum = 0;
    uint16_t cols, rows;
    size_t used;

    pod_resize_init(&z);
    for (; in.n; in = span_skip(in, used)) {
        if (pod_resize_feed(&z, span_slice(in, 0, step), &used, &cols, &rows)) {
            assert(cols > 0 && rows > 0);
            sum = sum * 31 + cols * 65536u + rows;
        }
        assert(used > 0);
    }
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span in = span_of(data, size);

    try_request(in);
    assert(try_sizes(in, SIZE_MAX) == try_sizes(in, 1));
    return 0;
}
