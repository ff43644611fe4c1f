#include "apiserver/impersonate.h"

#include "apiserver/authz.h"
#include "base/log.h"

#include <stdio.h>
#include <string.h>

#define ACCOUNT_PREFIX "system:serviceaccount:"
#define AUTHENTICATION "authentication.k8s.io"
#define EXTRA_PREFIX   "impersonate-extra-"
#define TEXT_MAX       320 /* of a name, group, uid or extra: longer ones are nobody's */

/* Who asks, and who they want to be. */
struct act {
    struct store *store;
    const struct user *asks;
    struct user *becomes;
    struct status *st;
};

static int may(struct act *a, const char *group, const char *resource, const char *sub,
               const char *namespace, const char *name)
{
    struct authz_ask ask = { .verb = "impersonate",
                             .group = group,
                             .resource = resource,
                             .subresource = sub,
                             .namespace = namespace,
                             .name = name };

    return authz_question(a->store, a->asks, &ask, a->st);
}

static int copy(struct act *a, struct span from, char to[TEXT_MAX])
{
    if (from.n >= TEXT_MAX || span_find(from, '\0') != SIZE_MAX)
        return status_bad_request(a->st, "a name to impersonate is longer than names are");
    memcpy(to, from.p, from.n);
    to[from.n] = '\0';
    return 0;
}

/* "system:serviceaccount:NAMESPACE:NAME" cut in two; false: it is no account's. */
static bool cut_account(const char *name, char namespace[TEXT_MAX], const char **ret_name)
{
    size_t n = strlen(ACCOUNT_PREFIX);
    const char *colon;

    if (strncmp(name, ACCOUNT_PREFIX, n) != 0)
        return false;
    colon = strchr(name + n, ':');
    if (!colon || colon == name + n || !colon[1] || strchr(colon + 1, ':'))
        return false;
    (void)snprintf(namespace, TEXT_MAX, "%.*s", (int)(colon - name - (ptrdiff_t)n), name + n);
    *ret_name = colon + 1;
    return true;
}

/* One field of the head: asked for, and for a group kept. *ret_is_any: it was about another. */
static int take_field(struct act *a, struct span name, struct span value, bool *ret_is_any)
{
    char text[TEXT_MAX], key[TEXT_MAX];
    struct err e;

    if (name.n < 12 || !span_is_nocase(span_slice(name, 0, 12), "impersonate-"))
        return 0;
    *ret_is_any = true;
    if (copy(a, value, text) < 0)
        return -1;
    if (span_is_nocase(name, "impersonate-user"))
        return 0; /* read before */
    if (span_is_nocase(name, "impersonate-group")) {
        if (may(a, "", "groups", "", "", text) < 0)
            return -1;
        return user_add_group(a->becomes, value, &e) < 0 ? status_of_err(a->st, &e) : 0;
    }
    if (span_is_nocase(name, "impersonate-uid")) {
        if (may(a, AUTHENTICATION, "uids", "", "", text) < 0)
            return -1;
        return user_set_uid(a->becomes, value, &e) < 0 ? status_of_err(a->st, &e) : 0;
    }
    if (name.n <= strlen(EXTRA_PREFIX) ||
        !span_is_nocase(span_slice(name, 0, strlen(EXTRA_PREFIX)), EXTRA_PREFIX))
        return status_bad_request(a->st, "a field of impersonation that nobody knows");
    if (copy(a, span_skip(name, strlen(EXTRA_PREFIX)), key) < 0)
        return -1;
    return may(a, AUTHENTICATION, "userextras", key, "", text); /* no rule of ours looks at them */
}

static int take_fields(struct act *a, const struct http_head *h, bool *ret_is_any)
{
    for (size_t i = 0; i < h->field_count; i++) {
        struct span name, value;

        http_head_field(h, i, &name, &value);
        if (take_field(a, name, value, ret_is_any) < 0)
            return -1;
    }
    return 0;
}

/* What those who prove who they are get besides. */
static int add_own_groups(struct user *u, const char *account_namespace, struct err *e)
{
    bool is_anonymous = strcmp(user_name(u), USER_ANONYMOUS) == 0;
    char text[TEXT_MAX + sizeof GROUP_ACCOUNTS + 1];

    if (account_namespace && u->group_count == 0) {
        (void)snprintf(text, sizeof text, GROUP_ACCOUNTS ":%s", account_namespace);
        if (user_add_group(u, SPAN(GROUP_ACCOUNTS), e) < 0 ||
            user_add_group(u, span_cstr(text), e) < 0)
            return -1;
    }
    if (is_anonymous)
        return user_is_in(u, GROUP_ANONYMOUS) ? 0 : user_add_group(u, SPAN(GROUP_ANONYMOUS), e);
    return user_is_in(u, GROUP_AUTHENTICATED) ? 0 : user_add_group(u, SPAN(GROUP_AUTHENTICATED), e);
}

static int become(struct act *a, const struct http_head *h, bool *ret_is_any)
{
    struct span wanted = http_head_get(h, "impersonate-user");
    char name[TEXT_MAX], namespace[TEXT_MAX];
    const char *account = NULL;
    bool is_account;
    struct err e;

    if (take_fields(a, h, ret_is_any) < 0)
        return -1;
    if (!*ret_is_any)
        return 0;
    if (!wanted.n)
        return status_bad_request(a->st, "groups, a uid or extras to impersonate, but no user");
    if (copy(a, wanted, name) < 0)
        return -1;
    is_account = cut_account(name, namespace, &account);
    if ((is_account ? may(a, "", "serviceaccounts", "", namespace, account)
                    : may(a, "", "users", "", "", name)) < 0)
        return -1;
    if (user_set_name(a->becomes, wanted, &e) < 0 ||
        add_own_groups(a->becomes, is_account ? namespace : NULL, &e) < 0)
        return status_of_err(a->st, &e);
    return 0;
}

int impersonate(struct store *store, uint64_t id, const struct http_head *head, struct user *user,
                struct status *st)
{
    OWN(user_done) struct user other = USER_INIT;
    struct act a = { store, user, &other, st };
    bool is_any = false;

    if (become(&a, head, &is_any) < 0)
        return -1;
    if (!is_any)
        return 0;
    log_info("api.impersonate", KV("id", id), KV("user", user_name(user)),
             KV("as", user_name(&other)));
    other.how = "impersonated";
    user_done(user);
    *user = other;
    other = (struct user)USER_INIT;
    return 0;
}
