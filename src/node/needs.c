#include "node/needs.h"

#include <string.h>

static const struct row {
    const char *resource, *one;
} rows[] = {
    [NEED_CONFIG_MAP] = { "configmaps", "configmap" },
    [NEED_SECRET] = { "secrets", "secret" },
    [NEED_CLAIM] = { "persistentvolumeclaims", "persistentvolumeclaim" },
    [NEED_TOKEN] = { NULL, "token of service account" },
};

const char *need_resource(enum need_what what)
{
    return rows[what].resource;
}

int need_missing(enum need_what what, const char *name, struct err *e)
{
    return err_set(e, ERR_NOT_FOUND, "%s \"%s\" not found", rows[what].one, name);
}

static bool is_same(const struct need *a, const struct need *b)
{
    return a->what == b->what && strcmp(a->name, b->name) == 0 &&
           strcmp(a->audience, b->audience) == 0 && a->seconds == b->seconds;
}

static int add(struct needs *ns, struct need need, struct err *e)
{
    if (!need.name || !*need.name) /* validation let no such Pod in */
        return 0;
    if (!need.audience)
        need.audience = "";
    for (size_t i = 0; i < ns->n; i++) {
        if (is_same(&ns->v[i], &need)) {
            ns->v[i].is_optional &= need.is_optional;
            return 0;
        }
    }
    if (ns->n == NEEDS_MAX)
        return err_set(e, ERR_LIMIT, "the Pod names more than %d other objects", NEEDS_MAX);
    ns->v = own_resize(ns->v, ns->n + 1, sizeof *ns->v);
    ns->v[ns->n++] = need;
    return 0;
}

/* A reference whose name is the member `key`; NULL is none. */
static int add_ref(struct needs *ns, enum need_what what, const struct json *ref, const char *key,
                   struct err *e)
{
    bool is_optional = false;

    if (json_type(ref) != JSON_OBJECT)
        return 0;
    (void)json_bool(json_get(ref, "optional"), &is_optional);
    return add(ns,
               (struct need){ .what = what,
                              .name = json_cstr(json_get(ref, key)),
                              .is_optional = is_optional },
               e);
}

void need_read_token(const struct json *source, const char **ret_audience, uint64_t *ret_seconds)
{
    const char *audience = json_cstr(json_get(source, "audience"));
    uint64_t seconds = NEED_TOKEN_SECONDS;

    (void)json_u64(json_get(source, "expirationSeconds"), &seconds);
    *ret_audience = audience ? audience : "";
    *ret_seconds = MAX(seconds, (uint64_t)NEED_TOKEN_MIN_SECONDS);
}

static int add_token(struct needs *ns, const struct json *source, struct err *e)
{
    const char *account = object_text(ns->pod, "spec.serviceAccountName");
    struct need need = { .what = NEED_TOKEN, .name = account && *account ? account : "default" };

    need_read_token(source, &need.audience, &need.seconds);
    return add(ns, need, e);
}

static int add_container(struct needs *ns, const struct json *container, struct err *e)
{
    JSON_EACH(from, json_get(container, "envFrom"))
    if (add_ref(ns, NEED_CONFIG_MAP, json_get(from, "configMapRef"), "name", e) < 0 ||
        add_ref(ns, NEED_SECRET, json_get(from, "secretRef"), "name", e) < 0)
        return -1;
    JSON_EACH(var, json_get(container, "env"))
    {
        const struct json *from = json_get(var, "valueFrom");

        if (add_ref(ns, NEED_CONFIG_MAP, json_get(from, "configMapKeyRef"), "name", e) < 0 ||
            add_ref(ns, NEED_SECRET, json_get(from, "secretKeyRef"), "name", e) < 0)
            return -1;
    }
    return 0;
}

static int add_projected(struct needs *ns, const struct json *projected, struct err *e)
{
    JSON_EACH(source, json_get(projected, "sources"))
    {
        const struct json *token = json_get(source, "serviceAccountToken");

        if (add_ref(ns, NEED_CONFIG_MAP, json_get(source, "configMap"), "name", e) < 0 ||
            add_ref(ns, NEED_SECRET, json_get(source, "secret"), "name", e) < 0)
            return -1;
        if (json_type(token) == JSON_OBJECT && add_token(ns, token, e) < 0)
            return -1;
    }
    return 0;
}

static int add_volumes(struct needs *ns, struct err *e)
{
    JSON_EACH(volume, object_at(ns->pod, "spec.volumes"))
    if (add_ref(ns, NEED_CONFIG_MAP, json_get(volume, "configMap"), "name", e) < 0 ||
        add_ref(ns, NEED_SECRET, json_get(volume, "secret"), "secretName", e) < 0 ||
        add_ref(ns, NEED_CLAIM, json_get(volume, "persistentVolumeClaim"), "claimName", e) < 0 ||
        add_projected(ns, json_get(volume, "projected"), e) < 0)
        return -1;
    return 0;
}

int needs_of_pod(struct object *pod, struct needs *ret, struct err *e)
{
    static const char *const lists[] = { "spec.initContainers", "spec.containers" };
    OWN(needs_done) struct needs ns = { .pod = object_ref(pod) };

    for (size_t i = 0; i < LEN(lists); i++)
        JSON_EACH(container, object_at(pod, lists[i]))
    if (add_container(&ns, container, e) < 0)
        return -1;
    if (add_volumes(&ns, e) < 0)
        return -1;
    *ret = ns;
    ns = (struct needs){ 0 };
    return 0;
}

void needs_done(struct needs *ns)
{
    for (size_t i = 0; i < ns->n; i++) {
        object_unref(ns->v[i].object);
        free(ns->v[i].token);
    }
    free(ns->v);
    object_unref(ns->pod);
    *ns = (struct needs){ 0 };
}

void need_set_object(struct need *n, struct object *o)
{
    struct object *old = n->object;

    n->object = o ? object_ref(o) : NULL;
    object_unref(old);
}

void need_set_token(struct need *n, const char *token)
{
    char *old = n->token;

    n->token = token ? own_strdup(token) : NULL;
    free(old);
}

void needs_keep_tokens(struct needs *ns, struct needs *before, uint64_t now_ms)
{
    for (size_t i = 0; i < ns->n; i++) {
        for (size_t k = 0; k < before->n && !ns->v[i].token; k++) {
            struct need *old = &before->v[k];

            if (old->token && now_ms < old->renew_ms && is_same(&ns->v[i], old)) {
                ns->v[i].token = take_ptr(&old->token);
                ns->v[i].renew_ms = old->renew_ms;
            }
        }
    }
}

struct object *needs_object(const struct needs *ns, enum need_what what, const char *name)
{
    for (size_t i = 0; i < ns->n; i++)
        if (ns->v[i].what == what && strcmp(ns->v[i].name, name) == 0)
            return ns->v[i].object;
    return NULL;
}

const struct need *needs_token(const struct needs *ns, const char *audience, uint64_t seconds)
{
    for (size_t i = 0; i < ns->n; i++)
        if (ns->v[i].what == NEED_TOKEN && strcmp(ns->v[i].audience, audience) == 0 &&
            ns->v[i].seconds == seconds)
            return &ns->v[i];
    return NULL;
}
