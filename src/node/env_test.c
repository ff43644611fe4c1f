#include "node/env.h"

#include "node/testpod.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define POD                                                                                        \
    "'metadata':{'name':'p','namespace':'n','uid':'u1','labels':{'app':'web','b':'x'},"            \
    "'annotations':{'a/b':'say \\\"hi\\\"'}}"
#define RESOURCES "'resources':{'limits':{'cpu':'1500m','memory':'64Mi'},'requests':{'cpu':'250m'}}"

static const char *const objects[] = {
    "configmaps {'metadata':{'name':'cm','namespace':'n'},'data':{'ONE':'1','two.dots':'2','a=b':'3'}}",
    "configmaps {'metadata':{'name':'odd','namespace':'n'},'data':{'ok':'1','1bad':'2','x=y':'3'}}",
    "secrets {'metadata':{'name':'s','namespace':'n'},'data':{'PASS':'c2VjcmV0','bin':'//4='}}",
    NULL,
};

static const struct row {
    const char *name;
    const char *container; /* members of it */
    const char *want;      /* NAME=value, '|' between; or the error */
    const char *note;
    enum err_code code;
} rows[] = {
    { "nothing", "", "" },
    { "literals in order", "'env':[{'name':'B','value':'1'},{'name':'A','value':'2'}]", "B=1|A=2" },
    { "no value", "'env':[{'name':'A'}]", "A=" },
    { "the last of a name", "'env':[{'name':'A','value':'1'},{'name':'A','value':'$(A)2'}]",
      "A=12" },
    { "earlier ones only",
      "'env':[{'name':'A','value':'$(B)'},{'name':'B','value':'b'},{'name':'C','value':'$(B)$$(B)'}]",
      "A=$(B)|B=b|C=b$(B)" },
    { "all of a map", "'envFrom':[{'configMapRef':{'name':'cm'}}]", "ONE=1|two.dots=2",
      "InvalidEnvironmentVariableNames: Keys [a=b] from the EnvFrom configMap n/cm were skipped since "
      "they are considered invalid environment variable names." },
    { "with a prefix", "'envFrom':[{'prefix':'P_','configMapRef':{'name':'odd'}}]",
      "P_ok=1|P_1bad=2",
      "InvalidEnvironmentVariableNames: Keys [P_x=y] from the EnvFrom configMap n/odd were skipped "
      "since they are considered invalid environment variable names." },
    { "env over envFrom, and seen by it",
      "'envFrom':[{'configMapRef':{'name':'cm'}}],'env':[{'name':'ONE','value':'$(ONE)+'}]",
      "ONE=1+|two.dots=2",
      "InvalidEnvironmentVariableNames: Keys [a=b] from the EnvFrom configMap n/cm were skipped since "
      "they are considered invalid environment variable names." },
    { "missing map", "'envFrom':[{'configMapRef':{'name':'none'}}]", "configmap \"none\" not found",
      NULL, ERR_NOT_FOUND },
    { "missing secret", "'envFrom':[{'secretRef':{'name':'none'}}]", "secret \"none\" not found",
      NULL, ERR_NOT_FOUND },
    { "optional map", "'envFrom':[{'configMapRef':{'name':'none','optional':true}}]", "" },
    { "a key",
      "'env':[{'name':'A','valueFrom':{'configMapKeyRef':{'name':'cm','key':'ONE'}}},"
      "{'name':'B','valueFrom':{'secretKeyRef':{'name':'s','key':'PASS'}}}]",
      "A=1|B=secret" },
    { "missing key", "'env':[{'name':'A','valueFrom':{'configMapKeyRef':{'name':'cm','key':'x'}}}]",
      "couldn't find key x in ConfigMap n/cm", NULL, ERR_NOT_FOUND },
    { "missing key of a secret",
      "'env':[{'name':'A','valueFrom':{'secretKeyRef':{'name':'s','key':'x'}}}]",
      "couldn't find key x in Secret n/s", NULL, ERR_NOT_FOUND },
    { "optional key: no variable",
      "'env':[{'name':'A','valueFrom':{'configMapKeyRef':{'name':'cm','key':'x','optional':true}}},"
      "{'name':'B','valueFrom':{'secretKeyRef':{'name':'no','key':'x','optional':true}}}]",
      "" },
    { "no text", "'env':[{'name':'A','valueFrom':{'secretKeyRef':{'name':'s','key':'bin'}}}]",
      "the value of 'A' is no text, so no variable can hold it", NULL, ERR_INVALID },
    { "fields",
      "'env':[{'name':'A','valueFrom':{'fieldRef':{'fieldPath':'metadata.name'}}},"
      "{'name':'B','valueFrom':{'fieldRef':{'fieldPath':'metadata.labels[\\u0027app\\u0027]'}}},"
      "{'name':'C','valueFrom':{'fieldRef':{'fieldPath':'metadata.labels[\\u0027no\\u0027]'}}},"
      "{'name':'D','valueFrom':{'fieldRef':{'fieldPath':'status.podIP'}}},"
      "{'name':'E','valueFrom':{'fieldRef':{'fieldPath':'metadata.uid'}}},"
      "{'name':'F','valueFrom':{'fieldRef':{'fieldPath':'status.hostIP'}}}]",
      "A=p|B=web|C=|D=127.64.0.9|E=u1|F=" },
    { "field that is none",
      "'env':[{'name':'A','valueFrom':{'fieldRef':{'fieldPath':'spec.tolerations'}}}]",
      "unsupported fieldPath: spec.tolerations", NULL, ERR_INVALID },
    { "resources",
      RESOURCES
      ",'env':["
      "{'name':'A','valueFrom':{'resourceFieldRef':{'resource':'limits.cpu'}}},"
      "{'name':'B','valueFrom':{'resourceFieldRef':{'resource':'limits.cpu','divisor':'1m'}}},"
      "{'name':'C','valueFrom':{'resourceFieldRef':{'resource':'limits.memory','divisor':'1Mi'}}},"
      "{'name':'D','valueFrom':{'resourceFieldRef':{'resource':'limits.memory','divisor':'1G'}}},"
      "{'name':'E','valueFrom':{'resourceFieldRef':{'resource':'requests.cpu','divisor':'1m'}}},"
      "{'name':'F','valueFrom':{'resourceFieldRef':{'resource':'requests.memory'}}},"
      "{'name':'G','valueFrom':{'resourceFieldRef':{'resource':'limits.ephemeral-storage'}}}]",
      "A=2|B=1500|C=64|D=1|E=250|F=0|G=1000" },
    { "no limits: the node's",
      "'env':[{'name':'A','valueFrom':{'resourceFieldRef':{'resource':'limits.cpu','divisor':'0'}}}]",
      "A=4" },
    { "another container's",
      "'env':[{'name':'A','valueFrom':{'resourceFieldRef':{'containerName':'x','resource':'limits.cpu'}}}]",
      "container x not found", NULL, ERR_NOT_FOUND },
    { "no resource",
      "'env':[{'name':'A','valueFrom':{'resourceFieldRef':{'resource':'limits.gpu'}}}]",
      "unsupported container resource : limits.gpu", NULL, ERR_INVALID },
};

