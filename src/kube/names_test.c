#include "kube/names.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#define A63 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define A253                                                                                       \
    A63 "." A63 "." A63 "."                                                                        \
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

#define LABEL_SAYS                                                                                 \
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "   \
    "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex "     \
    "used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
#define NAME_PART_SAYS                                                                             \
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end "  \
    "with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for " \
    "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"

static const struct row {
    enum names_rule rule;
    const char *text;
    const char *says; /* how the joined faults begin, or NULL when it is fine */
} rows[] = {
    { NAMES_DNS_LABEL, "a", NULL },
    { NAMES_DNS_LABEL, "0-9", NULL },
    { NAMES_DNS_LABEL, A63, NULL },
    { NAMES_DNS_LABEL, A63 "a", "must be no more than 63 characters" },
    { NAMES_DNS_LABEL, "", LABEL_SAYS },
    { NAMES_DNS_LABEL, "-a", LABEL_SAYS },
    { NAMES_DNS_LABEL, "a-", LABEL_SAYS },
    { NAMES_DNS_LABEL, "A", LABEL_SAYS },
    { NAMES_DNS_LABEL, "a\xc3\xa9", LABEL_SAYS },
    { NAMES_DNS_LABEL, "a.b", "must not contain dots" },
    { NAMES_DNS_SUBDOMAIN, "a.b-c.0", NULL },
    { NAMES_DNS_SUBDOMAIN, A253, NULL },
    { NAMES_DNS_SUBDOMAIN, A253 "a", "must be no more than 253 characters" },
    { NAMES_DNS_SUBDOMAIN, "a..b", "a lowercase RFC 1123 subdomain must consist of" },
    { NAMES_DNS_SUBDOMAIN, ".a", "a lowercase RFC 1123 subdomain must consist of" },
    { NAMES_DNS_SUBDOMAIN, "a.", "a lowercase RFC 1123 subdomain must consist of" },
    { NAMES_DNS_1035, "a1", NULL },
    { NAMES_DNS_1035, "1a", "a DNS-1035 label must consist of" },
    { NAMES_DNS_1035, "", "a DNS-1035 label must consist of" },
    { NAMES_PATH_SEGMENT, "system:node", NULL },
    { NAMES_PATH_SEGMENT, "..", "may not be '..'" },
    { NAMES_PATH_SEGMENT, "a/b%", "may not contain '/'; may not contain '%'" },
    { NAMES_LABEL_KEY, "example.com/My.Name_1", NULL },
    { NAMES_LABEL_KEY, "x", NULL },
    { NAMES_LABEL_KEY, "", "name part must be non-empty; " NAME_PART_SAYS },
    { NAMES_LABEL_KEY, "/x", "prefix part must be non-empty" },
    { NAMES_LABEL_KEY, "X/x", "prefix part a lowercase RFC 1123 subdomain must consist of" },
    { NAMES_LABEL_KEY, "a b", NAME_PART_SAYS },
    { NAMES_LABEL_KEY, "a/b/c", "a valid label key must consist of alphanumeric characters" },
    { NAMES_LABEL_KEY, A63 "a", "name part must be no more than 63 bytes" },
    { NAMES_LABEL_VALUE, "", NULL },
    { NAMES_LABEL_VALUE, "A_b.c-1", NULL },
    { NAMES_LABEL_VALUE, "_a", "a valid label must be an empty string or consist of" },
    { NAMES_LABEL_VALUE, A63 "a", "must be no more than 63 bytes" },
    { NAMES_CONFIG_KEY, ".key_1-X", NULL },
    { NAMES_CONFIG_KEY, "a/b", "a valid config key must consist of alphanumeric characters" },
    { NAMES_CONFIG_KEY, "", "a valid config key" },
    { NAMES_CONFIG_KEY, ".", "must not be '.'" },
    { NAMES_CONFIG_KEY, "..a", "must not start with '..'" },
    { NAMES_ENV_VAR, "my var!", NULL },
    { NAMES_ENV_VAR, "", "environment variable name must be non-empty" },
    { NAMES_ENV_VAR, "A=", "a valid environment variable name must consist only of printable" },
    { NAMES_C_IDENTIFIER, "_a9", NULL },
    { NAMES_C_IDENTIFIER, "9a", "a valid C identifier must start with alphabetic character" },
    { NAMES_PORT, "http-1", NULL },
    { NAMES_PORT, "80", "must contain at least one letter (a-z)" },
    { NAMES_PORT, "-a--b-",
      "must not contain consecutive hyphens; must not begin or end with a hyphen" },
    { NAMES_PORT, "HTTP",
      "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-); "
      "must contain at least one letter (a-z)" },
    { NAMES_PORT, "abcdefghijklmnop", "must be no more than 15 characters" },
};

static void test_rules(void **state)
{
    EACH(r, rows) {
        struct names_faults f;
        char text[1024];
        bool is_fine = names_check(r->rule, span_cstr(r->text), &f);

        assert_int_equal(names_check(r->rule, span_cstr(r->text), NULL), is_fine);
        if (is_fine != !r->says)
            fail_msg("'%s': %s", r->text, names_join(&f, text, sizeof text));
        if (r->says && !span_starts(span_cstr(names_join(&f, text, sizeof text)), r->says))
            fail_msg("'%s' says '%s', not '%s'", r->text, text, r->says);
    }
}

static void test_prefixes(void **state)
{
    assert_true(names_check_prefix(NAMES_DNS_SUBDOMAIN, SPAN("web-"), NULL));
    assert_true(names_check_prefix(NAMES_DNS_SUBDOMAIN, SPAN("web"), NULL));
    assert_false(names_check_prefix(NAMES_DNS_SUBDOMAIN, SPAN("-"), NULL));
    assert_false(names_check_prefix(NAMES_DNS_SUBDOMAIN, SPAN("We-"), NULL));
    assert_true(names_check_prefix(NAMES_PATH_SEGMENT, SPAN(".."), NULL));
}

static void test_join_is_cut(void **state)
{
    struct names_faults f;
    char text[16];

    assert_false(names_check(NAMES_PORT, SPAN("--"), &f));
    assert_string_equal(names_join(&f, text, sizeof text), "must contain...");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_prefixes),
        cmocka_unit_test(test_join_is_cut),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
