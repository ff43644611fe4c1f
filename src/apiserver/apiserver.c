#include "apiserver/apiserver.h"

#include "apiserver/call.h"
#include "apiserver/collect.h"
#include "apiserver/expire.h"
#include "apiserver/kubeconfig.h"
#include "apiserver/limits.h"
#include "apiserver/metrics.h"
#include "apiserver/pki.h"
#include "apiserver/quota.h"
#include "apiserver/seed.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "base/time.h"
#include "http/client.h"
#include "net/listen.h"
#include "net/tls.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define DEFAULT_PORT   6443
#define PORT_FILE      "port"
#define RENEWAL_MS     (6ull * 3600 * 1000)
#define TOKENS_MAX     4096
#define TOKEN_FILE_MAX (1 << 20)

/* ---- certificates ---- */

static int add_san(struct apiserver *s, const char *name, struct err *e)
{
    if (s->san_count == APISERVER_SANS_MAX)
        return err_set(e, ERR_USAGE, "more than %d names for the server", APISERVER_SANS_MAX);
    s->san_texts[s->san_count] = own_strdup(name);
    s->sans[s->san_count] = s->san_texts[s->san_count];
    s->san_count++;
    return 0;
}

static int collect_sans(struct apiserver *s, const struct apiserver_config *config,
                        const struct net_addr *at, struct err *e)
{
    static const char *const ours[] = { "localhost",
                                        "127.0.0.1",
                                        "::1",
                                        "kubernetes",
                                        "kubernetes.default",
                                        "kubernetes.default.svc",
                                        "kubernetes.default.svc.cluster.local",
                                        "10.96.0.1" };
    char host[256] = "";
    struct span own_host;
    uint16_t port;

    EACH(name, ours) {
        if (add_san(s, *name, e) < 0)
            return -1;
    }
    if (gethostname(host, sizeof host - 1) == 0 && *host && add_san(s, host, e) < 0)
        return -1;
    if (net_addr_split(s->address, &own_host, &port, e) < 0)
        return -1;
    if (!net_addr_is_loopback(at)) {
        OWN_MEM char *text = span_dup(own_host);

        if (add_san(s, text, e) < 0)
            return -1;
    }
    for (const char *const *name = config->sans; name && *name; name++)
        if (add_san(s, *name, e) < 0)
            return -1;
    return 0;
}

/* Makes or renews the server's certificate, and takes it into use for the connections to come. */
static int use_certificate(struct apiserver *s, struct err *e)
{
    OWN(buf_done) struct buf cert = BUF_INIT(PKI_PEM_MAX_BYTES), key = BUF_INIT(PKI_PEM_MAX_BYTES);
    struct tls_config config = { .role = TLS_SERVER,
                                 .ca_pem = pki_ca_pem(s->pki),
                                 .client_verify = TLS_VERIFY_OPTIONAL,
                                 .alpn = "h2,http/1.1" };
    bool is_new;

    if (pki_server(s->pki, s->sans, &cert, &key, &is_new, e) < 0)
        return -1;
    if (s->tls && !is_new)
        return 0;
    config.cert_pem = buf_span(&cert);
    config.key_pem = buf_span(&key);
    if (is_new)
        log_info("api.certificate", KV("names", s->san_count));
    return s->tls ? tls_reload(s->tls, &config, e) : tls_new(&config, &s->tls, e);
}

static void on_renewal(void *ctx)
{
    struct apiserver *s = ctx;
    struct err e;

    ev_timer_start(s->loop, &s->renewal, RENEWAL_MS, on_renewal, s);
    if (use_certificate(s, &e) < 0)
        log_error("api.certificate", KV("err", &e));
}

/* ---- tokens of a file ---- */

/* A field of a line, in double quotes where it holds commas. */
static char *take_field(struct span *line)
{
    struct span field;

    if (line->n && line->p[0] == '"') {
        size_t end = span_find(span_skip(*line, 1), '"');

        if (end == SIZE_MAX)
            return NULL;
        field = span_slice(*line, 1, 1 + end);
        *line = span_skip(*line, end + 2);
        if (line->n && line->p[0] == ',')
            *line = span_skip(*line, 1);
        return span_dup(field);
    }
    return span_cut(line, ',', &field) ? span_dup(span_trim(field)) : own_strdup("");
}

