#include "node/images.h"

#include "base/fd.h"
#include "base/near.h"
#include "base/str.h"
#include "kube/yaml.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The rows behind the operator's. Public names of servers that silica-runtime takes the place of; then names that people
 * use for "any Linux"; then what stays up and does nothing. */
static const char defaults[] =
    "images:\n"
    "- {names: ['*/sandboxd*', '*/silica-runtime*'], root: host, server: true, serverOptions: true,\n"
    "   serverCommands: [sandboxd, '*/sandboxd', silica-runtime, '*/silica-runtime']}\n"
    "- {names: ['*/silica-python:*'], root: host, server: true, serverOptions: true}\n"
    "- {names: ['*/python-runtime-sandbox*'], root: host, server: true,\n"
    "   serverCommands: [uvicorn, '*/uvicorn'], workingDir: /app}\n"
    "- {names: ['python:*'], root: host, server: true, substitute: true,\n"
    "   serverCommands: [uvicorn, '*/uvicorn'], workingDir: /app}\n"
    "- {names: [host], root: host, command: [sleep, infinity]}\n"
    "- {names: ['*/pause:*'], root: host, command: [sleep, infinity]}\n"
    "- {names: ['busybox:*', 'debian:*', 'ubuntu:*', 'alpine:*'], root: host, substitute: true,\n"
    "   command: [sh]}\n";

struct images {
    const char *
        bad_key; /* of the row that is read, or of the whole: what an error is about; NULL: the row */
    struct json_doc *own, *ours; /* the operator's rows, or NULL; and ours, or NULL */
    struct image *rows;
    size_t n;
    char **texts; /* that rows point to */
    size_t text_count;
    char *dir;
    char *root_name; /* what 'host' is */
    int dir_fd;      /* -1: not from a file */
    struct stat seen;
};

void images_free(struct images *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->text_count; i++)
        free(t->texts[i]);
    for (size_t i = 0; i < t->n; i++)
        free((void *)(uintptr_t)t->rows[i].env);
    free(t->texts);
    free(t->rows);
    json_doc_unref(t->own);
    json_doc_unref(t->ours);
    own_fd_close(&t->dir_fd);
    free(t->dir);
    free(t->root_name);
    free(t);
}

static void images_done(struct images **t)
{
    images_free(*t);
}

/* ---- what the root of this machine is ---- */

/* PRETTY_NAME="Debian GNU/Linux 12 (bookworm)", with or without quotes. */
static struct span pretty_name(struct span text)
{
    struct span line;

    while (span_cut(&text, '\n', &line)) {
        if (!span_starts(line, "PRETTY_NAME="))
            continue;
        line = span_skip(line, strlen("PRETTY_NAME="));
        if (line.n > 1 && (line.p[0] == '"' || line.p[0] == '\'') &&
            line.p[line.n - 1] == line.p[0])
            line = span_slice(line, 1, line.n - 1);
        return line;
    }
    return SPAN("Linux");
}

/* "Debian GNU/Linux 12 (bookworm), python3.11"; the caller's. */
static char *host_root_name(void)
{
    OWN(buf_done) struct buf text = BUF_INIT(64 * 1024);
    char python[64] = "";
    struct span name;
    ssize_t n = readlink("/usr/bin/python3", python, sizeof python - 1);
    char *made, *last;
    struct err e;

    (void)fd_read_file("/etc/os-release", &text, &e); /* without one it is some Linux */
    name = pretty_name(buf_span(&text));
    if (n > 0)
        python[n] = '\0';
    last = strrchr(python, '/');
    if (asprintf(&made, "%.*s%s%s", (int)MIN(name.n, (size_t)128), (const char *)name.p,
                 n > 0 ? ", " : "", last ? last + 1 : python) < 0)
        abort();
    return made;
}

/* ---- a row ---- */

static char *keep(struct images *t, char *text)
{
    t->texts = own_resize(t->texts, t->text_count + 1, sizeof *t->texts);
    return t->texts[t->text_count++] = text;
}

/* A list of texts, each without NULs; *ret is NULL where there is none. */
static int read_list(const struct json *row, const char *key, const struct json **ret,
                     struct err *e)
{
    const struct json *list = json_get(row, key);

    *ret = NULL;
    if (!list || json_is_null(list))
        return 0;
    if (json_type(list) != JSON_ARRAY)
        return err_set(e, ERR_INVALID, "%s is a %s, not a list", key, json_type_name(list));
    JSON_EACH(item, list)
    if (!json_cstr(item))
        return err_set(e, ERR_INVALID, "%s holds something that is no text", key);
    *ret = list;
    return 0;
}

static int read_flag(const struct json *row, const char *key, bool *ret, struct err *e)
{
    const struct json *v = json_get(row, key);

    if (v && !json_bool(v, ret))
        return err_set(e, ERR_INVALID, "%s is neither true nor false", key);
    return 0;
}

