#include "apiserver/grant.h"

#include "apiserver/authz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RBAC           "rbac.authorization.k8s.io"
#define MISSING_MAX    256         /* lines of what is missing; more are not told */
#define TEXT_MAX_BYTES (64 * 1024) /* of all lines */
#define QUESTIONS_MAX                                                                              \
    8192 /* the largest built-in role asks some hundred; a stranger's must not hold the loop */
#define RESOURCE_MAX 128 /* as authz compares them; longer exists nowhere */

struct grant {
    struct op *op;
    const char *namespace; /* where the rights would hold; "": everywhere */
    size_t asked;
    struct buf text; /* lines, each ended by NUL */
    size_t at[MISSING_MAX];
    size_t n;
    bool is_missing;
};

/* ---- one right ---- */

static bool may(struct grant *g, struct authz_ask *ask)
{
    ask->namespace = ask->path ? "" : g->namespace;
    return ++g->asked <= QUESTIONS_MAX && authz_allows(g->op->store, g->op->user, ask);
}

/* "pods/log" is a resource and one of its parts. */
static bool may_resource(struct grant *g, const char *verb, struct span group, struct span resource,
                         struct span name)
{
    char whole[RESOURCE_MAX + 1], group_text[256], name_text[256], *slash;
    struct authz_ask ask = {
        .verb = verb, .group = group_text, .resource = whole, .subresource = "", .name = name_text
    };

    if (resource.n >= sizeof whole || group.n >= sizeof group_text || name.n >= sizeof name_text)
        return false;
    (void)snprintf(whole, sizeof whole, "%.*s", SPAN_ARG(resource));
    (void)snprintf(group_text, sizeof group_text, "%.*s", SPAN_ARG(group));
    (void)snprintf(name_text, sizeof name_text, "%.*s", SPAN_ARG(name));
    slash = strchr(whole, '/');
    if (slash) {
        *slash = '\0';
        ask.subresource = slash + 1;
    }
    return may(g, &ask);
}

static bool may_path(struct grant *g, const char *verb, const char *path)
{
    struct authz_ask ask = {
        .verb = verb, .group = "", .resource = "", .subresource = "", .name = "", .path = path
    };

    return may(g, &ask);
}

/* ---- what is missing, in the public server's words ---- */

static void begin_line(struct grant *g, struct buf *line)
{
    g->is_missing = true;
    buf_clear(line);
}

static void add_line(struct grant *g, const struct buf *line)
{
    for (size_t i = 0; i < g->n; i++)
        if (strcmp(buf_cstr(&g->text) + g->at[i], buf_cstr(line)) == 0)
            return;
    if (g->n == MISSING_MAX || g->text.n + line->n + 1 > TEXT_MAX_BYTES)
        return;
    g->at[g->n++] = g->text.n;
    (void)buf_add_capped(&g->text, buf_span(line));
    buf_addc_capped(&g->text, '\0');
}

static void add_list(struct buf *line, const char *what, struct span one)
{
    struct json_out o;
    struct err e;

    buf_addf_capped(line, "%s%s:[", line->n ? ", " : "{", what);
    json_out_init(&o, line, 0);
    json_out_str(&o, one);
    (void)json_out_end(&o, &e);
    buf_addc_capped(line, ']');
}

static void add_verb(struct buf *verbs, const char *verb)
{
    buf_addf_capped(verbs, "%s\"%s\"", verbs->n ? " " : "", verb);
}

/* ---- one rule, taken apart ---- */

static void check_one(struct grant *g, const struct json *verbs, struct span group,
                      struct span resource, struct span name)
{
    OWN(buf_done) struct buf line = BUF_INIT(4096), missing = BUF_INIT(2048);
    bool is_whole = true;

    JSON_EACH(verb, verbs)
    {
        const char *text = json_cstr(verb);

        if (text && may_resource(g, text, group, resource, name))
            continue;
        is_whole = false;
        add_verb(&missing, text ? text : "");
    }
    if (is_whole)
        return;
    begin_line(g, &line);
    add_list(&line, "APIGroups", group);
    add_list(&line, "Resources", resource);
    if (name.n)
        add_list(&line, "ResourceNames", name);
    buf_addf_capped(&line, ", Verbs:[%s]}", buf_cstr(&missing));
    add_line(g, &line);
}

static void check_resources(struct grant *g, const struct json *rule, const struct json *group)
{
    const struct json *names = json_get(rule, "resourceNames"), *verbs = json_get(rule, "verbs");

    JSON_EACH(resource, json_get(rule, "resources"))
    {
        if (g->asked > QUESTIONS_MAX)
            return;
        if (json_count(names) == 0)
            check_one(g, verbs, json_str(group), json_str(resource), SPAN_NONE);
        JSON_EACH(name, names)
        {
            if (g->asked <= QUESTIONS_MAX)
                check_one(g, verbs, json_str(group), json_str(resource), json_str(name));
        }
    }
}

