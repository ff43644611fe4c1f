#include "node/env.h"

#include "base/str.h"
#include "kube/names.h"
#include "node/expand.h"

#include <string.h>

/* ---- the list ---- */

static struct env_var *find(const struct env *env, struct span name)
{
    for (size_t i = 0; i < env->n; i++)
        if (env->vars[i].name_n == name.n && memcmp(env->vars[i].text, name.p, name.n) == 0)
            return &env->vars[i];
    return NULL;
}

static struct span value_of(const struct env_var *v)
{
    return v ? span_cstr(v->text + v->name_n + 1) : SPAN_NONE;
}

struct span env_get(const struct env *env, const char *name)
{
    return value_of(find(env, span_cstr(name)));
}

/* Room for one more, or for a value that takes the place of another. */
static int reserve(struct env *env, struct env_var *old, size_t bytes, struct err *e)
{
    size_t freed = old ? strlen(old->text) + 1 : 0;

    if (env->bytes - freed + bytes > ENV_MAX_BYTES)
        return err_set(e, ERR_LIMIT, "the environment has more than %d bytes", ENV_MAX_BYTES);
    if (!old && env->n == ENV_VARS_MAX)
        return err_set(e, ERR_LIMIT, "the environment has more than %d variables", ENV_VARS_MAX);
    env->bytes += bytes - freed;
    return 0;
}

int env_set(struct env *env, struct span name, struct span value, bool is_free_only, struct err *e)
{
    struct env_var *v = find(env, name);
    char *text;

    if (v && is_free_only && !v->is_base)
        return 0;
    /* The public API takes such values; no process can have them. */
    if (value.n && (memchr(value.p, '\0', value.n) || !str_utf8_valid(value)))
        return err_set(e, ERR_INVALID, "the value of '%.*s' is no text, so no variable can hold it",
                       SPAN_ARG(name));
    if (reserve(env, v, name.n + value.n + 2, e) < 0)
        return -1;
    if (asprintf(&text, "%.*s=%.*s", SPAN_ARG(name), SPAN_ARG(value)) < 0)
        abort();
    if (!v) {
        env->vars = own_resize(env->vars, env->n + 1, sizeof *env->vars);
        v = &env->vars[env->n++];
        *v = (struct env_var){ 0 };
    }
    free(v->text);
    *v = (struct env_var){ .text = text, .name_n = name.n };
    return 0;
}

void env_done(struct env *env)
{
    for (size_t i = 0; i < env->n; i++)
        free(env->vars[i].text);
    free(env->vars);
    free(env->v);
    *env = (struct env){ 0 };
}

static int add_base(struct env *env, const char *const *base, struct err *e)
{
    for (size_t i = 0; base && base[i]; i++) {
        struct span value = span_cstr(base[i]), name;

        if (!span_cut(&value, '=', &name) || !name.n)
            return err_set(e, ERR_INVALID, "'%s' is no NAME=value", base[i]);
        if (env_set(env, name, value, false, e) < 0)
            return -1;
        find(env, name)->is_base = true;
    }
    return 0;
}

/* ---- expansion ---- */

struct lookup {
    const struct env *env;
    struct span missing; /* the first name that was not found */
};

static struct span look_up(void *ctx, struct span name)
{
    struct lookup *l = ctx;
    const struct env_var *v = find(l->env, name);

    if (v && !v->is_base)
        return value_of(v);
    if (!l->missing.p)
        l->missing = name;
    return SPAN_NONE;
}

int env_expand_strict(const struct env *env, struct span text, struct buf *out, struct err *e)
{
    struct lookup l = { .env = env };

    if (expand_text(text, look_up, &l, out, e) < 0)
        return -1;
    if (l.missing.p)
        return err_set(e, ERR_NOT_FOUND, "missing value for \"%.*s\"", SPAN_ARG(l.missing));
    return 0;
}

/* Each word's text behind the others, ended by a NUL. */
static int expand_words(const struct env *env, const struct json *words, struct buf *texts,
                        struct err *e)
{
    struct lookup l = { .env = env };

