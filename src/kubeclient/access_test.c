/* Who we are, while it changes: token files, certificates, credential plugins; and whom we believe. */
#include "kubeclient/testapi.h"

#include "base/scratch.h"
#include "ev/child.h"
#include "http/testserver.h"

#define MAP "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"m\"}}"
#define UNAUTHORIZED                                                                               \
    "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"reason\":\"Unauthorized\",\"code\":401}"
#define V1 "client.authentication.k8s.io/v1"

struct world {
    struct testapi api;
    struct scratch dir;
    struct ev_children *children;
    struct kubeconfig config;
    struct kube_client *client;
};

static void open_world(struct world *w)
{
    struct err e;

    *w = (struct world){ 0 };
    scratch_make(&w->dir);
    testapi_open(&w->api);
    testapi_kubeconfig(&w->api, NULL, &w->config);
    assert_int_equal(ev_children_open(w->api.loop, NULL, NULL, NULL, &w->children, &e), 0);
}

static int try_client(struct world *w, struct err *e)
{
    return kubeclient_new(w->api.loop,
                          &(struct kubeclient_config){ .kubeconfig = &w->config,
                                                       .children = w->children,
                                                       .timeout_ms = 8000 },
                          &w->client, e);
}

static void open_client(struct world *w)
{
    struct err e;

    if (try_client(w, &e) < 0)
        fail_msg("%s", e.msg);
}

static void close_world(struct world *w)
{
    kube_client_free(w->client);
    kubeconfig_done(&w->config);
    side_idle(w->api.loop, 20);
    ev_children_close(w->children);
    testapi_close(&w->api);
    scratch_remove(&w->dir);
}

static void get(struct world *w, struct told *r)
{
    told_call(&w->api, w->client,
              &(struct kube_request){ .verb = KUBE_GET,
                                      .kind = kind_find("", NULL, "configmaps"),
                                      .namespace = "a",
                                      .name = "m" },
              r);
}

static char *copy_path(struct world *w, const char *name)
{
    return own_strdup(scratch_path(&w->dir, name));
}

/* ---- what is said of us ---- */

static char **texts(const char *a, const char *b)
{
    char **t = own_array(3, sizeof *t);

    t[0] = own_strdup(a);
    t[1] = own_strdup(b);
    return t;
}

static void test_passwords_and_acting_as_somebody(void **state)
{
    struct world w;
    struct told r;

    (void)state;
    open_world(&w);
    w.config.username = own_strdup("joe");
    w.config.password = own_strdup("pass:word");
    w.config.as = own_strdup("jane");
    w.config.as_uid = own_strdup("u1");
    w.config.as_groups = texts("a", "b");
    w.config.as_extra = texts("example.com/Scope", "x");
    open_client(&w);
    TESTAPI_SCRIPT(&w.api, { 200, MAP });
    get(&w, &r);
    assert_int_equal(r.code, -1);
    assert_string_equal(w.api.asked[0].authorization, "Basic am9lOnBhc3M6d29yZA==");
    assert_string_equal(w.api.asked[0].as,
                        "user=jane uid=u1 group=a group=b extra-example.com%2fscope=x ");
    close_world(&w);
}

