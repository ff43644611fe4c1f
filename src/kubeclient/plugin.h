/* plugin: runs a credential plugin and reads what it says: an ExecCredential of client.authentication.k8s.io.
 *
 * Owns:     the process under way; it is killed when the run is called off, or takes too long.
 * Input:    the variable KUBERNETES_EXEC_INFO; standard input only where a person sits at it. Its stderr is ours.
 * Used by:  access. The output is a stranger's: bounded, and never repeated in messages, as it holds secrets.
 * Threads:  the loop's.
 */
#ifndef SILICA_KUBECLIENT_PLUGIN_H
#define SILICA_KUBECLIENT_PLUGIN_H

#include "kubeclient/kubeconfig.h"

struct ev_loop;
struct ev_children;
struct plugin_run;

/* Who we are, for a while. */
struct credential {
    struct buf token;             /* empty: none */
    struct buf cert_pem, key_pem; /* both or none */
    int64_t until_ms;             /* wall clock; 0: until it is refused */
};
#define CREDENTIAL_INIT                                                                            \
    {                                                                                              \
        .token = BUF_INIT(PLUGIN_OUTPUT_MAX_BYTES), .cert_pem = BUF_INIT(PLUGIN_OUTPUT_MAX_BYTES), \
        .key_pem = BUF_INIT(PLUGIN_OUTPUT_MAX_BYTES)                                               \
    }
void credential_done(struct credential *c);

/* What a plugin of that version wrote. */
int credential_parse(struct span output, const char *api_version, struct credential *ret,
                     struct err *e);
/* The value of KUBERNETES_EXEC_INFO. */
int plugin_info(const struct kubeconfig *k, bool is_interactive, struct buf *out, struct err *e);

/* Exactly one of the two; both live for the call. */
typedef void (*plugin_done_fn)(void *ctx, struct credential *c, const struct err *e);

/* is_attended: a person may be asked on our standard input. k must outlive the run. done() in a later turn. */
struct plugin_run *plugin_start(struct ev_loop *loop, struct ev_children *children,
                                const struct kubeconfig *k, bool is_attended, plugin_done_fn done,
                                void *ctx);
/* done() does not come any more. */
void plugin_cancel(struct plugin_run *r);

#endif
