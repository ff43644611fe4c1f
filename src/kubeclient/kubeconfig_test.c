#include "kubeclient/kubeconfig.h"

#include "base/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

/* One of everything a user meets. */
#define CLUSTER    "clusters: [{name: c, cluster: {server: 'https://h:6443'"
#define REST       "}}]\ncontexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n"
#define USER(text) CLUSTER REST "users: [{name: u, user: {" text "}}]\n"

static const char whole[] =
    "apiVersion: v1\nkind: Config\n"
    "clusters:\n"
    "- name: c\n"
    "  cluster:\n"
    "    server: https://[fd00::1]:6443/k8s/c1/\n"
    "    certificate-authority: certs/ca.pem\n"
    "    tls-server-name: api.local\n"
    "    extensions:\n"
    "    - {name: client.authentication.k8s.io/exec, extension: {audience: a}}\n"
    "users:\n"
    "- name: u\n"
    "  user:\n"
    "    client-certificate: /abs/cert.pem\n"
    "    client-key-data: |\n"
    "      a2V5\n"
    "    tokenFile: token\n"
    "    as: jane\n"
    "    as-groups: [a, b]\n"
    "    as-user-extra: {scopes: [x, z]}\n"
    "    exec:\n"
    "      apiVersion: client.authentication.k8s.io/v1\n"
    "      interactiveMode: Never\n"
    "      command: ./bin/login\n"
    "      args: [--quiet]\n"
    "      env: [{name: A, value: b}]\n"
    "      provideClusterInfo: true\n"
    "      installHint: apt install login\n"
    "contexts:\n"
    "- name: one\n"
    "  context: {cluster: c, user: u, namespace: team}\n"
    "- name: two\n"
    "  context: {cluster: c}\n"
    "current-context: one\n";

static void test_everything_is_read(void **state)
{
    struct kubeconfig k;
    struct err e;

    (void)state;
    assert_int_equal(kubeconfig_parse(SPAN(whole), "/home/me/config", NULL, &k, &e), 0);
    assert_string_equal(k.context, "one");
    assert_string_equal(k.namespace, "team");
    assert_true(k.is_tls);
    assert_string_equal(k.host, "fd00::1");
    assert_int_equal(k.port, 6443);
    assert_string_equal(k.path, "/k8s/c1");
    assert_string_equal(k.tls_name, "api.local");
    assert_string_equal(k.ca_file, "/home/me/certs/ca.pem");
    assert_string_equal(k.cert_file, "/abs/cert.pem");
    assert_null(k.key_file);
    assert_string_equal(buf_cstr(&k.key_pem), "key");
    assert_string_equal(k.token_file, "/home/me/token");
    assert_string_equal(k.as, "jane");
    assert_string_equal(k.as_groups[1], "b");
    assert_null(k.as_groups[2]);
    assert_string_equal(k.as_extra[2], "scopes");
    assert_string_equal(k.as_extra[3], "z");
    assert_string_equal(k.plugin.argv[0], "/home/me/./bin/login");
    assert_string_equal(k.plugin.argv[1], "--quiet");
    assert_null(k.plugin.argv[2]);
    assert_string_equal(k.plugin.env[0], "A=b");
    assert_int_equal(k.plugin.mode, PLUGIN_NEVER);
    assert_string_equal(k.plugin.hint, "apt install login");
    assert_string_equal(json_cstr(json_get(json_doc_root(k.plugin.cluster), "audience")), "a");
    kubeconfig_done(&k);
    kubeconfig_done(&k); /* twice does no harm */
    assert_int_equal(kubeconfig_parse(SPAN(whole), "config", "two", &k, &e), 0);
    assert_string_equal(k.ca_file, "certs/ca.pem");
    assert_null(k.token_file); /* no user, nobody's credentials */
    assert_null(k.plugin.argv);
    kubeconfig_done(&k);
}

