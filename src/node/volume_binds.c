/* What one container sees of its Pod's volumes. */
#include "node/volumes.h"

#include "isolate/below.h"
#include "isolate/ranged.h"
#include "node/dirtree.h"
#include "node/volume_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PLACE_MAX_BYTES 1024
#define SUB_MAX_BYTES   1024

void volume_binds_done(struct volume_binds *b)
{
    for (size_t i = 0; i < b->text_count; i++)
        free(b->texts[i]);
    free(b->texts);
    free(b->v);
    *b = (struct volume_binds){ 0 };
}

static char *keep(struct volume_binds *b, char *text)
{
    b->texts = own_resize(b->texts, b->text_count + 1, sizeof *b->texts);
    return b->texts[b->text_count++] = text;
}

static const struct json *volume_of(const struct object *pod, struct span name)
{
    JSON_EACH(volume, object_at(pod, "spec.volumes"))
    if (span_eq(json_str(json_get(volume, "name")), name))
        return volume;
    return NULL;
}

static bool is_true(const struct json *v)
{
    bool yes = false;

    return json_bool(v, &yes) && yes;
}

/* ---- subPath ---- */

static int read_sub(const struct json *mount, const struct env *env, char ret[SUB_MAX_BYTES],
                    struct err *e)
{
    struct span text = json_str(json_get(mount, "subPath")),
                expr = json_str(json_get(mount, "subPathExpr"));
    OWN(buf_done) struct buf out = BUF_INIT(SUB_MAX_BYTES - 1);

    ret[0] = '\0';
    if ((expr.n ? env_expand_strict(env, expr, &out, e) : buf_add(&out, text, e)) < 0)
        return -1;
    while (out.n && out.p[out.n - 1] == '/')
        buf_truncate(&out, out.n - 1);
    if (out.n && !volume_path_is_plain(buf_span(&out)))
        return err_set(e, ERR_INVALID, "subPath '%s' is no plain path in the volume",
                       buf_cstr(&out));
    (void)snprintf(ret, SUB_MAX_BYTES, "%s", buf_cstr(&out));
    return 0;
}

struct making {
    int volume_fd;
    const char *sub;
};

static int make_ranged(void *ctx, struct err *e)
{
    const struct making *m = ctx;

    return below_make(m->volume_fd, m->sub, e);
}

static int find_sub(const struct volumes_spec *s, const char *place, const char *sub, bool makes_it,
                    struct err *e)
{
    OWN_FD int volume_fd = -1, fd = -1;
    struct making m = { .sub = sub };

    if (dirtree_find(s->dir_fd, place, &volume_fd, e) < 0)
        return -1;
    m.volume_fd = volume_fd;
    if (makes_it && below_make(volume_fd, sub, e) == 0)
        return 0;
    if (makes_it && e->sys == EACCES && s->is_ranged) /* in a directory of another id's */
        return ranged_run(&(struct ranged_job){ .fn = make_ranged, .ctx = &m }, e);
    if (makes_it)
        return -1;
    fd = below_open(volume_fd, sub);
    return fd < 0 ? err_sys(e, "there is no '%s' in the volume", sub) : 0;
}

/* ---- mounts ---- */

static bool is_ours_alone(int dir_fd, const char *name)
{
    struct stat st;

    return fstatat(dir_fd, name, &st, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) == 0 &&
           st.st_uid == geteuid() && !(st.st_mode & 077);
}

/* No other account of this machine can enter the data directory, or that of all volumes of this sort. An operator may have
 * opened both. */
static bool is_private(const struct volumes_spec *s, const char *place)
{
    bool is_claim = span_starts(span_cstr(place), VOLUMES_CLAIMS "/");

    return is_ours_alone(s->dir_fd, "") ||
           is_ours_alone(s->dir_fd, is_claim ? VOLUMES_CLAIMS : VOLUMES_PODS);
}

