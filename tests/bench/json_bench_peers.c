#include "bench/json_bench.h"

#include <cjson/cJSON.h>
#include <jansson.h>

static void *jansson_parse(struct span text)
{
    return json_loadb((const char *)text.p, text.n, 0, NULL);
}

static size_t jansson_write(void *doc)
{
    OWN_MEM char *text = json_dumps(doc, JSON_COMPACT);

    return text ? strlen(text) : 0;
}

static void jansson_drop(void *doc)
{
    json_decref(doc);
}

static void *cjson_parse(struct span text)
{
    return cJSON_ParseWithLength((const char *)text.p, text.n);
}

static size_t cjson_write(void *doc)
{
    OWN_MEM char *text = cJSON_PrintUnformatted(doc);

    return text ? strlen(text) : 0;
}

static void cjson_drop(void *doc)
{
    cJSON_Delete(doc);
}

const struct json_bench_lib json_bench_jansson = { "jansson", jansson_parse, jansson_write,
                                                   jansson_drop };
const struct json_bench_lib json_bench_cjson = { "cJSON", cjson_parse, cjson_write, cjson_drop };