static char *join(const struct env *env)
{
    OWN(buf_done) struct buf text = BUF_INIT(1 << 20);
    struct err e;

    for (const char **v = env->v; *v; v++)
        assert_int_equal(buf_addf(&text, &e, "%s%s", v == env->v ? "" : "|", *v), 0);
    return span_dup(buf_span(&text));
}

static void check(const struct row *r)
{
    OWN(env_done) struct env env = { 0 };
    OWN(notes_done) struct notes notes = { 0 };
    OWN_MEM char *text = NULL, *got = NULL, *note = NULL;
    struct env_spec spec = { 0 };
    struct object *pod;
    struct err e;

    assert_true(asprintf(&text, "{" POD ",'spec':{'containers':[{'name':'c'%s%s}]}}",
                         *r->container ? "," : "", r->container) > 0);
    pod = testpod_object("pods", text);
    spec = (struct env_spec){ .downward = { .pod = pod,
                                            .pod_ip = "127.64.0.9",
                                            .cpu_milli = 4000,
                                            .memory_bytes = 1 << 20,
                                            .storage_bytes = 1000 },
                              .container = json_at(object_at(pod, "spec.containers"), 0),
                              .needs = testpod_needs(pod, objects) };
    if (env_make(&spec, &env, &notes, &e) < 0) {
        if (e.code != r->code || strcmp(e.msg, r->want) != 0)
            fail_msg("%s: '%s' (%d), not '%s' (%d)", r->name, e.msg, e.code, r->want, r->code);
        return;
    }
    got = join(&env);
    if (r->code || strcmp(got, r->want) != 0)
        fail_msg("%s: '%s', not '%s'", r->name, got, r->want);
    assert_int_equal(notes.n, r->note != NULL);
    if (!r->note)
        return;
    assert_true(asprintf(&note, "%s: %s", notes.v[0].reason, notes.v[0].message) > 0);
    assert_string_equal(note, r->note);
}

static void variables(void **state)
{
    (void)state;
    EACH(r, rows)
        check(r);
}