static int add_mount(const struct volumes_spec *s, const struct json *mount, const struct env *env,
                     struct volume_binds *b, struct err *e)
{
    struct span name = json_str(json_get(mount, "name"));
    const struct json *volume = volume_of(s->downward.pod, name);
    const char *target = json_cstr(json_get(mount, "mountPath"));
    bool is_content = volume_content_is(volume);
    char place[PLACE_MAX_BYTES], sub[SUB_MAX_BYTES], memory[PLACE_MAX_BYTES], *text;
    bool is_memory = volume_memory_name(s, volume, memory, sizeof memory);
    struct box_bind bind = { 0 };

    if (!volume || !target || !volume_place(s, volume, place, sizeof place))
        return err_set(e, ERR_NOT_FOUND, "there is no such volume");
    if (read_sub(mount, env, sub, e) < 0)
        return -1;
    /* In memory it is made where the volume is. */
    if (sub[0] && !is_memory && find_sub(s, place, sub, !is_content, e) < 0)
        return -1;
    if (asprintf(&text, "%s/%s", s->dir, place) < 0)
        abort();
    bind.source = keep(b, text);
    if (asprintf(&text, "%s%s", target[0] == '/' ? "" : "/", target) < 0)
        abort();
    bind.target = keep(b, text);
    bind.sub = sub[0] ? keep(b, own_strdup(sub)) : NULL;
    bind.memory = is_memory ? keep(b, own_strdup(memory)) : NULL;
    bind.is_writable = !is_content && !is_true(json_get(mount, "readOnly")) &&
                       !is_true(json_get(json_get(volume, "persistentVolumeClaim"), "readOnly"));
    bind.is_private = bind.is_writable && is_private(s, place);
    b->v[b->n++] = bind;
    return 0;
}

static size_t depth_of(const char *path)
{
    size_t n = 0;

    for (const char *c = path; *c; c++)
        n += c[0] == '/' && c[1] && c[1] != '/';
    return n;
}

/* Stable: mounts at one depth stay in their order. */
static void sort(struct volume_binds *b)
{
    for (size_t i = 1; i < b->n; i++) {
        struct box_bind bind = b->v[i];
        size_t at = i;

        for (; at && depth_of(b->v[at - 1].target) > depth_of(bind.target); at--)
            b->v[at] = b->v[at - 1];
        b->v[at] = bind;
    }
}

static void note_unserved(const struct json *container, struct notes *notes)
{
    const char *name = json_cstr(json_get(container, "name"));

    JSON_EACH(mount, json_get(container, "volumeMounts"))
    {
        struct span way = json_str(json_get(mount, "mountPropagation"));

        if (way.n && !span_is(way, "None"))
            notes_add(notes, "FieldNotServed",
                      "container \"%s\": mountPropagation %.*s of volume \"%.*s\" is not served: "
                      "mounts made later on one side are not seen on the other",
                      name ? name : "", SPAN_ARG(way), SPAN_ARG(json_str(json_get(mount, "name"))));
    }
    if (json_count(json_get(container, "volumeDevices")))
        notes_add(notes, "FieldNotServed", "container \"%s\": volumeDevices are not served",
                  name ? name : "");
}

int volumes_binds(const struct volumes_spec *s, const struct json *container, const struct env *env,
                  struct volume_binds *ret, struct notes *notes, struct err *e)
{
    const struct json *mounts = json_get(container, "volumeMounts");
    size_t n = json_type(mounts) == JSON_ARRAY ? json_count(mounts) : 0;
    OWN(volume_binds_done) struct volume_binds b = { 0 };

    if (n > VOLUME_MOUNTS_MAX)
        return err_set(e, ERR_LIMIT, "more than %d volumeMounts", VOLUME_MOUNTS_MAX);
    b.v = own_array(n, sizeof *b.v);
    JSON_EACH(mount, mounts)
    if (add_mount(s, mount, env, &b, e) < 0)
        return err_wrap(e, "failed to prepare volume \"%.*s\" of container \"%.*s\"",
                        SPAN_ARG(json_str(json_get(mount, "name"))),
                        SPAN_ARG(json_str(json_get(container, "name"))));
    sort(&b);
    note_unserved(container, notes);
    *ret = b;
    b = (struct volume_binds){ 0 };
    return 0;
}
