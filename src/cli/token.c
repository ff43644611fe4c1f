/* silica token: an account of a namespace, and a token for it: what a tenant gets. */
#include "cli/command.h"

#include "base/fd.h"
#include "base/str.h"
#include "cli/grant.h"
#include "kubeclient/kubeconfig.h"
#include "up/place.h"

#include <stdio.h>
#include <string.h>

struct token_options {
    const char *data, *namespace, *name, *role, *output;
    uint64_t life_ms;
    bool is_help;
    bool is_kubeconfig; /* of output */
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
    COMMAND_HELP(AT_FIELD(is_help), NULL),
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

struct printed {
    const struct token_options *o;
    struct buf token;
};

/* ---- what is printed ---- */

static int write_kubeconfig(const struct printed *g, const char *admin, struct buf *out,
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

static int run(const struct token_options *o, const struct place_info *info, struct err *e)
{
    OWN(buf_done) struct buf text = BUF_INIT(256 * 1024);
    OWN(api_done) struct api api = API_INIT;
    const struct grant grant = { o->namespace, o->name, o->role, o->life_ms / 1000 };
    struct printed g = { .o = o, .token = BUF_INIT(GRANT_TOKEN_MAX_BYTES) };
    int rc = -1;

    if (api_open(&api, info->kubeconfig, e) == 0 && grant_token(&api, &grant, &g.token, e) == 0)
        rc = o->is_kubeconfig ? write_kubeconfig(&g, info->kubeconfig, &text, e)
                              : buf_addf(&text, e, "%s\n", buf_cstr(&g.token));
    if (rc == 0)
        rc = fd_write_all(1, buf_span(&text), e);
    buf_done(&g.token);
    return rc;
}

int token_command(int argc, char **argv)
{
    OWN(place_done) struct place place = PLACE_INIT;
    OWN(place_info_done) struct place_info info = { 0 };
    struct token_options o = { 0 };
    struct err e;
    int code = command_parse(&token_program, argc, argv, &o, NULL);

    if (code != COMMAND_GOES_ON)
        return code;
    if (command_choice("--output", o.output, "token", "kubeconfig", &o.is_kubeconfig, &e) < 0)
        return command_fail(&e, EXIT_USAGE);
    if (place_open(&place, o.data, false, &e) < 0 || place_read(&place, &info, &e) < 0)
        return command_fail_up(&e);
    return run(&o, &info, &e) < 0 ? command_fail(&e, EXIT_FAILED) : 0;
}
