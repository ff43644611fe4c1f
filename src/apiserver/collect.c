#include "apiserver/collect_impl.h"

#include "apiserver/definition.h"
#include "apiserver/limits.h"
#include "apiserver/op_write.h"
#include "base/log.h"

#include <string.h>

static void work(void *ctx);

/* ---- what is to be looked at ---- */

struct object *collect_get(struct collect *c, const struct ref *r)
{
    struct shelf_key key = { r->kind, r->namespace, r->name };
    struct object *o = store_get(c->s->store, STORE_HEAD, &key);

    return o && strcmp(object_uid(o), r->uid) == 0 ? o : NULL;
}

void collect_look_at(struct collect *c, unsigned kind, const struct object *o)
{
    struct task *t = NEW(struct task);

    ref_init(&t->ref, kind, o);
    *c->last = t;
    c->last = &t->next;
    if (!c->work.is_queued && !c->is_closing)
        ev_post(c->s->loop, &c->work, work, c);
}

/* ---- events ---- */

static void wake_dependents(struct collect *c, const char *uid)
{
    struct owner *owner = owners_find(&c->owners, uid);

    for (size_t i = 0; owner && i < owner->n; i++) {
        struct object *o = collect_get(c, &owner->dependents[i]->ref);

        if (o)
            collect_look_at(c, owner->dependents[i]->ref.kind, o);
    }
}

/* Its owners may wait for it in the foreground. */
static void wake_owners(struct collect *c, const struct object *o)
{
    JSON_EACH(ref, json_get(object_meta(o), "ownerReferences"))
    {
        const char *name = json_cstr(json_get(ref, "name"));
        const struct kind *k =
            kind_of(json_str(json_get(ref, "apiVersion")), json_str(json_get(ref, "kind")));
        struct shelf_key key;
        struct object *owner;

        if (!k || !name)
            continue;
        key = (struct shelf_key){ op_number(k), kind_is_namespaced(k) ? object_namespace(o) : "",
                                  name };
        owner = store_get(c->s->store, STORE_HEAD, &key);
        if (owner && object_is_deleting(owner))
            collect_look_at(c, key.kind, owner);
    }
}

/* One that ends may wait for it; one that stays may have to be given it again. */
static void wake_namespace(struct collect *c, const struct object *gone)
{
    struct shelf_key key = { c->namespaces, "", object_namespace(gone) };
    struct object *o = *key.name ? store_get(c->s->store, STORE_HEAD, &key) : NULL;

    if (o && (object_is_deleting(o) || collect_is_furniture(gone)))
        collect_look_at(c, c->namespaces, o);
}

static void on_restore(void *ctx)
{
    struct collect *c = ctx;
    struct err e;

    if (definition_seed(c->s->store, &e) < 0)
        log_warn("collect.definitions", KV("err", &e));
}

/* Most writes leave owners and deletion as they were: nothing follows from them. */
static bool is_nothing_new(const struct store_event *ev)
{
    return ev->before && ev->type == EVENT_MODIFIED && !object_is_deleting(ev->now) &&
           owners_are_same(ev->before, ev->now);
}

static bool on_event(void *ctx, struct store_event *ev)
{
    struct follow *f = ctx;
    struct collect *c = f->collect;

    if (is_nothing_new(ev))
        return true;
    if (ev->before && object_has_owners(ev->before))
        owners_remove(&c->owners, ev->before);
    if (ev->type != EVENT_DELETED) {
        if (object_has_owners(ev->now))
            owners_add(&c->owners, ev->kind, ev->now);
        if (object_is_deleting(ev->now) || object_has_owners(ev->now) || ev->kind == c->namespaces)
            collect_look_at(c, ev->kind, ev->now);
        return true;
    }
    if (ev->kind == c->definitions)
        ev_timer_start(c->s->loop, &c->restore, COLLECT_RESTORE_MS, on_restore, c);
    if (ev->kind == c->pods)
        collect_pod_is_gone(c, ev->now);
    wake_dependents(c, object_uid(ev->now));
    wake_owners(c, ev->now);
    wake_namespace(c, ev->now);
    return true;
}

static void start(struct collect *c);

static void on_lost(void *ctx)
{
    struct follow *f = ctx;

    log_warn("collect.lost", KV("kind", f->collect->kinds[f->watch.kind].plural));
    start(f->collect); /* a commit failed: the head was taken back */
}

/* ---- acting ---- */

static struct op op_on(struct collect *c, unsigned kind, const struct object *o)
{
    const struct kind *k = &c->kinds[kind];

    return (struct op){ .store = c->s->store,
                        .kind = k,
                        .version = &k->versions[0],
                        .namespace = object_namespace(o),
                        .name = object_name(o),
                        .manager = "silica" };
}

void collect_delete(struct collect *c, unsigned kind, struct object *o, enum op_propagation how)
{
    OWN(status_done) struct status st = STATUS_INIT;
    OWN(object_done) struct object *last = NULL, *held = object_ref(o);
    struct op op = op_on(c, kind, held);
    bool is_gone;

    if (op_delete(&op,
                  &(struct op_delete){ .propagation = how, .grace_s = -1, .uid = object_uid(held) },
                  &last, &is_gone, &st) < 0 &&
        st.code != 404)
        log_warn("collect.delete", KV("kind", op.kind->plural), KV("name", op.name),
                 KV("why", buf_cstr(&st.message)));
}