#define WEB                                                                                        \
    "{'metadata':{'name':'my-web','namespace':'n'},'spec':{'clusterIP':'10.0.0.7','ports':["       \
    "{'port':80,'name':'http-in'},{'port':53,'protocol':'UDP','name':'d'}]}}"
#define API                                                                                        \
    "{'metadata':{'name':'kubernetes','namespace':'default'},'spec':{'clusterIP':'fd00::1',"       \
    "'ports':[{'port':443,'name':'https','protocol':'TCP'}]}}"
#define API_VARS                                                                                    \
    "KUBERNETES_SERVICE_HOST=fd00::1|KUBERNETES_SERVICE_PORT=443|KUBERNETES_SERVICE_PORT_HTTPS=443" \
    "|KUBERNETES_PORT=tcp://[fd00::1]:443|KUBERNETES_PORT_443_TCP=tcp://[fd00::1]:443"              \
    "|KUBERNETES_PORT_443_TCP_PROTO=tcp|KUBERNETES_PORT_443_TCP_PORT=443"                           \
    "|KUBERNETES_PORT_443_TCP_ADDR=fd00::1"
#define WEB_VARS                                                                                   \
    "MY_WEB_SERVICE_HOST=10.0.0.7|MY_WEB_SERVICE_PORT=80|MY_WEB_SERVICE_PORT_HTTP_IN=80"           \
    "|MY_WEB_PORT=tcp://10.0.0.7:80|MY_WEB_PORT_80_TCP=tcp://10.0.0.7:80"                          \
    "|MY_WEB_PORT_80_TCP_PROTO=tcp|MY_WEB_PORT_80_TCP_PORT=80|MY_WEB_PORT_80_TCP_ADDR=10.0.0.7"    \
    "|MY_WEB_SERVICE_PORT_D=53|MY_WEB_PORT_53_UDP=udp://10.0.0.7:53"                               \
    "|MY_WEB_PORT_53_UDP_PROTO=udp|MY_WEB_PORT_53_UDP_PORT=53|MY_WEB_PORT_53_UDP_ADDR=10.0.0.7"

static void check_services(const char *links, const char *container, const char *want)
{
    static const char *const base[] = { "PATH=/bin", "HOME=/", NULL };
    OWN(env_done) struct env env = { 0 };
    OWN(notes_done) struct notes notes = { 0 };
    OWN_MEM char *text = NULL, *got = NULL;
    struct object *services[4], *pod;
    struct env_spec spec;
    struct err e;

    services[0] = testpod_object("services", API);
    services[1] = testpod_object("services", WEB);
    services[2] =
        testpod_object("services", "{'metadata':{'name':'far','namespace':'other'},'spec':"
                                   "{'clusterIP':'10.0.0.8','ports':[{'port':1}]}}");
    services[3] =
        testpod_object("services", "{'metadata':{'name':'headless','namespace':'n'},'spec'"
                                   ":{'clusterIP':'None','ports':[{'port':1}]}}");
    assert_true(asprintf(&text, "{" POD ",'spec':{%s'containers':[{'name':'c'%s}]}}", links,
                         container) > 0);
    pod = testpod_object("pods", text);
    spec = (struct env_spec){ .downward = { .pod = pod },
                              .container = json_at(object_at(pod, "spec.containers"), 0),
                              .needs = testpod_needs(pod, NULL),
                              .base = base,
                              .services = services,
                              .service_count = LEN(services) };
    if (env_make(&spec, &env, &notes, &e) < 0)
        fail_msg("%s", e.msg);
    got = join(&env);
    assert_string_equal(got, want);
    assert_true(span_is(env_get(&env, "PATH"), "/bin") && !env_get(&env, "NONE").p);
}

static void services(void **state)
{
    (void)state;
    check_services("", "", "PATH=/bin|HOME=/|" API_VARS "|" WEB_VARS);
    check_services("'enableServiceLinks':false,", "", "PATH=/bin|HOME=/|" API_VARS);
    /* What the Pod says wins; what it says later is not yet so where it refers to it; base is not referred to. */
    check_services("'enableServiceLinks':false,",
                   ",'env':[{'name':'A','value':'$(KUBERNETES_SERVICE_PORT)$(HOME)'},"
                   "{'name':'HOME','value':'/h'},{'name':'B','value':'$(HOME)'}]",
                   "PATH=/bin|HOME=/h|" API_VARS "|A=443$(HOME)|B=/h");
}

