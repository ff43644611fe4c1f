#include "kubeclient/kubeconfig_impl.h"

#include "base/str.h"
#include "kube/yaml.h"
#include "kubeclient/file.h"

#include <string.h>

static void wipe(char **text)
{
    if (*text)
        explicit_bzero(*text, strlen(*text));
    free(take_ptr(text));
}

void kubeconfig_done(struct kubeconfig *k)
{
    char **plain[] = { &k->context,  &k->namespace, &k->server,    &k->host,     &k->path,
                       &k->tls_name, &k->ca_file,   &k->cert_file, &k->key_file, &k->token_file,
                       &k->username, &k->as,        &k->as_uid };

    EACH(p, plain)
        free(take_ptr(*p));
    wipe(&k->token);
    wipe(&k->password);
    buf_done(&k->ca_pem);
    buf_done(&k->cert_pem);
    file_wipe(&k->key_pem);
    texts_free(take_ptr(&k->as_groups));
    texts_free(take_ptr(&k->as_extra));
    plugin_config_done(&k->plugin);
}

/* ---- the server's URL ---- */

static int bad_url(struct span url, const char *why, struct err *e)
{
    (void)err_set(e, ERR_INVALID, "'%.*s' cannot be a server: %s", SPAN_ARG(url), why);
    err_hint(e, "write it as https://HOST:PORT");
    return -1;
}

static bool is_url_byte(uint8_t b)
{
    return b > ' ' && b < 0x7f && b != '"' && b != '<' && b != '>' && b != '\\' && b != '^' &&
           b != '`' && b != '{' && b != '|' && b != '}';
}

static int set_host(struct kubeconfig *k, struct span url, struct span authority, struct err *e)
{
    size_t end = span_starts(authority, "[") ? span_find(authority, ']') : SIZE_MAX;
    size_t colon = span_find(end == SIZE_MAX ? authority : span_skip(authority, end), ':');
    struct span host = authority, port = SPAN_NONE;
    uint64_t n = k->is_tls ? 443 : 80;

    if (end != SIZE_MAX && colon != SIZE_MAX)
        colon += end;
    if (colon != SIZE_MAX) {
        host = span_slice(authority, 0, colon);
        port = span_skip(authority, colon + 1);
    }
    if (end != SIZE_MAX && end + 1 != host.n)
        return bad_url(url, "its address is not closed", e);
    if (end != SIZE_MAX)
        host = span_slice(host, 1, end);
    if (!host.n)
        return bad_url(url, "it names no host", e);
    if (colon != SIZE_MAX && (!str_u64(port, 65535, &n) || n == 0))
        return bad_url(url, "its port is no number from 1 to 65535", e);
    k->host = span_dup(host);
    k->port = (uint16_t)n;
    return 0;
}

int kubeconfig_set_server(struct kubeconfig *k, struct span url, struct err *e)
{
    bool is_tls = span_starts(url, "https://");
    struct span rest, path;
    size_t slash;

    if (!is_tls && !span_starts(url, "http://"))
        return bad_url(url, "it begins neither with https:// nor with http://", e);
    for (size_t i = 0; i < url.n; i++) {
        if (!is_url_byte(url.p[i]))
            return bad_url(url, "it holds a byte that no URL has", e);
    }
    rest = span_skip(url, is_tls ? 8 : 7);
    slash = span_find(rest, '/');
    path = slash == SIZE_MAX ? SPAN_NONE : span_skip(rest, slash);
    rest = span_slice(rest, 0, slash);
    while (span_ends(path, "/"))
        path.n--;
    if (span_find(rest, '@') != SIZE_MAX)
        return bad_url(url, "users and passwords do not belong there", e);
    if (span_find(url, '?') != SIZE_MAX || span_find(url, '#') != SIZE_MAX)
        return bad_url(url, "it has a query or a fragment", e);
    k->is_tls = is_tls;
    if (set_host(k, url, rest, e) < 0)
        return -1;
    k->server = span_dup(url);
    k->path = path.n ? span_dup(path) : own_strdup("");
    return 0;
}

/* ---- one file's shape ---- */

static const char *const sections[][2] = { { "clusters", "cluster" },
                                           { "users", "user" },
                                           { "contexts", "context" } };

static int judge_section(const struct config_part *top, const char *section, const char *member,
                         struct err *e)
{
    const struct json *list = json_get(top->v, section);
    size_t n = 0;

    if (!list || json_is_null(list))
        return 0;
    if (json_type(list) != JSON_ARRAY)
        return part_wrong(top, e, "%s is a %s, not a list", section, json_type_name(list));
    JSON_EACH(item, list)
    {
        const char *name = json_cstr(json_get(item, "name"));
        enum json_type type = json_type(json_get(item, member));
        size_t before = 0;

        if (!name)
            return part_wrong(top, e, "%s[%zu] has no name", section, n);
        if (type != JSON_OBJECT && type != JSON_NULL && type != JSON_NONE)
            return part_wrong(top, e, "%s[%zu].%s is not an object", section, n, member);
        JSON_EACH(other, list)
        {
            if (before++ == n)
                break;
            if (span_is(json_str(json_get(other, "name")), name))
                return part_wrong(top, e, "%s has '%s' twice", section, name);
        }
        n++;
    }
    return 0;
}

