#include "node/volumes.h"

#include "isolate/ranged.h"
#include "base/log.h"
#include "node/limits.h"
#include "node/project_quota.h"
#include "node/volume_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define PLACE_MAX_BYTES 1024
#define NANO            1000000000

enum sort { SORT_EMPTY, SORT_CLAIM, SORT_CONTENT, SORT_REFUSED };

/* A name that is one part of a path, and no way up. The server let no other in; nobody trusts it with the disk. */
static bool is_part(const char *name)
{
    return *name && !strchr(name, '/') && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

static enum sort sort_of(const struct json *volume)
{
    if (json_type(json_get(volume, "emptyDir")) == JSON_OBJECT)
        return SORT_EMPTY;
    if (json_type(json_get(volume, "persistentVolumeClaim")) == JSON_OBJECT)
        return SORT_CLAIM;
    return volume_content_is(volume) ? SORT_CONTENT : SORT_REFUSED;
}

static const char *name_of(const struct json *volume)
{
    const char *name = json_cstr(json_get(volume, "name"));

    return name ? name : "";
}

/* ---- places ---- */

bool volume_claim_place(const struct object *claim, char *ret, size_t size)
{
    if (!is_part(object_namespace(claim)) || !is_part(object_name(claim)) ||
        !is_part(object_uid(claim)))
        return false;
    (void)snprintf(ret, size, VOLUMES_CLAIMS "/%s/%s.%s", object_namespace(claim),
                   object_name(claim), object_uid(claim));
    return true;
}

static const struct object *claim_of(const struct volumes_spec *s, const struct json *volume)
{
    const char *name = json_cstr(json_get(json_get(volume, "persistentVolumeClaim"), "claimName"));

    return name ? needs_object(s->needs, NEED_CLAIM, name) : NULL;
}

bool volume_place(const struct volumes_spec *s, const struct json *volume, char *ret, size_t size)
{
    const struct object *claim;

    if (sort_of(volume) == SORT_CLAIM) {
        claim = claim_of(s, volume);
        return claim && volume_claim_place(claim, ret, size);
    }
    if (!is_part(name_of(volume)) || !is_part(object_uid(s->downward.pod)))
        return false;
    (void)snprintf(ret, size, VOLUMES_PODS "/%s/volumes/%s", object_uid(s->downward.pod),
                   name_of(volume));
    return true;
}

/* The directories above are ours alone; the volume itself is open to whoever runs inside. */
static int make_place(const struct volumes_spec *s, const char *place, mode_t mode, int *ret_fd,
                      struct err *e)
{
    const char *slash = strrchr(place, '/');
    OWN_MEM char *above = span_dup(span_of(place, (size_t)(slash - place)));
    OWN_FD int above_fd = -1;

    if (dirtree_open(s->dir_fd, above, 0700, &above_fd, e) < 0)
        return -1;
    return dirtree_open(above_fd, slash + 1, mode, ret_fd, e);
}

/* ---- preparing ---- */

bool volume_size_read(const struct json *v, uint64_t *ret, char text[QUANTITY_TEXT_BYTES])
{
    struct quantity q;

    if (!quantity_parse(json_type(v) == JSON_NUMBER ? json_number(v) : json_str(v), &q) ||
        q.nano <= 0)
        return false;
    (void)quantity_text(&q, text);
    *ret = (uint64_t)MIN(q.nano / NANO, (__int128)UINT64_MAX - 1);
    return true;
}

/* The file system holds it to its size where it can. It is measured all the same. */
static void set_quota(int fd, const struct json *size)
{
    char text[QUANTITY_TEXT_BYTES];
    uint64_t bytes;
    struct err e;

    if (volume_size_read(size, &bytes, text) && project_quota_set(fd, bytes, &e) < 0 &&
        e.code != ERR_UNSUPPORTED)
        log_warn("volume.quota", KV("size", (const char *)text), KV("err", &e));
}

/* fsGroup: its members write, and what is made in there is the group's too. */
static int give_to_group(const struct volumes_spec *s, int fd, struct err *e)
{
    struct stat st;

    if (!s->owner.has_group)
        return 0;
    if (fstat(fd, &st) < 0)
        return err_sys(e, "cannot look at it");
    if (st.st_gid == s->owner.group && (st.st_mode & 02770) == 02770)
        return 0;
    if (fchown(fd, (uid_t)-1, s->owner.group) < 0 || fchmod(fd, (st.st_mode & 07777) | 02770) < 0)
        return err_sys(e, "cannot give it to group %u", s->owner.group);
    return 0;
}

static int prepare_empty(const struct volumes_spec *s, const struct json *volume, int fd,
                         struct err *e)
{
    struct span medium = json_str(json_get(json_get(volume, "emptyDir"), "medium"));

    if (medium.n && !volume_memory_is(volume))
        return err_set(e, ERR_UNSUPPORTED, "medium %.*s is not served here", SPAN_ARG(medium));
    set_quota(fd, json_get(json_get(volume, "emptyDir"), "sizeLimit"));
    return give_to_group(s, fd, e);
}

static int prepare_content(const struct volumes_spec *s, const struct json *volume, int fd,
                           bool *changed, struct err *e)
{
    const struct volume_source from = { .downward = &s->downward, .needs = s->needs };
    OWN(volume_content_done) struct volume_content content = { 0 };
    bool is_changed;

    if (volume_content_make(&from, volume, &content, e) < 0 ||
        volume_write(fd, &content, &s->owner, &is_changed, e) < 0)
        return -1;
    *changed |= is_changed;
    return 0;
}

static int refuse(const struct json *volume, struct err *e)
{
    if (json_get(volume, "hostPath")) {
        (void)err_set(
            e, ERR_UNSUPPORTED,
            "hostPath is refused: a Pod sees nothing of this machine's files but its image");
        err_hint(e, "a persistentVolumeClaim is a plain directory that outlives the Pod");
        return -1;
    }
    JSON_MEMBERS(key, value, volume)
    if (!span_is(json_str(key), "name"))
        return err_set(e, ERR_UNSUPPORTED, "%.*s volumes are not served here",
                       SPAN_ARG(json_str(key)));
    return err_set(e, ERR_UNSUPPORTED, "it says nothing of its kind");
}

static int check_claim(const struct volumes_spec *s, const struct json *volume, struct err *e)
{
    const char *name = json_cstr(json_get(json_get(volume, "persistentVolumeClaim"), "claimName"));
    const struct object *claim = claim_of(s, volume);
    const char *mode = claim ? object_text(claim, "spec.volumeMode") : NULL;

    if (!claim)
        return need_missing(NEED_CLAIM, name ? name : "", e);
    if (object_is_deleting(claim))
        return err_set(e, ERR_CONFLICT, "persistentvolumeclaim \"%s\" is being deleted", name);
    if (mode && strcmp(mode, "Block") == 0)
        return err_set(e, ERR_UNSUPPORTED, "volumeMode Block is not served here");
    return 0;
}

static int prepare_one(const struct volumes_spec *s, const struct json *volume, bool *changed,
                       struct err *e)
{
    enum sort sort = sort_of(volume);
    char place[PLACE_MAX_BYTES];
    OWN_FD int fd = -1;

    if (sort == SORT_REFUSED)
        return refuse(volume, e);
    if (sort == SORT_CLAIM && check_claim(s, volume, e) < 0)
        return -1;
    if (!volume_place(s, volume, place, sizeof place))
        return err_set(e, ERR_INVALID, "its name cannot be that of a directory");
    if (make_place(s, place, sort == SORT_CONTENT ? 0755 : 0777, &fd, e) < 0)
        return -1;
    switch (sort) {
    case SORT_EMPTY:
        return prepare_empty(s, volume, fd, e);
    case SORT_CLAIM:
        set_quota(fd, object_at(claim_of(s, volume), "spec.resources.requests.storage"));
        return give_to_group(s, fd, e);
    case SORT_CONTENT:
        return prepare_content(s, volume, fd, changed, e);
    case SORT_REFUSED:
        break;
    }
    return 0;
}

static int cannot_set_up(const struct json *volume, struct err *e)
{
    return err_wrap(e, "MountVolume.SetUp failed for volume \"%s\" ", name_of(volume));
}

/* Those in memory, which are the engine's to make; where it has none they are on disk. */
static int prepare_memory(const struct volumes_spec *s, struct notes *notes, struct err *e)
{
    JSON_EACH(volume, object_at(s->downward.pod, "spec.volumes"))
    {
        if (!volume_memory_is(volume))
            continue;
        if (!s->engine)
            notes_add(notes, "VolumeMediumNotServed",
                      "volume \"%s\": medium Memory is not to be had here: it is on disk",
                      name_of(volume));
        else if (volume_memory_make(s, volume, e) < 0)
            return cannot_set_up(volume, e);
        else if (s->owner.has_group && geteuid() != 0)
            notes_add(
                notes, "IdsNotServed",
                "volume \"%s\" is in memory: anybody in the Pod may write it, and it is not of group %u",
                name_of(volume), s->owner.group);
    }
    return 0;
}

struct preparing {
    const struct volumes_spec *s;
    bool has_changed;
};

static int prepare_all(void *ctx, struct err *e)
{
    struct preparing *p = ctx;

    JSON_EACH(volume, object_at(p->s->downward.pod, "spec.volumes"))
    if (!volume_memory_is(volume) || !p->s->engine)
        if (prepare_one(p->s, volume, &p->has_changed, e) < 0)
            return cannot_set_up(volume, e);
    return 0;
}

int volumes_prepare(const struct volumes_spec *s, bool *ret_changed, struct notes *notes,
                    struct err *e)
{
    struct preparing p = { .s = s };
    const struct ranged_job job = {
        .fn = prepare_all, .ctx = &p, .result = &p.has_changed, .result_n = sizeof p.has_changed
    };
    bool gives = geteuid() != 0 && (s->owner.has_user || s->owner.has_group);

    if (prepare_memory(s, notes, e) < 0)
        return -1;
    if ((gives ? ranged_run(&job, e) : prepare_all(&p, e)) < 0)
        return -1;
    if (ret_changed)
        *ret_changed = p.has_changed;
    return 0;
}

/* ---- measuring ---- */

struct counting {
    int fd;
    struct dirtree_bounds bounds;
    struct dirtree_count count;
};

static int count_tree(void *ctx, struct err *e)
{
    struct counting *c = ctx;

    return dirtree_count_within(c->fd, &c->bounds, &c->count, e);
}

/* What another id of an account's range keeps to itself is counted too, where there is such a range. */
static int count_all(int fd, const struct dirtree_bounds *bounds, struct dirtree_count *ret,
                     struct err *e)
{
    struct counting c = { .fd = fd, .bounds = *bounds };
    const struct ranged_job job = {
        .fn = count_tree, .ctx = &c, .result = &c.count, .result_n = sizeof c.count
    };
    struct err ignored;

    if (count_tree(&c, e) < 0)
        return -1;
    if (c.count.is_partial && geteuid() != 0)
        (void)ranged_run(&job, &ignored);
    *ret = c.count;
    return 0;
}

int volumes_count(int dir_fd, const char *place, uint64_t until_ms, struct dirtree_count *ret,
                  struct err *e)
{
    const struct dirtree_bounds bounds = { .entries = UINT64_MAX, .until_ms = until_ms };
    OWN_FD int fd = -1;

    return dirtree_find(dir_fd, place, &fd, e) < 0 ? -1 : count_all(fd, &bounds, ret, e);
}

static void hold_one(const struct volumes_spec *s, const struct json *volume,
                     struct volumes_held *h)
{
    const struct dirtree_bounds bounds = { .entries = VOLUME_HELD_ENTRIES, .until_ms = UINT64_MAX };
    char place[PLACE_MAX_BYTES];
    struct dirtree_count count;
    OWN_FD int fd = -1;
    struct err ignored;

    if (sort_of(volume) != SORT_CLAIM || !volume_place(s, volume, place, sizeof place) ||
        dirtree_find(s->dir_fd, place, &fd, &ignored) < 0 ||
        count_all(fd, &bounds, &count, &ignored) < 0 || count.is_cut)
        return;
    h->v = own_resize(h->v, h->n + 1, sizeof *h->v);
    h->v[h->n++] = (struct volume_held){ .place = own_strdup(place), .bytes = count.bytes };
}

void volumes_held_read(const struct volumes_spec *s, struct volumes_held *ret)
{
    JSON_EACH(volume, object_at(s->downward.pod, "spec.volumes"))
    hold_one(s, volume, ret);
}

void volumes_held_done(struct volumes_held *h)
{
    for (size_t i = 0; i < h->n; i++)
        free(h->v[i].place);
    free(h->v);
    *h = (struct volumes_held){ 0 };
}

static int measure_one(const struct volumes_spec *s, const struct json *volume,
                       struct volumes_use *use, struct err *e)
{
    const struct json *limit_text = json_get(json_get(volume, "emptyDir"), "sizeLimit");
    char place[PLACE_MAX_BYTES];
    struct dirtree_count count;
    struct quantity limit;
    OWN_FD int fd = -1;

    if (sort_of(volume) == SORT_CLAIM || !volume_place(s, volume, place, sizeof place))
        return 0;
    if (dirtree_find(s->dir_fd, place, &fd, e) < 0)
        return e->code == ERR_NOT_FOUND ? 0 : -1;
    if (count_all(fd, &(struct dirtree_bounds){ UINT64_MAX, UINT64_MAX }, &count, e) < 0)
        return -1;
    use->bytes += count.bytes;
    if (use->is_over || !quantity_parse(json_str(limit_text), &limit) || limit.nano <= 0)
        return 0;
    use->is_over = count.is_partial || (__int128)count.bytes * NANO > limit.nano;
    if (use->is_over)
        (void)snprintf(use->message, sizeof use->message,
                       "Usage of EmptyDir volume \"%s\" exceeds the limit \"%.*s\". ",
                       name_of(volume), SPAN_ARG(json_str(limit_text)));
    return 0;
}

int volumes_measure(const struct volumes_spec *s, struct volumes_use *ret, struct err *e)
{
    struct volumes_use use = { 0 };

    JSON_EACH(volume, object_at(s->downward.pod, "spec.volumes"))
    if (measure_one(s, volume, &use, e) < 0)
        return err_wrap(e, "volume \"%s\"", name_of(volume));
    *ret = use;
    return 0;
}

/* ---- removing ---- */

struct removing {
    int dir_fd;
    const char *name;
};

static int remove_tree(void *ctx, struct err *e)
{
    const struct removing *r = ctx;

    return dirtree_remove(r->dir_fd, r->name, e);
}

int volumes_remove_at(int dir_fd, const char *place, struct err *e)
{
    const char *slash = strrchr(place, '/');
    OWN_MEM char *above = span_dup(span_of(place, (size_t)(slash - place)));
    OWN_FD int fd = -1;
    struct removing r = { .name = slash + 1 };
    struct err why;

    if (dirtree_find(dir_fd, above, &fd, e) < 0)
        return e->code == ERR_NOT_FOUND ? 0 : -1;
    r.dir_fd = fd;
    if (remove_tree(&r, e) == 0)
        return 0;
    if (geteuid() == 0 || (e->sys != EACCES && e->sys != EPERM))
        return -1;
    if (ranged_run(&(struct ranged_job){ .fn = remove_tree, .ctx = &r }, &why) == 0)
        return 0;
    err_hint(e, "it may be of an id that this account had: %.120s", why.msg);
    return -1;
}

int volumes_remove(int dir_fd, const char *pod_uid, struct engine *en, struct err *e)
{
    char place[PLACE_MAX_BYTES];

    if (!is_part(pod_uid))
        return err_set(e, ERR_INVALID, "'%s' is no uid", pod_uid);
    (void)snprintf(place, sizeof place, VOLUMES_PODS "/%s/volumes", pod_uid);
    if (volumes_remove_at(dir_fd, place, e) < 0)
        return err_wrap(e, "volumes of Pod %s", pod_uid);
    *strrchr(place, '/') = '\0';
    if (unlinkat(dir_fd, place, AT_REMOVEDIR) == 0 || errno == ENOENT)
        return 0;
    if (volume_memory_remove(dir_fd, pod_uid, en, e) < 0)
        return err_wrap(e, "volumes of Pod %s", pod_uid);
    (void)unlinkat(dir_fd, place, AT_REMOVEDIR); /* somebody else's files may be in it */
    return 0;
}

int volumes_remove_claim(int dir_fd, const struct object *claim, struct err *e)
{
    char place[PLACE_MAX_BYTES];

    if (!volume_claim_place(claim, place, sizeof place))
        return err_set(e, ERR_INVALID, "the claim's name cannot be that of a directory");
    if (volumes_remove_at(dir_fd, place, e) < 0)
        return err_wrap(e, "claim %s/%s", object_namespace(claim), object_name(claim));
    *strrchr(place, '/') = '\0';
    (void)unlinkat(dir_fd, place, AT_REMOVEDIR); /* other claims may be in it */
    return 0;
}
