/* Names of sandboxes, whoever made them: what is read is written back as it was. */
#include "node/run.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    OWN_MEM char *name = span_dup(span_of(data, size));
    char again[RUN_NAME_BYTES];
    struct run_id id;
    struct err e;

    if (!run_read(name, &id))
        return 0;
    assert(run_name(again, id.uid, id.container, id.attempt, &e) == 0);
    assert(strcmp(again, name) == 0);
    return 0;
}