int config_files_add(struct config_files *fs, struct span text, const char *path, struct err *e)
{
    OWN(json_doc_done) struct json_doc *doc = NULL;
    struct config_part top = { .file = path };
    OWN_MEM char *kind = NULL;

    if (fs->n == KUBECONFIG_FILES_MAX)
        return err_set(e, ERR_LIMIT, "more than %d kubeconfig files", KUBECONFIG_FILES_MAX);
    if (kube_yaml_to_doc(text, NULL, &doc, e) < 0)
        return err_wrap(e, "'%s'", path);
    top.v = json_doc_root(doc);
    if (json_type(top.v) != JSON_OBJECT && !json_is_null(top.v))
        return part_wrong(&top, e, "a kubeconfig is an object, this is a %s",
                          json_type_name(top.v));
    if (part_text(&top, "kind", &kind, e) < 0)
        return -1;
    if (kind && strcmp(kind, "Config") != 0)
        return part_wrong(&top, e, "a kubeconfig has the kind Config, this has '%s'", kind);
    EACH(s, sections) {
        if (judge_section(&top, (*s)[0], (*s)[1], e) < 0)
            return -1;
    }
    fs->at[fs->n++] = (struct config_file){ own_strdup(path), take_ptr(&doc) };
    return 0;
}

void config_files_done(struct config_files *fs)
{
    for (size_t i = 0; i < fs->n; i++) {
        free(fs->at[i].path);
        json_doc_unref(fs->at[i].doc);
    }
    fs->n = 0;
}

/* ---- the choice ---- */

/* The first file that names it wins, and wins whole. */
static bool find_part(const struct config_files *fs, const char *section, const char *member,
                      const char *name, struct config_part *ret)
{
    for (size_t i = 0; i < fs->n; i++) {
        JSON_EACH(item, json_get(json_doc_root(fs->at[i].doc), section))
        {
            if (!span_is(json_str(json_get(item, "name")), name))
                continue;
            *ret = (struct config_part){ fs->at[i].path, member, name, json_get(item, member) };
            return true;
        }
    }
    return false;
}

static int read_cluster(const struct config_part *p, struct kubeconfig *k, struct err *e)
{
    OWN_MEM char *server = NULL, *proxy = NULL;

    if (part_text(p, "server", &server, e) < 0 || part_text(p, "proxy-url", &proxy, e) < 0 ||
        part_text(p, "tls-server-name", &k->tls_name, e) < 0 ||
        part_bool(p, "insecure-skip-tls-verify", &k->is_insecure, e) < 0 ||
        part_bytes(p, "certificate-authority-data", &k->ca_pem, e) < 0 ||
        (!k->ca_pem.n && part_path(p, "certificate-authority", &k->ca_file, e) < 0))
        return -1;
    if (!server)
        return part_wrong(p, e, "it has no server");
    if (proxy) {
        (void)part_wrong(p, e, "proxy-url is not supported");
        err_hint(e,
                 "make the server reachable without a proxy, or through a tunnel to a local port");
        return -1;
    }
    if (k->is_insecure && (k->ca_pem.n || k->ca_file))
        return part_wrong(
            p, e, "insecure-skip-tls-verify and a certificate authority exclude each other");
    if (kubeconfig_set_server(k, span_cstr(server), e) < 0)
        return err_wrap(e, "'%s': cluster '%s'", p->file, p->name);
    return 0;
}

/* name: [value, ...] becomes a flat list of pairs. */
static int read_extra(const struct config_part *p, struct kubeconfig *k, struct err *e)
{
    const struct json *extra = json_get(p->v, "as-user-extra");
    size_t n = 0, max = 2 * PLUGIN_WORDS_MAX;

    if (!extra || json_is_null(extra))
        return 0;
    if (json_type(extra) != JSON_OBJECT)
        return part_wrong(p, e, "as-user-extra is a %s, not an object", json_type_name(extra));
    k->as_extra = own_array(max + 1, sizeof *k->as_extra);
    JSON_MEMBERS(name, values, extra)
    {
        JSON_EACH(value, values)
        {
            if (!json_cstr(name) || !json_cstr(value))
                return part_wrong(p, e, "as-user-extra holds something that is no text");
            if (n == max)
                return part_wrong(p, e, "as-user-extra has more than %d values", PLUGIN_WORDS_MAX);
            k->as_extra[n++] = own_strdup(json_cstr(name));
            k->as_extra[n++] = own_strdup(json_cstr(value));
        }
        if (json_type(values) != JSON_ARRAY)
            return part_wrong(p, e, "as-user-extra: every value is a list of texts");
    }
    return 0;
}

