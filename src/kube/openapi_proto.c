/* Version 2 in protobuf, for clients of the years when kubectl took nothing else. Types only: what such a client reads
 * is what fields there are and how lists are merged. Field numbers are those of the public OpenAPIv2.proto. */
#include "kube/openapi.h"

#include "base/json.h"

enum document_field {
    DOCUMENT_SWAGGER = 1,
    DOCUMENT_INFO = 2,
    DOCUMENT_PATHS = 8,
    DOCUMENT_DEFINITIONS = 9,
};

enum schema_number {
    SCHEMA_NUMBER_REF = 1,
    SCHEMA_NUMBER_FORMAT = 2,
    SCHEMA_NUMBER_DESCRIPTION = 4,
    SCHEMA_NUMBER_REQUIRED = 19,
    SCHEMA_NUMBER_ADDITIONAL = 21,
    SCHEMA_NUMBER_TYPE = 22,
    SCHEMA_NUMBER_ITEMS = 23,
    SCHEMA_NUMBER_PROPERTIES = 25,
    SCHEMA_NUMBER_EXTENSION = 31,
};

static int add_varint(struct buf *out, uint64_t v, struct err *e)
{
    uint8_t bytes[10];
    size_t n = 0;

    do {
        bytes[n] = (uint8_t)((v & 0x7f) | (v > 0x7f ? 0x80 : 0));
        v >>= 7;
    } while (bytes[n++] & 0x80);
    return buf_add(out, span_of(bytes, n), e);
}

/* A text or a message. */
static int add_bytes(struct buf *out, unsigned number, struct span s, struct err *e)
{
    if (add_varint(out, (uint64_t)number << 3 | 2, e) < 0 || add_varint(out, s.n, e) < 0)
        return -1;
    return buf_add(out, s, e);
}

/* A name with a value: {1: name, 2: value}, as field `number`. */
static int add_named(struct buf *out, unsigned number, struct span name, struct span value,
                     struct err *e)
{
    OWN(buf_done) struct buf pair = BUF_INIT(OPENAPI_MAX_BYTES);

    if (add_bytes(&pair, 1, name, e) < 0 || add_bytes(&pair, 2, value, e) < 0)
        return -1;
    return add_bytes(out, number, buf_span(&pair), e);
}

/* An extension's value is YAML, which JSON is. */
static int add_extension(struct buf *out, struct span name, const struct json *v, struct err *e)
{
    OWN(buf_done) struct buf text = BUF_INIT(65536), any = BUF_INIT(65536);

    if (json_write(v, &text, e) < 0 || add_bytes(&any, 2, buf_span(&text), e) < 0)
        return -1;
    return add_named(out, SCHEMA_NUMBER_EXTENSION, name, buf_span(&any), e);
}

static int add_schema(struct buf *out, const struct json *schema, struct err *e);

/* A schema inside a message whose field 1 it is, as field `number`. */
static int add_inner(struct buf *out, unsigned number, const struct json *schema, struct err *e)
{
    OWN(buf_done)
    struct buf inner = BUF_INIT(OPENAPI_MAX_BYTES), holder = BUF_INIT(OPENAPI_MAX_BYTES);

    if (add_schema(&inner, schema, e) < 0 || add_bytes(&holder, 1, buf_span(&inner), e) < 0)
        return -1;
    return add_bytes(out, number, buf_span(&holder), e);
}

/* Named schemas, each field 1 of a message. */
static int add_schemas(struct buf *out, unsigned number, const struct json *named, struct err *e)
{
    OWN(buf_done) struct buf all = BUF_INIT(OPENAPI_MAX_BYTES);

    JSON_MEMBERS(name, schema, named)
    {
        OWN(buf_done) struct buf one = BUF_INIT(OPENAPI_MAX_BYTES);

        if (add_schema(&one, schema, e) < 0 ||
            add_named(&all, 1, json_str(name), buf_span(&one), e) < 0)
            return -1;
    }
    return add_bytes(out, number, buf_span(&all), e);
}

static int add_type(struct buf *out, struct span type, struct err *e)
{
    OWN(buf_done) struct buf item = BUF_INIT(256);

    if (add_bytes(&item, 1, type, e) < 0)
        return -1;
    return add_bytes(out, SCHEMA_NUMBER_TYPE, buf_span(&item), e);
}

static int add_member(struct buf *out, struct span name, const struct json *v, struct err *e)
{
    if (span_is(name, "$ref"))
        return add_bytes(out, SCHEMA_NUMBER_REF, json_str(v), e);
    if (span_is(name, "format"))
        return add_bytes(out, SCHEMA_NUMBER_FORMAT, json_str(v), e);
    if (span_is(name, "description"))
        return add_bytes(out, SCHEMA_NUMBER_DESCRIPTION, json_str(v), e);
    if (span_is(name, "type"))
        return add_type(out, json_str(v), e);
    if (span_is(name, "items"))
        return add_inner(out, SCHEMA_NUMBER_ITEMS, v, e);
    if (span_is(name, "additionalProperties"))
        return add_inner(out, SCHEMA_NUMBER_ADDITIONAL, v, e);
    if (span_is(name, "properties"))
        return add_schemas(out, SCHEMA_NUMBER_PROPERTIES, v, e);
    if (span_starts(name, "x-"))
        return add_extension(out, name, v, e);
    if (span_is(name, "required")) {
        JSON_EACH(item, v)
        {
            if (add_bytes(out, SCHEMA_NUMBER_REQUIRED, json_str(item), e) < 0)
                return -1;
        }
    }
    return 0; /* bounds and defaults: the server's business */
}

static int add_schema(struct buf *out, const struct json *schema, struct err *e)
{
    JSON_MEMBERS(name, value, schema)
    {
        if (add_member(out, json_str(name), value, e) < 0)
            return -1;
    }
    return 0;
}

int openapi_v2_proto(const struct openapi_info *info, struct buf *out, struct err *e)
{
    OWN(buf_done) struct buf text = BUF_INIT(OPENAPI_MAX_BYTES), about = BUF_INIT(1024);
    OWN(json_doc_done) struct json_doc *doc = NULL;
    size_t start = out->n;

    if (openapi_v2(info, &text, e) < 0 || json_parse(buf_span(&text), NULL, &doc, e) < 0)
        return -1;
    if (add_bytes(&about, 1, SPAN("Kubernetes"), e) == 0 &&
        add_bytes(&about, 2, span_cstr(info->version), e) == 0 &&
        add_bytes(out, DOCUMENT_SWAGGER, SPAN("2.0"), e) == 0 &&
        add_bytes(out, DOCUMENT_INFO, buf_span(&about), e) == 0 &&
        add_bytes(out, DOCUMENT_PATHS, SPAN_NONE, e) == 0 &&
        add_schemas(out, DOCUMENT_DEFINITIONS, json_get(json_doc_root(doc), "definitions"), e) == 0)
        return 0;
    buf_truncate(out, start);
    return -1;
}