static void words(void **state)
{
    OWN(env_done) struct env env = { 0 };
    OWN_MEM char **argv = NULL, **none = NULL;
    OWN(buf_done) struct buf out = BUF_INIT(64);
    struct err e;

    (void)state;
    assert_int_equal(env_set(&env, SPAN("A"), SPAN("x y"), false, &e), 0);
    assert_int_equal(env_words(&env, testpod_value("['sh','-c','','$(A)$(B)$$(A)']"), &argv, &e),
                     0);
    assert_string_equal(argv[0], "sh");
    assert_string_equal(argv[2], "");
    assert_string_equal(argv[3], "x y$(B)$(A)");
    assert_null(argv[4]);
    assert_int_equal(env_words(&env, NULL, &none, &e), 0);
    assert_null(none[0]);
    assert_int_equal(env_words(&env, testpod_value("['a\\u0000b']"), &argv, &e), -1);
    assert_int_equal(e.code, ERR_INVALID);
    assert_int_equal(env_expand_strict(&env, SPAN("d/$(A)"), &out, &e), 0);
    assert_string_equal(buf_cstr(&out), "d/x y");
    assert_int_equal(env_expand_strict(&env, SPAN("$(NO)"), &out, &e), -1);
    assert_string_equal(e.msg, "missing value for \"NO\"");
}

static void ceilings(void **state)
{
    OWN(env_done) struct env env = { 0 }, many = { 0 };
    OWN_MEM char *large = own_new(ENV_MAX_BYTES);
    struct err e;

    (void)state;
    memset(large, 'x', ENV_MAX_BYTES - 1);
    assert_int_equal(env_set(&env, SPAN("A"), span_cstr(large), false, &e), -1);
    assert_int_equal(e.code, ERR_LIMIT);
    large[ENV_MAX_BYTES - 10] = '\0';
    for (int i = 0; i < 3; i++) /* what is replaced makes room */
        assert_int_equal(env_set(&env, SPAN("A"), span_cstr(large), false, &e), 0);
    assert_int_equal(env_set(&env, SPAN("B"), span_cstr("0123456789"), false, &e), -1);
    for (int i = 0; i <= ENV_VARS_MAX; i++) {
        char name[16];

        (void)snprintf(name, sizeof name, "N%d", i);
        assert_int_equal(env_set(&many, span_cstr(name), SPAN(""), false, &e),
                         i < ENV_VARS_MAX ? 0 : -1);
    }
}

static void maps(void **state)
{
    struct object *pod =
        testpod_object("pods", "{'metadata':{'name':'p','labels':{'b':'2','a':'1'},'annotations':"
                               "{'k':'tab\\tquote\\\"back\\\\line\\nnul\\u0001\\u00a0\\u00e9'}}}");
    const struct downward d = { .pod = pod };
    OWN(buf_done) struct buf out = BUF_INIT(256);
    struct err e;

    (void)state;
    assert_int_equal(downward_field(&d, "metadata.labels", &out, &e), 0);
    assert_string_equal(buf_cstr(&out), "a=\"1\"\nb=\"2\"");
    buf_clear(&out);
    assert_int_equal(downward_field(&d, "metadata.annotations", &out, &e), 0);
    assert_string_equal(buf_cstr(&out),
                        "k=\"tab\\tquote\\\"back\\\\line\\nnul\\x01\\u00a0\xc3\xa9\"");
    assert_int_equal(downward_field(&d, "metadata.labels['a]", &out, &e), -1);
}

/* A token is kept until it is old; one for another audience is another. */
static void tokens_are_kept(void **state)
{
    static const char pod_text[] =
        "{'metadata':{'name':'p'},'spec':{'volumes':[{'name':'v','projected':"
        "{'sources':[{'serviceAccountToken':{'path':'t'}},"
        "{'serviceAccountToken':{'path':'u','audience':'other'}}]}}]}}";
    struct object *pod = testpod_object("pods", pod_text);
    struct needs *before = testpod_needs(pod, NULL);
    OWN(needs_done) struct needs now = { 0 };
    struct err e;

    (void)state;
    assert_int_equal(before->n, 2);
    before->v[0].renew_ms = 100;
    before->v[1].renew_ms = 200;
    assert_int_equal(needs_of_pod(pod, &now, &e), 0);
    assert_true(now.v[0].seconds == NEED_TOKEN_SECONDS && strcmp(now.v[0].name, "default") == 0);
    needs_keep_tokens(&now, before, 150);
    assert_null(now.v[0].token);
    assert_string_equal(now.v[1].token, "token-other");
    assert_int_equal(now.v[1].renew_ms, 200);
}

static int clean(void **state)
{
    (void)state;
    testpod_free();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(variables), cmocka_unit_test(services), cmocka_unit_test(words),
        cmocka_unit_test(ceilings),  cmocka_unit_test(maps),     cmocka_unit_test(tokens_are_kept),
    };

    return cmocka_run_group_tests(tests, NULL, clean);
}
