/* user: who asks. Filled by authn, read by authz and the reviews. */
#ifndef SILICA_APISERVER_USER_H
#define SILICA_APISERVER_USER_H

#include "base/buf.h"

#define USER_GROUPS_MAX     64
#define USER_TEXT_MAX_BYTES (16 * 1024)

/* Texts stand in one buffer, each ended by NUL; offsets, as it may move. */
struct user {
    struct buf text;
    size_t name, uid;
    size_t groups[USER_GROUPS_MAX];
    size_t group_count;
    const char *how; /* "x509", "token", "none": for the log */
};

#define USER_INIT                                                                                  \
    {                                                                                              \
        .text = BUF_INIT(USER_TEXT_MAX_BYTES), .how = "none"                                       \
    }

#define USER_ANONYMOUS      "system:anonymous"
#define GROUP_AUTHENTICATED "system:authenticated"
#define GROUP_ANONYMOUS     "system:unauthenticated"
#define GROUP_MASTERS       "system:masters" /* may do everything */
#define GROUP_ACCOUNTS      "system:serviceaccounts"
#define USER_SELF           "system:apiserver" /* what runs in this process */

void user_done(struct user *u);
void user_clear(struct user *u);
/* -1: more than fits. */
int user_set_name(struct user *u, struct span name, struct err *e);
int user_set_uid(struct user *u, struct span uid, struct err *e);
int user_add_group(struct user *u, struct span group, struct err *e);
const char *user_name(const struct user *u);
const char *user_uid(const struct user *u); /* "" where there is none */
const char *user_group(const struct user *u, size_t i);
bool user_is_in(const struct user *u, const char *group);

#endif