static const struct {
    const char *name, *text, *want;
} wrong[] = {
    { "no YAML", "a: [", "'f': yaml: line 1: did not find expected node content" },
    { "no object", "[]", "'f': a kubeconfig is an object, this is a array" },
    { "another kind", "kind: Pod", "'f': a kubeconfig has the kind Config, this has 'Pod'" },
    { "nothing", "", "'f' has no current-context" },
    { "clusters of another type", "clusters: 5", "'f': clusters is a number, not a list" },
    { "a cluster without a name", "clusters: [{}]", "'f': clusters[0] has no name" },
    { "a user that is a text", "users: [{name: a, user: b}]",
      "'f': users[0].user is not an object" },
    { "two of one name", "users: [{name: a}, {name: a}]", "'f': users has 'a' twice" },
    { "a context that is not there", "current-context: x", "'f' has no context 'x'" },
    { "a cluster that is not there",
      "contexts: [{name: x, context: {cluster: c}}]\ncurrent-context: x",
      "'f' has no cluster 'c'" },
    { "a user that is not there", CLUSTER REST, "'f' has no user 'u'" },
    { "a context without a cluster", "contexts: [{name: x}]\ncurrent-context: x",
      "'f': context 'x': it has no cluster" },
    { "no server",
      "clusters: [{name: c}]\ncontexts: [{name: x, context: {cluster: c}}]\ncurrent-context: x",
      "'f': cluster 'c': it has no server" },
    { "a proxy", CLUSTER ", proxy-url: 'http://p'" REST "users: [{name: u}]",
      "'f': cluster 'c': proxy-url is not supported" },
    { "belief and disbelief",
      CLUSTER ", insecure-skip-tls-verify: true, "
              "certificate-authority: ca" REST "users: [{name: u}]",
      "'f': cluster 'c': insecure-skip-tls-verify and a certificate authority exclude each other" },
    { "a text for a boolean", CLUSTER ", insecure-skip-tls-verify: 'yes'" REST "users: [{name: u}]",
      "'f': cluster 'c': insecure-skip-tls-verify is a string, not true or false" },
    { "a certificate that is no base64",
      CLUSTER ", certificate-authority-data: '***'" REST "users: [{name: u}]",
      "'f': cluster 'c': certificate-authority-data is not base64" },
    { "half an identity", USER("client-certificate: c"),
      "'f': user 'u': a client certificate and its key belong together: one is missing" },
    { "a token that is a number", USER("token: 5"),
      "'f': user 'u': token is a number, not a text" },
    { "two ways", USER("token: a, username: b"),
      "'f': user 'u': more than one way to say who we are: a token and a password" },
    { "an old provider", USER("auth-provider: {name: gcp}"),
      "'f': user 'u': auth-provider is no longer supported by anybody" },
    { "groups of nobody", USER("as-groups: [a]"),
      "'f': user 'u': as-uid, as-groups and as-user-extra want as" },
    { "an old plugin",
      USER("exec: {apiVersion: client.authentication.k8s.io/v1alpha1, command: c}"),
      "'f': user 'u': exec.apiVersion is 'client.authentication.k8s.io/v1alpha1'; supported are "
      "client.authentication.k8s.io/v1 and v1beta1" },
    { "a plugin without a program",
      USER("exec: {apiVersion: client.authentication.k8s.io/v1beta1}"),
      "'f': user 'u': exec has no command" },
    { "a plugin without a mode",
      USER("exec: {apiVersion: client.authentication.k8s.io/v1, command: c}"),
      "'f': user 'u': exec of version v1 must have an interactiveMode" },
    { "a plugin with a mode of its own",
      USER("exec: {apiVersion: client.authentication.k8s.io/v1, "
           "command: c, interactiveMode: Sometimes}"),
      "'f': user 'u': exec.interactiveMode is 'Sometimes', not Never, IfAvailable or Always" },
};

static void test_what_is_wrong_is_said_with_its_place(void **state)
{
    (void)state;
    EACH(r, wrong) {
        struct kubeconfig k;
        struct err e;

        if (kubeconfig_parse(span_cstr(r->text), "f", NULL, &k, &e) == 0)
            fail_msg("%s: accepted", r->name);
        if (strcmp(e.msg, r->want) != 0)
            fail_msg("%s: %s", r->name, e.msg);
    }
}

static void test_servers(void **state)
{
    static const struct {
        const char *url, *host, *path; /* host NULL: refused */
        uint16_t port;
        bool is_tls;
    } rows[] = {
        { "https://h", "h", "", 443, true },
        { "http://localhost:8001/", "localhost", "", 8001, false },
        { "https://[::1]", "::1", "", 443, true },
        { "https://10.0.0.1:1/a/b//", "10.0.0.1", "/a/b", 1, true },
        { "h:6443", NULL },
        { "https://", NULL },
        { "https://:5", NULL },
        { "https://h:", NULL },
        { "https://h:0", NULL },
        { "https://h:65536", NULL },
        { "https://[::1:5", NULL },
        { "https://[::1]x:5", NULL },
        { "https://user:secret@h", NULL },
        { "https://h?a=b", NULL },
        { "https://h/a b", NULL },
        { "https://h\r\nx: y", NULL },
    };

    (void)state;
    EACH(r, rows) {
        struct kubeconfig k = { 0 };
        struct err e;

        if ((kubeconfig_set_server(&k, span_cstr(r->url), &e) == 0) != (r->host != NULL))
            fail_msg("%s", r->url);
        if (r->host) {
            assert_string_equal(k.host, r->host);
            assert_string_equal(k.path, r->path);
            assert_int_equal(k.port, r->port);
            assert_int_equal(k.is_tls, r->is_tls);
        }
        kubeconfig_done(&k);
    }
}

