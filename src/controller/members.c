#include "controller/members.h"

#include "controller/condition.h"
#include "controller/keys.h"
#include "controller/names.h"

#include <stdio.h>
#include <string.h>

/* The uid of the pool, or for one without owner the pool's label; and the state. */
#define KEY_BYTES 96

enum { STATE_READY = 'r', STATE_UNREADY = 'u', STATE_GOING = 'g', STATE_ODD = 'o' };

static const char *key_of(char text[KEY_BYTES], const char *whose, int state)
{
    (void)snprintf(text, KEY_BYTES, "%.90s/%c", whose, state);
    return text;
}

static int state_of(const struct object *sandbox)
{
    if (object_is_deleting(sandbox))
        return STATE_GOING;
    return condition_is(object_at(sandbox, "status.conditions"), COND_READY, "True")
               ? STATE_READY
               : STATE_UNREADY;
}

void members_keys(struct informer_keys *out, const struct object *sandbox, const void *arg)
{
    const char *label = object_label(sandbox, LABEL_POOL);
    const char *launch = object_label(sandbox, LABEL_LAUNCH);
    struct object_owner owner;
    char text[KEY_BYTES];
    bool is_owned;

    (void)arg;
    if (!label)
        return;
    is_owned = object_owner_controller(sandbox, &owner);
    if (is_owned)
        informer_key(out, key_of(text, owner.uid, state_of(sandbox)));
    if (!object_is_deleting(sandbox) &&
        (!is_owned || !launch || strcmp(launch, LAUNCH_WARM) != 0 ||
         condition_is(object_at(sandbox, "status.conditions"), COND_FINISHED, "True")))
        informer_key(out, key_of(text, is_owned ? owner.uid : label, STATE_ODD));
}

bool member_owner(const struct object *sandbox, struct object_owner *ret)
{
    return sandbox && owner_is(sandbox, GROUP_EXTENSIONS, "SandboxWarmPool") &&
           object_owner_controller(sandbox, ret);
}

static bool says(const struct object *sandbox, const char *condition)
{
    return condition_is(object_at(sandbox, "status.conditions"), condition, "True");
}

bool members_differ(const struct object *was, const struct object *now)
{
    struct object_owner old, new;

    if (!was || !now || member_owner(was, &old) != member_owner(now, &new))
        return true;
    return object_is_deleting(was) != object_is_deleting(now) ||
           says(was, COND_READY) != says(now, COND_READY) ||
           says(was, COND_FINISHED) != says(now, COND_FINISHED);
}

struct member_counts members_count(const struct informer *sandboxes, size_t index,
                                   const struct object *pool)
{
    const char *namespace = object_namespace(pool), *uid = object_uid(pool);
    char hash[NAME_HASH_BYTES], text[KEY_BYTES];
    const char *label = name_hash(hash, span_cstr(object_name(pool)));

#define COUNT(whose, state)                                                                        \
    informer_count_of(sandboxes, index, namespace, key_of(text, whose, state))
    return (struct member_counts){ .ready = COUNT(uid, STATE_READY),
                                   .unready = COUNT(uid, STATE_UNREADY),
                                   .going = COUNT(uid, STATE_GOING),
                                   .odd = COUNT(uid, STATE_ODD) + COUNT(label, STATE_ODD) };
#undef COUNT
}
