/* kubeconfig: which server to call and who we are there, out of kubeconfig files or the variables of a pod.
 *
 * Owns:     a struct kubeconfig owns its texts; secrets in it are wiped when it is done.
 * Order:    the file that is named; else those of KUBECONFIG, where the first to name a thing wins and missing files are
 *           skipped; else ~/.kube/config; else the pod's service account.
 * Refused:  what we cannot do as it is meant, and would do otherwise in silence: proxies, auth-provider, v1alpha1 plugins.
 *           Unknown members are left alone.
 * Paths:    relative ones begin at the file that names them. Nothing they name is read here.
 * Used by:  access, commands that show contexts. Does no I/O but reading kubeconfigs.
 */
#ifndef SILICA_KUBECLIENT_KUBECONFIG_H
#define SILICA_KUBECLIENT_KUBECONFIG_H

#include "base/json.h"

#define KUBECONFIG_ACCOUNT_DIR "/var/run/secrets/kubernetes.io/serviceaccount"

enum kubeconfig_mode { PLUGIN_NEVER, PLUGIN_IF_AVAILABLE, PLUGIN_ALWAYS };

/* A program that says who we are. */
struct kubeconfig_plugin {
    char **argv; /* NULL: there is none */
    char **env;  /* "NAME=value", on top of ours; NULL-ended */
    char *api_version;
    char *hint; /* what to do where it is not installed; or NULL */
    enum kubeconfig_mode mode;
    bool wants_cluster;
    struct json_doc *cluster; /* what the cluster's extension has for it; or NULL */
};

/* NULL and empty: not said. Of a file and the bytes beside it only one is there: the bytes win, as kubectl has it. */
struct kubeconfig {
    char *context, *namespace;
    char *server; /* the URL */
    bool is_tls;
    char *host;
    uint16_t port;
    char *path; /* what comes before every path: "" or "/k8s/clusters/c1" */
    char *tls_name;
    bool is_insecure;
    char *ca_file, *cert_file, *key_file;
    struct buf ca_pem, cert_pem, key_pem;
    char *token, *token_file; /* the file wins as long as it can be read */
    char *username, *password;
    char *as, *as_uid;
    char **as_groups;
    char **as_extra; /* name, value, name, value ...; NULL-ended */
    struct kubeconfig_plugin plugin;
};

/* What decides; NULLs are what is not there. */
struct kubeconfig_choice {
    const char *file;    /* --kubeconfig */
    const char *context; /* --context; NULL: current-context */
    const char *list;    /* $KUBECONFIG */
    const char *home;    /* $HOME */
    const char *pod_host, *pod_port;
    const char *account_dir; /* NULL: KUBECONFIG_ACCOUNT_DIR */
};
/* list, home and the pod's from the environment. */
void kubeconfig_choice_env(struct kubeconfig_choice *choice);

/* ERR_NOT_FOUND: nothing says which server, or no such context. ERR_INVALID: the message has file and place. */
int kubeconfig_load(const struct kubeconfig_choice *choice, struct kubeconfig *ret, struct err *e);
/* One text; `file` names it in messages, and relative paths begin at its directory. */
int kubeconfig_parse(struct span text, const char *file, const char *context,
                     struct kubeconfig *ret, struct err *e);
void kubeconfig_done(struct kubeconfig *k);

/* "https://host:6443/prefix" in its parts; the rest of k is left alone. */
int kubeconfig_set_server(struct kubeconfig *k, struct span url, struct err *e);

#endif