    JSON_EACH(word, words)
    {
        if (!json_cstr(word))
            return err_set(e, ERR_INVALID, "a word of the command cannot be one: it holds a NUL");
        if (expand_text(json_str(word), look_up, &l, texts, e) < 0 || buf_addc(texts, '\0', e) < 0)
            return err_wrap(e, "the words of the command");
    }
    return 0;
}

int env_words(const struct env *env, const struct json *words, char ***ret, struct err *e)
{
    OWN(buf_done) struct buf texts = BUF_INIT(WORDS_MAX_BYTES);
    size_t n = json_type(words) == JSON_ARRAY ? json_count(words) : 0;
    char **v, *at;

    if (expand_words(env, words, &texts, e) < 0)
        return -1;
    v = own_new((n + 1) * sizeof *v + texts.n);
    at = (char *)(v + n + 1);
    if (texts.n)
        memcpy(at, texts.p, texts.n);
    for (size_t i = 0; i < n; i++, at += strlen(at) + 1)
        v[i] = at;
    *ret = v;
    return 0;
}

/* ---- sources ---- */

/* What a key of a ConfigMap or Secret holds, appended. */
static int read_key(enum need_what what, const struct json *value, struct buf *out, struct err *e)
{
    if (what == NEED_SECRET)
        return str_base64_decode(json_str(value), out, e);
    return buf_add(out, json_str(value), e);
}

struct from {
    enum need_what what;
    const char *name;
    struct span prefix;
    struct buf *invalid; /* keys, ", " between them */
};

static int add_key(struct env *env, const struct from *f, struct span key, const struct json *value,
                   struct err *e)
{
    OWN(buf_done) struct buf name = BUF_INIT(ENV_MAX_BYTES), text = BUF_INIT(ENV_MAX_BYTES);

    if (buf_add(&name, f->prefix, e) < 0 || buf_add(&name, key, e) < 0)
        return -1;
    if (!names_check(NAMES_ENV_VAR, buf_span(&name), NULL)) {
        if (f->invalid->n)
            (void)buf_add_capped(f->invalid, SPAN(", "));
        (void)buf_add_capped(f->invalid, buf_span(&name));
        return 0;
    }
    if (read_key(f->what, value, &text, e) < 0)
        return err_wrap(e, "key %.*s of %s", SPAN_ARG(key), f->name);
    return env_set(env, buf_span(&name), buf_span(&text), false, e);
}

static int add_from(struct env *env, const struct env_spec *spec, const struct json *from,
                    struct notes *notes, struct err *e)
{
    const struct json *map = json_get(from, "configMapRef"), *secret = json_get(from, "secretRef"),
                      *ref = json_type(map) == JSON_OBJECT ? map : secret;
    OWN(buf_done) struct buf invalid = BUF_INIT(512);
    struct from f = { .what = ref == map ? NEED_CONFIG_MAP : NEED_SECRET,
                      .name = json_cstr(json_get(ref, "name")),
                      .prefix = json_str(json_get(from, "prefix")),
                      .invalid = &invalid };
    const struct object *o = f.name ? needs_object(spec->needs, f.what, f.name) : NULL;
    bool is_optional = false;

    if (!f.name)
        return 0;
    (void)json_bool(json_get(ref, "optional"), &is_optional);
    if (!o)
        return is_optional ? 0 : need_missing(f.what, f.name, e);
    JSON_MEMBERS(key, value, object_member(o, "data"))
    if (add_key(env, &f, json_str(key), value, e) < 0)
        return -1;
    if (invalid.n)
        notes_add(notes, "InvalidEnvironmentVariableNames",
                  "Keys [%s] from the EnvFrom %s %s/%s were skipped since they are considered "
                  "invalid environment variable names.",
                  buf_cstr(&invalid), f.what == NEED_SECRET ? "secret" : "configMap",
                  object_namespace(spec->downward.pod), f.name);
    return 0;
}

