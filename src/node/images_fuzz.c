/* The first line is a name, the rest a table. Any table is read or refused in words, any name is found or not; a pattern
 * without a star fits itself only. */
#include "node/images.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span rest = span_of(data, size), name = SPAN_NONE;
    const struct image *im;
    const char *reason = NULL;
    struct images *t = NULL;
    struct err e;

    (void)span_cut(&rest, '\n', &name);
    OWN_MEM char *text = span_dup(name);

    assert(image_name_fits(SPAN("*"), name));
    if (span_find(name, '*') == SIZE_MAX)
        assert(image_name_fits(name, name) &&
               (span_is(name, "\1") || !image_name_fits(name, SPAN("\1"))));
    if (images_parse(rest, "DIR", &t, &e) < 0) {
        assert(e.msg[0]);
        return 0;
    }
    if (images_find(t, text, NULL, &im, &reason, &e) == 0)
        assert(strcmp(im->root, "host") == 0 && im->names);
    else
        assert(reason && e.msg[0]);
    images_free(t);
    return 0;
}
