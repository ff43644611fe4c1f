/* The exec part of a user in a kubeconfig. */
#include "kubeclient/kubeconfig_impl.h"

#include "base/json_edit.h"

#include <string.h>

#define EXTENSION "client.authentication.k8s.io/exec" /* of a cluster: what is meant for plugins */

void plugin_config_done(struct kubeconfig_plugin *p)
{
    texts_free(take_ptr(&p->argv));
    texts_free(take_ptr(&p->env));
    free(take_ptr(&p->api_version));
    free(take_ptr(&p->hint));
    json_doc_unref(take_ptr(&p->cluster));
}

/* The program, then its arguments. A path with a slash begins at the file; a bare name is looked for in PATH. */
static int read_words(const struct config_part *p, struct kubeconfig_plugin *ret, struct err *e)
{
    OWN_MEM char *command = NULL;
    char **args = NULL;
    size_t n = 0;

    if (part_text(p, "command", &command, e) < 0)
        return -1;
    if (!command)
        return part_wrong(p, e, "exec has no command");
    if (part_texts(p, "args", &args, e) < 0)
        return -1;
    while (args && args[n])
        n++;
    ret->argv = own_array(n + 2, sizeof *ret->argv);
    ret->argv[0] = strchr(command, '/') ? part_resolve(p, span_cstr(command)) : own_strdup(command);
    for (size_t i = 0; i < n; i++)
        ret->argv[i + 1] = args[i];
    free(args);
    return 0;
}

static int read_variables(const struct config_part *p, struct kubeconfig_plugin *ret, struct err *e)
{
    const struct json *list = json_get(p->v, "env");
    size_t n = 0;

    if (json_type(list) != JSON_ARRAY && !json_is_null(list) && list)
        return part_wrong(p, e, "exec.env is a %s, not a list", json_type_name(list));
    if (json_count(list) > PLUGIN_WORDS_MAX)
        return part_wrong(p, e, "exec.env has more than %d variables", PLUGIN_WORDS_MAX);
    ret->env = own_array(json_count(list) + 1, sizeof *ret->env);
    JSON_EACH(item, list)
    {
        const char *name = json_cstr(json_get(item, "name"));
        const char *value = json_cstr(json_get(item, "value"));
        struct buf pair = BUF_INIT(KUBECONFIG_MAX_BYTES);

        if (!name || !name[0] || strchr(name, '='))
            return part_wrong(p, e, "exec.env[%zu] has no name, or one that cannot be", n);
        if (!value)
            return part_wrong(p, e, "exec.env[%zu] has no value", n);
        if (buf_addf(&pair, e, "%s=%s", name, value) < 0)
            return -1;
        ret->env[n++] = (char *)pair.p;
    }
    return 0;
}

static int read_mode(const struct config_part *p, struct kubeconfig_plugin *ret, struct err *e)
{
    static const char *const names[] = {
        [PLUGIN_NEVER] = "Never", [PLUGIN_IF_AVAILABLE] = "IfAvailable", [PLUGIN_ALWAYS] = "Always"
    };
    OWN_MEM char *mode = NULL;

    if (part_text(p, "interactiveMode", &mode, e) < 0)
        return -1;
    ret->mode = PLUGIN_IF_AVAILABLE;
    if (!mode && strcmp(ret->api_version, "client.authentication.k8s.io/v1") == 0)
        return part_wrong(p, e, "exec of version v1 must have an interactiveMode");
    if (!mode)
        return 0;
    for (size_t i = 0; i < LEN(names); i++) {
        if (strcmp(mode, names[i]) == 0) {
            ret->mode = (enum kubeconfig_mode)i;
            return 0;
        }
    }
    return part_wrong(p, e, "exec.interactiveMode is '%s', not Never, IfAvailable or Always", mode);
}

static int read_extension(const struct config_part *cluster, struct kubeconfig_plugin *ret,
                          struct err *e)
{
    JSON_EACH(item, json_get(cluster->v, "extensions"))
    {
        const struct json *value = json_get(item, "extension");

        if (span_is(json_str(json_get(item, "name")), EXTENSION) && value && !ret->cluster &&
            json_doc_of(value, &ret->cluster, e) < 0)
            return -1;
    }
    return 0;
}

int plugin_read_config(const struct config_part *user, const struct config_part *cluster,
                       struct kubeconfig_plugin *ret, struct err *e)
{
    struct config_part p = *user;

    p.v = json_get(user->v, "exec");
    if (!p.v || json_is_null(p.v))
        return 0;
    if (json_type(p.v) != JSON_OBJECT)
        return part_wrong(&p, e, "exec is a %s, not an object", json_type_name(p.v));
    if (part_text(&p, "apiVersion", &ret->api_version, e) < 0)
        return -1;
    if (!ret->api_version ||
        (strcmp(ret->api_version, "client.authentication.k8s.io/v1") != 0 &&
         strcmp(ret->api_version, "client.authentication.k8s.io/v1beta1") != 0))
        return part_wrong(&p, e,
                          "exec.apiVersion is '%s'; supported are client.authentication.k8s.io/v1 "
                          "and v1beta1",
                          ret->api_version ? ret->api_version : "");
    if (read_words(&p, ret, e) < 0 || read_variables(&p, ret, e) < 0 || read_mode(&p, ret, e) < 0 ||
        part_text(&p, "installHint", &ret->hint, e) < 0 ||
        part_bool(&p, "provideClusterInfo", &ret->wants_cluster, e) < 0)
        return -1;
    return ret->wants_cluster ? read_extension(cluster, ret, e) : 0;
}
