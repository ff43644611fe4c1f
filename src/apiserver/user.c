#include "apiserver/user.h"

#include <string.h>

void user_done(struct user *u)
{
    buf_done(&u->text);
}

void user_clear(struct user *u)
{
    buf_clear(&u->text);
    u->name = u->uid = u->group_count = 0;
    u->how = "none";
}

static int keep(struct user *u, struct span s, size_t *ret_at, struct err *e)
{
    struct err ignored;
    size_t at;

    if (u->text.n == 0) /* offset 0 is "" */
        /* Fits: the first byte. */
        (void)buf_addc(&u->text, '\0', &ignored);
    at = u->text.n;
    if (span_find(s, '\0') != SIZE_MAX)
        return err_set(e, ERR_INVALID, "a name holds a NUL");
    if (buf_add(&u->text, s, e) < 0 || buf_addc(&u->text, '\0', e) < 0)
        return -1;
    *ret_at = at;
    return 0;
}

int user_set_name(struct user *u, struct span name, struct err *e)
{
    return keep(u, name, &u->name, e);
}

int user_set_uid(struct user *u, struct span uid, struct err *e)
{
    return keep(u, uid, &u->uid, e);
}

int user_add_group(struct user *u, struct span group, struct err *e)
{
    if (u->group_count == USER_GROUPS_MAX)
        return err_set(e, ERR_LIMIT, "more than %d groups", USER_GROUPS_MAX);
    if (keep(u, group, &u->groups[u->group_count], e) < 0)
        return -1;
    u->group_count++;
    return 0;
}

const char *user_name(const struct user *u)
{
    return u->name ? (const char *)u->text.p + u->name : "";
}

const char *user_uid(const struct user *u)
{
    return u->uid ? (const char *)u->text.p + u->uid : "";
}

const char *user_group(const struct user *u, size_t i)
{
    return (const char *)u->text.p + u->groups[i];
}

bool user_is_in(const struct user *u, const char *group)
{
    for (size_t i = 0; i < u->group_count; i++)
        if (strcmp(user_group(u, i), group) == 0)
            return true;
    return false;
}
