#include "apiserver/collect.h"

#include "apiserver/admit.h"
#include "apiserver/definition.h"
#include "apiserver/ending.h"
#include "apiserver/limits.h"
#include "apiserver/op_write.h"
#include "apiserver/pki.h"
#include "base/log.h"

#include <stdio.h>
#include <string.h>

#define FIRST_SLOTS         256
#define FOREGROUND          "foregroundDeletion"
#define ORPHAN              "orphan"
#define NAMESPACE_FINALIZER "kubernetes"

/* An object by its place, with the uid it had: a later one of the same name is another. */
struct ref {
    unsigned kind;
    char *namespace, *name, *uid;
};

/* Who depends on one owner. The owner need not exist. */
struct owner {
    struct owner *next; /* of its slot */
    char *uid;
    struct ref *dependents;
    size_t n, cap;
};

/* Something to be looked at. */
struct task {
    struct task *next;
    struct ref ref;
};

struct follow {
    struct collect *collect;
    struct store_watch watch;
};

struct collect {
    struct apiserver *s;
    struct follow *follows; /* one per kind */
    size_t kind_count;
    const struct kind *kinds;
    unsigned namespaces, definitions; /* numbers of kinds */
    struct ev_timer restore;          /* after a definition of ours was deleted */
    struct owner **slots;
    size_t slot_count, owner_count;
    struct task *first, **last;
    struct ev_task work;
    bool is_closing;
};

static void work(void *ctx);

/* ---- refs ---- */

static void ref_init(struct ref *r, unsigned kind, const struct object *o)
{
    *r = (struct ref){ kind, own_strdup(object_namespace(o)), own_strdup(object_name(o)),
                       own_strdup(object_uid(o)) };
}

static void ref_done(struct ref *r)
{
    free(r->namespace);
    free(r->name);
    free(r->uid);
}

/* Borrowed; NULL when it is gone, or another has its name. */
static struct object *ref_get(struct collect *c, const struct ref *r)
{
    struct shelf_key key = { r->kind, r->namespace, r->name };
    struct object *o = store_get(c->s->store, STORE_HEAD, &key);

    return o && strcmp(object_uid(o), r->uid) == 0 ? o : NULL;
}

static void look_at(struct collect *c, unsigned kind, const struct object *o)
{
    struct task *t = NEW(struct task);

    ref_init(&t->ref, kind, o);
    *c->last = t;
    c->last = &t->next;
    if (!c->work.is_queued && !c->is_closing)
        ev_post(c->s->loop, &c->work, work, c);
}

/* ---- owners ---- */

static size_t slot_of(const struct collect *c, const char *uid)
{
    uint64_t h = 0xcbf29ce484222325u;

    for (; *uid; uid++)
        h = (h ^ (uint8_t)*uid) * 0x100000001b3u;
    return (size_t)(h ^ h >> 32) & (c->slot_count - 1);
}

static struct owner *find_owner(const struct collect *c, const char *uid)
{
    for (struct owner *o = c->slots[slot_of(c, uid)]; o; o = o->next)
        if (strcmp(o->uid, uid) == 0)
            return o;
    return NULL;
}

static void grow(struct collect *c)
{
    struct owner **old = c->slots;
    size_t n = c->slot_count;

    c->slot_count = n ? n * 2 : FIRST_SLOTS;
    c->slots = own_array(c->slot_count, sizeof(struct owner *));
    for (size_t i = 0; i < n; i++) {
        for (struct owner *o = old[i], *next; o; o = next) {
            size_t at = slot_of(c, o->uid);

            next = o->next;
            o->next = c->slots[at];
            c->slots[at] = o;
        }
    }
    free(old);
}

static struct owner *need_owner(struct collect *c, const char *uid)
{
    struct owner *o = find_owner(c, uid);
    size_t at;

