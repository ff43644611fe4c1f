/* Any bytes are a selector or are refused. What was taken and written is taken again, says the same,
 * and is a fixed point of parse and write. */
#include "kube/select.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_labels(struct span text)
{
    static const char labels_text[] = "{\"a\":\"b\",\"n\":\"5\",\"e\":\"\"}";
    OWN(selector_done) struct selector *s = NULL, *again = NULL;
    OWN(buf_done) struct buf once = BUF_INIT(1 << 22), twice = BUF_INIT(1 << 22);
    OWN(json_doc_done) struct json_doc *labels = NULL;
    struct err e;

    if (selector_parse(text, &s, &e) < 0) {
        assert(e.code == ERR_PROTOCOL || e.code == ERR_LIMIT);
        return;
    }
    assert(json_parse(span_cstr(labels_text), NULL, &labels, &e) == 0);
    assert(selector_write(s, &once, &e) == 0);
    assert(selector_parse(buf_span(&once), &again, &e) == 0);
    assert(selector_write(again, &twice, &e) == 0);
    assert(span_eq(buf_span(&once), buf_span(&twice)));
    assert(selector_matches(s, json_doc_root(labels)) ==
           selector_matches(again, json_doc_root(labels)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    OWN(field_selector_done) struct field_selector *fields = NULL;
    struct err e;

    check_labels(span_of(data, size));
    if (field_selector_parse(kind_find("", "v1", "pods"), span_of(data, size), &fields, &e) < 0)
        assert(e.code == ERR_PROTOCOL || e.code == ERR_LIMIT);
    return 0;
}
