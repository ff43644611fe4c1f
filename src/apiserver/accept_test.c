#include "apiserver/accept.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const struct row {
    const char *field;
    bool is_taken;
    struct accept want;
} rows[] = {
    { "", true, { FORM_OBJECT, false, false } },
    { "*/*", true, { FORM_OBJECT, false, true } },
    { "application/*", true, { FORM_OBJECT, false, true } },
    { "application/json", true, { FORM_OBJECT, false, true } },
    { "Application/JSON; charset=utf-8", true, { FORM_OBJECT, false, true } },
    { "application/yaml", true, { FORM_OBJECT, true, true } },
    { "application/vnd.kubernetes.protobuf,application/json", true, { FORM_OBJECT, false, true } },
    { "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
      true,
      { FORM_TABLE, false, true } },
    { "application/json;as=Table;v=v1beta1;g=meta.k8s.io", true, { FORM_TABLE, false, true } },
    { "application/json;as=Table;v=v7;g=meta.k8s.io", false, { FORM_OBJECT, false, true } },
    { "application/json;as=Table;v=v7, application/json", true, { FORM_OBJECT, false, true } },
    { "application/yaml ; as=PartialObjectMetadata;v=v1", true, { FORM_PARTIAL, true, true } },
    { "application/json;as=PartialObjectMetadataList;v=v1",
      true,
      { FORM_PARTIAL_LIST, false, true } },
    { "application/json;as=Poem", false, { FORM_OBJECT, false, true } },
    { "application/xml", false, { FORM_OBJECT, false, false } },
    { "application/xml;q=0.9, application/json", true, { FORM_OBJECT, false, true } },
    { ",;,", false, { FORM_OBJECT, false, false } },
};

static void each(void **state)
{
    EACH(r, rows) {
        struct accept got;
        bool is_taken = accept_read(span_cstr(r->field), &got);

        if (is_taken != r->is_taken || got.form != r->want.form || got.is_yaml != r->want.is_yaml ||
            got.is_type_known != r->want.is_type_known)
            fail_msg("'%s': taken %d, form %d, yaml %d, known %d", r->field, is_taken, got.form,
                     got.is_yaml, got.is_type_known);
    }
}

static void names(void **state)
{
    struct span field = SPAN("text/html, application/x+protobuf;q=1 ,*/*");

    assert_true(accept_names(field, "application/x+protobuf"));
    assert_true(accept_names(field, "TEXT/html"));
    assert_false(accept_names(field, "application/x"));
    assert_false(accept_names(SPAN_NONE, "application/x"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each),
        cmocka_unit_test(names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