/* As `kubectl proxy` has it. HTTP/1.1, the answer in chunks. */
static void test_nothing_is_said_of_us_in_clear(void **state)
{
    static const struct answer script[] = {
        { NULL,
          BYTES("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
                "1f\r\n{\"apiVersion\":\"v1\",\"kind\":\"Conf\r\n"
                "1f\r\nigMap\",\"metadata\":{\"name\":\"m\"}}\r\n0\r\n\r\n"),
          THEN_KEEP },
    };
    struct testserver s;
    struct world w;
    struct told r;
    struct err e;
    char url[64];

    (void)state;
    open_world(&w);
    testserver_open(&s, w.api.loop, "127.0.0.1:0");
    testserver_script(&s, script, LEN(script));
    kubeconfig_done(&w.config);
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%u/prefix/", s.port);
    assert_int_equal(kubeconfig_set_server(&w.config, span_cstr(url), &e), 0);
    w.config.context = own_strdup("clear");
    w.config.token = own_strdup("secret");
    w.config.as = own_strdup("jane");
    open_client(&w);
    get(&w, &r);
    assert_int_equal(r.code, -1);
    assert_string_equal(r.names, "m");
    assert_true(span_starts(buf_span(&s.heard),
                            "GET /prefix/api/v1/namespaces/a/configmaps/m HTTP/1.1\r\n"));
    assert_null(strstr(buf_cstr(&s.heard), "secret"));
    assert_null(strstr(buf_cstr(&s.heard), "jane"));
    kube_client_free(take_ptr(&w.client));
    side_idle(w.api.loop, 10);
    testserver_close(&s);
    close_world(&w);
}

/* ---- token files ---- */

static void test_a_rotated_token_is_read_again(void **state)
{
    struct world w;
    struct told r;

    (void)state;
    open_world(&w);
    scratch_file(&w.dir, "token", "first\n");
    w.config.token_file = copy_path(&w, "token");
    open_client(&w);
    TESTAPI_SCRIPT(&w.api, { 200, MAP }, { 401, UNAUTHORIZED }, { 200, MAP },
                   { 401, UNAUTHORIZED });
    get(&w, &r);
    assert_int_equal(r.code, -1);
    assert_string_equal(w.api.asked[0].authorization, "Bearer first");
    scratch_file(&w.dir, "token", "second\n");
    get(&w, &r); /* the old one is refused: looked at once more, and said again */
    assert_int_equal(r.code, -1);
    assert_string_equal(w.api.asked[2].authorization, "Bearer second");
    get(&w, &r); /* this time there is nothing new */
    assert_int_equal(r.code, 401);
    assert_int_equal(w.api.n, 4);
    close_world(&w);
}

static void test_a_token_file_that_says_nothing(void **state)
{
    struct world w;
    struct err e;

    (void)state;
    open_world(&w);
    scratch_file(&w.dir, "token", "\n");
    w.config.token_file = copy_path(&w, "token");
    assert_int_equal(try_client(&w, &e), -1);
    assert_non_null(strstr(e.msg, "context 'test': '"));
    assert_non_null(strstr(e.msg, "token' holds no token"));
    close_world(&w);
}

struct seen {
    struct world *world;
    unsigned events, ends;
    int code;
};

static void on_event(void *ctx, enum kube_event type, struct object *o, uint64_t version)
{
    struct seen *s = ctx;

    (void)type, (void)o, (void)version;
    s->events++;
    scratch_file(&s->world->dir, "token", "third\n"); /* and the second is over */
}

static void on_end(void *ctx, const struct status *why)
{
    struct seen *s = ctx;

    s->ends++;
    s->code = why->code;
}

static bool has_ended(void *ctx)
{
    return ((struct seen *)ctx)->ends > 0;
}

static void test_a_watch_outlives_its_tokens(void **state)
{
    static const struct kube_watch_events events = { on_event, on_end };
    struct seen s = { 0 };
    struct world w;

    (void)state;
    open_world(&w);
    scratch_file(&w.dir, "token", "first\n");
    w.config.token_file = copy_path(&w, "token");
    open_client(&w);
    scratch_file(&w.dir, "token", "second\n");
    TESTAPI_SCRIPT(&w.api, { 401, UNAUTHORIZED },
                   { 200, "{\"type\":\"ADDED\",\"object\":{\"kind\":\"ConfigMap\",\"metadata\":"
                          "{\"resourceVersion\":\"5\"}}}" },
                   { 401, UNAUTHORIZED }, { 401, UNAUTHORIZED });
    s.world = &w;
    (void)kube_watch_start(
        w.client,
        &(struct kube_watch_spec){ .kind = kind_find("", NULL, "configmaps"), .from_version = 4 },
        &events, &s);
    assert_true(side_wait(w.api.loop, has_ended, &s));
    assert_int_equal(s.code, 401);
    assert_int_equal(w.api.n, 4);
    assert_string_equal(w.api.asked[0].authorization, "Bearer first");
    assert_string_equal(w.api.asked[1].authorization, "Bearer second");
    assert_string_equal(w.api.asked[2].authorization, "Bearer second");
    assert_string_equal(w.api.asked[3].authorization, "Bearer third");
    close_world(&w);
}