    if (o)
        return o;
    if (c->owner_count >= c->slot_count)
        grow(c);
    at = slot_of(c, uid);
    o = NEW(struct owner);
    o->uid = own_strdup(uid);
    o->next = c->slots[at];
    c->slots[at] = o;
    c->owner_count++;
    return o;
}

static void drop_owner(struct collect *c, struct owner *gone)
{
    struct owner **at = &c->slots[slot_of(c, gone->uid)];

    while (*at != gone)
        at = &(*at)->next;
    *at = gone->next;
    c->owner_count--;
    free(gone->dependents);
    free(gone->uid);
    free(gone);
}

static void add_dependent(struct collect *c, const char *uid, unsigned kind, const struct object *o)
{
    struct owner *owner = need_owner(c, uid);

    for (size_t i = 0; i < owner->n; i++)
        if (strcmp(owner->dependents[i].uid, object_uid(o)) == 0)
            return;
    if (owner->n == owner->cap) {
        owner->cap = owner->cap ? owner->cap * 2 : 4;
        owner->dependents = own_resize(owner->dependents, owner->cap, sizeof *owner->dependents);
    }
    ref_init(&owner->dependents[owner->n++], kind, o);
}

static void remove_dependent(struct collect *c, const char *uid, const struct object *o)
{
    struct owner *owner = find_owner(c, uid);

    for (size_t i = 0; owner && i < owner->n; i++) {
        if (strcmp(owner->dependents[i].uid, object_uid(o)) != 0)
            continue;
        ref_done(&owner->dependents[i]);
        owner->dependents[i] = owner->dependents[--owner->n];
        if (owner->n == 0)
            drop_owner(c, owner);
        return;
    }
}

static void index_owners(struct collect *c, unsigned kind, const struct object *o, bool is_there)
{
    JSON_EACH(ref, json_get(object_meta(o), "ownerReferences"))
    {
        const char *uid = json_cstr(json_get(ref, "uid"));

        if (uid && is_there)
            add_dependent(c, uid, kind, o);
        else if (uid)
            remove_dependent(c, uid, o);
    }
}

/* ---- events ---- */

static bool has_owners(const struct object *o)
{
    return json_count(json_get(object_meta(o), "ownerReferences")) > 0;
}

static void wake_dependents(struct collect *c, const char *uid)
{
    struct owner *owner = find_owner(c, uid);

    for (size_t i = 0; owner && i < owner->n; i++) {
        struct object *o = ref_get(c, &owner->dependents[i]);

        if (o)
            look_at(c, owner->dependents[i].kind, o);
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
            look_at(c, key.kind, owner);
    }
}

static void wake_namespace(struct collect *c, const char *name)
{
    struct shelf_key key = { c->namespaces, "", name };
    struct object *o = *name ? store_get(c->s->store, STORE_HEAD, &key) : NULL;

    if (o && object_is_deleting(o))
        look_at(c, c->namespaces, o);
}

static void on_restore(void *ctx)
{
    struct collect *c = ctx;
    struct err e;

    if (definition_seed(c->s->store, &e) < 0)
        log_warn("collect.definitions", KV("err", &e));
}

