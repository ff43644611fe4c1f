/* silica token: an account of a namespace, and a token for it: what a tenant gets. */
#include "cli/command.h"

#include "base/fd.h"
#include "base/json.h"
#include "base/str.h"
#include "cli/api.h"
#include "kubeclient/kubeconfig.h"
#include "up/place.h"

#include <stdio.h>
#include <string.h>

#define RBAC "rbac.authorization.k8s.io"

struct token_options {
    const char *data, *namespace, *name, *role, *output;
    uint64_t life_ms;
    bool is_help;
};

#define AT_FIELD(field) offsetof(struct token_options, field)

/* clang-format off */
static const struct opt opts[] = {
    { "--namespace", NULL, OPT_STR, AT_FIELD(namespace), "default", 0, 0, "NS", "the namespace it may use; made when it is not there", NULL, 'n' },
    { "--name", NULL, OPT_STR, AT_FIELD(name), "silica-client", 0, 0, "NAME", "of the service account" },
    { "--role", NULL, OPT_STR, AT_FIELD(role), "edit", 0, 0, "ROLE", "what it may do there: view, edit, admin or another ClusterRole" },
    { "--duration", NULL, OPT_MS, AT_FIELD(life_ms), "24h", 600000, 31536000000, "TIME", "how long the token holds" },
    { "--output", NULL, OPT_STR, AT_FIELD(output), "token", 0, 0, "FORMAT", "token, or kubeconfig: a whole one with the token in it", NULL, 'o' },
    { "--data", "SILICA_DATA", OPT_STR, AT_FIELD(data), NULL, 0, 0, "DIR", "the data directory of what is up" },
    { "--help", NULL, OPT_BOOL, AT_FIELD(is_help), NULL, 0, 0, NULL, "this text", NULL, 'h' },
};
/* clang-format on */

const struct opt_program token_program = {
    .name = "silica token",
    .usage = "-n NS [options]",
    .example = "silica token -n team-a -o kubeconfig > team-a.kubeconfig",
    .opts = opts,
    .opt_count = LEN(opts),
    .epilog =
        "Makes a ServiceAccount and a RoleBinding in the namespace, and prints a token of it. Whoever has it sees\n"
        "and changes nothing elsewhere. Delete the account, and its tokens end with it.",
};

struct granting {
    const struct token_options *o;
    struct api api;
    struct buf token;
};

static void take_token(void *ctx, const struct kube_answer *answer)
{
    struct granting *g = ctx;
    struct err e;

    (void)buf_add(&g->token, json_str(json_get(json_get(answer->body, "status"), "token")), &e);
}

/* What is there already stays as it is. */
static int create(struct granting *g, const char *group, const char *plural, const char *namespace,
                  struct span text, struct err *e)
{
    OWN(json_doc_done) struct json_doc *doc = NULL;
    OWN(object_done) struct object *object = NULL;
    const struct kind *kind = kind_find(group, NULL, plural);

    if (json_parse(text, NULL, &doc, e) < 0 ||
        object_parse(kind, json_doc_root(doc), &object, e) < 0)
        return -1;
    if (api_call(&g->api,
                 &(struct kube_request){
                     .verb = KUBE_CREATE, .kind = kind, .namespace = namespace, .object = object },
                 NULL, NULL, e) == 0 ||
        e->code == ERR_EXISTS)
        return 0;
    return -1;
}

static int create_named(struct granting *g, const char *plural, const char *namespace,
                        const char *name, struct err *e)
{
    OWN(buf_done) struct buf text = BUF_INIT(4096);
    struct json_out out;

    json_out_init(&out, &text, 0);
    json_out_object_begin(&out);
    json_out_key(&out, "metadata"), json_out_object_begin(&out);
    json_out_key(&out, "name"), json_out_cstr(&out, name);
    json_out_object_end(&out);
    json_out_object_end(&out);
    return json_out_end(&out, e) < 0 ? -1 : create(g, "", plural, namespace, buf_span(&text), e);
}

