#include "node/security.h"

#include "node/downward.h"

#include <inttypes.h>
#include <string.h>

#define NANO           1000000000
#define NANO_PER_MILLI 1000000

/* ---- ids ---- */

/* A field of the container's securityContext, else of the Pod's. */
static const struct json *field(const struct object *pod, const struct json *container,
                                const char *key)
{
    const struct json *v = json_get(json_get(container, "securityContext"), key);

    return v ? v : json_get(object_at(pod, "spec.securityContext"), key);
}

static bool is_true(const struct json *v)
{
    bool yes = false;

    return json_bool(v, &yes) && yes;
}

/* *ret stays where the field is absent. */
static int read_id(const struct object *pod, const struct json *container, const char *key,
                   bool *ret_is_given, uint32_t *ret, struct err *e)
{
    const struct json *v = field(pod, container, key);
    uint64_t id;

    *ret_is_given = json_type(v) == JSON_NUMBER;
    if (!*ret_is_given)
        return 0;
    if (!json_u64(v, &id) || id > SECURITY_ID_MAX)
        return err_set(e, ERR_INVALID, "%s %.*s: a sandbox has the ids 0 to %d", key,
                       SPAN_ARG(json_number(v)), SECURITY_ID_MAX);
    *ret = (uint32_t)id;
    return 0;
}

static int check_nonroot(const struct object *pod, const struct json *container, uid_t uid,
                         bool is_given, struct err *e)
{
    const char *name = json_cstr(json_get(container, "name"));

    if (uid || !is_true(field(pod, container, "runAsNonRoot")))
        return 0;
    return err_set(e, ERR_INVALID, "%s (pod: \"%s_%s(%s)\", container: %s)",
                   is_given ? "container's runAsUser breaks non-root policy"
                            : "container has runAsNonRoot and image will run as root",
                   object_name(pod), object_namespace(pod), object_uid(pod), name ? name : "");
}

static int add_group(struct security *s, gid_t id, struct err *e)
{
    for (size_t i = 0; i < s->group_count; i++)
        if (s->groups[i] == id)
            return 0;
    if (s->group_count == LEN(s->groups))
        return err_set(e, ERR_LIMIT, "a user of a sandbox is in at most %d groups", BOX_GROUPS_MAX);
    s->groups[s->group_count++] = id;
    return 0;
}

static int read_groups(const struct object *pod, struct security *s, struct err *e)
{
    uint64_t id;

    if (s->owner.has_group && s->owner.group != s->gid && add_group(s, s->owner.group, e) < 0)
        return -1;
    JSON_EACH(v, object_at(pod, "spec.securityContext.supplementalGroups"))
    {
        if (!json_u64(v, &id) || id > SECURITY_ID_MAX)
            return err_set(e, ERR_INVALID, "supplementalGroups %.*s: a sandbox has the ids 0 to %d",
                           SPAN_ARG(json_number(v)), SECURITY_ID_MAX);
        if (add_group(s, (gid_t)id, e) < 0)
            return -1;
    }
    return 0;
}

static int read_ids(const struct object *pod, const struct json *container, struct security *s,
                    struct err *e)
{
    bool has_user, has_group, has_fs;
    uint32_t uid = 0, gid, fs_group = 0;

    if (read_id(pod, container, "runAsUser", &has_user, &uid, e) < 0)
        return -1;
    gid = uid; /* as the sandbox's passwd has it */
    if (read_id(pod, container, "runAsGroup", &has_group, &gid, e) < 0 ||
        read_id(pod, NULL, "fsGroup", &has_fs, &fs_group, e) < 0)
        return -1;
    if (has_fs && !has_group)
        gid = fs_group;
    s->uid = uid;
    s->gid = gid;
    s->owner = (struct volume_owner){
        .has_user = has_user, .user = uid, .has_group = has_fs, .group = fs_group
    };
    if (read_groups(pod, s, e) < 0)
        return -1;
    return check_nonroot(pod, container, uid, has_user, e);
}

/* With one id to give, it is the first container's: they share a user namespace. */
static int share_id(const struct object *pod, const struct json *container, struct security *s,
                    struct notes *notes, struct err *e)
{
    const struct json *first = json_at(object_at(pod, "spec.containers"), 0);
    struct security of_first = { 0 };
    const char *name = json_cstr(json_get(container, "name"));

    if (read_ids(pod, first, &of_first, e) < 0)
        return -1;
    if (of_first.uid != s->uid || of_first.gid != s->gid)
        notes_add(notes, "IdsNotServed",
                  "container \"%s\" runs as %u:%u, not as %u:%u: this account has one id to give",
                  name, of_first.uid, of_first.gid, s->uid, s->gid);
    if (s->group_count)
        notes_add(notes, "IdsNotServed",
                  "container \"%s\" is in no group but its own: this account has one id to give",
                  name);
    s->uid = of_first.uid;
    s->gid = of_first.gid;
    s->group_count = 0;
    s->owner = (struct volume_owner){ 0 };
    return 0;
}

/* ---- resources ---- */

static uint64_t in_units(const struct quantity *q, int64_t unit)
{
    __int128 n = q->nano / unit + (q->nano % unit > 0);

    return n > (__int128)INT64_MAX ? INT64_MAX : (uint64_t)n;
}

static void read_resources(const struct json *container, struct security *s, struct notes *notes)
{
    const char *name = json_cstr(json_get(container, "name"));
    struct quantity cpu;

    /* A weight among sandboxes: as many shares a processor as kubelets give. */
    if (downward_amount(json_get(json_get(json_get(container, "resources"), "requests"), "cpu"),
                        &cpu) &&
        cpu.nano > 0)
        s->limits.cpu_shares = MAX(in_units(&cpu, NANO_PER_MILLI) * 1024 / 1000, (uint64_t)2);
    JSON_MEMBERS(key, value, json_get(json_get(container, "resources"), "limits"))
    {
        struct quantity q;

        if (!downward_amount(value, &q) || q.nano <= 0)
            continue;
        if (span_is(json_str(key), "cpu"))
            s->limits.cpu_milli = in_units(&q, NANO_PER_MILLI);
        else if (span_is(json_str(key), "memory"))
            s->limits.memory_bytes = in_units(&q, NANO);
        else if (span_is(json_str(key), "ephemeral-storage"))
            s->root_bytes = in_units(&q, NANO);
        else
            notes_add(notes, "FieldNotServed",
                      "container \"%s\": this node has no %.*s to give: resources.limits", name,
                      SPAN_ARG(json_str(key)));
    }
}

int security_make(const struct object *pod, const struct json *container, bool has_ids,
                  struct security *ret, struct notes *notes, struct err *e)
{
    struct security s = { 0 };

    if (read_ids(pod, container, &s, e) < 0)
        return -1;
    if (!has_ids && share_id(pod, container, &s, notes, e) < 0)
        return -1;
    s.is_read_only = is_true(field(pod, container, "readOnlyRootFilesystem"));
    read_resources(container, &s, notes);
    *ret = s;
    return 0;
}
