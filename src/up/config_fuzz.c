/* Any text as a configuration: it is refused in words, or every value has its option and its line. */
#include "up/config.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const options[] = { "listen", "tls-san", "verbose", NULL };
    OWN(config_done) struct config c = CONFIG_INIT;
    struct err e = { .msg = "" };

    if (buf_add(&c.text, span_of(data, size), &e) < 0)
        return 0;
    if (config_parse(&c, options, &e) < 0) {
        assert(e.msg[0]);
        return 0;
    }
    for (size_t i = 0; i < c.value_count; i++)
        assert(c.values[i].option && c.values[i].text);
    JSON_EACH(pool, c.pools)
    {
        assert(json_cstr(json_get(pool, "name")) && json_cstr(json_get(pool, "template")));
    }
    JSON_EACH(template, c.templates)
    {
        assert(json_cstr(json_get(template, "name")));
    }
    return 0;
}
