#include "node/volume_memory.h"

#include "isolate/cellar.h"
#include "isolate/engine.h"
#include "kube/quantity.h"
#include "node/dirtree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define NANO            1000000000
#define PLACE_MAX_BYTES 256

bool volume_memory_is(const struct json *volume)
{
    return span_is(json_str(json_get(json_get(volume, "emptyDir"), "medium")), "Memory");
}

int volume_memory_find(struct volumes_spec *s, struct engine *en, struct err *e)
{
    bool is_wanted = false;

    s->engine = NULL;
    JSON_EACH(volume, object_at(s->downward.pod, "spec.volumes"))
    is_wanted |= volume_memory_is(volume);
    if (!is_wanted || !en) /* who has no engine makes no container either */
        return 0;
    if (engine_has_memory(en, e) < 0)
        return e->code == ERR_UNSUPPORTED ? 0 : -1;
    s->engine = en;
    return 0;
}

static uint64_t bytes_of(const struct json *amount)
{
    struct quantity q;

    if (!downward_amount(amount, &q) || q.nano <= 0)
        return 0;
    return q.nano / NANO > (__int128)INT64_MAX ? INT64_MAX : (uint64_t)(q.nano / NANO);
}

/* 0: one of them has no limit. */
static uint64_t limit_of_pod(const struct object *pod)
{
    uint64_t sum = 0;

    JSON_EACH(container, object_at(pod, "spec.containers"))
    {
        uint64_t one =
            bytes_of(json_get(json_get(json_get(container, "resources"), "limits"), "memory"));

        if (!one)
            return 0;
        sum = one > INT64_MAX - sum ? INT64_MAX : sum + one;
    }
    return sum;
}

uint64_t volume_memory_bytes(const struct volumes_spec *s, const struct json *volume)
{
    uint64_t limits[] = { limit_of_pod(s->downward.pod),
                          bytes_of(json_get(json_get(volume, "emptyDir"), "sizeLimit")) };
    uint64_t bytes = MAX(s->downward.memory_bytes / 2, (uint64_t)1);

    EACH(limit, limits)
        if (*limit)
            bytes = MIN(bytes, *limit);
    return bytes;
}

bool volume_memory_name(const struct volumes_spec *s, const struct json *volume, char *ret,
                        size_t size)
{
    const char *name = json_cstr(json_get(volume, "name"));

    if (!s->engine || !volume_memory_is(volume))
        return false;
    (void)snprintf(ret, size, "%s.%s", object_uid(s->downward.pod), name ? name : "");
    return true;
}

/* That there are some is on record before there are. */
int volume_memory_make(const struct volumes_spec *s, const struct json *volume, struct err *e)
{
    char name[PLACE_MAX_BYTES], place[PLACE_MAX_BYTES];
    struct cellar_volume v = { .name = name,
                               .bytes = volume_memory_bytes(s, volume),
                               .has_group = s->owner.has_group && geteuid() == 0,
                               .group = s->owner.group };
    OWN_FD int fd = -1;

    if (!volume_memory_name(s, volume, name, sizeof name))
        return err_set(e, ERR_INTERNAL, "it is not in memory");
    (void)snprintf(place, sizeof place, VOLUMES_PODS "/%s/memory", object_uid(s->downward.pod));
    if (dirtree_open(s->dir_fd, place, 0700, &fd, e) < 0)
        return -1;
    return engine_make_memory(s->engine, &v, e);
}

int volume_memory_remove(int dir_fd, const char *pod_uid, struct engine *en, struct err *e)
{
    char place[PLACE_MAX_BYTES], prefix[PLACE_MAX_BYTES];

    (void)snprintf(place, sizeof place, VOLUMES_PODS "/%s/memory", pod_uid);
    (void)snprintf(prefix, sizeof prefix, "%s.", pod_uid);
    if (faccessat(dir_fd, place, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
        return 0;
    if (!en)
        return err_set(e, ERR_UNAVAILABLE, "the engine cannot be reached");
    /* A keeper that has none to give never gave any. */
    if (engine_drop_memory(en, prefix, e) < 0 && e->code != ERR_UNSUPPORTED)
        return -1;
    if (unlinkat(dir_fd, place, AT_REMOVEDIR) < 0 && errno != ENOENT)
        return err_sys(e, "cannot remove '%s'", place);
    return 0;
}
