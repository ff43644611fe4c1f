#include "apiserver/authz.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define RBAC "rbac.authorization.k8s.io"

/* ---- one rule ---- */

static bool holds(const struct json *list, const char *wanted)
{
    JSON_EACH(item, list)
    {
        if (span_is(json_str(item), "*") || span_is(json_str(item), wanted))
            return true;
    }
    return false;
}

static bool holds_resource(const struct json *list, const struct authz_ask *a)
{
    char whole[160], any[80];

    (void)snprintf(whole, sizeof whole, "%s%s%s", a->resource, *a->subresource ? "/" : "",
                   a->subresource);
    (void)snprintf(any, sizeof any, "*/%s", a->subresource);
    JSON_EACH(item, list)
    {
        struct span s = json_str(item);

        if (span_is(s, "*") || span_is(s, whole) || (*a->subresource && span_is(s, any)))
            return true;
    }
    return false;
}

/* "/healthz" or "/healthz/" followed by "*". */
static bool holds_path(const struct json *list, const char *path)
{
    JSON_EACH(item, list)
    {
        struct span s = json_str(item);

        if (span_is(s, path) ||
            (s.n && s.p[s.n - 1] == '*' && strncmp(path, (const char *)s.p, s.n - 1) == 0))
            return true;
    }
    return false;
}

static bool rule_allows(const struct json *rule, const struct authz_ask *a)
{
    const struct json *names = json_get(rule, "resourceNames");

    if (!holds(json_get(rule, "verbs"), a->verb))
        return false;
    if (a->path)
        return holds_path(json_get(rule, "nonResourceURLs"), a->path);
    if (!holds(json_get(rule, "apiGroups"), a->group) ||
        !holds_resource(json_get(rule, "resources"), a))
        return false;
    if (json_count(names) == 0)
        return true;
    JSON_EACH(name, names)
    {
        if (*a->name && span_is(json_str(name), a->name))
            return true;
    }
    return false;
}

/* ---- whose rules ---- */

static bool is_subject(const struct json *subject, const struct user *u, const char *namespace)
{
    struct span kind = json_str(json_get(subject, "kind"));
    const char *name = json_cstr(json_get(subject, "name"));
    const char *where = json_cstr(json_get(subject, "namespace"));
    char text[640];

    if (!name)
        return false;
    if (span_is(kind, "User"))
        return strcmp(name, user_name(u)) == 0;
    if (span_is(kind, "Group"))
        return user_is_in(u, name);
    if (!span_is(kind, "ServiceAccount"))
        return false;
    (void)snprintf(text, sizeof text, "system:serviceaccount:%s:%s",
                   where && *where ? where : namespace, name);
    return strcmp(text, user_name(u)) == 0;
}

static bool binds(const struct object *binding, const struct user *u)
{
    JSON_EACH(subject, object_member(binding, "subjects"))
    {
        if (is_subject(subject, u, object_namespace(binding)))
            return true;
    }
    return false;
}

static const struct json *rules_of(struct store *store, const struct object *binding)
{
    const struct json *ref = object_member(binding, "roleRef");
    const char *name = json_cstr(json_get(ref, "name"));
    bool is_cluster = span_is(json_str(json_get(ref, "kind")), "ClusterRole");
    struct shelf_key key = { op_number(
                                 kind_find(RBAC, "v1", is_cluster ? "clusterroles" : "roles")),
                             is_cluster ? "" : object_namespace(binding), name ? name : "" };
    const struct object *role = store_get(store, STORE_COMMITTED, &key);

    return role ? object_member(role, "rules") : NULL;
}

/* Calls fn for each rule of the bindings of one kind in one namespace; true when fn once said so. */
static bool each_rule(struct store *store, const struct user *u, const char *plural,
                      const char *namespace, bool (*fn)(void *ctx, const struct json *rule),
                      void *ctx)
{
    struct shelf_key from = { op_number(kind_find(RBAC, "v1", plural)), namespace, "" };
    struct shelf *shelf = store_snapshot(store, STORE_COMMITTED, NULL);
    struct shelf_walk walk;
    struct object *binding;
    bool is_found = false;
    unsigned kind;

    shelf_walk_init(&walk, shelf, &from, false);
    while (!is_found && (binding = shelf_walk_next(&walk, &kind)) && kind == from.kind &&
           strcmp(object_namespace(binding), namespace) == 0) {
        if (!binds(binding, u))
            continue;
        JSON_EACH(rule, rules_of(store, binding))
        {
            if (fn(ctx, rule)) {
                is_found = true;
                break;
            }
        }
    }
    shelf_unref(shelf);
    return is_found;
}

