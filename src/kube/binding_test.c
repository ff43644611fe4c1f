#include "kube/binding.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const struct row {
    const char *name, *pod;
    bool is_wanted;
} rows[] = {
    { "nobody has it", "{\"spec\":{}}", true },
    { "the usual scheduler", "{\"spec\":{\"schedulerName\":\"default-scheduler\"}}", true },
    { "no node's name", "{\"spec\":{\"nodeName\":\"\"}}", true },
    { "somebody has it", "{\"spec\":{\"nodeName\":\"one\"}}", false },
    { "another scheduler", "{\"spec\":{\"schedulerName\":\"mine\"}}", false },
    { "a gate", "{\"spec\":{\"schedulingGates\":[{\"name\":\"a\"}]}}", false },
    { "gates that are gone", "{\"spec\":{\"schedulingGates\":[]}}", true },
    { "on its way out",
      "{\"metadata\":{\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"},\"spec\":{}}", false },
};

static void test_which_pods_are_to_be_bound(void **state)
{
    (void)state;
    EACH(r, rows) {
        OWN(json_doc_done) struct json_doc *doc = NULL;
        OWN(object_done) struct object *pod = NULL;
        struct err e;

        assert_int_equal(json_parse(span_cstr(r->pod), NULL, &doc, &e), 0);
        assert_int_equal(object_parse(kind_find("", "v1", "pods"), json_doc_root(doc), &pod, &e),
                         0);
        if (binding_is_wanted(pod) != r->is_wanted)
            fail_msg("%s", r->name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_which_pods_are_to_be_bound) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