/* ---- files ---- */

static struct scratch dir;

static const char *path(const char *name)
{
    return scratch_path(&dir, name);
}

static int make_dir(void **state)
{
    (void)state;
    scratch_make(&dir);
    scratch_dir(&dir, ".kube");
    scratch_file(&dir, "a", "users: [{name: u, user: {token: first}}]\ncurrent-context: x\n");
    scratch_file(&dir, "b", CLUSTER REST "users: [{name: u, user: {token: second, as: jane}}]\n");
    scratch_file(&dir, ".kube/config", CLUSTER REST "users: [{name: u, user: {token: home}}]\n");
    scratch_file(&dir, "broken", "a: [");
    scratch_file(&dir, "namespace", "team\n");
    return mkfifo(path("fifo"), 0600);
}

static int remove_dir(void **state)
{
    (void)state;
    scratch_remove(&dir);
    return 0;
}

static void test_the_first_file_to_name_a_thing_wins(void **state)
{
    char list[1024];
    struct kubeconfig k;
    struct err e;

    (void)state;
    (void)snprintf(list, sizeof list, "%s::%s:%s", path("missing"), path("a"), path("b"));
    assert_int_equal(
        kubeconfig_load(&(struct kubeconfig_choice){ .list = list, .home = dir.path }, &k, &e), 0);
    assert_string_equal(k.token, "first");
    assert_null(k.as); /* whole: nothing of the second one */
    assert_string_equal(k.host, "h");
    kubeconfig_done(&k);
    (void)snprintf(list, sizeof list, "%s:%s", path("b"), path("a"));
    assert_int_equal(kubeconfig_load(&(struct kubeconfig_choice){ .list = list }, &k, &e), 0);
    assert_string_equal(k.token, "second");
    kubeconfig_done(&k);
}

static void test_places_are_tried_in_order(void **state)
{
    struct kubeconfig_choice choice = {
        .home = dir.path, .pod_host = "fd00::1", .pod_port = "443", .account_dir = dir.path
    };
    struct kubeconfig k;
    struct err e;

    (void)state;
    assert_int_equal(kubeconfig_load(&choice, &k, &e), 0);
    assert_string_equal(k.token, "home");
    kubeconfig_done(&k);
    choice.home = "/nonexistent";
    assert_int_equal(kubeconfig_load(&choice, &k, &e), 0);
    assert_string_equal(k.server, "https://[fd00::1]:443");
    assert_string_equal(k.namespace, "team");
    assert_string_equal(k.token_file, path("token"));
    assert_string_equal(k.ca_file, path("ca.crt"));
    kubeconfig_done(&k);
    choice.file = path("b");
    assert_int_equal(kubeconfig_load(&choice, &k, &e), 0);
    assert_string_equal(k.token, "second");
    kubeconfig_done(&k);
}

static void test_files_that_cannot_be_read(void **state)
{
    struct kubeconfig k;
    struct err e;
    char want[512];

    (void)state;
    assert_int_equal(kubeconfig_load(&(struct kubeconfig_choice){ .file = path("none") }, &k, &e),
                     -1);
    (void)snprintf(want, sizeof want,
                   "cannot read the kubeconfig: cannot open '%s': No such file or directory",
                   path("none"));
    assert_string_equal(e.msg, want);
    assert_int_equal(kubeconfig_load(&(struct kubeconfig_choice){ .file = path("fifo") }, &k, &e),
                     -1); /* and does not wait for a writer */
    (void)snprintf(want, sizeof want, "cannot read the kubeconfig: '%s' is not a file",
                   path("fifo"));
    assert_string_equal(e.msg, want);
    assert_int_equal(kubeconfig_load(&(struct kubeconfig_choice){ .list = path("broken") }, &k, &e),
                     -1);
    assert_non_null(strstr(e.msg, "broken': yaml: line 1"));
    assert_int_equal(kubeconfig_load(&(struct kubeconfig_choice){ .home = "/none" }, &k, &e), -1);
    assert_int_equal(e.code, ERR_NOT_FOUND);
    assert_string_equal(e.msg, "no kubeconfig: there is no ~/.kube/config, and this is no pod");
    assert_string_equal(e.hint, "name one with --kubeconfig or KUBECONFIG");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_everything_is_read),
        cmocka_unit_test(test_what_is_wrong_is_said_with_its_place),
        cmocka_unit_test(test_servers),
        cmocka_unit_test(test_the_first_file_to_name_a_thing_wins),
        cmocka_unit_test(test_places_are_tried_in_order),
        cmocka_unit_test(test_files_that_cannot_be_read),
    };

    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