static int read_identity(const struct config_part *p, struct kubeconfig *k, struct err *e)
{
    if (part_bytes(p, "client-certificate-data", &k->cert_pem, e) < 0 ||
        part_bytes(p, "client-key-data", &k->key_pem, e) < 0 ||
        (!k->cert_pem.n && part_path(p, "client-certificate", &k->cert_file, e) < 0) ||
        (!k->key_pem.n && part_path(p, "client-key", &k->key_file, e) < 0))
        return -1;
    if ((k->cert_pem.n || k->cert_file) != (k->key_pem.n || k->key_file))
        return part_wrong(p, e, "a client certificate and its key belong together: one is missing");
    return 0;
}

static int read_user(const struct config_part *p, const struct config_part *cluster,
                     struct kubeconfig *k, struct err *e)
{
    if (json_type(json_get(p->v, "auth-provider")) == JSON_OBJECT) {
        (void)part_wrong(p, e, "auth-provider is no longer supported by anybody");
        err_hint(e, "use the provider's credential plugin instead (exec)");
        return -1;
    }
    if (read_identity(p, k, e) < 0 || part_text(p, "token", &k->token, e) < 0 ||
        part_path(p, "tokenFile", &k->token_file, e) < 0 ||
        part_text(p, "username", &k->username, e) < 0 ||
        part_text(p, "password", &k->password, e) < 0 || part_text(p, "as", &k->as, e) < 0 ||
        part_text(p, "as-uid", &k->as_uid, e) < 0 ||
        part_texts(p, "as-groups", &k->as_groups, e) < 0 || read_extra(p, k, e) < 0)
        return -1;
    if (!k->as && (k->as_uid || k->as_groups || k->as_extra))
        return part_wrong(p, e, "as-uid, as-groups and as-user-extra want as");
    if (k->username && (k->token || k->token_file))
        return part_wrong(p, e, "more than one way to say who we are: a token and a password");
    return plugin_read_config(p, cluster, &k->plugin, e);
}

static char *current_context(const struct config_files *fs)
{
    for (size_t i = 0; i < fs->n; i++) {
        struct span name = json_str(json_get(json_doc_root(fs->at[i].doc), "current-context"));

        if (name.n)
            return span_dup(name);
    }
    return NULL;
}

static int no_such(const struct config_files *fs, const char *what, const char *name, struct err *e)
{
    return err_set(e, ERR_NOT_FOUND, "'%s'%s has no %s '%s'", fs->at[0].path,
                   fs->n > 1 ? " and the files behind it" : "", what, name);
}

static int choose(const struct config_files *fs, struct kubeconfig *k, struct err *e)
{
    struct config_part context, cluster, user = { 0 };
    OWN_MEM char *cluster_name = NULL, *user_name = NULL;

    if (!find_part(fs, "contexts", "context", k->context, &context))
        return no_such(fs, "context", k->context, e);
    if (part_text(&context, "namespace", &k->namespace, e) < 0 ||
        part_text(&context, "cluster", &cluster_name, e) < 0 ||
        part_text(&context, "user", &user_name, e) < 0)
        return -1;
    if (!cluster_name)
        return part_wrong(&context, e, "it has no cluster");
    if (!find_part(fs, "clusters", "cluster", cluster_name, &cluster))
        return no_such(fs, "cluster", cluster_name, e);
    if (user_name && !find_part(fs, "users", "user", user_name, &user))
        return no_such(fs, "user", user_name, e);
    if (read_cluster(&cluster, k, e) < 0)
        return -1;
    return user_name ? read_user(&user, &cluster, k, e) : 0;
}

int config_files_choose(const struct config_files *fs, const char *context, struct kubeconfig *ret,
                        struct err *e)
{
    struct kubeconfig k = { .ca_pem = BUF_INIT(KUBECONFIG_MAX_BYTES),
                            .cert_pem = BUF_INIT(KUBECONFIG_MAX_BYTES),
                            .key_pem = BUF_INIT(KUBECONFIG_MAX_BYTES) };

    k.context = context ? own_strdup(context) : current_context(fs);
    if (!k.context) {
        (void)err_set(e, ERR_NOT_FOUND, "'%s' has no current-context", fs->at[0].path);
        err_hint(e, "choose one with --context, or with `kubectl config use-context`");
    } else if (choose(fs, &k, e) == 0) {
        *ret = k;
        return 0;
    }
    kubeconfig_done(&k);
    return -1;
}

int kubeconfig_parse(struct span text, const char *file, const char *context,
                     struct kubeconfig *ret, struct err *e)
{
    OWN(config_files_done) struct config_files fs = { .n = 0 };

    if (config_files_add(&fs, text, file, e) < 0)
        return -1;
    return config_files_choose(&fs, context, ret, e);
}
