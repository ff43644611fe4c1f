/* Output of a sandbox that may begin with last words: what is read of it is in it, whole, and nothing else is lost. */
#include "base/lastwords.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span in = span_of(data, size), words;

    if (!lastwords_read(&in, &words)) {
        assert(in.p == data && in.n == size);
        return 0;
    }
    assert(words.n <= LASTWORDS_MAX_BYTES && words.p > data);
    assert(words.p + words.n == in.p && in.p + in.n == data + size);
    return 0;
}
