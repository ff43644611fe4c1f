/* Where kubeconfigs are, and the pod's account where there is none. */
#include "kubeclient/kubeconfig_impl.h"

#include "kubeclient/file.h"

#include <string.h>

#define PATH_MAX_BYTES 4096

void kubeconfig_choice_env(struct kubeconfig_choice *choice)
{
    choice->list = getenv("KUBECONFIG");
    choice->home = getenv("HOME");
    choice->pod_host = getenv("KUBERNETES_SERVICE_HOST");
    choice->pod_port = getenv("KUBERNETES_SERVICE_PORT");
}

/* A missing one is no error where it is one of several places to look. */
static int add_file(struct config_files *fs, const char *path, bool may_miss, struct err *e)
{
    OWN(file_wipe) struct buf text = BUF_INIT(KUBECONFIG_MAX_BYTES);

    if (file_read(path, &text, e) < 0)
        return may_miss && e->code == ERR_NOT_FOUND ? 0 : err_wrap(e, "cannot read the kubeconfig");
    return config_files_add(fs, buf_span(&text), path, e);
}

static int add_list(struct config_files *fs, const char *list, struct err *e)
{
    struct span rest = span_cstr(list), piece;

    while (span_cut(&rest, ':', &piece)) {
        OWN_MEM char *path = piece.n ? span_dup(piece) : NULL;

        if (path && add_file(fs, path, true, e) < 0)
            return -1;
    }
    return 0;
}

static int add_home(struct config_files *fs, const char *home, struct err *e)
{
    OWN(buf_done) struct buf path = BUF_INIT(PATH_MAX_BYTES);

    if (!home || !home[0])
        return 0;
    if (buf_addf(&path, e, "%s/.kube/config", home) < 0)
        return -1;
    return add_file(fs, buf_cstr(&path), true, e);
}

static char *join(const char *dir, const char *name)
{
    struct buf path = BUF_INIT(PATH_MAX_BYTES);
    struct err e;

    if (buf_addf(&path, &e, "%s/%s", dir, name) < 0)
        buf_clear(&path); /* a path that is too long is not found */
    return path.p ? (char *)path.p : own_strdup("");
}

/* The namespace is a courtesy: nothing fails for want of it. */
static char *pod_namespace(const char *dir)
{
    OWN_MEM char *path = join(dir, "namespace");
    OWN(buf_done) struct buf text = BUF_INIT(256);
    struct err e;
    struct span name;

    if (file_read(path, &text, &e) < 0)
        return NULL;
    name = span_trim(buf_span(&text));
    while (span_ends(name, "\n"))
        name.n--;
    return name.n ? span_dup(name) : NULL;
}

static int load_pod(const struct kubeconfig_choice *choice, struct kubeconfig *ret, struct err *e)
{
    const char *dir = choice->account_dir ? choice->account_dir : KUBECONFIG_ACCOUNT_DIR;
    bool is_v6 = strchr(choice->pod_host, ':') != NULL;
    OWN(buf_done) struct buf url = BUF_INIT(1024);
    struct kubeconfig k = { .context = own_strdup("in-cluster") };

    if (buf_addf(&url, e, is_v6 ? "https://[%s]:%s" : "https://%s:%s", choice->pod_host,
                 choice->pod_port) < 0 ||
        kubeconfig_set_server(&k, buf_span(&url), e) < 0) {
        kubeconfig_done(&k);
        return err_wrap(e, "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT");
    }
    k.token_file = join(dir, "token");
    k.ca_file = join(dir, "ca.crt");
    k.namespace = pod_namespace(dir);
    *ret = k;
    return 0;
}

int kubeconfig_load(const struct kubeconfig_choice *choice, struct kubeconfig *ret, struct err *e)
{
    OWN(config_files_done) struct config_files fs = { .n = 0 };
    bool has_list = choice->list && choice->list[0];
    int r;

    if (choice->file)
        r = add_file(&fs, choice->file, false, e);
    else
        r = has_list ? add_list(&fs, choice->list, e) : add_home(&fs, choice->home, e);
    if (r < 0)
        return -1;
    if (fs.n)
        return config_files_choose(&fs, choice->context, ret, e);
    if (!choice->context && choice->pod_host && choice->pod_host[0] && choice->pod_port)
        return load_pod(choice, ret, e);
    (void)err_set(e, ERR_NOT_FOUND, "no kubeconfig: %s",
                  has_list ? "none of the files in KUBECONFIG is there"
                           : "there is no ~/.kube/config, and this is no pod");
    err_hint(e, "name one with --kubeconfig or KUBECONFIG");
    return -1;
}