static int read_env(struct images *t, const struct json *row, struct image *im, struct err *e)
{
    const struct json *env = json_get(row, "env");
    const char **v;
    size_t n = 0;

    if (env && json_type(env) != JSON_OBJECT)
        return err_set(e, ERR_INVALID, "env is a %s, not a map", json_type_name(env));
    im->env = v = own_array(json_count(env) + 1, sizeof *v);
    JSON_MEMBERS(name, value, env)
    {
        const char *key = json_cstr(name), *text = json_cstr(value);
        char *var;

        if (!key || !*key || strchr(key, '=') || !text)
            return err_set(e, ERR_INVALID, "env: '%.*s' is no variable with a text",
                           SPAN_ARG(json_str(name)));
        if (asprintf(&var, "%s=%s", key, text) < 0)
            abort();
        v[n++] = keep(t, var);
    }
    return 0;
}

static int read_ports(const struct json *row, struct image *im, struct err *e)
{
    const struct json *ports = json_get(row, "ports");

    if (ports && json_type(ports) != JSON_ARRAY)
        return err_set(e, ERR_INVALID, "ports is a %s, not a list", json_type_name(ports));
    JSON_EACH(port, ports)
    {
        uint64_t number;

        if (!json_u64(port, &number) || number < 1 || number > UINT16_MAX)
            return err_set(e, ERR_INVALID, "ports holds something that is no port");
        if (im->port_count == IMAGE_PORTS_MAX)
            return err_set(e, ERR_LIMIT, "more than %d ports", IMAGE_PORTS_MAX);
        im->ports[im->port_count++] = (uint16_t)number;
    }
    return 0;
}

/* *ret_bad: the one that is not known. */
static int check_keys(const struct json *object, const char *const *known, size_t n,
                      const char **ret_bad, struct err *e)
{
    JSON_MEMBERS(name, value, object)
    {
        const char *key = json_cstr(name);
        struct near near = { .name = key ? key : "" };
        bool is_known = false;

        for (size_t i = 0; i < n; i++) {
            is_known |= span_is(json_str(name), known[i]);
            near_try(&near, known[i]);
        }
        if (is_known)
            continue;
        (void)err_set(e, ERR_INVALID, "'%.*s' is nothing that is known here",
                      SPAN_ARG(json_str(name)));
        (void)near_hint(&near, e);
        *ret_bad = key;
        return -1;
    }
    return 0;
}

static int read_root(struct images *t, const struct json *row, struct image *im, struct err *e)
{
    const struct json *cwd = json_get(row, "workingDir");
    char *id;

    im->root = json_cstr(json_get(row, "root"));
    if (!im->root)
        return err_set(e, ERR_INVALID, "there is no root, such as root: host");
    if (strcmp(im->root, "host") != 0)
        return err_set(e, ERR_INVALID, "root '%s' is not known: the only one is 'host'", im->root);
    if (asprintf(&id, "silica://%s", im->root) < 0)
        abort();
    im->id = keep(t, id);
    im->root_name = t->root_name;
    im->cwd = json_cstr(cwd);
    if (cwd && (!im->cwd || im->cwd[0] != '/'))
        return err_set(e, ERR_INVALID, "workingDir is no absolute path");
    return 0;
}

static int read_row(struct images *t, const struct json *row, struct image *im, struct err *e)
{
    static const char *const keys[] = { "names",         "root",       "server",  "serverCommands",
                                        "serverOptions", "substitute", "command", "env",
                                        "ports",         "workingDir" };
    static const uint16_t server_ports[] = { 8888, 8080, 9090 };

    if (json_type(row) != JSON_OBJECT)
        return err_set(e, ERR_INVALID, "it is a %s, not a map", json_type_name(row));
    if (check_keys(row, keys, LEN(keys), &t->bad_key, e) < 0 ||
        read_list(row, "names", &im->names, e) < 0 ||
        read_list(row, "serverCommands", &im->server_commands, e) < 0 ||
        read_list(row, "command", &im->command, e) < 0 ||
        read_flag(row, "server", &im->is_server, e) < 0 ||
        read_flag(row, "serverOptions", &im->has_options, e) < 0 ||
        read_flag(row, "substitute", &im->is_substitute, e) < 0 || read_root(t, row, im, e) < 0 ||
        read_ports(row, im, e) < 0)
        return -1;
    if (!json_count(im->names))
        return err_set(e, ERR_INVALID, "there are no names");
    if (im->is_server && im->command)
        return err_set(e, ERR_INVALID, "a server has no command of its own");
    if (im->is_server && !im->port_count) {
        memcpy(im->ports, server_ports, sizeof server_ports);
        im->port_count = LEN(server_ports);
    }
    return read_env(t, row, im, e);
}