static int read_tokens(struct apiserver *s, const char *path, struct err *e)
{
    OWN(buf_done) struct buf text = BUF_INIT(TOKEN_FILE_MAX);
    struct span rest, line;
    size_t number = 0;

    if (fd_read_file(path, &text, e) < 0)
        return err_wrap(e, "--token-auth-file");
    s->tokens = own_array(TOKENS_MAX, sizeof *s->tokens);
    for (rest = buf_span(&text); span_cut(&rest, '\n', &line);) {
        struct static_token *t = &s->tokens[s->token_count];

        number++;
        line = span_trim(line);
        if (!line.n || line.p[0] == '#')
            continue;
        if (s->token_count == TOKENS_MAX)
            return err_set(e, ERR_LIMIT, "--token-auth-file: more than %d tokens", TOKENS_MAX);
        s->token_count++;
        t->token = take_field(&line);
        t->user = take_field(&line);
        t->uid = take_field(&line);
        t->groups = take_field(&line);
        if (!t->token || !t->user || !t->uid || !t->groups || strlen(t->token) < 8 || !*t->user)
            return err_set(
                e, ERR_INVALID,
                "--token-auth-file: line %zu of '%s' is not 'token,user,uid[,\"groups\"]' with a token of 8 bytes or more",
                number, path);
    }
    return 0;
}

/* ---- listening ---- */

static void on_accept(void *ctx, int fd, const struct net_addr *peer)
{
    struct apiserver *s = ctx;
    struct conn_filter *filter;
    struct err e;

    if (tls_filter_new(s->tls, fd, NULL, &filter, &e) < 0) {
        log_warn("api.accept", KV("err", &e));
        (void)close(fd);
        return;
    }
    http_server_take(s->http, fd, filter, peer);
}

static uint64_t remembered_port(struct apiserver *s)
{
    OWN(buf_done) struct buf text = BUF_INIT(64);
    char path[4200];
    uint64_t port = 0;
    struct err e;

    (void)snprintf(path, sizeof path, "%s/" PORT_FILE, s->data);
    if (fd_read_file(path, &text, &e) < 0 || !str_u64(span_trim(buf_span(&text)), 65535, &port))
        return 0;
    return port;
}

/* kubeconfigs that clients have should go on working, so the port of last time is tried first. */
static int listen_anywhere(struct apiserver *s, struct err *e)
{
    uint64_t ports[] = { remembered_port(s), DEFAULT_PORT, 0 };
    struct net_addr at;
    char text[64];

    for (size_t i = 0; i < LEN(ports); i++) {
        if (i == 0 && ports[i] == 0)
            continue;
        (void)snprintf(text, sizeof text, "127.0.0.1:%llu", (unsigned long long)ports[i]);
        if (net_addr_parse(text, &at, e) < 0)
            return -1;
        if (net_listen(s->loop, &at, on_accept, s, &s->listener, e) == 0)
            return 0;
        if (e->sys != EADDRINUSE)
            return -1;
    }
    return -1;
}

static int listen_at(struct apiserver *s, const struct apiserver_config *config, struct err *e)
{
    struct net_addr at;

    if (config->listen_fd)
        return net_listen_fd(s->loop, config->listen_fd, on_accept, s, &s->listener, e);
    if (!config->listen)
        return listen_anywhere(s, e);
    if (net_addr_parse(config->listen, &at, e) < 0)
        return err_wrap(e, "--listen");
    return net_listen(s->loop, &at, on_accept, s, &s->listener, e);
}

/* What clients on this machine connect to: a wildcard is no address. */
static void name_address(struct apiserver *s)
{
    const struct net_addr *at = net_listener_addr(s->listener);
    char text[NET_ADDR_TEXT_BYTES];

    (void)net_addr_text(at, text);
    if (strncmp(text, "0.0.0.0:", 8) == 0 || strncmp(text, "[::]:", 5) == 0)
        (void)snprintf(s->address, sizeof s->address, "127.0.0.1:%u", net_addr_port(at));
    else
        (void)snprintf(s->address, sizeof s->address, "%s", text);
}

