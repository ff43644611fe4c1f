#include "controller/diet.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const struct row {
    const char *name, *in, *want;
} rows[] = {
    { "of the spec the node",
      "{\"metadata\":{\"name\":\"a\",\"managedFields\":[{}],\"finalizers\":[\"f\"],\"labels\":{\"k\":\"v\"}},"
      "\"spec\":{\"nodeName\":\"n\",\"containers\":[{\"name\":\"c\"}]},\"status\":{\"phase\":\"Running\"}}",
      "{\"metadata\":{\"name\":\"a\",\"labels\":{\"k\":\"v\"}},\"spec\":{\"nodeName\":\"n\"},"
      "\"status\":{\"phase\":\"Running\"}}" },
    { "of the status what is asked",
      "{\"metadata\":{\"name\":\"a\"},\"status\":{\"phase\":\"Running\",\"podIP\":\"1.1.1.1\",\"podIPs\":[{"
      "\"ip\":\"1.1.1.1\"}],\"qosClass\":\"x\",\"containerStatuses\":[{\"name\":\"c\"}],\"conditions\":[{"
      "\"type\":\"Initialized\",\"status\":\"True\"},{\"type\":\"Ready\",\"status\":\"False\",\"reason\":\"r\"},{"
      "\"type\":\"PodScheduled\",\"status\":\"True\"}]}}",
      "{\"metadata\":{\"name\":\"a\"},\"status\":{\"phase\":\"Running\",\"podIPs\":[{\"ip\":\"1.1.1.1\"}],"
      "\"conditions\":[{\"type\":\"Ready\",\"status\":\"False\",\"reason\":\"r\"},{\"type\":\"PodScheduled\","
      "\"status\":\"True\"}]},\"spec\":{}}" },
    { "a container that waits, and others",
      "{\"metadata\":{\"name\":\"a\"},\"spec\":{},\"status\":{\"phase\":\"Pending\",\"containerStatuses\":["
      "{\"name\":\"a\",\"image\":\"x\",\"state\":{\"running\":{}}},{\"name\":\"b\",\"image\":\"y\",\"state\":{"
      "\"waiting\":{\"reason\":\"ErrImagePull\",\"message\":\"m\"}}},{\"name\":\"c\",\"state\":{\"waiting\":{"
      "\"reason\":\"PodInitializing\"}}}]}}",
      "{\"metadata\":{\"name\":\"a\"},\"spec\":{},\"status\":{\"phase\":\"Pending\",\"containerStatuses\":[{"
      "\"name\":\"b\",\"state\":{\"waiting\":{\"reason\":\"ErrImagePull\",\"message\":\"m\"}}}]}}" },
    { "no node yet", "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"containers\":[]}}",
      "{\"metadata\":{\"name\":\"a\"},\"spec\":{}}" },
    { "nothing but a name", "{\"metadata\":{\"name\":\"a\"}}",
      "{\"metadata\":{\"name\":\"a\"},\"spec\":{}}" },
};

static void test_rows(void **state)
{
    (void)state;
    EACH(r, rows) {
        OWN(json_doc_done) struct json_doc *doc = NULL;
        OWN(object_done) struct object *pod = NULL, *less = NULL;
        OWN(buf_done) struct buf text = BUF_INIT(4096);
        struct err e;

        assert_int_equal(json_parse(span_cstr(r->in), NULL, &doc, &e), 0);
        assert_int_equal(object_parse(kind_find("", "v1", "pods"), json_doc_root(doc), &pod, &e),
                         0);
        less = diet_pod(pod);
        assert_int_equal(object_write(less, NULL, &text, &e), 0);
        if (strcmp(buf_cstr(&text), r->want) != 0)
            fail_msg("%s: %s", r->name, buf_cstr(&text));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_rows) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
