/* Members of a kubeconfig, each with its type, or a message that says where it is wrong. */
#include "kubeclient/kubeconfig_impl.h"

#include "base/str.h"

#include <stdarg.h>
#include <string.h>

int part_wrong(const struct config_part *p, struct err *e, const char *fmt, ...)
{
    char what[256];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    if (p->name)
        return err_set(e, ERR_INVALID, "'%s': %s '%s': %s", p->file, p->what, p->name, what);
    return err_set(e, ERR_INVALID, "'%s': %s", p->file, what);
}

static int get_text(const struct config_part *p, const char *name, struct span *ret, struct err *e)
{
    const struct json *v = json_get(p->v, name);

    *ret = SPAN_NONE;
    if (!v || json_is_null(v))
        return 0;
    if (json_type(v) != JSON_STRING)
        return part_wrong(p, e, "%s is a %s, not a text", name, json_type_name(v));
    if (!json_cstr(v))
        return part_wrong(p, e, "%s holds a NUL byte", name);
    *ret = json_str(v);
    return 0;
}

int part_text(const struct config_part *p, const char *name, char **ret, struct err *e)
{
    struct span s;

    if (get_text(p, name, &s, e) < 0)
        return -1;
    *ret = s.n ? span_dup(s) : NULL;
    return 0;
}

char *part_resolve(const struct config_part *p, struct span path)
{
    const char *slash = strrchr(p->file, '/');
    OWN(buf_done) struct buf out = BUF_INIT(2 * KUBECONFIG_MAX_BYTES);
    struct err e;

    if (path.p[0] == '/' || !slash)
        return span_dup(path);
    if (buf_add(&out, span_of(p->file, (size_t)(slash - p->file) + 1), &e) < 0 ||
        buf_add(&out, path, &e) < 0)
        return span_dup(path); /* no path is as long as that */
    return (char *)take_ptr(&out.p);
}

int part_path(const struct config_part *p, const char *name, char **ret, struct err *e)
{
    struct span s;

    if (get_text(p, name, &s, e) < 0)
        return -1;
    *ret = s.n ? part_resolve(p, s) : NULL;
    return 0;
}

/* Base64 with lines cut anywhere, as YAML's block texts have it. */
int part_bytes(const struct config_part *p, const char *name, struct buf *out, struct err *e)
{
    OWN(buf_done) struct buf joined = BUF_INIT(KUBECONFIG_MAX_BYTES);
    struct span s;

    if (get_text(p, name, &s, e) < 0)
        return -1;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] != '\n' && s.p[i] != '\r' && buf_addc(&joined, s.p[i], e) < 0)
            return part_wrong(p, e, "%s is too long", name);
    }
    if (str_base64_decode(buf_span(&joined), out, e) == 0)
        return 0;
    /* Not the decoder's words: they may hold a piece of a key. */
    return part_wrong(p, e, "%s is not base64", name);
}

int part_bool(const struct config_part *p, const char *name, bool *ret, struct err *e)
{
    const struct json *v = json_get(p->v, name);

    *ret = false;
    if (!v || json_is_null(v) || json_bool(v, ret))
        return 0;
    return part_wrong(p, e, "%s is a %s, not true or false", name, json_type_name(v));
}

int part_texts(const struct config_part *p, const char *name, char ***ret, struct err *e)
{
    const struct json *list = json_get(p->v, name);
    size_t n = 0;
    char **texts;

    *ret = NULL;
    if (!list || json_is_null(list))
        return 0;
    if (json_type(list) != JSON_ARRAY)
        return part_wrong(p, e, "%s is a %s, not a list", name, json_type_name(list));
    if (json_count(list) > PLUGIN_WORDS_MAX)
        return part_wrong(p, e, "%s has more than %d elements", name, PLUGIN_WORDS_MAX);
    texts = own_array(json_count(list) + 1, sizeof *texts);
    JSON_EACH(v, list)
    {
        if (!json_cstr(v)) {
            texts_free(texts);
            return part_wrong(p, e, "%s[%zu] is a %s, not a text", name, n, json_type_name(v));
        }
        texts[n++] = own_strdup(json_cstr(v));
    }
    *ret = texts;
    return 0;
}

void texts_free(char **texts)
{
    for (char **t = texts; t && *t; t++)
        free(*t);
    free(texts);
}