/* ---- certificates ---- */

static void put_identity(struct world *w, const char *name)
{
    struct testcert cert = { 0 };

    testca_issue(w->api.ca, &(struct testcert_spec){ name, NULL, NULL, -60, 3600 }, &cert);
    scratch_file(&w->dir, "cert", buf_cstr(&cert.cert_pem));
    scratch_file(&w->dir, "key", buf_cstr(&cert.key_pem));
    testcert_done(&cert);
}

static void test_a_rotated_certificate_is_shown_on_new_connections(void **state)
{
    struct world w;
    struct told r;

    (void)state;
    open_world(&w);
    put_identity(&w, "jane");
    w.config.cert_file = copy_path(&w, "cert");
    w.config.key_file = copy_path(&w, "key");
    open_client(&w);
    TESTAPI_SCRIPT(&w.api, { 200, MAP }, { 401, UNAUTHORIZED }, { 200, MAP });
    get(&w, &r);
    assert_string_equal(w.api.asked[0].client, "jane");
    put_identity(&w, "joan");
    get(&w, &r);
    assert_int_equal(r.code, -1);
    assert_string_equal(w.api.asked[1].client, "jane");
    assert_string_equal(w.api.asked[2].client, "joan");
    assert_int_equal(w.api.accepted, 2);
    close_world(&w);
}

static void test_a_certificate_of_another_key_is_refused_at_once(void **state)
{
    struct world w;
    struct err e;

    (void)state;
    open_world(&w);
    put_identity(&w, "jane");
    w.config.cert_file = copy_path(&w, "cert");
    scratch_file(&w.dir, "other", "no key\n");
    w.config.key_file = copy_path(&w, "other");
    assert_int_equal(try_client(&w, &e), -1);
    assert_non_null(strstr(e.msg, "cannot use the private key"));
    close_world(&w);
}

static void test_whom_we_do_not_believe_is_told_nothing(void **state)
{
    static const struct {
        const char *name, *tls_name;
        bool is_other_ca;
        const char *want;
    } rows[] = {
        { "another CA", NULL, true, "cannot verify the certificate of '127.0.0.1'" },
        { "another name", "api.elsewhere", false,
          "cannot verify the certificate of 'api.elsewhere'" },
    };

    (void)state;
    EACH(row, rows) {
        struct testca *other = testca_new("somebody else");
        struct world w;
        struct told r;
        struct err e;

        open_world(&w);
        w.config.token = own_strdup("secret");
        if (row->tls_name)
            w.config.tls_name = own_strdup(row->tls_name);
        if (row->is_other_ca) {
            buf_clear(&w.config.ca_pem);
            assert_int_equal(buf_add(&w.config.ca_pem, testca_pem(other), &e), 0);
        }
        open_client(&w);
        get(&w, &r);
        if (r.code != 0 || !strstr(r.message, row->want))
            fail_msg("%s: %d %s", row->name, r.code, r.message);
        assert_int_equal(w.api.n, 0);
        close_world(&w);
        testca_free(other);
    }
}

/* ---- credential plugins ---- */

