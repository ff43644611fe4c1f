#include "node/volume_content.h"

#include "base/str.h"

#include <string.h>

#define MODE_MAX 0777

/* One source of files: where they come from, and with which mode. */
struct source {
    const struct volume_source *from;
    struct volume_content *into;
    mode_t mode;
};

void volume_content_done(struct volume_content *c)
{
    for (size_t i = 0; i < c->n; i++) {
        free(c->v[i].path);
        buf_done(&c->v[i].bytes);
    }
    free(c->v);
    *c = (struct volume_content){ 0 };
}

bool volume_path_is_plain(struct span path)
{
    struct span rest = path, part;

    if (!path.n || path.n > VOLUME_PATH_MAX_BYTES || span_starts(path, "..") ||
        path.p[path.n - 1] == '/' || memchr(path.p, '\0', path.n))
        return false;
    while (span_cut(&rest, '/', &part))
        if (!part.n || part.n > 255 || span_is(part, ".") || span_is(part, ".."))
            return false;
    return true;
}

/* The file of that path, emptied if there was one. */
static struct volume_file *file_at(struct volume_content *c, struct span path, struct err *e)
{
    for (size_t i = 0; i < c->n; i++) {
        if (span_is(path, c->v[i].path)) {
            c->bytes -= c->v[i].bytes.n;
            buf_clear(&c->v[i].bytes);
            return &c->v[i];
        }
    }
    if (!volume_path_is_plain(path)) {
        (void)err_set(e, ERR_INVALID, "'%.*s' cannot be a file's path in a volume", SPAN_ARG(path));
        return NULL;
    }
    if (c->n == VOLUME_FILES_MAX) {
        (void)err_set(e, ERR_LIMIT, "more than %d files in a volume", VOLUME_FILES_MAX);
        return NULL;
    }
    c->v = own_resize(c->v, c->n + 1, sizeof *c->v);
    c->v[c->n] =
        (struct volume_file){ .path = span_dup(path), .bytes = BUF_INIT(VOLUME_CONTENT_MAX_BYTES) };
    return &c->v[c->n++];
}

static mode_t read_mode(const struct json *v, mode_t fallback)
{
    uint64_t mode;

    return json_u64(v, &mode) && mode <= MODE_MAX ? (mode_t)mode : fallback;
}

/* Fills a file by `fill`. */
static int add_file(struct source *s, struct span path, mode_t mode,
                    int (*fill)(const struct source *s, const struct json *v, struct buf *out,
                                struct err *e),
                    const struct json *v, struct err *e)
{
    struct volume_file *f = file_at(s->into, path, e);

    if (!f)
        return -1;
    f->mode = mode;
    f->is_token = false;
    f->bytes.max = VOLUME_CONTENT_MAX_BYTES - s->into->bytes;
    if (fill(s, v, &f->bytes, e) < 0)
        return err_wrap(e, "file '%.*s'", SPAN_ARG(path));
    s->into->bytes += f->bytes.n;
    return 0;
}

static int fill_text(const struct source *s, const struct json *v, struct buf *out, struct err *e)
{
    (void)s;
    return buf_add(out, json_str(v), e);
}

static int fill_base64(const struct source *s, const struct json *v, struct buf *out, struct err *e)
{
    (void)s;
    return str_base64_decode(json_str(v), out, e);
}

static int fill_downward(const struct source *s, const struct json *item, struct buf *out,
                         struct err *e)
{
    const struct json *field = json_get(item, "fieldRef");
    const char *path = json_cstr(json_get(field, "fieldPath"));

    if (json_type(field) == JSON_OBJECT)
        return downward_field(s->from->downward, path ? path : "", out, e);
    return downward_resource(s->from->downward, NULL, json_get(item, "resourceFieldRef"), out, e);
}

/* ---- configMap and secret ---- */

/* Where the object keeps what is not text; a Secret has one member only. */
static const struct json *find_key(const struct object *o, enum need_what what, struct span key,
                                   bool *ret_is_base64)
{
    const struct json *v = json_get_span(object_member(o, "data"), key);

    *ret_is_base64 = what == NEED_SECRET;
    if (v || what == NEED_SECRET)
        return v;
    *ret_is_base64 = true;
    return json_get_span(object_member(o, "binaryData"), key);
}

static int add_all(struct source *s, const struct json *members, bool is_base64, struct err *e)
{
    JSON_MEMBERS(key, value, members)
    if (add_file(s, json_str(key), s->mode, is_base64 ? fill_base64 : fill_text, value, e) < 0)
        return -1;
    return 0;
}

