/* A continue token as a client sends it back: it is none of ours, or it names a place. */
#include "apiserver/pages.h"

#include "base/str.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(struct span text)
{
    struct pages_token token;
    uint64_t version;
    bool is_given;

    if (!pages_token_read(text, &token))
        return;
    assert(strnlen(token.namespace, sizeof token.namespace) < sizeof token.namespace);
    assert(strnlen(token.name, sizeof token.name) < sizeof token.name);
    (void)pages_read_version(token.name, &version, &is_given);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    OWN(buf_done) struct buf coded = BUF_INIT(size * 2 + 8);
    struct err e;

    check(span_of(data, size));
    if (str_base64_encode(span_of(data, size), &coded, &e) == 0) /* what is inside, as ours */
        check(buf_span(&coded));
    return 0;
}