/* The script appends a line to "runs" and prints what `says` makes of $n, the number of runs. */
static void use_plugin(struct world *w, const char *says)
{
    OWN(buf_done) struct buf script = BUF_INIT(8192);
    struct err e;

    assert_int_equal(buf_addf(&script, &e,
                              "#!/bin/sh\necho run >>'%s'\nn=$(wc -l <'%s')\n"
                              "printf '%%s' \"$KUBERNETES_EXEC_INFO\" >'%s'\n%s\n",
                              scratch_path(&w->dir, "runs"), scratch_path(&w->dir, "runs"),
                              scratch_path(&w->dir, "info"), says),
                     0);
    scratch_file(&w->dir, "plugin", buf_cstr(&script));
    assert_int_equal(chmod(scratch_path(&w->dir, "plugin"), 0700), 0);
    w->config.plugin.argv = own_array(2, sizeof(char *));
    w->config.plugin.argv[0] = copy_path(w, "plugin");
    w->config.plugin.api_version = own_strdup(V1);
    w->config.plugin.env = own_array(2, sizeof(char *));
    w->config.plugin.env[0] = own_strdup("WHO=jane");
}

#define SAYS_TOKEN(more)                                                                           \
    "echo '{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1                                      \
    "\",\"status\":{\"token\":\"'$WHO$n'\"" more "}}'"

static void test_a_plugin_runs_once_for_many_and_again_when_it_is_refused(void **state)
{
    struct told r[3] = { { 0 } };
    struct world w;

    (void)state;
    open_world(&w);
    use_plugin(&w, SAYS_TOKEN(""));
    open_client(&w);
    TESTAPI_SCRIPT(&w.api, { 200, MAP }, { 200, MAP }, { 200, MAP }, { 401, UNAUTHORIZED },
                   { 200, MAP }, { 401, UNAUTHORIZED }, { 401, UNAUTHORIZED });
    for (size_t i = 0; i < LEN(r); i++)
        (void)kube_call_start(w.client,
                              &(struct kube_request){ .verb = KUBE_GET,
                                                      .kind = kind_find("", NULL, "configmaps"),
                                                      .namespace = "a",
                                                      .name = "m" },
                              told_done, &r[i]);
    for (size_t i = 0; i < LEN(r); i++)
        assert_true(side_wait(w.api.loop, told_is_there, &r[i]));
    for (size_t i = 0; i < LEN(r); i++)
        assert_string_equal(w.api.asked[i].authorization, "Bearer jane1");
    assert_string_equal(scratch_read(&w.dir, "runs"), "run\n");
    assert_string_equal(scratch_read(&w.dir, "info"),
                        "{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1
                        "\",\"spec\":{\"interactive\":false}}");
    get(&w, &r[0]);
    assert_int_equal(r[0].code, -1);
    assert_string_equal(w.api.asked[4].authorization, "Bearer jane2");
    get(&w, &r[0]); /* refused, renewed, refused again: that is the answer */
    assert_int_equal(r[0].code, 401);
    assert_string_equal(w.api.asked[6].authorization, "Bearer jane3");
    close_world(&w);
}

static void test_a_credential_that_ends_is_renewed_before(void **state)
{
    struct world w;
    struct told r;

    (void)state;
    open_world(&w);
    use_plugin(&w, "t=$(date -u -d '+1 hour' +%Y-%m-%dT%H:%M:%SZ); "
                   "[ $n = 1 ] && t=$(date -u -d '+1 second' +%Y-%m-%dT%H:%M:%SZ)\n" //
               SAYS_TOKEN(",\"expirationTimestamp\":\"'$t'\""));
    open_client(&w);
    TESTAPI_SCRIPT(&w.api, { 200, MAP }, { 200, MAP }, { 200, MAP });
    get(&w, &r);
    assert_string_equal(w.api.asked[0].authorization, "Bearer jane1");
    side_idle(w.api.loop, 2100); /* one given as over already is kept for two seconds */
    get(&w, &r);
    get(&w, &r);
    assert_string_equal(w.api.asked[1].authorization, "Bearer jane2");
    assert_string_equal(w.api.asked[2].authorization, "Bearer jane2");
    close_world(&w);
}

