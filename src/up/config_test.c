#include "up/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const char *const options[] = { "listen", "router-listen", "tls-san", "verbose", NULL };

/* want: "option=text" of each value with blanks between; or, behind '!', how the error begins. */
static const struct row {
    const char *in, *want, *hint;
} rows[] = {
    { "", "", "" },
    { "# only words\n", "", "" },
    { "listen: 127.0.0.1:6443\n", "listen=127.0.0.1:6443@1", "" },
    { "\nlisten: 6443\nverbose: yes\n", "listen=6443@2 verbose=true@3", "" },
    { "tls-san: [a.example, b.example]\n", "tls-san=a.example@1 tls-san=b.example@1", "" },
    { "tls-san: []\nlisten:\n", "", "" },
    { "listen: {a: b}\n", "!line 1: 'listen' is object, not a text", "" },
    { "tls-san:\n- [a]\n", "!line 1: 'tls-san' is array, not a text", "" },
    { "# one\n\nrouter_listen: 1\n", "!line 3: 'router_listen' is nothing that is known here",
      "did you mean 'router-listen'?" },
    { "pool: []\n", "!line 1: 'pool' is nothing that is known here", "did you mean 'pools'?" },
    { "egress: []\n", "!line 1: 'egress' is nothing that is known here",
      "silica up --print-config shows what there is" },
    { "listen: a\nlisten: b\n", "!line 2: key \"listen\" already set in map", "" },
    { "- a\n", "!it is a array, not a map of options", "" },
    { "listen: [a\n", "!yaml: line", "" },
    { "pools:\n- {name: p, template: t, replicas: 3}\n- {name: q, template: t}\n", "", "" },
    { "pools: {}\n", "!line 1: 'pools' is object, not a list", "" },
    { "pools:\n- p\n", "!line 2: pools has a string, not a map", "" },
    { "pools:\n- name: p\n  template: t\n  replica: 3\n",
      "!line 4: 'replica' is nothing that is known here", "did you mean 'replicas'?" },
    { "pools:\n- name: p\n  template: t\n  replicas: -1\n",
      "!line 4: replicas is no number from 0 to 100000", "" },
    { "pools:\n- name: p\n- template: t\n", "!line 2: there is no template", "" },
    { "pools:\n- template: t\n", "!line 2: there is no name", "" },
    { "pools:\n- name: p\n  template: A B\n", "!line 3: template 'A B': a lowercase RFC 1123", "" },
    { "templates:\n- name: t\n  spec: {podTemplate: {}}\n", "", "" },
    { "templates:\n- name: t\n", "!line 2: there is no spec", "" },
    { "templates:\n- name: t\n  spec: x\n", "!line 3: there is no spec", "" },
    { "images: [{any: thing}]\n", "", "" },
    { "images: host\n", "!line 1: 'images' is string, not a list", "" },
};

static void each(void **state)
{
    (void)state;
    EACH(r, rows) {
        OWN(config_done) struct config c = CONFIG_INIT;
        OWN(buf_done) struct buf got = BUF_INIT(4096);
        struct err e = { .msg = "" };
        int rc;

        assert_int_equal(buf_add(&c.text, span_cstr(r->in), &e), 0);
        rc = config_parse(&c, options, &e);
        if (*r->want == '!') {
            if (rc == 0 || strncmp(e.msg, r->want + 1, strlen(r->want + 1)) != 0)
                fail_msg("%s: '%s', not '%s'", r->in, e.msg, r->want + 1);
            assert_string_equal(e.hint, r->hint);
            continue;
        }
        if (rc < 0)
            fail_msg("%s: %s", r->in, e.msg);
        for (size_t i = 0; i < c.value_count; i++)
            assert_int_equal(buf_addf(&got, &e, "%s%s=%s@%zu", i ? " " : "", c.values[i].option,
                                      c.values[i].text, c.values[i].line),
                             0);
        assert_string_equal(buf_cstr(&got), r->want);
    }
}

static void lists(void **state)
{
    OWN(config_done) struct config c = CONFIG_INIT;
    struct err e;

    (void)state;
    assert_int_equal(buf_addf(&c.text, &e, "pools: []\nimages:\n"), 0);
    assert_int_equal(config_parse(&c, options, &e), 0);
    assert_non_null(c.pools); /* none, which is not the same as nothing being said */
    assert_null(c.templates);
    assert_null(c.images);
}

static void no_file(void **state)
{
    OWN(config_done) struct config c = CONFIG_INIT;
    struct err e;

    (void)state;
    assert_int_equal(config_read(&c, "/nowhere/at.yaml", options, &e), -1);
    assert_non_null(strstr(e.msg, "/nowhere/at.yaml"));
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(each), cmocka_unit_test(lists),
                                        cmocka_unit_test(no_file) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
