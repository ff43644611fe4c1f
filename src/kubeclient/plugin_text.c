/* What a credential plugin is told, and what it says. */
#include "kubeclient/plugin.h"

#include "base/json_edit.h"
#include "base/str.h"
#include "kube/time.h"
#include "kubeclient/file.h"
#include "kubeclient/limits.h"

#include <string.h>

void credential_done(struct credential *c)
{
    file_wipe(&c->token);
    file_wipe(&c->cert_pem);
    file_wipe(&c->key_pem);
}

static int read_status(const struct json *status, struct credential *c, struct err *e)
{
    struct span token = json_str(json_get(status, "token"));
    struct span cert = json_str(json_get(status, "clientCertificateData"));
    struct span key = json_str(json_get(status, "clientKeyData"));
    const struct json *until = json_get(status, "expirationTimestamp");
    struct timespec at;

    if (!token.n && !cert.n && !key.n)
        return err_set(e, ERR_PROTOCOL, "it gave neither a token nor a certificate");
    if (!cert.n != !key.n)
        return err_set(e, ERR_PROTOCOL, "it gave a certificate without a key, or the reverse");
    for (size_t i = 0; i < token.n; i++) {
        if (token.p[i] <= ' ' || token.p[i] >= 0x7f)
            return err_set(e, ERR_PROTOCOL, "its token holds a byte that no token has");
    }
    if (until && !json_is_null(until)) {
        if (!kube_time_parse(json_str(until), &at))
            return err_set(e, ERR_PROTOCOL, "its expirationTimestamp is no time");
        c->until_ms = (int64_t)at.tv_sec * 1000 + at.tv_nsec / 1000000;
    }
    return buf_add(&c->token, token, e) < 0 || buf_add(&c->cert_pem, cert, e) < 0
               ? -1
               : buf_add(&c->key_pem, key, e);
}

int credential_parse(struct span output, const char *api_version, struct credential *ret,
                     struct err *e)
{
    OWN(json_doc_done) struct json_doc *doc = NULL;
    struct credential c = CREDENTIAL_INIT;
    const struct json *root;

    if (json_parse(output, NULL, &doc, e) < 0) /* not the parser's words: the text is a secret */
        return err_set(e, ERR_PROTOCOL, "its output is no JSON");
    root = json_doc_root(doc);
    if (!span_is(json_str(json_get(root, "kind")), "ExecCredential"))
        return err_set(e, ERR_PROTOCOL, "its output is no ExecCredential");
    if (!span_is(json_str(json_get(root, "apiVersion")), api_version))
        return err_set(e, ERR_PROTOCOL, "its output is not of the version '%s'", api_version);
    if (json_type(json_get(root, "status")) != JSON_OBJECT)
        return err_set(e, ERR_PROTOCOL, "its output has no status");
    if (read_status(json_get(root, "status"), &c, e) < 0) {
        credential_done(&c);
        return -1;
    }
    *ret = c;
    return 0;
}

/* The bytes of the cluster's CA, out of its file if need be. */
static int add_ca(const struct kubeconfig *k, struct json_out *o, struct err *e)
{
    OWN(buf_done) struct buf pem = BUF_INIT(KUBECONFIG_MAX_BYTES);
    OWN(buf_done) struct buf text = BUF_INIT(2 * KUBECONFIG_MAX_BYTES);

    if (k->ca_file ? file_read(k->ca_file, &pem, e) < 0
                   : buf_add(&pem, buf_span(&k->ca_pem), e) < 0)
        return -1;
    if (!pem.n)
        return 0;
    if (str_base64_encode(buf_span(&pem), &text, e) < 0)
        return -1;
    json_out_key(o, "certificate-authority-data"), json_out_str(o, buf_span(&text));
    return 0;
}

static int add_cluster(const struct kubeconfig *k, struct json_out *o, struct err *e)
{
    json_out_key(o, "cluster");
    json_out_object_begin(o);
    json_out_key(o, "server"), json_out_cstr(o, k->server);
    if (k->tls_name)
        json_out_key(o, "tls-server-name"), json_out_cstr(o, k->tls_name);
    if (k->is_insecure)
        json_out_key(o, "insecure-skip-tls-verify"), json_out_bool(o, true);
    if (add_ca(k, o, e) < 0)
        return -1;
    json_out_key(o, "config");
    json_out_value(o, k->plugin.cluster ? json_doc_root(k->plugin.cluster) : NULL);
    json_out_object_end(o);
    return 0;
}

int plugin_info(const struct kubeconfig *k, bool is_interactive, struct buf *out, struct err *e)
{
    struct json_out o;

    json_out_init(&o, out, 0);
    json_out_object_begin(&o);
    json_out_key(&o, "kind"), json_out_cstr(&o, "ExecCredential");
    json_out_key(&o, "apiVersion"), json_out_cstr(&o, k->plugin.api_version);
    json_out_key(&o, "spec");
    json_out_object_begin(&o);
    if (k->plugin.wants_cluster && add_cluster(k, &o, e) < 0)
        return -1;
    json_out_key(&o, "interactive"), json_out_bool(&o, is_interactive);
    json_out_object_end(&o);
    json_out_object_end(&o);
    return json_out_end(&o, e);
}
