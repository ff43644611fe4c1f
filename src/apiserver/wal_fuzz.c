#include "apiserver/wal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Any bytes get an answer, and a log that is cut short is never worse than the whole. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err whole = { 0 }, part = { 0 };

    if (wal_check(span_of(data, size), &whole) < 0)
        assert(whole.code == ERR_INVALID);
    else
        assert(wal_check(span_of(data, size / 2), &part) == 0);
    return 0;
}
