#include "node/volumes_in_use.h"

#include "base/log.h"
#include "isolate/dir.h"
#include "isolate/limits.h"
#include "isolate/spec.h"
#include "node/claims.h"
#include "node/node_impl.h"
#include "node/volumes.h"

#include <string.h>

#define PLACE_BYTES 1024

static bool has(const struct record *r, const char *place)
{
    for (size_t i = 0; i < r->in_use_count; i++)
        if (strcmp(r->in_use[i], place) == 0)
            return true;
    return false;
}

static void add_place(struct record *r, const char *place)
{
    if (has(r, place))
        return;
    r->in_use = own_resize(r->in_use, r->in_use_count + 1, sizeof *r->in_use);
    r->in_use[r->in_use_count++] = own_strdup(place);
}

int volumes_in_use_add(struct record *r, struct err *e)
{
    for (size_t i = 0; i < r->needs.n; i++) {
        const struct need *need = &r->needs.v[i];
        char place[PLACE_BYTES];

        if (need->what != NEED_CLAIM || !need->object ||
            !volume_claim_place(need->object, place, sizeof place))
            continue; /* preparing it says what is wrong */
        if (claims_is_removing(r->node->claims, place))
            return err_set(e, ERR_CONFLICT, "persistentvolumeclaim \"%s\" is being deleted",
                           need->name);
        add_place(r, place);
    }
    return 0;
}

/* The place that a sandbox sees, if it is a claim's: the last three parts of its path on this machine. */
static const char *place_of(const char *source)
{
    const char *at = source + strlen(source);

    for (unsigned slashes = 0; at > source; at--)
        if (at[-1] == '/' && ++slashes == 3)
            break;
    return strncmp(at, VOLUMES_CLAIMS "/", strlen(VOLUMES_CLAIMS "/")) == 0 ? at : NULL;
}

void volumes_in_use_adopt(struct record *r, const char *box)
{
    OWN(buf_done) struct buf text = BUF_INIT(SPEC_MAX_BYTES);
    OWN(dir_done) struct dir dir = DIR_INIT;
    OWN_FD int fd = -1;
    struct spec spec;
    struct err e;

    if (dir_open(&dir, r->node->dir, false, &e) < 0 || dir_open_box(&dir, box, &fd, &e) < 0 ||
        dir_read(fd, DIR_SPEC, &text, &e) < 0 || spec_read(buf_span(&text), &spec, &e) < 0) {
        log_warn("volumes.adopt", KV("box", box), KV("err", &e));
        return;
    }
    for (size_t i = 0; i < spec.box.bind_count; i++) {
        const char *place = place_of(spec.box.binds[i].source);

        if (place)
            add_place(r, place);
    }
    spec_done(&spec);
}

struct search {
    const char *place;
    bool is_found;
};

static void look(struct keymap_node *node, void *ctx)
{
    struct search *s = ctx;

    s->is_found = s->is_found || has(CONTAINER(node, struct record, by_uid), s->place);
}

bool volumes_in_use_find(const struct node *n, const char *place)
{
    struct search s = { .place = place };

    keymap_each(&n->by_uid, look, &s);
    return s.is_found;
}

void volumes_in_use_release(struct record *r)
{
    char **places = take_ptr(&r->in_use);
    size_t n = r->in_use_count;

    r->in_use_count = 0;
    for (size_t i = 0; i < n; i++) {
        if (!r->node->is_closing)
            claims_released(r->node->claims, places[i]);
        free(places[i]);
    }
    free(places);
}
