#include "kube/status.h"

#include "kube/kind.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const struct kind *pods(void)
{
    return kind_find("", "v1", "pods");
}

static const struct kind *sandboxes(void)
{
    return kind_find("agents.x-k8s.io", "v1beta1", "sandboxes");
}

/* Each maker of a status with the body the public server writes for it. */
static void say_not_found(struct status *st)
{
    status_not_found(st, pods(), "x");
}
static void say_exists(struct status *st)
{
    status_exists(st, sandboxes(), "x");
}
static void say_modified(struct status *st)
{
    status_modified(st, pods(), "x");
}
static void say_bad(struct status *st)
{
    status_bad_request(st, "no %s", "way");
}
static void say_forbidden(struct status *st)
{
    status_forbidden(st, pods(), "", "User \"u\" cannot");
}
static void say_forbidden_one(struct status *st)
{
    status_forbidden(st, pods(), "x", "no");
}
static void say_method(struct status *st)
{
    status_method(st, sandboxes(), "deletecollection");
}
static void say_expired(struct status *st)
{
    status_expired(st, "too old resource version: %d (%d)", 1, 9);
}
static void say_large(struct status *st)
{
    status_too_large(st, 3145728);
}
static void say_many(struct status *st)
{
    status_too_many(st, 1, "later");
}
static void say_internal(struct status *st)
{
    status_internal(st, "disk");
}
static void say_unauthorized(struct status *st)
{
    status_unauthorized(st);
}
static void say_nowhere(struct status *st)
{
    status_no_resource(st);
}
static void say_success(struct status *st)
{
    status_success(st, sandboxes(), "x", "u-1");
}
static void say_invalid(struct status *st)
{
    causes_add(&st->causes, CAUSE_REQUIRED, AT(AT(NULL, "spec"), "containers"), NULL, NULL);
    status_invalid(st, pods(), "x");
}
static void say_invalid_twice(struct status *st)
{
    const struct field_path *container = AT_INDEX(AT(AT(NULL, "spec"), "containers"), 0);

    causes_add_text(&st->causes, CAUSE_INVALID, AT(container, "name"), SPAN("A\"b"), "must be %s",
                    "low");
    causes_add_text(&st->causes, CAUSE_INVALID, AT(container, "name"), SPAN("A\"b"), "must be %s",
                    "low");
    causes_add_text(&st->causes, CAUSE_DUPLICATE, AT_KEY(AT(NULL, "data"), SPAN("k.v")),
                    SPAN("k.v"), NULL);
    status_invalid(st, sandboxes(), "x");
}
static void say_err(struct status *st)
{
    struct err e;

    err_set(&e, ERR_INVALID, "line 3 is odd");
    status_of_err(st, &e);
}
static void say_err_gone(struct status *st)
{
    struct err e;

    err_set(&e, ERR_UNAVAILABLE, "store is full");
    status_of_err(st, &e);
}

#define HEAD                                                                                       \
    "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\",\"message\":"