static bool allows(void *ctx, const struct json *rule)
{
    return rule_allows(rule, ctx);
}

bool authz_allows(struct store *store, const struct user *u, const struct authz_ask *ask)
{
    struct authz_ask a = *ask;

    if (user_is_in(u, GROUP_MASTERS))
        return true;
    if (each_rule(store, u, "clusterrolebindings", "", allows, &a))
        return true;
    return !a.path && *a.namespace && each_rule(store, u, "rolebindings", a.namespace, allows, &a);
}

struct telling {
    authz_rule_fn fn;
    void *ctx;
};

static bool tell(void *ctx, const struct json *rule)
{
    struct telling *t = ctx;

    t->fn(t->ctx, rule);
    return false;
}

void authz_rules(struct store *store, const struct user *u, const char *namespace, authz_rule_fn fn,
                 void *ctx)
{
    struct telling t = { fn, ctx };

    (void)each_rule(store, u, "clusterrolebindings", "", tell, &t);
    if (*namespace)
        (void)each_rule(store, u, "rolebindings", namespace, tell, &t);
}

/* ---- the call's question ---- */

/* Health and version are everybody's; discovery is for all who are known. */
static bool is_open_path(const struct user *u, const char *path)
{
    static const char *const everybody[] = { "/healthz", "/livez", "/readyz", "/version",
                                             "/version/" };
    static const char *const known[] = { "/api", "/apis", "/openapi", "/" };

    EACH(p, everybody) {
        size_t n = strlen(*p);

        if (strncmp(path, *p, n) == 0 && (path[n] == '\0' || path[n] == '/'))
            return true;
    }
    if (!user_is_in(u, GROUP_AUTHENTICATED))
        return false;
    EACH(p, known) {
        size_t n = strlen(*p);

        if (strncmp(path, *p, n) == 0 && (path[n] == '\0' || path[n] == '/'))
            return true;
    }
    return false;
}

static int refuse(const struct user *u, const struct authz_ask *a, struct status *st)
{
    const struct kind named = { .group = a->group,
                                .plural = a->resource }; /* whether it is served or not */
    char where[400] = " at the cluster scope";
    char resource[160];

    if (a->path)
        return status_forbidden(st, NULL, "", "User \"%s\" cannot %s path \"%s\"", user_name(u),
                                a->verb, a->path);
    if (*a->namespace)
        (void)snprintf(where, sizeof where, " in the namespace \"%s\"", a->namespace);
    (void)snprintf(resource, sizeof resource, "%s%s%s", a->resource, *a->subresource ? "/" : "",
                   a->subresource);
    return status_forbidden(st, &named, a->name,
                            "User \"%s\" cannot %s resource \"%s\" in API group \"%s\"%s",
                            user_name(u), a->verb, resource, a->group, where);
}

int authz_question(struct store *store, const struct user *u, const struct authz_ask *ask,
                   struct status *st)
{
    return authz_allows(store, u, ask) ? 0 : refuse(u, ask, st);
}

int authz_call(struct call *c)
{
    char verb[16], path[1024];
    struct authz_ask a = { .verb = request_verb_name(c->req.verb),
                           .group = c->req.group,
                           .resource = c->req.resource,
                           .subresource = c->req.subresource,
                           .name = c->req.name,
                           .namespace = c->req.namespace };

    if (c->req.verb == VERB_NONE) {
        struct span method = http_method(c->x);

        (void)snprintf(verb, sizeof verb, "%.*s", SPAN_ARG(method));
        for (char *p = verb; *p; p++)
            *p = (char)tolower((unsigned char)*p);
        (void)snprintf(path, sizeof path, "%.*s", SPAN_ARG(http_path(c->x)));
        a.verb = verb;
        a.path = path;
        if (is_open_path(&c->user, path))
            return 0;
    } else if (!*a.group && strcmp(a.resource, "namespaces") == 0 && *a.name) {
        a.namespace = a.name; /* roles in a namespace speak of itself too */
    }
    return authz_question(c->s->store, &c->user, &a, &c->status);
}
