/* Any Accept field is read to its end; one that also takes plain JSON is always served. */
#include "apiserver/accept.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    OWN(buf_done) struct buf more = BUF_INIT(size + 32);
    struct span field = span_of(data, size);
    struct accept first, second;
    bool is_taken = accept_read(field, &first);
    struct err e;

    if (!is_taken)
        assert(first.form == FORM_OBJECT && !first.is_yaml);
    if (buf_add(&more, field, &e) < 0 || buf_add(&more, SPAN(",application/json"), &e) < 0)
        return 0;
    assert(accept_read(buf_span(&more), &second));
    assert(accept_names(buf_span(&more), "application/json"));
    if (is_taken && size)
        assert(second.form == first.form && second.is_yaml == first.is_yaml);
    return 0;
}