/* *ret_is_there false: it is optional and there is none. */
static int read_ref(const struct env_spec *spec, enum need_what what, const struct json *ref,
                    bool *ret_is_there, struct buf *out, struct err *e)
{
    const char *name = json_cstr(json_get(ref, "name"));
    struct span key = json_str(json_get(ref, "key"));
    const struct object *o = name ? needs_object(spec->needs, what, name) : NULL;
    const struct json *value = o ? json_get_span(object_member(o, "data"), key) : NULL;
    bool is_optional = false;

    (void)json_bool(json_get(ref, "optional"), &is_optional);
    *ret_is_there = value != NULL;
    if (value)
        return read_key(what, value, out, e);
    if (is_optional)
        return 0;
    if (!o)
        return need_missing(what, name ? name : "", e);
    return err_set(e, ERR_NOT_FOUND, "couldn't find key %.*s in %s %s/%s", SPAN_ARG(key),
                   what == NEED_SECRET ? "Secret" : "ConfigMap",
                   object_namespace(spec->downward.pod), name);
}

static int read_source(const struct env_spec *spec, const struct json *from, bool *ret_is_there,
                       struct buf *out, struct err *e)
{
    const struct json *field = json_get(from, "fieldRef"),
                      *resource = json_get(from, "resourceFieldRef"),
                      *map = json_get(from, "configMapKeyRef"),
                      *secret = json_get(from, "secretKeyRef");

    *ret_is_there = true;
    if (json_type(field) == JSON_OBJECT) {
        const char *path = json_cstr(json_get(field, "fieldPath"));

        return downward_field(&spec->downward, path ? path : "", out, e);
    }
    if (json_type(resource) == JSON_OBJECT)
        return downward_resource(&spec->downward, spec->container, resource, out, e);
    if (json_type(map) == JSON_OBJECT)
        return read_ref(spec, NEED_CONFIG_MAP, map, ret_is_there, out, e);
    if (json_type(secret) == JSON_OBJECT)
        return read_ref(spec, NEED_SECRET, secret, ret_is_there, out, e);
    return err_set(e, ERR_UNSUPPORTED, "valueFrom names no source that is served here");
}

static int add_var(struct env *env, const struct env_spec *spec, const struct json *var,
                   struct err *e)
{
    struct span name = json_str(json_get(var, "name")), value = json_str(json_get(var, "value"));
    const struct json *from = json_get(var, "valueFrom");
    OWN(buf_done) struct buf text = BUF_INIT(ENV_MAX_BYTES);
    struct lookup l = { .env = env };
    bool is_there = true;

    if (value.n || json_type(from) != JSON_OBJECT) {
        if (expand_text(value, look_up, &l, &text, e) < 0)
            return err_wrap(e, "variable '%.*s'", SPAN_ARG(name));
    } else if (read_source(spec, from, &is_there, &text, e) < 0) {
        return -1; /* as the kubelet words it: nothing before it */
    }
    return is_there ? env_set(env, name, buf_span(&text), false, e) : 0;
}

/* ---- all of it ---- */

/* Services are seen by $(NAME), but give way to every other variable of their name, envFrom's and env's: so they come
 * first, and are replaced. */
static int add_all(struct env *env, const struct env_spec *spec, struct notes *notes, struct err *e)
{
    if (add_base(env, spec->base, e) < 0 || env_add_services(env, spec, e) < 0)
        return -1;
    JSON_EACH(from, json_get(spec->container, "envFrom"))
    if (add_from(env, spec, from, notes, e) < 0)
        return -1;
    JSON_EACH(var, json_get(spec->container, "env"))
    if (add_var(env, spec, var, e) < 0)
        return -1;
    return 0;
}

int env_make(const struct env_spec *spec, struct env *ret, struct notes *notes, struct err *e)
{
    OWN(env_done) struct env env = { 0 };

    if (add_all(&env, spec, notes, e) < 0)
        return -1;
    env.v = own_array(env.n + 1, sizeof *env.v);
    for (size_t i = 0; i < env.n; i++)
        env.v[i] = env.vars[i].text;
    *ret = env;
    env = (struct env){ 0 };
    return 0;
}