static void test_plugins_that_fail(void **state)
{
    static const struct {
        const char *says, *want;
    } rows[] = {
        { "exit 3", "it failed with exit code 3" },
        { "kill -9 $$", "it was ended by signal 9" },
        { "echo secret", "its output is no JSON" },
        { "echo '{}'", "its output is no ExecCredential" },
        { "echo '{\"kind\":\"ExecCredential\",\"apiVersion\":\"v2\"}'",
          "its output is not of the version '" V1 "'" },
        { "echo '{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1 "\",\"status\":{}}'",
          "it gave neither a token nor a certificate" },
        { "echo '{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1
          "\",\"status\":{\"token\":\"a b\"}}'",
          "its token holds a byte that no token has" },
        { "head -c 2000000 /dev/zero", "it wrote more than 1048576 bytes" },
        { "echo '{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1
          "\",\"status\":{\"clientCertificateData\":\"a\",\"clientKeyData\":\"b\"}}'",
          "cannot use the certificate given as bytes" },
    };

    (void)state;
    EACH(row, rows) {
        struct world w;
        struct told r;

        open_world(&w);
        use_plugin(&w, row->says);
        open_client(&w);
        get(&w, &r);
        if (r.code != 0 || !strstr(r.message, row->want) || strstr(r.message, "secret") ||
            !strstr(r.message, "the credential plugin '"))
            fail_msg("%s: %d %s", row->says, r.code, r.message);
        get(&w, &r); /* at once: not started again, and refused the same */
        assert_non_null(strstr(r.message, row->want));
        assert_string_equal(scratch_read(&w.dir, "runs"), "run\n");
        assert_int_equal(w.api.n, 0);
        close_world(&w);
    }
}

static void test_a_plugin_that_is_not_there(void **state)
{
    struct world w;
    struct told r;

    (void)state;
    open_world(&w);
    use_plugin(&w, "");
    free(w.config.plugin.argv[0]);
    w.config.plugin.argv[0] = own_strdup("no-such-plugin");
    open_client(&w);
    get(&w, &r);
    assert_int_equal(r.code, 0);
    assert_string_equal(r.message, "the credential plugin 'no-such-plugin': cannot run "
                                   "'no-such-plugin': No such file or directory");
    close_world(&w);
}

static void test_a_client_that_is_freed_takes_its_plugin_along(void **state)
{
    struct told r = { 0 };
    struct world w;

    (void)state;
    open_world(&w);
    use_plugin(&w, "exec sleep 1000");
    open_client(&w);
    (void)kube_call_start(w.client,
                          &(struct kube_request){ .verb = KUBE_GET,
                                                  .kind = kind_find("", NULL, "configmaps"),
                                                  .namespace = "a",
                                                  .name = "m" },
                          told_done, &r);
    side_idle(w.api.loop, 50);
    kube_client_free(take_ptr(&w.client));
    side_idle(w.api.loop, 50);
    assert_int_equal(r.times, 1);
    assert_int_equal(r.code, 0);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_passwords_and_acting_as_somebody),
        cmocka_unit_test(test_nothing_is_said_of_us_in_clear),
        cmocka_unit_test(test_a_rotated_token_is_read_again),
        cmocka_unit_test(test_a_token_file_that_says_nothing),
        cmocka_unit_test(test_a_watch_outlives_its_tokens),
        cmocka_unit_test(test_a_rotated_certificate_is_shown_on_new_connections),
        cmocka_unit_test(test_a_certificate_of_another_key_is_refused_at_once),
        cmocka_unit_test(test_whom_we_do_not_believe_is_told_nothing),
        cmocka_unit_test(test_a_plugin_runs_once_for_many_and_again_when_it_is_refused),
        cmocka_unit_test(test_a_credential_that_ends_is_renewed_before),
        cmocka_unit_test(test_plugins_that_fail),
        cmocka_unit_test(test_a_plugin_that_is_not_there),
        cmocka_unit_test(test_a_client_that_is_freed_takes_its_plugin_along),
    };
    size_t before = side_fd_count();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);

    return failed || side_fd_count() != before;
}
