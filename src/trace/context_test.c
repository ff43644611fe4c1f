#include "trace/context.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define IDS  "4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7"
#define TEN  "0123456789"
#define LONG TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN

static void test_parents(void **state)
{
    static const struct {
        const char *name, *text, *want; /* want NULL: it is none */
    } rows[] = {
        { "recorded", "00-" IDS "-01", "00-" IDS "-01" },
        { "not recorded", "00-" IDS "-00", "00-" IDS "-00" },
        { "flags that we do not know", "00-" IDS "-fd", "00-" IDS "-01" },
        { "a later version with more behind", "cc-" IDS "-01-what-the-future-has",
          "00-" IDS "-01" },
        { "a later version that looks like ours", "cc-" IDS "-00", "00-" IDS "-00" },
        { "a later version with more, and no sign between", "cc-" IDS "-01.", NULL },
        { "ours with more behind", "00-" IDS "-01-", NULL },
        { "the version that is none", "ff-" IDS "-01", NULL },
        { "capitals", "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01", NULL },
        { "no trace", "00-00000000000000000000000000000000-00f067aa0ba902b7-01", NULL },
        { "no span", "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01", NULL },
        { "no hexadecimal digit", "00-4bf92f3577b34da6a3ce929d0e0e473g-00f067aa0ba902b7-01", NULL },
        { "another sign between", "00_" IDS "-01", NULL },
        { "a space before", " 00-" IDS "-01", NULL },
        { "short by one", "00-" IDS "-0", NULL },
        { "a version alone", "00", NULL },
        { "nothing", "", NULL },
    };

    (void)state;
    EACH(r, rows) {
        struct trace_context c = { .flags = 77 };
        char text[TRACE_TEXT_BYTES];
        bool is_one = trace_context_parse(span_cstr(r->text), &c);

        if (is_one != (r->want != NULL))
            fail_msg("%s: %d", r->name, is_one);
        if (is_one)
            assert_string_equal(trace_context_format(text, &c), r->want);
        else
            assert_int_equal(c.flags, 77); /* untouched */
    }
}

static void test_states(void **state)
{
    static const struct {
        const char *name, *text;
        bool want;
    } rows[] = {
        { "one", "a=1", true },
        { "several, with space between", "rojo=00f067aa0ba902b7 , congo=t61rcWkgMzE", true },
        { "a tenant", "1fw529a3039@dt=x", true },
        { "a space inside a value", "a=1 2", true },
        { "empty members", ",a=1,,b=2,", true },
        { "every byte of a key", "a_-*/0=1", true },
        { "a number first", "1a=1", false },
        { "a system that begins with a number", "a@1b=1", false },
        { "two tenants", "a@b@c=1", false },
        { "capitals", "A=1", false },
        { "no value", "a=", false },
        { "no key", "=1", false },
        { "no sign", "a", false },
        { "two signs", "a=b=c", false },
        { "the same twice", "a=1,b=2,a=3", false },
        { "a control byte", "a=\x01", false },
        { "a byte above", "a=\xc3\xa4", false },
        { "a key that is too long", "a" LONG LONG TEN TEN "=1", false },
        { "the longest system", "a@a0123456789012=1", true },
        { "one that is longer", "a@a01234567890123=1", false },
        { "nothing", "", false },
        { "33 of them",
          "a=1,b=1,c=1,d=1,e=1,f=1,g=1,h=1,i=1,j=1,k=1,l=1,m=1,n=1,o=1,p=1,q=1,r=1,s=1,t=1,u=1,v=1,"
          "w=1,x=1,y=1,z=1,aa=1,bb=1,cc=1,dd=1,ee=1,ff=1,gg=1",
          false },
    };

    (void)state;
    EACH(r, rows) {
        if (trace_state_is_valid(span_cstr(r->text)) != r->want)
            fail_msg("%s: not %d", r->name, r->want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parents),
        cmocka_unit_test(test_states),
    };

    return cmocka_run_group_tests_name("trace/context", tests, NULL, NULL);
}
