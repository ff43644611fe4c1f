/* What a Pod says of itself becomes one line of /etc/hosts, or none. */
#include "cli/in_cluster_hosts.h"

#include "kube/kind.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define OWNER(kind, version, name)                                                                 \
    "\"ownerReferences\":[{\"apiVersion\":\"" version "\",\"kind\":\"" kind "\",\"name\":\"" name  \
    "\",\"uid\":\"u\",\"controller\":true}]"
#define BOX(name) OWNER("Sandbox", "agents.x-k8s.io/v1beta1", name)

/* clang-format off */
static const struct row {
    const char *namespace, *meta, *ip, *want;
} rows[] = {
    { "a", BOX("box"), "127.64.0.9", "127.64.0.9 box.a.svc.cluster.local box.a.svc box.a\n" },
    { "a", BOX("b.ox"), "127.127.255.9", "127.127.255.9 b.ox.a.svc.cluster.local b.ox.a.svc b.ox.a\n" },
    { "a", OWNER("Sandbox", "agents.x-k8s.io/v1alpha1", "box"), "127.64.0.9", "127.64.0.9 box.a.svc.cluster.local box.a.svc box.a\n" },
    /* not the node's */
    { "a", BOX("box"), "127.0.0.1", "" },
    { "a", BOX("box"), "127.63.0.1", "" },
    { "a", BOX("box"), "127.128.0.1", "" },
    { "a", BOX("box"), "203.0.113.9", "" },
    { "a", BOX("box"), "::1", "" },
    { "a", BOX("box"), "::ffff:127.64.0.9", "" },
    { "a", BOX("box"), "", "" },
    /* no address, but what begins like one */
    { "a", BOX("box"), "127.64.0.9 pypi.org", "" },
    { "a", BOX("box"), "127.64.0.9\\n203.0.113.9 pypi.org", "" },
    { "a", BOX("box"), "127.64.9", "" },
    { "a", BOX("box"), "0177.64.0.9", "" },
    { "a", BOX("box"), "127.64.0.9%lo", "" },
    /* no name */
    { "a", BOX("box pypi.org"), "127.64.0.9", "" },
    { "a", BOX("box\\n203.0.113.9 pypi.org"), "127.64.0.9", "" },
    { "a", BOX("box\\tx"), "127.64.0.9", "" },
    { "a", BOX("box#"), "127.64.0.9", "" },
    { "a", BOX("Box"), "127.64.0.9", "" },
    { "a", BOX(""), "127.64.0.9", "" },
    /* the session's own */
    { "a", BOX("sandbox-router-svc"), "127.64.0.9", "" },
    { "default", BOX("kubernetes"), "127.64.0.9", "" },
    { "a", BOX("kubernetes"), "127.64.0.9", "127.64.0.9 kubernetes.a.svc.cluster.local kubernetes.a.svc kubernetes.a\n" },
    /* nobody's, another's */
    { "a", "\"labels\":{}", "127.64.0.9", "" },
    { "a", OWNER("ReplicaSet", "apps/v1", "box"), "127.64.0.9", "" },
    { "a", OWNER("Sandbox", "agents.x-k8s.io.example/v1", "box"), "127.64.0.9", "" },
    { "a", OWNER("Sandbox", "example.org/v1", "box"), "127.64.0.9", "" },
    { "a", BOX("box") ",\"deletionTimestamp\":\"2030-01-01T00:00:00Z\"", "127.64.0.9", "" },
};
/* clang-format on */

static void test_lines(void **state)
{
    (void)state;
    EACH(row, rows) {
        OWN(buf_done) struct buf text = BUF_INIT(4096), line = BUF_INIT(4096);
        OWN(json_doc_done) struct json_doc *doc = NULL;
        OWN(object_done) struct object *pod = NULL;
        struct err e;

        assert_int_equal(
            buf_addf(&text, &e,
                     "{\"metadata\":{\"name\":\"p\",\"namespace\":\"%s\",%s},\"status\":"
                     "{\"podIP\":\"%s\"}}",
                     row->namespace, row->meta, row->ip),
            0);
        assert_int_equal(json_parse(buf_span(&text), NULL, &doc, &e), 0);
        assert_int_equal(object_parse(kind_find("", "v1", "pods"), json_doc_root(doc), &pod, &e),
                         0);
        in_cluster_hosts_add(&line, pod);
        if (strcmp(buf_cstr(&line), row->want) != 0)
            fail_msg("row %zu: '%s'", (size_t)(row - rows), buf_cstr(&line));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_lines) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