/* ---- the table ---- */

static int add_rows(struct images *t, struct json_doc *doc, struct err *e)
{
    const struct json *list = json_get(json_doc_root(doc), "images");

    if (list && json_type(list) != JSON_ARRAY)
        return err_set(e, ERR_INVALID, "images is a %s, not a list", json_type_name(list));
    JSON_EACH(row, list)
    {
        if (t->n == IMAGES_ROWS_MAX)
            return err_set(e, ERR_LIMIT, "more than %d images", IMAGES_ROWS_MAX);
        t->rows = own_resize(t->rows, t->n + 1, sizeof *t->rows);
        t->rows[t->n] = (struct image){ 0 };
        t->n++;
        t->bad_key = NULL;
        if (read_row(t, row, &t->rows[t->n - 1], e) < 0)
            return err_wrap(e, "image %zu", t->n);
    }
    return 0;
}

static int read_own(struct images *t, struct span text, bool *ret_has_defaults, struct err *e)
{
    static const char *const keys[] = { "defaults", "images" };
    OWN(buf_done) struct buf repeats = BUF_INIT(512);
    const struct json *root;

    if (kube_yaml_to_doc(text, &repeats, &t->own, e) < 0)
        return -1;
    if (repeats.n)
        return err_set(e, ERR_INVALID, "%s", buf_cstr(&repeats));
    root = json_doc_root(t->own);
    if (json_is_null(root)) /* an empty file */
        return 0;
    if (json_type(root) != JSON_OBJECT)
        return err_set(e, ERR_INVALID, "it is a %s, not a map", json_type_name(root));
    if (check_keys(root, keys, LEN(keys), &t->bad_key, e) < 0)
        return -1;
    t->bad_key = keys[0];
    if (read_flag(root, keys[0], ret_has_defaults, e) < 0)
        return -1;
    t->bad_key = keys[1];
    return add_rows(t, t->own, e);
}

/* In which line that is, where it can be found. */
static void add_line(const struct images *t, struct span text, struct err *e)
{
    char number[24];
    const char *const in_row[] = { "images", number, t->bad_key, NULL };
    const char *const at_top[] = { t->bad_key, NULL };
    size_t line;

    if (!t->n && !t->bad_key)
        return;
    (void)snprintf(number, sizeof number, "%zu", t->n - 1);
    line = kube_yaml_line(text, t->n ? in_row : at_top);
    if (line)
        (void)err_wrap(e, "line %zu", line);
}

static int parse(struct span text, const char *dir, bool has_lines, struct images **ret,
                 struct err *e)
{
    OWN(images_done) struct images *t = NEW(struct images);
    bool has_defaults = true;

    t->dir = own_strdup(dir);
    t->root_name = host_root_name();
    t->dir_fd = -1;
    if (text.n && read_own(t, text, &has_defaults, e) < 0) {
        if (has_lines)
            add_line(t, text, e);
        return -1;
    }
    if (has_defaults && (kube_yaml_to_doc(span_cstr(defaults), NULL, &t->ours, e) < 0 ||
                         add_rows(t, t->ours, e) < 0))
        return err_wrap(e, "our own table of images");
    *ret = take_ptr(&t);
    return 0;
}

int images_parse(struct span text, const char *dir, struct images **ret, struct err *e)
{
    return parse(text, dir, false, ret, e);
}

