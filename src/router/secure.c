#include "router/secure.h"

#include "base/log.h"
#include "ev/timer.h"
#include "router/limits.h"

#include <sys/stat.h>

/* What tells one content of a file from another without reading it. */
struct stamp {
    ino_t inode;
    off_t size;
    struct timespec changed;
};

struct secure {
    struct ev_loop *loop;
    struct secure_config config;
    struct tally *tally;
    struct tls *tls;
    struct stamp cert, key;
    struct ev_timer look;
};

static struct stamp stamp_of(const char *path)
{
    struct stat st;

    if (stat(path, &st) < 0)
        return (struct stamp){ 0 };
    return (struct stamp){ st.st_ino, st.st_size, st.st_mtim };
}

static bool is_same(const struct stamp *a, const struct stamp *b)
{
    return a->inode == b->inode && a->size == b->size && a->changed.tv_sec == b->changed.tv_sec &&
           a->changed.tv_nsec == b->changed.tv_nsec;
}

static int load(struct secure *s, struct err *e)
{
    const struct tls_config config = { .role = TLS_SERVER,
                                       .cert_file = s->config.cert_file,
                                       .key_file = s->config.key_file,
                                       .ca_file = s->config.ca_file,
                                       .client_verify = s->config.client_verify,
                                       .alpn = "h2,http/1.1" };
    int rc = s->tls ? tls_reload(s->tls, &config, e) : tls_new(&config, &s->tls, e);

    tally_add(s->tally, TALLY_CERT_RELOADS, NULL, rc < 0 ? "failure" : "success");
    return rc;
}

/* Certificate and key are swapped one after the other: a pair that does not fit is looked at again. */
static void look(void *ctx)
{
    struct secure *s = ctx;
    struct stamp cert = stamp_of(s->config.cert_file), key = stamp_of(s->config.key_file);
    struct err e;

    if (!is_same(&cert, &s->cert) || !is_same(&key, &s->key)) {
        s->cert = cert;
        s->key = key;
        if (load(s, &e) < 0)
            log_warn("router.certificate", KV("err", &e), KV("kept", "the old one"));
        else
            log_info("router.certificate", KV("file", s->config.cert_file));
    }
    ev_timer_start(s->loop, &s->look, SECURE_LOOK_MS, look, s);
}

int secure_open(struct ev_loop *loop, const struct secure_config *config, struct tally *tally,
                struct secure **ret, struct err *e)
{
    struct secure *s = NEW(struct secure);

    s->loop = loop;
    s->config = *config;
    s->tally = tally;
    s->cert = stamp_of(config->cert_file);
    s->key = stamp_of(config->key_file);
    if (load(s, e) < 0) {
        free(s);
        return -1;
    }
    ev_timer_start(loop, &s->look, SECURE_LOOK_MS, look, s);
    *ret = s;
    return 0;
}

int secure_filter(struct secure *s, int fd, struct conn_filter **ret, struct err *e)
{
    return tls_filter_new(s->tls, fd, NULL, ret, e);
}

void secure_close(struct secure *s)
{
    if (!s)
        return;
    ev_timer_stop(s->loop, &s->look);
    tls_free(s->tls);
    free(s);
}