static int remember_port(struct apiserver *s, struct err *e)
{
    OWN_FD int dir_fd = open(s->data, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const char *colon = strrchr(s->address, ':');

    if (dir_fd < 0)
        return err_sys(e, "cannot open '%s'", s->data);
    return pki_write_file(dir_fd, PORT_FILE, span_cstr(colon + 1), e);
}

/* On a full disk the files of last time have to do. */
static int do_without(struct apiserver *s, const char *name, struct err *e)
{
    char path[4200];

    (void)snprintf(path, sizeof path, "%s/%s", s->data, name);
    if (e->code != ERR_NO_SPACE || access(path, R_OK) < 0)
        return -1;
    log_warn("api.start", KV("kept", name), KV("err", e));
    return 0;
}

static int write_files(struct apiserver *s, struct err *e)
{
    if (remember_port(s, e) < 0 && do_without(s, PORT_FILE, e) < 0)
        return -1;
    return kubeconfig_write_admin(s, e) < 0 ? do_without(s, "kubeconfig", e) : 0;
}

/* ---- the whole ---- */

static void error_body(void *ctx, int status, const char *message, struct buf *body,
                       const char **ret_type)
{
    OWN(status_done) struct status st = STATUS_INIT;
    struct err e;

    (void)ctx;
    *ret_type = "application/json";
    (void)status_bad_request(&st, "%s", message);
    st.code = status;
    (void)status_write(&st, body, &e);
}

/* The owner may have linked it elsewhere; SQLite takes no path through a link. */
static int make_data(struct apiserver *s, struct err *e)
{
    OWN_FD int fd = -1;
    char *full;

    if (mkdir(s->data, 0700) < 0 && errno != EEXIST)
        return err_sys(e, "cannot make the data directory '%s'", s->data);
    fd = open(s->data, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    full = fd < 0 ? NULL : realpath(s->data, NULL);
    if (!full)
        return err_sys(e, "cannot open the data directory '%s'", s->data);
    if (fd_check_own_dir(fd, s->data, e) < 0) {
        free(full);
        return -1;
    }
    free(s->data);
    s->data = full;
    return 0;
}

static int begin(struct apiserver *s, const struct apiserver_config *config, struct err *e)
{
    struct http_server_config http = { .on_request = route_request,
                                       .error_body = error_body,
                                       .ctx = s,
                                       .head_max_bytes = API_HEAD_MAX_BYTES,
                                       .idle_timeout_ms = API_IDLE_TIMEOUT_MS,
                                       .max_connections = config->max_connections };
    const struct http_client_config streams = { .request_max_bytes =
                                                    API_HEAD_MAX_BYTES + STREAM_TARGET_EXTRA_BYTES,
                                                .idle_ms = STREAM_IDLE_MS };
    struct store_config store = { .vfs = config->vfs,
                                  .first_version = (uint64_t)time(NULL) * 1000 };

    if (make_data(s, e) < 0)
        return -1;
    store.dir = s->data;
    if (store_open(s->loop, &store, &s->store, e) < 0 || pki_open(s->data, &s->pki, e) < 0)
        return -1;
    usage_set_max(store_usage(s->store), &config->namespace_max);
    usage_set_reserved(store_usage(s->store), config->is_reserved);
    quota_tell_all(s->store);
    if (config->token_file && read_tokens(s, config->token_file, e) < 0)
        return -1;
    s->streams = http_client_new(s->loop, &streams);
    s->pods = config->pods;
    s->is_reserved = config->is_reserved;
    s->http = http_server_new(s->loop, &http);
    if (listen_at(s, config, e) < 0)
        return -1;
    name_address(s);
    if (collect_sans(s, config, net_listener_addr(s->listener), e) < 0 || use_certificate(s, e) < 0)
        return -1;
    if (write_files(s, e) < 0 || seed(s, e) < 0)
        return -1;
    s->collect = collect_open(s);
    s->expire = expire_open(s, &(struct expire_config){ config->event_ttl_ms, config->events_max });
    ev_timer_start(s->loop, &s->renewal, RENEWAL_MS, on_renewal, s);
    return 0;
}

int apiserver_open(struct ev_loop *loop, const struct apiserver_config *config,
                   struct apiserver **ret, struct err *e)
{
    struct apiserver *s = NEW(struct apiserver);

    s->loop = loop;
    slices_init(&s->slices, loop);
    s->stream_limit.max = STREAMS_PER_NAMESPACE_MAX;
    s->watch_limit.max = WATCHES_PER_USER_MAX;
    s->metrics = metrics_new();
    s->data = own_strdup(config->data);
    s->started_ms = time_mono_ms();
    if (begin(s, config, e) < 0) {
        apiserver_close(s);
        return -1;
    }
    *ret = s;
    return 0;
}

void apiserver_close(struct apiserver *s)
{
    if (!s)
        return;
    ev_timer_stop(s->loop, &s->renewal);
    if (s->listener)
        net_listener_close(s->listener);
    stream_close_all(s);
    if (s->http)
        http_server_free(s->http);
    while (s->stream_count)
        ev_loop_turn(s->loop);
    key_limit_done(&s->stream_limit);
    key_limit_done(&s->watch_limit);
    if (s->streams)
        http_client_free(s->streams);
    conn_close_orphans(s->loop);
    ev_loop_turn(s->loop);
    collect_close(s->collect);
    expire_close(s->expire);
    slices_done(&s->slices);
    snapshots_done(&s->snapshots);
    metrics_free(s->metrics);
    store_close(s->store);
    tls_free(s->tls);
    pki_close(s->pki);
    while (s->documents) {
        struct api_document *d = s->documents;

        s->documents = d->next;
        buf_done(&d->bytes);
        free(d->path);
        free(d);
    }
    for (size_t i = 0; i < s->token_count; i++) {
        free(s->tokens[i].token);
        free(s->tokens[i].user);
        free(s->tokens[i].uid);
        free(s->tokens[i].groups);
    }
    free(s->tokens);
    proven_done(&s->proven);
    for (size_t i = 0; i < s->san_count; i++)
        free(s->san_texts[i]);
    free(s->data);
    free(s);
}