static int bind_role(struct granting *g, struct err *e)
{
    OWN(buf_done) struct buf text = BUF_INIT(8192), name = BUF_INIT(1024);
    const struct token_options *o = g->o;
    struct json_out out;

    if (buf_addf(&name, e, "%s-%s", o->name, o->role) < 0)
        return -1;
    json_out_init(&out, &text, 0);
    json_out_object_begin(&out);
    json_out_key(&out, "metadata"), json_out_object_begin(&out);
    json_out_key(&out, "name"), json_out_cstr(&out, buf_cstr(&name));
    json_out_object_end(&out);
    json_out_key(&out, "roleRef"), json_out_object_begin(&out);
    json_out_key(&out, "apiGroup"), json_out_cstr(&out, RBAC);
    json_out_key(&out, "kind"), json_out_cstr(&out, "ClusterRole");
    json_out_key(&out, "name"), json_out_cstr(&out, o->role);
    json_out_object_end(&out);
    json_out_key(&out, "subjects"), json_out_array_begin(&out), json_out_object_begin(&out);
    json_out_key(&out, "kind"), json_out_cstr(&out, "ServiceAccount");
    json_out_key(&out, "name"), json_out_cstr(&out, o->name);
    json_out_key(&out, "namespace"), json_out_cstr(&out, o->namespace);
    json_out_object_end(&out), json_out_array_end(&out);
    json_out_object_end(&out);
    return json_out_end(&out, e) < 0
               ? -1
               : create(g, RBAC, "rolebindings", o->namespace, buf_span(&text), e);
}

static int ask_token(struct granting *g, struct err *e)
{
    char body[256];

    (void)snprintf(body, sizeof body,
                   "{\"apiVersion\":\"authentication.k8s.io/v1\",\"kind\":\"TokenRequest\","
                   "\"spec\":{\"expirationSeconds\":%llu}}",
                   (unsigned long long)(g->o->life_ms / 1000));
    return api_call(&g->api,
                    &(struct kube_request){ .verb = KUBE_CREATE,
                                            .kind = kind_find("", NULL, "serviceaccounts"),
                                            .namespace = g->o->namespace,
                                            .name = g->o->name,
                                            .sub = "token",
                                            .body = span_cstr(body) },
                    take_token, g, e);
}

static int grant(struct granting *g, struct err *e)
{
    return create_named(g, "namespaces", NULL, g->o->namespace, e) < 0 ||
                   create_named(g, "serviceaccounts", g->o->namespace, g->o->name, e) < 0 ||
                   bind_role(g, e) < 0 || ask_token(g, e) < 0
               ? -1
               : 0;
}

/* ---- what is printed ---- */

static int write_kubeconfig(const struct granting *g, const char *admin, struct buf *out,
                            struct err *e)
{
    const struct token_options *o = g->o;
    struct kubeconfig k = { 0 };
    int rc = -1;

    if (kubeconfig_load(&(struct kubeconfig_choice){ .file = admin }, &k, e) == 0 &&
        buf_addf(out, e,
                 "apiVersion: v1\nkind: Config\nclusters:\n- name: silica\n  cluster:\n"
                 "    server: %s\n    certificate-authority-data: ",
                 k.server) == 0 &&
        str_base64_encode(buf_span(&k.ca_pem), out, e) == 0 &&
        buf_addf(out, e,
                 "\nusers:\n- name: %s\n  user:\n    token: %s\ncontexts:\n- name: silica\n"
                 "  context:\n    cluster: silica\n    user: %s\n    namespace: %s\n"
                 "current-context: silica\n",
                 o->name, buf_cstr(&g->token), o->name, o->namespace) == 0)
        rc = 0;
    kubeconfig_done(&k);
    return rc;
}

static int run(const struct token_options *o, struct err *e)
{
    OWN(place_done) struct place place = PLACE_INIT;
    OWN(place_info_done) struct place_info info = { 0 };
    OWN(buf_done) struct buf text = BUF_INIT(256 * 1024);
    struct granting g = { .o = o, .api = API_INIT, .token = BUF_INIT(64 * 1024) };
    int rc = -1;

    if (place_open(&place, o->data, false, e) == 0 && place_read(&place, &info, e) == 0 &&
        api_open(&g.api, info.kubeconfig, e) == 0 && grant(&g, e) == 0)
        rc = strcmp(o->output, "kubeconfig") == 0 ? write_kubeconfig(&g, info.kubeconfig, &text, e)
                                                  : buf_addf(&text, e, "%s\n", buf_cstr(&g.token));
    if (rc == 0)
        rc = fd_write_all(1, buf_span(&text), e);
    api_done(&g.api);
    buf_done(&g.token);
    return rc;
}

int token_command(int argc, char **argv)
{
    struct token_options o = { 0 };
    struct err e;
    int rest;

    if (opt_parse(&token_program, argc, argv, &o, &rest, &e) < 0)
        return command_fail(&e, EXIT_USAGE);
    if (o.is_help)
        return command_show(opt_help, &token_program);
    if (rest < argc)
        (void)err_set(&e, ERR_USAGE, "unexpected argument '%s'", argv[rest]);
    else if (strcmp(o.output, "token") != 0 && strcmp(o.output, "kubeconfig") != 0)
        (void)err_set(&e, ERR_USAGE, "-o: '%s' is neither token nor kubeconfig", o.output);
    else
        return run(&o, &e) < 0 ? command_fail(&e, 1) : 0;
    return command_fail(&e, EXIT_USAGE);
}