static bool on_event(void *ctx, struct store_event *ev)
{
    struct follow *f = ctx;
    struct collect *c = f->collect;

    if (ev->before && has_owners(ev->before))
        index_owners(c, ev->kind, ev->before, false);
    if (ev->type != EVENT_DELETED) {
        if (has_owners(ev->now))
            index_owners(c, ev->kind, ev->now, true);
        if (object_is_deleting(ev->now) || has_owners(ev->now) || ev->kind == c->namespaces)
            look_at(c, ev->kind, ev->now);
        return true;
    }
    if (ev->kind == c->definitions)
        ev_timer_start(c->s->loop, &c->restore, COLLECT_RESTORE_MS, on_restore, c);
    wake_dependents(c, object_uid(ev->now));
    wake_owners(c, ev->now);
    wake_namespace(c, object_namespace(ev->now));
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

static void delete (struct collect *c, unsigned kind, struct object *o, enum op_propagation how)
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

/* Changes the stored tree of an object; what it may become is decided by fn, false: nothing. */
static void change(struct collect *c, unsigned kind, struct object *o,
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

static bool drop_finalizer(struct json_edit *ed, struct json_node *root, const void *name)
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

static bool drop_owner_ref(struct json_edit *ed, struct json_node *root, const void *uid)
{
    struct json_node *meta = json_node_get(root, "metadata"),
                     *list = json_node_get(meta, "ownerReferences");
    bool is_changed = false;

    (void)ed;
    for (size_t i = json_node_count(list); i-- > 0;) {
        if (span_is(json_node_str(json_node_get(json_node_at(list, i), "uid")), uid)) {
            json_node_remove_at(list, i);
            is_changed = true;
        }
    }
    if (is_changed && json_node_count(list) == 0)
        (void)json_node_remove(meta, "ownerReferences");
    return is_changed;
}

/* What is left in it; when that is nothing, we hold it no more. */
static bool end_namespace(struct json_edit *ed, struct json_node *root, const void *left)
{
    const struct ending *ending = left;
    struct json_node *list = json_node_get(json_node_get(root, "spec"), "finalizers");
    char now[TIME_TEXT_BYTES];
    bool is_changed = ending_write(ending, root, admit_now(now));

    (void)ed;
    for (size_t i = json_node_count(list); !ending->kind_count && i-- > 0;) {
        if (span_is(json_node_str(json_node_at(list, i)), NAMESPACE_FINALIZER)) {
            json_node_remove_at(list, i);
            is_changed = true;
        }
    }
    return is_changed;
}

/* ---- dependents ---- */

static bool owner_exists(struct collect *c, const struct json *ref, const struct object *dependent,
                         bool *ret_is_in_foreground)
{
    const char *name = json_cstr(json_get(ref, "name")), *uid = json_cstr(json_get(ref, "uid"));
    const struct kind *k =
        kind_of(json_str(json_get(ref, "apiVersion")), json_str(json_get(ref, "kind")));
    struct shelf_key key;
    struct object *owner;

    if (!k) /* of a version we do not serve any more: by group and kind alone */
        return true;
    if (!name || !uid)
        return false;
    key = (struct shelf_key){ op_number(k),
                              kind_is_namespaced(k) ? object_namespace(dependent) : "", name };
    owner = store_get(c->s->store, STORE_HEAD, &key);
    if (!owner || strcmp(object_uid(owner), uid) != 0)
        return false;
    if (object_is_deleting(owner) && object_has_finalizer(owner, FOREGROUND))
        *ret_is_in_foreground = true;
    return true;
}

/* Others still own it: those that are gone, or wait for it to go, are named no more. */
static void leave_owners(struct collect *c, unsigned kind, struct object *o)
{
    OWN(object_done) struct object *held = object_ref(o);

    JSON_EACH(ref, json_get(object_meta(held), "ownerReferences"))
    {
        const char *uid = json_cstr(json_get(ref, "uid"));
        struct shelf_key key = { kind, object_namespace(held), object_name(held) };
        struct object *now = store_get(c->s->store, STORE_HEAD, &key);
        bool is_waiting = false;

        if (now && uid && (!owner_exists(c, ref, held, &is_waiting) || is_waiting))
            change(c, kind, now, drop_owner_ref, uid);
    }
}

/* An object goes when none of its owners is left; while one that waits in the foreground is the only one, too. */
static void judge_dependent(struct collect *c, unsigned kind, struct object *o)
{
    const struct json *refs = json_get(object_meta(o), "ownerReferences");
    size_t there = 0, waiting = 0;

    JSON_EACH(ref, refs)
    {
        bool is_waiting = false;

        if (owner_exists(c, ref, o, &is_waiting)) {
            there++;
            waiting += is_waiting;
        }
    }
    if (there == waiting && !object_is_deleting(o))
        delete (c, kind, o, waiting ? OP_FOREGROUND : OP_BACKGROUND);
    else if (there > waiting && (waiting || there < json_count(refs)))
        leave_owners(c, kind, o);
}

static bool blocks(const struct object *dependent, const char *uid)
{
    JSON_EACH(ref, json_get(object_meta(dependent), "ownerReferences"))
    {
        bool is_blocking = false;

        if (span_is(json_str(json_get(ref, "uid")), uid) &&
            json_bool(json_get(ref, "blockOwnerDeletion"), &is_blocking) && is_blocking)
            return true;
    }
    return false;
}

static void finish_foreground(struct collect *c, unsigned kind, struct object *o)
{
    struct owner *owner = find_owner(c, object_uid(o));

    for (size_t i = 0; owner && i < owner->n; i++) {
        struct object *d = ref_get(c, &owner->dependents[i]);

        if (!d)
            continue;
        if (!object_is_deleting(d))
            look_at(c, owner->dependents[i].kind, d);
        if (blocks(d, object_uid(o)))
            return; /* its own end brings us back */
    }
    change(c, kind, o, drop_finalizer, FOREGROUND);
}

static void finish_orphan(struct collect *c, unsigned kind, struct object *o)
{
    OWN(object_done) struct object *held = object_ref(o);
    struct owner *owner;

    while ((owner = find_owner(c, object_uid(held)))) {
        struct object *d = ref_get(c, &owner->dependents[0]);
        unsigned of = owner->dependents[0].kind;

        if (d) {
            OWN(object_done) struct object *was = object_ref(d);

            change(c, of, d, drop_owner_ref, object_uid(held));
            remove_dependent(c, object_uid(held), was);
        } else {
            ref_done(&owner->dependents[0]);
            owner->dependents[0] = owner->dependents[--owner->n];
            if (owner->n == 0)
                drop_owner(c, owner);
        }
    }
    change(c, kind, held, drop_finalizer, ORPHAN);
}

/* ---- namespaces ---- */

static void put(struct collect *c, const char *plural, const char *namespace, const char *text)
{
    OWN(status_done) struct status st = STATUS_INIT;
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
    OWN(json_doc_done) struct json_doc *doc = NULL;
    OWN(object_done) struct object *o = NULL;
    const struct kind *kind = kind_find("", "v1", plural);
    struct op op = { .store = c->s->store,
                     .kind = kind,
                     .version = &kind->versions[0],
                     .namespace = namespace,
                     .name = "",
                     .manager = "silica" };
    struct err e;

    if (json_parse(span_cstr(text), NULL, &doc, &e) == 0)
        (void)op_create(&op, ed, json_edit_doc(ed, doc), &o, &st);
}

/* What every namespace has: an account for what runs in it, and the certificate of this server. */
static void furnish(struct collect *c, const char *namespace)
{
    OWN(buf_done) struct buf text = BUF_INIT(PKI_PEM_MAX_BYTES * 2);
    struct json_out o;
    struct shelf_key key = { op_number(kind_find("", "v1", "serviceaccounts")), namespace,
                             "default" };
    struct err e;

    if (!store_get(c->s->store, STORE_HEAD, &key))
        put(c, "serviceaccounts", namespace, "{\"metadata\":{\"name\":\"default\"}}");
    key = (struct shelf_key){ op_number(kind_find("", "v1", "configmaps")), namespace,
                              "kube-root-ca.crt" };
    if (store_get(c->s->store, STORE_HEAD, &key))
        return;
    json_out_init(&o, &text, 0);
    json_out_object_begin(&o);
    json_out_key(&o, "metadata"), json_out_object_begin(&o);
    json_out_key(&o, "name"), json_out_cstr(&o, "kube-root-ca.crt");
    json_out_key(&o, "annotations"), json_out_object_begin(&o);
    json_out_key(&o, "kubernetes.io/description");
    json_out_cstr(
        &o,
        "Contains a CA bundle that can be used to verify the kube-apiserver when using internal "
        "endpoints such as the internal service IP or kubernetes.default.svc. No other usage is "
        "guaranteed across distributions of Kubernetes clusters.");
    json_out_object_end(&o);
    json_out_object_end(&o);
    json_out_key(&o, "data"), json_out_object_begin(&o);
    json_out_key(&o, "ca.crt"), json_out_str(&o, pki_ca_pem(c->s->pki));
    json_out_object_end(&o);
    json_out_object_end(&o);
    if (json_out_end(&o, &e) == 0)
        put(c, "configmaps", namespace, buf_cstr(&text));
}

/* Deletes what is in a namespace that ends, some of it in one turn; *left is what stays for now. False: there is more. */
static bool empty(struct collect *c, const char *namespace, struct ending *left)
{
    struct shelf *shelf = store_snapshot(c->s->store, STORE_HEAD, NULL);
    size_t budget = COLLECT_SLICE;

    for (unsigned k = 0; k < c->kind_count && budget > 0; k++) {
        struct shelf_key from = { k, namespace, "" };
        struct shelf_walk walk;
        struct object *o;
        unsigned kind;

        if (!kind_is_namespaced(&c->kinds[k]))
            continue;
        shelf_walk_init(&walk, shelf, &from, false);
        while (budget > 0 && (o = shelf_walk_next(&walk, &kind)) && kind == k &&
               strcmp(object_namespace(o), namespace) == 0) {
            struct shelf_key key = { k, namespace, object_name(o) };

            if (!object_is_deleting(o)) {
                delete (c, k, o, OP_BACKGROUND);
                budget--;
            }
            o = store_get(c->s->store, STORE_HEAD, &key);
            if (o)
                ending_add(left, &c->kinds[k], o);
        }
    }
    shelf_unref(shelf);
    return budget > 0;
}

static void judge_namespace(struct collect *c, struct object *o)
{
    OWN(object_done) struct object *held = object_ref(o);
    OWN(ending_done) struct ending left = { .kind_count = 0 };

    if (!object_is_deleting(held))
        furnish(c, object_name(held));
    else if (empty(c, object_name(held), &left))
        change(c, c->namespaces, held, end_namespace, &left);
    else
        look_at(c, c->namespaces, held);
}

/* ---- the queue ---- */

static void judge(struct collect *c, const struct ref *r)
{
    struct object *o = ref_get(c, r);

    if (!o)
        return;
    if (r->kind == c->namespaces)
        judge_namespace(c, o);
    else if (object_is_deleting(o) && object_has_finalizer(o, ORPHAN))
        finish_orphan(c, r->kind, o);
    else if (object_is_deleting(o) && object_has_finalizer(o, FOREGROUND))
        finish_foreground(c, r->kind, o);
    else if (has_owners(o))
        judge_dependent(c, r->kind, o);
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

static void forget_all(struct collect *c)
{
    for (size_t i = 0; i < c->slot_count; i++) {
        while (c->slots[i]) {
            struct owner *o = c->slots[i];

            for (size_t j = 0; j < o->n; j++)
                ref_done(&o->dependents[j]);
            drop_owner(c, o);
        }
    }
}

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

    forget_all(c);
    shelf_walk_init(&walk, shelf, &from, false);
    while ((o = shelf_walk_next(&walk, &kind))) {
        if (has_owners(o))
            index_owners(c, kind, o, true);
        if (object_is_deleting(o) || has_owners(o) || kind == c->namespaces)
            look_at(c, kind, o);
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
    c->last = &c->first;
    grow(c);
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
    forget_all(c);
    while (c->first) {
        struct task *t = c->first;

        c->first = t->next;
        ref_done(&t->ref);
        free(t);
    }
    free(c->slots);
    free(c->follows);
    ev_free_later(c->s->loop, c, free);
}
