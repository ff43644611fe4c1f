#include "cli/payload.h"

#include "base/fd.h"

extern const uint8_t payload_full[];
extern const uint64_t payload_full_bytes;

int payload_open_full(int *ret_fd, struct err *e)
{
    return payload_seal("silica", span_of(payload_full, (size_t)payload_full_bytes), ret_fd, e);
}
