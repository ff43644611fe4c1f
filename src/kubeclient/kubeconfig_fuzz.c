/* Any text as a kubeconfig, and as what a credential plugin wrote: refused, or it keeps its promises. */
#include "kubeclient/kubeconfig.h"

#include "kubeclient/limits.h"
#include "kubeclient/plugin.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_config(struct span text)
{
    OWN(buf_done) struct buf info = BUF_INIT(4 * KUBECONFIG_MAX_BYTES);
    struct kubeconfig k;
    struct err e;

    if (kubeconfig_parse(text, "/dir/config", NULL, &k, &e) < 0) {
        assert(e.code == ERR_INVALID || e.code == ERR_LIMIT || e.code == ERR_NOT_FOUND);
        return;
    }
    assert(k.context && k.server && k.host && k.host[0] && k.port && k.path);
    assert(!k.path[0] || (k.path[0] == '/' && k.path[strlen(k.path) - 1] != '/'));
    assert(!(k.ca_file && k.ca_pem.n) && !(k.key_file && k.key_pem.n));
    assert((k.cert_file || k.cert_pem.n) == (k.key_file || k.key_pem.n));
    assert(!k.is_insecure || !(k.ca_file || k.ca_pem.n));
    assert(!k.token_file || k.token_file[0] == '/');
    if (k.plugin.argv) {
        assert(k.plugin.argv[0] && k.plugin.argv[0][0] && k.plugin.api_version);
        free(take_ptr(&k.ca_file)); /* not to be read here */
        assert(plugin_info(&k, false, &info, &e) == 0);
    }
    kubeconfig_done(&k);
}

static void try_credential(struct span text)
{
    struct credential c;
    struct err e;

    if (credential_parse(text, "client.authentication.k8s.io/v1", &c, &e) < 0) {
        assert(e.code == ERR_PROTOCOL || e.code == ERR_LIMIT);
        return;
    }
    assert(c.token.n || c.cert_pem.n);
    assert(!c.cert_pem.n == !c.key_pem.n);
    for (size_t i = 0; i < c.token.n; i++)
        assert(c.token.p[i] > ' ' && c.token.p[i] < 0x7f);
    credential_done(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try_config(span_of(data, size));
    try_credential(span_of(data, size));
    return 0;
}
