#include "apiserver/review.h"

#include "apiserver/admit.h"
#include "apiserver/authn.h"
#include "apiserver/authz.h"
#include "apiserver/body.h"
#include "apiserver/token.h"

#include <string.h>

/* By whom, and of which server. */
struct asked {
    struct apiserver *s;
    const struct op *op;
};

static const char *text_at(struct json_node *n, const char *name)
{
    const char *text = json_node_cstr(json_node_get(n, name));

    return text ? text : "";
}

/* ---- who ---- */

static void write_user(struct json_edit *ed, struct json_node *into, const struct user *u)
{
    struct json_node *groups = json_edit_array(ed);

    json_node_set(into, "username", json_edit_cstr(ed, user_name(u)));
    if (*user_uid(u))
        json_node_set(into, "uid", json_edit_cstr(ed, user_uid(u)));
    for (size_t i = 0; i < u->group_count; i++)
        json_node_append(groups, json_edit_cstr(ed, user_group(u, i)));
    json_node_set(into, "groups", groups);
}

static void answer_self(const struct asked *a, struct json_edit *ed, struct json_node *spec,
                        struct json_node *status)
{
    struct json_node *info = json_edit_object(ed);

    (void)spec;
    write_user(ed, info, a->op->user);
    json_node_set(status, "userInfo", info);
}

static void answer_token(const struct asked *a, struct json_edit *ed, struct json_node *spec,
                         struct json_node *status)
{
    OWN(user_done) struct user u = USER_INIT;
    struct json_node *audiences = json_node_get(spec, "audiences"), *info = json_edit_object(ed),
                     *list;
    const char *wanted = json_node_cstr(json_node_at(audiences, 0)), *why;

    if (authn_token(a->s, json_node_str(json_node_get(spec, "token")), wanted, &u, &why) < 0) {
        json_node_set(status, "user", info);
        json_node_set(status, "error", json_edit_cstr(ed, "invalid bearer token"));
        return;
    }
    json_node_set(status, "authenticated", json_edit_bool(ed, true));
    write_user(ed, info, &u);
    json_node_set(status, "user", info);
    list = json_node_set(status, "audiences", json_edit_array(ed));
    json_node_append(list, json_edit_cstr(ed, wanted ? wanted : TOKEN_ISSUER));
}

/* ---- may they ---- */

static int read_subject(struct json_node *spec, struct user *u, struct err *e)
{
    struct json_node *groups = json_node_get(spec, "groups");

    if (user_set_name(u, json_node_str(json_node_get(spec, "user")), e) < 0)
        return -1;
    for (size_t i = 0; i < json_node_count(groups); i++)
        if (user_add_group(u, json_node_str(json_node_at(groups, i)), e) < 0)
            return -1;
    return 0;
}

static void judge(const struct asked *a, const struct user *u, struct json_edit *ed,
                  struct json_node *spec, struct json_node *status)
{
    struct json_node *r = json_node_get(spec, "resourceAttributes");
    struct json_node *p = json_node_get(spec, "nonResourceAttributes");
    struct authz_ask ask = { .verb = text_at(p ? p : r, "verb"),
                             .group = text_at(r, "group"),
                             .resource = text_at(r, "resource"),
                             .subresource = text_at(r, "subresource"),
                             .name = text_at(r, "name"),
                             .namespace = text_at(r, "namespace"),
                             .path = p ? text_at(p, "path") : NULL };

    json_node_set(status, "allowed", json_edit_bool(ed, authz_allows(a->op->store, u, &ask)));
}

static void answer_self_access(const struct asked *a, struct json_edit *ed, struct json_node *spec,
                               struct json_node *status)
{
    judge(a, a->op->user, ed, spec, status);
}

static void answer_access(const struct asked *a, struct json_edit *ed, struct json_node *spec,
                          struct json_node *status)
{
    OWN(user_done) struct user u = USER_INIT;
    struct err e;

    if (read_subject(spec, &u, &e) < 0)
        json_node_set(status, "allowed", json_edit_bool(ed, false));
    else
        judge(a, &u, ed, spec, status);
}

struct rules {
    struct json_edit *ed;
    struct json_node *resources, *paths;
};

