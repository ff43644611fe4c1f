#include "controller/defer.h"

#include "kube/keymap.h"

#include <string.h>

struct waiting {
    struct keymap_node node; /* "", uid */
    struct waiting *next,
        **link; /* those that were not told, in the order they came; link NULL: it was */
    uint64_t since_ms;
    char texts[]; /* uid, namespace, name */
};

struct defer {
    uint64_t window_ms;
    struct keymap by_uid;
    struct waiting *first, **last;
};

struct defer *defer_new(uint64_t window_ms)
{
    struct defer *d = NEW(struct defer);

    d->window_ms = window_ms;
    d->last = &d->first;
    return d;
}

static void free_waiting(struct keymap_node *node, void *ctx)
{
    (void)ctx;
    free(CONTAINER(node, struct waiting, node));
}

void defer_free(struct defer *d)
{
    if (!d)
        return;
    keymap_each(&d->by_uid, free_waiting, NULL);
    keymap_done(&d->by_uid);
    free(d);
}

static void leave_line(struct defer *d, struct waiting *w)
{
    if (!w->link)
        return;
    *w->link = w->next;
    if (w->next)
        w->next->link = w->link;
    else
        d->last = w->link;
    w->link = NULL;
}

static struct waiting *find(const struct defer *d, const char *uid)
{
    struct keymap_node *found = keymap_get(&d->by_uid, "", uid);

    return found ? CONTAINER(found, struct waiting, node) : NULL;
}

static struct waiting *add(struct defer *d, const struct object *o, uint64_t now_ms)
{
    size_t uid = strlen(object_uid(o)) + 1, ns = strlen(object_namespace(o)) + 1,
           name = strlen(object_name(o)) + 1;
    struct waiting *w = own_new(sizeof *w + uid + ns + name);

    memcpy(w->texts, object_uid(o), uid);
    memcpy(w->texts + uid, object_namespace(o), ns);
    memcpy(w->texts + uid + ns, object_name(o), name);
    w->since_ms = now_ms;
    keymap_add(&d->by_uid, &w->node, "", w->texts);
    w->link = d->last;
    *d->last = w;
    d->last = &w->next;
    return w;
}

static void drop(struct defer *d, struct waiting *w)
{
    leave_line(d, w);
    keymap_remove(&d->by_uid, &w->node);
    free(w);
}

bool defer_waits(struct defer *d, const struct object *o, uint64_t now_ms)
{
    struct waiting *w = find(d, object_uid(o));

    if (!w)
        w = add(d, o, now_ms);
    if (now_ms - w->since_ms < d->window_ms)
        return true;
    drop(d, w);
    return false;
}

void defer_forget(struct defer *d, const char *uid)
{
    struct waiting *w = find(d, uid);

    if (w)
        drop(d, w);
}

bool defer_due(struct defer *d, uint64_t now_ms, const char **ret_namespace, const char **ret_name)
{
    struct waiting *w = d->first;

    if (!w || now_ms - w->since_ms < d->window_ms)
        return false;
    leave_line(d, w);
    *ret_namespace = w->texts + strlen(w->texts) + 1;
    *ret_name = *ret_namespace + strlen(*ret_namespace) + 1;
    return true;
}

bool defer_next_ms(const struct defer *d, uint64_t now_ms, uint64_t *ret_left_ms)
{
    const struct waiting *w = d->first;
    uint64_t waited_ms = w ? now_ms - w->since_ms : 0;

    if (w)
        *ret_left_ms = waited_ms < d->window_ms ? d->window_ms - waited_ms : 0;
    return w != NULL;
}