static const struct row {
    const char *name;
    void (*say)(struct status *st);
    const char *want;
} rows[] = {
    { "not found", say_not_found,
      HEAD
      "\"pods \\\"x\\\" not found\",\"reason\":\"NotFound\",\"details\":{\"name\":\"x\",\"kind\":\"pods\"},\"code\":404}" },
    { "exists", say_exists,
      HEAD
      "\"sandboxes.agents.x-k8s.io \\\"x\\\" already exists\",\"reason\":\"AlreadyExists\",\"details\":{\"name\":\"x\","
      "\"group\":\"agents.x-k8s.io\",\"kind\":\"sandboxes\"},\"code\":409}" },
    { "modified", say_modified,
      HEAD
      "\"Operation cannot be fulfilled on pods \\\"x\\\": the object has been modified; please apply your changes to "
      "the latest version and try again\",\"reason\":\"Conflict\",\"details\":{\"name\":\"x\",\"kind\":\"pods\"},"
      "\"code\":409}" },
    { "bad request", say_bad, HEAD "\"no way\",\"reason\":\"BadRequest\",\"code\":400}" },
    { "forbidden list", say_forbidden,
      HEAD
      "\"pods is forbidden: User \\\"u\\\" cannot\",\"reason\":\"Forbidden\",\"details\":{\"kind\":\"pods\"},"
      "\"code\":403}" },
    { "forbidden object", say_forbidden_one,
      HEAD
      "\"pods \\\"x\\\" is forbidden: no\",\"reason\":\"Forbidden\",\"details\":{\"name\":\"x\",\"kind\":\"pods\"},"
      "\"code\":403}" },
    { "method", say_method,
      HEAD
      "\"deletecollection is not supported on resources of kind \\\"sandboxes.agents.x-k8s.io\\\"\",\"reason\":"
      "\"MethodNotAllowed\",\"details\":{\"group\":\"agents.x-k8s.io\",\"kind\":\"sandboxes\"},\"code\":405}" },
    { "expired", say_expired,
      HEAD "\"too old resource version: 1 (9)\",\"reason\":\"Expired\",\"code\":410}" },
    { "too large", say_large,
      HEAD
      "\"Request entity too large: limit is 3145728\",\"reason\":\"RequestEntityTooLarge\",\"code\":413}" },
    { "too many", say_many,
      HEAD
      "\"later\",\"reason\":\"TooManyRequests\",\"details\":{\"retryAfterSeconds\":1},\"code\":429}" },
    { "internal", say_internal,
      HEAD
      "\"Internal error occurred: disk\",\"reason\":\"InternalError\",\"details\":{},\"code\":500}" },
    { "unauthorized", say_unauthorized,
      HEAD "\"Unauthorized\",\"reason\":\"Unauthorized\",\"code\":401}" },
    { "no such resource", say_nowhere,
      HEAD
      "\"the server could not find the requested resource\",\"reason\":\"NotFound\",\"details\":{},\"code\":404}" },
    { "success", say_success,
      "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Success\",\"details\":{\"name\":\"x\",\"group\":"
      "\"agents.x-k8s.io\",\"kind\":\"sandboxes\",\"uid\":\"u-1\"}}" },
    { "one cause", say_invalid,
      HEAD
      "\"Pod \\\"x\\\" is invalid: spec.containers: Required value\",\"reason\":\"Invalid\",\"details\":{\"name\":\"x\","
      "\"kind\":\"Pod\",\"causes\":[{\"reason\":\"FieldValueRequired\",\"message\":\"Required value\",\"field\":"
      "\"spec.containers\"}]},\"code\":422}" },
    { "several causes, one twice", say_invalid_twice,
      HEAD
      "\"Sandbox.agents.x-k8s.io \\\"x\\\" is invalid: [spec.containers[0].name: Invalid value: \\\"A\\\\\\\"b\\\": must "
      "be low, data[k.v]: Duplicate value: \\\"k.v\\\"]\",\"reason\":\"Invalid\",\"details\":{\"name\":\"x\",\"group\":"
      "\"agents.x-k8s.io\",\"kind\":\"Sandbox\",\"causes\":[{\"reason\":\"FieldValueInvalid\",\"message\":\"Invalid "
      "value: \\\"A\\\\\\\"b\\\": must be low\",\"field\":\"spec.containers[0].name\"},{\"reason\":\"FieldValueInvalid\","
      "\"message\":\"Invalid value: \\\"A\\\\\\\"b\\\": must be low\",\"field\":\"spec.containers[0].name\"},{\"reason\":"
      "\"FieldValueDuplicate\",\"message\":\"Duplicate value: \\\"k.v\\\"\",\"field\":\"data[k.v]\"}]},\"code\":422}" },
    { "an error of ours", say_err,
      HEAD "\"line 3 is odd\",\"reason\":\"BadRequest\",\"code\":400}" },
    { "an error by the map", say_err_gone,
      HEAD "\"store is full\",\"reason\":\"ServiceUnavailable\",\"code\":503}" },
};