/* The file that is there; -1 with ENOENT where there is none. */
static int open_file(int dir_fd, const char **ret_name)
{
    static const char *const names[] = { IMAGES_FILE, IMAGES_FILE_JSON };
    int fd = -1;

    for (size_t i = 0; i < LEN(names) && fd < 0; i++) {
        *ret_name = names[i];
        /* by path: the owner's directory, who may have linked it elsewhere. */
        fd = openat(dir_fd, names[i], O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (fd < 0 && errno != ENOENT)
            return -1;
    }
    return fd;
}

int images_load(int dir_fd, const char *dir, struct images **ret, struct err *e)
{
    OWN(buf_done) struct buf text = BUF_INIT(IMAGES_FILE_MAX_BYTES);
    const char *name = IMAGES_FILE;
    OWN_FD int fd = open_file(dir_fd, &name);
    struct stat seen = { 0 };
    struct images *t;

    if (fd < 0 && errno != ENOENT)
        return err_sys(e, "cannot open '%s/%s'", dir, name);
    if (fd >= 0 && (fstat(fd, &seen) < 0 || fd_read_all(fd, &text, e) < 0))
        return err_wrap(e, "cannot read '%s/%s'", dir, name);
    if (parse(buf_span(&text), dir, true, &t, e) < 0)
        return err_wrap(e, "'%s/%s'", dir, name);
    t->seen = seen;
    t->dir_fd = fcntl(dir_fd, F_DUPFD_CLOEXEC, 3);
    if (t->dir_fd < 0) {
        images_free(t);
        return err_sys(e, "cannot keep '%s' open", dir);
    }
    *ret = t;
    return 0;
}

static bool is_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_dev == b->st_dev && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

int images_reload(struct images **t, struct err *e)
{
    struct stat now = { 0 };
    const char *name;
    OWN_FD int fd = open_file((*t)->dir_fd, &name);
    struct images *fresh;

    if (fd >= 0 && fstat(fd, &now) < 0)
        return err_sys(e, "cannot look at '%s/%s'", (*t)->dir, name);
    if (is_same_file(&now, &(*t)->seen))
        return 0;
    if (images_load((*t)->dir_fd, (*t)->dir, &fresh, e) < 0)
        return -1;
    images_free(*t);
    *t = fresh;
    return 0;
}

/* ---- names ---- */

static bool fits(struct span pattern, struct span name)
{
    struct span star_pattern = SPAN_NONE, star_name = SPAN_NONE;

    /* One star to come back to is enough: what an earlier one took, the later one can take as well. */
    while (name.n) {
        if (pattern.n && pattern.p[0] == '*') {
            star_pattern = pattern = span_skip(pattern, 1);
            star_name = name;
        } else if (pattern.n && pattern.p[0] == name.p[0]) {
            pattern = span_skip(pattern, 1);
            name = span_skip(name, 1);
        } else if (star_name.n) {
            star_name = span_skip(star_name, 1);
            name = star_name;
            pattern = star_pattern;
        } else {
            return false;
        }
    }
    while (pattern.n && pattern.p[0] == '*')
        pattern = span_skip(pattern, 1);
    return !pattern.n;
}

bool image_name_fits(struct span pattern, struct span name)
{
    if (fits(pattern, name))
        return true;
    return span_starts(pattern, "*/") && fits(span_skip(pattern, 2), name);
}

static bool has_tag(struct span name)
{
    size_t colon = SIZE_MAX, slash = 0;

    for (size_t i = 0; i < name.n; i++) {
        if (name.p[i] == ':')
            colon = i;
        if (name.p[i] == '/')
            slash = i;
    }
    return colon != SIZE_MAX && colon >= slash; /* else it is a registry's port */
}

static bool is_name(struct span name)
{
    for (size_t i = 0; i < name.n; i++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/:@",
                    name.p[i]) ||
            !name.p[i])
            return false;
    return name.n && name.n <= IMAGE_NAME_MAX_BYTES && name.p[0] != '/' && name.p[0] != ':' &&
           name.p[0] != '@' && name.p[name.n - 1] != '/' && name.p[name.n - 1] != ':';
}

static void normalise(const char *name, char *ret, size_t size)
{
    struct span rest = span_cstr(name), base, host, path;

    (void)span_cut(&rest, '@', &base);
    path = base;
    (void)span_cut(&path, '/', &host);
    /* Only the public registry has that word, whatever its host is called. */
    if (span_starts(path, "library/"))
        base = path;
    if (span_starts(base, "library/"))
        base = span_skip(base, strlen("library/"));
    (void)snprintf(ret, size, "%.*s%s", SPAN_ARG(base), has_tag(base) ? "" : ":latest");
}

bool image_any_fits(const struct json *patterns, struct span name)
{
    JSON_EACH(pattern, patterns)
    if (image_name_fits(json_str(pattern), name))
        return true;
    return false;
}

int images_find(const struct images *t, const char *name, const char *policy,
                const struct image **ret, const char **ret_reason, struct err *e)
{
    char full[IMAGE_NAME_MAX_BYTES + 16];

    if (!is_name(span_cstr(name))) {
        *ret_reason = "InvalidImageName";
        return err_set(e, ERR_INVALID,
                       "Failed to apply default image tag \"%.200s\": couldn't parse image name "
                       "\"%.200s\": invalid reference format",
                       name, name);
    }
    normalise(name, full, sizeof full);
    for (size_t i = 0; i < t->n; i++) {
        if (image_any_fits(t->rows[i].names, span_cstr(full)) ||
            image_any_fits(t->rows[i].names, span_cstr(name))) {
            *ret = &t->rows[i];
            return 0;
        }
    }
    if (policy && strcmp(policy, "Never") == 0) {
        *ret_reason = "ErrImageNeverPull";
        return err_set(e, ERR_NOT_FOUND,
                       "Container image \"%s\" is not present with pull policy of Never", name);
    }
    *ret_reason = "ErrImagePull";
    return err_set(
        e, ERR_NOT_FOUND,
        "image \"%.160s\" is not in the table of images, and nothing is pulled here: to run "
        "it on this machine's own programs, add to '%.120s/" IMAGES_FILE
        "' under images: - {names: [\"%.80s\"], root: host}",
        name, t->dir, name);
}
