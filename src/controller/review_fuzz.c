/* Any bytes are a ConversionReview or none. An answer is JSON with the request's uid; a success has as many objects as were
 * asked about, each in the version that was wanted, and asked about again they stay as they are. */
#include "controller/review.h"

#include "base/json.h"
#include "controller/limits.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define OUT_MAX_BYTES (1u << 24)

static void check_again(const struct json *answer, struct span wanted)
{
    OWN(buf_done) struct buf body = BUF_INIT(OUT_MAX_BYTES), out = BUF_INIT(OUT_MAX_BYTES);
    OWN(json_doc_done) struct json_doc *doc = NULL;
    const struct json *objects = json_get(json_get(answer, "response"), "convertedObjects");
    struct review_verdict v;
    struct json_out o;
    struct err e;

    json_out_init(&o, &body, 0);
    json_out_object_begin(&o);
    json_out_key(&o, "kind"), json_out_cstr(&o, "ConversionReview");
    json_out_key(&o, "apiVersion"), json_out_cstr(&o, "apiextensions.k8s.io/v1");
    json_out_key(&o, "request"), json_out_object_begin(&o);
    json_out_key(&o, "desiredAPIVersion"), json_out_str(&o, wanted);
    json_out_key(&o, "objects"), json_out_value(&o, objects);
    json_out_object_end(&o);
    json_out_object_end(&o);
    if (json_out_end(&o, &e) < 0 ||
        review_answer(buf_span(&body), &(struct review_config){ true }, &out, &v, &e) < 0)
        return; /* too large by now */
    assert(!v.is_failure && v.objects == json_count(objects));
    assert(json_parse(buf_span(&out), NULL, &doc, &e) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    OWN(json_doc_done) struct json_doc *doc = NULL, *asked = NULL;
    OWN(buf_done) struct buf out = BUF_INIT(OUT_MAX_BYTES);
    const struct json *request, *response;
    struct review_verdict v;
    struct err e;

    if (review_answer(span_of(data, size), &(struct review_config){ true }, &out, &v, &e) < 0) {
        assert(e.code == ERR_INVALID || e.code == ERR_LIMIT);
        assert(out.n == 0);
        return 0;
    }
    assert(json_parse(buf_span(&out), NULL, &doc, &e) == 0);
    assert(json_parse(span_of(data, size), NULL, &asked, &e) == 0);
    request = json_get(json_doc_root(asked), "request");
    response = json_get(json_doc_root(doc), "response");
    assert(span_eq(json_str(json_get(request, "uid")), json_str(json_get(response, "uid"))));
    if (v.is_failure) {
        assert(json_count(json_get(response, "convertedObjects")) == 0 && *v.why);
        return 0;
    }
    assert(v.objects == json_count(json_get(response, "convertedObjects")));
    JSON_EACH(object, json_get(response, "convertedObjects"))
    assert(span_eq(json_str(json_get(object, "apiVersion")),
                   json_str(json_get(request, "desiredAPIVersion"))));
    check_again(json_doc_root(doc), json_str(json_get(request, "desiredAPIVersion")));
    return 0;
}