static void check_paths(struct grant *g, const struct json *rule)
{
    OWN(buf_done) struct buf line = BUF_INIT(4096), missing = BUF_INIT(2048);
    bool is_whole;

    JSON_EACH(path, json_get(rule, "nonResourceURLs"))
    {
        if (g->asked > QUESTIONS_MAX)
            return;
        is_whole = true;
        buf_clear(&missing);
        JSON_EACH(verb, json_get(rule, "verbs"))
        {
            const char *text = json_cstr(verb);

            if (text && json_cstr(path) && may_path(g, text, json_cstr(path)))
                continue;
            is_whole = false;
            add_verb(&missing, text ? text : "");
        }
        if (is_whole)
            continue;
        begin_line(g, &line);
        add_list(&line, "NonResourceURLs", json_str(path));
        buf_addf_capped(&line, ", Verbs:[%s]}", buf_cstr(&missing));
        add_line(g, &line);
    }
}

static void check_rules(struct grant *g, const struct json *rules)
{
    JSON_EACH(rule, rules)
    {
        JSON_EACH(group, json_get(rule, "apiGroups"))
        {
            check_resources(g, rule, group);
        }
        check_paths(g, rule);
    }
}

/* ---- the refusal ---- */

static int refuse(struct grant *g, const char *name, struct status *st)
{
    OWN(buf_done)
    struct buf groups = BUF_INIT(USER_TEXT_MAX_BYTES * 2), lines = BUF_INIT(TEXT_MAX_BYTES * 2);
    const struct user *u = g->op->user;

    for (size_t i = 0; i < u->group_count; i++)
        buf_addf_capped(&groups, "%s\"%s\"", i ? " " : "", user_group(u, i));
    for (size_t i = 0; i < g->n; i++)
        buf_addf_capped(&lines, "%s%s", i ? "\n" : "", buf_cstr(&g->text) + g->at[i]);
    return status_forbidden(st, g->op->kind, name,
                            "user \"%s\" (groups=[%s]) is attempting to grant RBAC permissions not "
                            "currently held:\n%s",
                            user_name(u), buf_cstr(&groups), buf_cstr(&lines));
}

static int judge(struct grant *g, const char *name, struct status *st)
{
    if (g->asked > QUESTIONS_MAX)
        return status_forbidden(st, g->op->kind, name,
                                "its rules are more than can be compared with your own: ask for "
                                "the verb escalate or bind, or split the role");
    return g->is_missing ? refuse(g, name, st) : 0;
}

/* ---- roles and bindings ---- */

static const char *text_at(struct json_node *n, const char *name)
{
    const char *text = json_node_cstr(json_node_get(n, name));

    return text ? text : "";
}

static bool is_same(struct json_node *a, struct json_node *b, const char *name)
{
    struct json_node *x = json_node_get(a, name), *y = json_node_get(b, name);

    return x && y ? json_node_equal(x, y) : x == y;
}

/* The verbs by which somebody may give more than he has. */
static bool may_anyway(struct grant *g, const char *verb, const char *plural, const char *name)
{
    struct authz_ask ask = {
        .verb = verb, .group = RBAC, .resource = plural, .subresource = "", .name = name
    };

    return may(g, &ask);
}

static int check_role(struct grant *g, struct json_node *body, struct json_node *old,
                      struct status *st)
{
    const char *name = text_at(json_node_get(body, "metadata"), "name");
    struct json_node *rules = json_node_get(body, "rules");
    OWN(json_doc_done) struct json_doc *doc = NULL;
    struct err e;

    if ((old && is_same(body, old, "rules") && is_same(body, old, "aggregationRule")) ||
        may_anyway(g, "escalate", g->op->kind->plural, name))
        return 0;
    /* It gathers what others write later. */
    if (json_node_type(json_node_get(body, "aggregationRule")) == JSON_OBJECT &&
        (!may_resource(g, "*", SPAN("*"), SPAN("*"), SPAN_NONE) || !may_path(g, "*", "*")))
        return status_forbidden(st, g->op->kind, name,
                                "must have cluster-admin privileges to use the aggregationRule");
    if (json_node_type(rules) != JSON_ARRAY)
        return 0;
    if (json_node_freeze(rules, &doc, &e) < 0)
        return status_of_err(st, &e);
    check_rules(g, json_doc_root(doc));
    return judge(g, name, st);
}

static int check_binding(struct grant *g, struct json_node *body, struct status *st)
{
    struct json_node *ref = json_node_get(body, "roleRef");
    const char *name = text_at(json_node_get(body, "metadata"), "name"), *to = text_at(ref, "name");
    bool is_cluster = strcmp(text_at(ref, "kind"), "ClusterRole") == 0;
    const struct kind *kind = kind_find(RBAC, "v1", is_cluster ? "clusterroles" : "roles");
    struct shelf_key key = { op_number(kind), is_cluster ? "" : g->namespace, to };
    const struct object *role = store_get(g->op->store, STORE_HEAD, &key);

    if (!*to || may_anyway(g, "bind", kind->plural, to))
        return 0; /* without a name it is refused by the rules of its kind */
    if (!role)
        return status_not_found(st, kind, to);
    check_rules(g, object_member(role, "rules"));
    return judge(g, name, st);
}

int grant_check(struct op *op, struct json_node *body, struct json_node *old, struct status *st)
{
    struct grant g;
    int rc;

    if (!op->user || strcmp(op->kind->group, RBAC) != 0 || user_is_in(op->user, GROUP_MASTERS))
        return 0;
    g = (struct grant){ .op = op, .namespace = op->namespace, .text = BUF_INIT(TEXT_MAX_BYTES) };
    rc = strstr(op->kind->name, "Binding") ? check_binding(&g, body, st)
                                           : check_role(&g, body, old, st);
    buf_done(&g.text);
    return rc;
}