static void add_rule(void *ctx, const struct json *rule)
{
    struct rules *r = ctx;
    OWN(json_doc_done) struct json_doc *doc = NULL;
    struct err e;

    if (json_doc_of(rule, &doc, &e) == 0)
        json_node_append(json_get(rule, "nonResourceURLs") ? r->paths : r->resources,
                         json_edit_doc(r->ed, doc));
}

static void answer_rules(const struct asked *a, struct json_edit *ed, struct json_node *spec,
                         struct json_node *status)
{
    struct rules r = { ed, json_edit_array(ed), json_edit_array(ed) };

    authz_rules(a->op->store, a->op->user, text_at(spec, "namespace"), add_rule, &r);
    if (user_is_in(a->op->user, GROUP_MASTERS)) {
        static const char all[] = "{\"verbs\":[\"*\"],\"apiGroups\":[\"*\"],\"resources\":[\"*\"]}";
        OWN(json_doc_done) struct json_doc *doc = NULL;
        struct err e;

        if (json_parse(SPAN(all), NULL, &doc, &e) == 0)
            json_node_append(r.resources, json_edit_doc(ed, doc));
    }
    json_node_set(status, "resourceRules", r.resources);
    json_node_set(status, "nonResourceRules", r.paths);
    json_node_set(status, "incomplete", json_edit_bool(ed, false));
}

static const struct {
    const char *kind;
    void (*answer)(const struct asked *a, struct json_edit *ed, struct json_node *spec,
                   struct json_node *status);
} rows[] = {
    { "SelfSubjectReview", answer_self },
    { "TokenReview", answer_token },
    { "SelfSubjectAccessReview", answer_self_access },
    { "SubjectAccessReview", answer_access },
    { "LocalSubjectAccessReview", answer_access },
    { "SelfSubjectRulesReview", answer_rules },
};

/* ---- questions that are none ---- */

static int check_question(const struct op *op, struct json_node *spec, struct status *st)
{
    const struct kind named = { .group = op->kind->group, .name = "" }; /* not said of which kind */
    const char *kind = op->kind->name;
    bool has_resource = json_node_type(json_node_get(spec, "resourceAttributes")) == JSON_OBJECT;
    bool has_path = json_node_type(json_node_get(spec, "nonResourceAttributes")) == JSON_OBJECT;
    struct causes *causes = &st->causes;

    if (strcmp(kind, "TokenReview") == 0 && !*text_at(spec, "token"))
        return status_bad_request(st, "token is required for TokenReview in authentication");
    if (strcmp(kind, "SelfSubjectRulesReview") == 0 && !*text_at(spec, "namespace"))
        return status_bad_request(st, "no namespace on request");
    if (!strstr(kind, "AccessReview"))
        return 0;
    if (has_resource == has_path)
        causes_add_shown(causes, CAUSE_INVALID, AT(AT(NULL, "spec"), "resourceAttributes"), "null",
                         "exactly one of nonResourceAttributes or resourceAttributes must be "
                         "specified");
    if (strncmp(kind, "Self", 4) != 0 && !*text_at(spec, "user") &&
        json_node_count(json_node_get(spec, "groups")) == 0)
        causes_add_text(causes, CAUSE_INVALID, AT(AT(NULL, "spec"), "user"), SPAN(""),
                        "at least one of user or group must be specified");
    return causes->n ? status_invalid(st, &named, "") : 0;
}

/* Nothing is kept of it, but it is what it says. */
int review(struct apiserver *s, struct op *op, struct json_edit *ed, struct json_node *body,
           struct status *st)
{
    struct json_node *status = json_edit_object(ed);
    struct asked a = { s, op };

    if (admit_type(op, body, st) < 0 || body_check(op->version->type, body, st) < 0 ||
        check_question(op, json_node_get(body, "spec"), st) < 0)
        return -1;
    EACH(r, rows) {
        if (strcmp(r->kind, op->kind->name) != 0)
            continue;
        r->answer(&a, ed, json_node_get(body, "spec"), status);
        json_node_set(body, "kind", json_edit_cstr(ed, op->kind->name));
        json_node_set(body, "apiVersion",
                      json_edit_cstr(ed, kind_api_version(op->kind, op->version)));
        if (!json_node_get(body, "metadata"))
            json_node_set(body, "metadata", json_edit_object(ed));
        json_node_set(body, "status", status);
        return 0;
    }
    return status_no_resource(st);
}
