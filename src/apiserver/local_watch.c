/* Watches of the head. */
#include "apiserver/local_impl.h"

#include "apiserver/admit.h"
#include "apiserver/selection.h"

struct local_watch {
    struct kube_watch base;
    struct local *client;
    struct local_watch *next, **link;
    struct kube_watch_events events;
    void *ctx;
    struct op op; /* of its kind and version */
    char *namespace;
    struct selection want;
    struct store_watch watch;
    uint64_t version;
    struct ev_task end;
    bool is_over;
    struct status why;
};

static void watch_free(struct local_watch *w)
{
    selection_done(&w->want);
    status_done(&w->why);
    free(w->namespace);
    local_unref(w->client);
    free(w);
}

static void on_end(void *ctx)
{
    struct local_watch *w = ctx;

    *w->link = w->next;
    if (w->next)
        w->next->link = w->link;
    w->events.on_end(w->ctx, &w->why);
    watch_free(w);
}

/* The only way out: w->why is told in a later turn. */
static void finish(struct local_watch *w)
{
    w->is_over = true;
    store_watch_stop(&w->watch);
    ev_post(w->base.client->loop, &w->end, on_end, w);
}

static bool on_event(void *ctx, struct store_event *ev)
{
    static const enum kube_event types[] = {
        [EVENT_ADDED] = KUBE_ADDED, [EVENT_MODIFIED] = KUBE_MODIFIED, [EVENT_DELETED] = KUBE_DELETED
    };
    struct local_watch *w = ctx;
    OWN(object_done) struct object *o = NULL, *shown = NULL;
    enum event_type type;

    w->version = ev->version;
    if (!selection_judge(&w->want, ev, &type, &o))
        return true;
    if (admit_show(&w->op, o, &shown, &w->why) < 0)
        finish(w);
    else
        w->events.on_event(w->ctx, types[type], shown, ev->version);
    return true;
}

static void on_lost(void *ctx)
{
    struct local_watch *w = ctx;

    (void)op_say_lost(w->op.store, w->version, &w->why);
    finish(w);
}

static int begin(struct local_watch *w, const struct kube_watch_spec *spec)
{
    struct op *op = &w->op;
    uint64_t there;
    struct err e;

    if (local_op(w->client, spec->kind, spec->version, op, &w->why) < 0)
        return -1;
    op->namespace = w->namespace;
    there = store_version(op->store, STORE_HEAD);
    if (op_place(op, VERB_WATCH, "", &w->why) < 0 || op_can(op, VERB_WATCH, &w->why) < 0 ||
        selection_init(&w->want, op, spec->labels, spec->fields, &w->why) < 0)
        return -1;
    if (spec->from_version > there) /* none of ours: it was undone */
        return op_say_lost(op->store, spec->from_version, &w->why);
    w->version = spec->from_version;
    w->watch = (struct store_watch){ .kind = w->want.kind,
                                     .namespace = w->want.namespace,
                                     .name = selection_name(&w->want),
                                     .is_head = true,
                                     .is_keeping = true, /* informers do */
                                     .on_event = on_event,
                                     .on_lost = on_lost,
                                     .ctx = w };
    return store_watch(op->store, &w->watch, w->version, &e) < 0 ? status_of_err(&w->why, &e) : 0;
}

struct kube_watch *local_watch_start(struct kube_client *c, const struct kube_watch_spec *spec,
                                     const struct kube_watch_events *events, void *ctx)
{
    struct local *l = CONTAINER(c, struct local, base);
    struct local_watch *w = NEW(struct local_watch);

    *w = (struct local_watch){ .base = { c },
                               .client = local_ref(l),
                               .next = l->watches,
                               .link = &l->watches,
                               .events = *events,
                               .ctx = ctx,
                               .namespace = own_strdup(spec->namespace ? spec->namespace : ""),
                               .why = STATUS_INIT };
    if (w->next)
        w->next->link = &w->next;
    l->watches = w;
    if (begin(w, spec) < 0)
        finish(w);
    return &w->base;
}

void local_watch_stop(struct kube_watch *base)
{
    struct local_watch *w = CONTAINER(base, struct local_watch, base);

    if (w->is_over)
        return;
    local_say_canceled(&w->why);
    finish(w);
}

void local_watches_stop(struct local *l)
{
    for (struct local_watch *w = l->watches; w; w = w->next)
        local_watch_stop(&w->base);
}