void collect_change(struct collect *c, unsigned kind, struct object *o,
                    bool (*fn)(struct json_edit *ed, struct json_node *root, const void *what),
                    const void *what)
{
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
    OWN(status_done) struct status st = STATUS_INIT;
    OWN(object_done) struct object *held = object_ref(o), *made = NULL, *now = NULL;
    struct op op = op_on(c, kind, held);
    struct json_node *root = object_thaw(held, NULL, ed);
    struct err e;

    if (!fn(ed, root, what) || object_freeze(op.kind, held, root, &made, &e) < 0)
        return;
    (void)op_commit(&op, op_may_go(made) ? STORE_DELETE : STORE_UPDATE, made, true, &now, &st);
}

bool collect_drop_finalizer(struct json_edit *ed, struct json_node *root, const void *name)
{
    struct json_node *meta = json_node_get(root, "metadata"),
                     *list = json_node_get(meta, "finalizers");
    bool is_changed = false;

    (void)ed;
    for (size_t i = json_node_count(list); i-- > 0;) {
        if (span_is(json_node_str(json_node_at(list, i)), name)) {
            json_node_remove_at(list, i);
            is_changed = true;
        }
    }
    if (is_changed && json_node_count(list) == 0)
        (void)json_node_remove(meta, "finalizers");
    return is_changed;
}

/* ---- the queue ---- */

static void judge(struct collect *c, const struct ref *r)
{
    struct object *o = collect_get(c, r);

    if (!o)
        return;
    if (r->kind == c->namespaces)
        collect_namespace(c, o);
    else if (object_is_deleting(o) && object_has_finalizer(o, ORPHAN))
        collect_orphan(c, r->kind, o);
    else if (object_is_deleting(o) && object_has_finalizer(o, FOREGROUND))
        collect_foreground(c, r->kind, o);
    else if (object_is_deleting(o) && r->kind == c->volume_claims &&
             object_has_finalizer(o, IN_USE))
        collect_volume_claim(c, o);
    else if (object_has_owners(o))
        collect_dependent(c, r->kind, o);
}

static void work(void *ctx)
{
    struct collect *c = ctx;

    for (size_t i = 0; c->first && i < COLLECT_SLICE; i++) {
        struct task *t = c->first;

        c->first = t->next;
        if (!c->first)
            c->last = &c->first;
        judge(c, &t->ref);
        ref_done(&t->ref);
        free(t);
    }
    if (c->first && !c->work.is_queued)
        ev_post(c->s->loop, &c->work, work, c);
}

/* ---- life ---- */

/* From what there is: everything that has owners, is being deleted or is a namespace is looked at once. */
static void start(struct collect *c)
{
    uint64_t version;
    struct shelf *shelf = store_snapshot(c->s->store, STORE_HEAD, &version);
    struct shelf_key from = { 0, "", "" };
    struct shelf_walk walk;
    struct object *o;
    unsigned kind;
    struct err e;

    owners_done(&c->owners);
    shelf_walk_init(&walk, shelf, &from, false);
    while ((o = shelf_walk_next(&walk, &kind))) {
        if (object_has_owners(o))
            owners_add(&c->owners, kind, o);
        if (object_is_deleting(o) || object_has_owners(o) || kind == c->namespaces)
            collect_look_at(c, kind, o);
    }
    shelf_unref(shelf);
    for (unsigned k = 0; k < c->kind_count; k++) {
        struct follow *f = &c->follows[k];

        store_watch_stop(&f->watch);
        *f = (struct follow){ .collect = c,
                              .watch = { .kind = k,
                                         .namespace = "",
                                         .name = "",
                                         .is_head = true,
                                         .on_event = on_event,
                                         .on_lost = on_lost,
                                         .ctx = f } };
        if (store_watch(c->s->store, &f->watch, version, &e) < 0)
            log_error("collect.watch", KV("err", &e));
    }
}

struct collect *collect_open(struct apiserver *s)
{
    struct collect *c = NEW(struct collect);

    c->s = s;
    c->kinds = kinds_all(&c->kind_count);
    c->follows = own_array(c->kind_count, sizeof *c->follows);
    c->namespaces = op_number(kind_find("", "v1", "namespaces"));
    c->definitions =
        op_number(kind_find("apiextensions.k8s.io", "v1", "customresourcedefinitions"));
    c->pods = op_number(kind_find("", "v1", "pods"));
    c->volume_claims = op_number(kind_find("", "v1", "persistentvolumeclaims"));
    c->last = &c->first;
    start(c);
    return c;
}

void collect_close(struct collect *c)
{
    if (!c)
        return;
    c->is_closing = true;
    ev_post_cancel(&c->work);
    ev_timer_stop(c->s->loop, &c->restore);
    for (unsigned k = 0; k < c->kind_count; k++)
        store_watch_stop(&c->follows[k].watch);
    owners_done(&c->owners);
    while (c->first) {
        struct task *t = c->first;

        c->first = t->next;
        ref_done(&t->ref);
        free(t);
    }
    free(c->follows);
    ev_free_later(c->s->loop, c, free);
}
