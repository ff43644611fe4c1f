#include "apiserver/kubeconfig.h"

#include "apiserver/pki.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#define ADMIN_DAYS     365
#define FILE_MAX_BYTES (256 * 1024)

static int add_base64(struct buf *out, const char *key, struct span bytes, struct err *e)
{
    return buf_addf(out, e, "    %s: ", key) < 0 || str_base64_encode(bytes, out, e) < 0
               ? -1
               : buf_addc(out, '\n', e);
}

static int write_text(struct apiserver *s, struct span cert, struct span key, struct buf *out,
                      struct err *e)
{
    if (buf_addf(
            out, e,
            "apiVersion: v1\nkind: Config\nclusters:\n- name: silica\n  cluster:\n    server: https://%s\n",
            s->address) < 0 ||
        add_base64(out, "certificate-authority-data", pki_ca_pem(s->pki), e) < 0)
        return -1;
    if (buf_addf(out, e, "users:\n- name: silica-admin\n  user:\n") < 0 ||
        add_base64(out, "client-certificate-data", cert, e) < 0 ||
        add_base64(out, "client-key-data", key, e) < 0)
        return -1;
    return buf_addf(
        out, e,
        "contexts:\n- name: silica\n  context:\n    cluster: silica\n    user: silica-admin\n"
        "    namespace: default\ncurrent-context: silica\n");
}

int kubeconfig_write_admin(struct apiserver *s, struct err *e)
{
    static const char *const masters[] = { "system:masters", NULL };
    struct cert_subject admin = { .name = "silica-admin",
                                  .organizations = masters,
                                  .days = ADMIN_DAYS };
    OWN(buf_done) struct buf cert = BUF_INIT(PKI_PEM_MAX_BYTES), key = BUF_INIT(PKI_PEM_MAX_BYTES);
    OWN(buf_done) struct buf text = BUF_INIT(FILE_MAX_BYTES);
    OWN_FD int dir_fd = open(s->data, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    (void)snprintf(s->kubeconfig, sizeof s->kubeconfig, "%s/kubeconfig", s->data);
    if (dir_fd < 0)
        return err_sys(e, "cannot open '%s'", s->data);
    if (pki_issue(s->pki, &admin, &cert, &key, e) < 0 ||
        write_text(s, buf_span(&cert), buf_span(&key), &text, e) < 0 ||
        pki_write_file(dir_fd, "kubeconfig", buf_span(&text), e) < 0)
        return err_wrap(e, "the kubeconfig");
    return 0;
}