static void bodies(void **state)
{
    EACH(r, rows) {
        OWN(status_done) struct status st = STATUS_INIT;
        OWN(buf_done) struct buf out = BUF_INIT(65536);
        struct err e;

        st.retry_after_s = 9; /* what was said before must not shine through */
        r->say(&st);
        assert_int_equal(status_write(&st, &out, &e), 0);
        assert_string_equal(buf_cstr(&out), r->want);
    }
}

static void causes_have_ceilings(void **state)
{
    OWN(causes_done) struct causes c = CAUSES_INIT;
    OWN(buf_done) struct buf out = BUF_INIT(1024 * 1024);
    struct field_path deep[600];
    char text[CAUSE_PATH_MAX_BYTES];
    struct err e;

    for (size_t i = 0; i < 1000; i++)
        causes_add_text(&c, CAUSE_INVALID, AT_INDEX(AT(NULL, "x"), i), SPAN("bad"), NULL);
    assert_int_equal(c.n, CAUSES_MAX);
    assert_int_equal(c.dropped, 1000 - CAUSES_MAX);
    assert_int_equal(causes_summary(&c, &out, &e), 0);
    for (size_t i = 0; i < LEN(deep); i++)
        deep[i] = (struct field_path){ i ? &deep[i - 1] : NULL, FIELD_NAME, SPAN("abc"), 0 };
    assert_memory_equal(field_path_text(&deep[LEN(deep) - 1], text), "...", 3);
    assert_string_equal(field_path_text(NULL, text), "<nil>");
}

static void long_values_are_cut(void **state)
{
    OWN(causes_done) struct causes c = CAUSES_INIT;
    OWN_MEM char *big = own_new(100001);

    for (size_t i = 0; i < 100000; i++)
        big[i] = 'a';
    causes_add_text(&c, CAUSE_INVALID, AT(NULL, "x"), span_of(big, 100000), "too big");
    assert_string_equal(cause_message(&c, 0), "Invalid value: \"...\": too big");
}

static void statuses_are_read(void **state)
{
    OWN(status_done) struct status st = STATUS_INIT;
    OWN(json_doc_done) struct json_doc *doc = NULL;
    struct err e;

    assert_int_equal(
        json_parse(
            SPAN(
                "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"message\":\"m\",\"reason\":\"Conflict\","
                "\"details\":{\"name\":\"n\",\"retryAfterSeconds\":3,\"causes\":["
                "{\"reason\":\"FieldValueRequired\",\"field\":\"spec.a\",\"message\":\"Required value\"},"
                "{\"reason\":\"Whim\",\"message\":\"because\"}]},\"code\":409}"),
            NULL, &doc, &e),
        0);
    assert_true(status_read(json_doc_root(doc), &st));
    assert_int_equal(st.code, 409);
    assert_string_equal(st.reason, "Conflict");
    assert_string_equal(buf_cstr(&st.message), "m");
    assert_string_equal(buf_cstr(&st.name), "n");
    assert_int_equal(st.retry_after_s, 3);
    assert_int_equal(st.causes.n, 2);
    assert_int_equal(st.causes.rows[0].type, CAUSE_REQUIRED);
    assert_string_equal(cause_field(&st.causes, 0), "spec.a");
    assert_string_equal(cause_message(&st.causes, 0), "Required value");
    assert_int_equal(st.causes.rows[1].type, CAUSE_INTERNAL);
    assert_string_equal(cause_field(&st.causes, 1), "");
    assert_string_equal(cause_message(&st.causes, 1), "because");
    assert_false(status_read(json_get(json_doc_root(doc), "details"), &st));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bodies),
        cmocka_unit_test(causes_have_ceilings),
        cmocka_unit_test(long_values_are_cut),
        cmocka_unit_test(statuses_are_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
