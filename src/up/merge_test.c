#include "up/merge.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define OURS                                                                                       \
    "apiVersion: v1\nkind: Config\nclusters:\n- name: silica\n  cluster: {server: 'https://a'}\n"  \
    "users:\n- name: silica-admin\n  user: {token: t}\ncontexts:\n- name: silica\n"                \
    "  context: {cluster: silica, user: silica-admin}\ncurrent-context: silica\n"
#define OURS_ALONE                                                                                 \
    "apiVersion: v1\nclusters:\n- cluster:\n    server: https://a\n  name: silica\ncontexts:\n"    \
    "- context:\n    cluster: silica\n    user: silica-admin\n  name: silica\n"                    \
    "current-context: silica\nkind: Config\nusers:\n- name: silica-admin\n  user:\n    token: t\n"
#define OTHER                                                                                      \
    "clusters: [{name: b}]\nusers: [{name: b}]\ncontexts: [{name: b}]\ncurrent-context: b\nx: 1\n"

static const struct row {
    const char *name, *theirs, *ours, *want; /* want NULL: refused */
} rows[] = {
    { "into nothing", "", OURS, OURS_ALONE },
    { "into what kubectl calls empty", "clusters: null\ncontexts: []\n", OURS, OURS_ALONE },
    { "twice is once", OURS_ALONE, OURS, OURS_ALONE },
    { "others stay", OTHER, OURS,
      "apiVersion: v1\nclusters:\n- name: b\n- cluster:\n    server: https://a\n  name: silica\n"
      "contexts:\n- name: b\n- context:\n    cluster: silica\n    user: silica-admin\n  name: silica\n"
      "current-context: silica\nkind: Config\nusers:\n- name: b\n- name: silica-admin\n  user:\n"
      "    token: t\nx: 1\n" },
    { "out again, and none is current", OURS_ALONE, NULL,
      "apiVersion: v1\nclusters: []\ncontexts: []\ncurrent-context: \"\"\nkind: Config\nusers: []\n" },
    { "out of another's", OTHER, NULL,
      "apiVersion: v1\nclusters:\n- name: b\ncontexts:\n- name: b\ncurrent-context: b\n"
      "kind: Config\nusers:\n- name: b\nx: 1\n" },
    { "no kubeconfig", "- a\n", OURS, NULL },
    { "no YAML", "a: [\n", OURS, NULL },
};

static void test_texts(void **state)
{
    (void)state;
    EACH(r, rows) {
        OWN(buf_done) struct buf out = BUF_INIT(65536);
        struct err e;
        int rc =
            merge_text(span_cstr(r->theirs), r->ours ? span_cstr(r->ours) : SPAN_NONE, &out, &e);

        if (!r->want) {
            if (rc == 0)
                fail_msg("%s: taken", r->name);
            continue;
        }
        if (rc < 0)
            fail_msg("%s: %s", r->name, e.msg);
        if (strcmp(buf_cstr(&out), r->want) != 0)
            fail_msg("%s:\n%s\nnot\n%s", r->name, buf_cstr(&out), r->want);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = { cmocka_unit_test(test_texts) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