static int add_items(struct source *s, const struct object *o, enum need_what what,
                     const struct json *ref, struct err *e)
{
    bool is_optional = false;

    (void)json_bool(json_get(ref, "optional"), &is_optional);
    JSON_EACH(item, json_get(ref, "items"))
    {
        struct span key = json_str(json_get(item, "key"));
        bool is_base64;
        const struct json *v = find_key(o, what, key, &is_base64);

        if (!v && is_optional)
            continue;
        if (!v)
            return err_set(e, ERR_NOT_FOUND, "references non-existent %s key: %.*s",
                           what == NEED_SECRET ? "secret" : "config", SPAN_ARG(key));
        if (add_file(s, json_str(json_get(item, "path")),
                     read_mode(json_get(item, "mode"), s->mode),
                     is_base64 ? fill_base64 : fill_text, v, e) < 0)
            return -1;
    }
    return 0;
}

static int add_object(struct source *s, enum need_what what, const struct json *ref,
                      const char *name_key, struct err *e)
{
    const char *name = json_cstr(json_get(ref, name_key));
    const struct object *o = name ? needs_object(s->from->needs, what, name) : NULL;
    bool is_optional = false;

    (void)json_bool(json_get(ref, "optional"), &is_optional);
    if (!o)
        return is_optional ? 0 : need_missing(what, name ? name : "", e);
    if (json_count(json_get(ref, "items")))
        return add_items(s, o, what, ref, e);
    if (add_all(s, object_member(o, "data"), what == NEED_SECRET, e) < 0)
        return -1;
    return what == NEED_SECRET ? 0 : add_all(s, object_member(o, "binaryData"), true, e);
}

/* ---- the others ---- */

static int add_downward(struct source *s, const struct json *ref, struct err *e)
{
    JSON_EACH(item, json_get(ref, "items"))
    if (add_file(s, json_str(json_get(item, "path")), read_mode(json_get(item, "mode"), s->mode),
                 fill_downward, item, e) < 0)
        return -1;
    return 0;
}

static int add_token(struct source *s, const struct json *ref, struct err *e)
{
    const struct need *need;
    struct volume_file *f;
    const char *audience;
    uint64_t seconds;

    need_read_token(ref, &audience, &seconds);
    need = needs_token(s->from->needs, audience, seconds);
    if (!need || !need->token)
        return err_set(e, ERR_UNAVAILABLE, "failed to fetch token: it was not given");
    f = file_at(s->into, json_str(json_get(ref, "path")), e);
    if (!f)
        return -1;
    f->mode = s->mode;
    f->is_token = true;
    f->bytes.max = VOLUME_CONTENT_MAX_BYTES - s->into->bytes;
    if (buf_add(&f->bytes, span_cstr(need->token), e) < 0)
        return -1;
    s->into->bytes += f->bytes.n;
    return 0;
}

static int add_projected(struct source *s, const struct json *projected, struct err *e)
{
    JSON_EACH(p, json_get(projected, "sources"))
    {
        const struct json *map = json_get(p, "configMap"), *secret = json_get(p, "secret"),
                          *down = json_get(p, "downwardAPI"),
                          *token = json_get(p, "serviceAccountToken");
        int rc;

        if (json_type(map) == JSON_OBJECT)
            rc = add_object(s, NEED_CONFIG_MAP, map, "name", e);
        else if (json_type(secret) == JSON_OBJECT)
            rc = add_object(s, NEED_SECRET, secret, "name", e);
        else if (json_type(down) == JSON_OBJECT)
            rc = add_downward(s, down, e);
        else if (json_type(token) == JSON_OBJECT)
            rc = add_token(s, token, e);
        else
            rc = err_set(e, ERR_UNSUPPORTED, "a projected source that is not served here");
        if (rc < 0)
            return -1;
    }
    return 0;
}

static int add_volume(struct source *s, const struct json *volume, struct err *e)
{
    const struct json *map = json_get(volume, "configMap"), *secret = json_get(volume, "secret"),
                      *down = json_get(volume, "downwardAPI"),
                      *projected = json_get(volume, "projected"), *ref;

    ref = map ? map : secret ? secret : down ? down : projected;
    s->mode = read_mode(json_get(ref, "defaultMode"), VOLUME_MODE_DEFAULT);
    if (map)
        return add_object(s, NEED_CONFIG_MAP, map, "name", e);
    if (secret)
        return add_object(s, NEED_SECRET, secret, "secretName", e);
    if (down)
        return add_downward(s, down, e);
    return add_projected(s, projected, e);
}

bool volume_content_is(const struct json *volume)
{
    static const char *const kinds[] = { "configMap", "secret", "downwardAPI", "projected" };

    for (size_t i = 0; i < LEN(kinds); i++)
        if (json_type(json_get(volume, kinds[i])) == JSON_OBJECT)
            return true;
    return false;
}

int volume_content_make(const struct volume_source *from, const struct json *volume,
                        struct volume_content *ret, struct err *e)
{
    OWN(volume_content_done) struct volume_content c = { 0 };
    struct source s = { .from = from, .into = &c };

    if (add_volume(&s, volume, e) < 0)
        return -1;
    *ret = c;
    c = (struct volume_content){ 0 };
    return 0;
}
