#include "apiserver/store_impl.h"

#include "apiserver/addresses.h"
#include "apiserver/usage.h"

#include <stdio.h>
#include <string.h>

/* ---- views ---- */

struct shelf *store_snapshot(struct store *st, enum store_view view, uint64_t *ret_version)
{
    if (ret_version)
        *ret_version = store_version(st, view);
    return shelf_ref(view == STORE_HEAD ? st->head : st->committed);
}

struct object *store_get(struct store *st, enum store_view view, const struct shelf_key *key)
{
    return shelf_get(view == STORE_HEAD ? st->head : st->committed, key);
}

uint64_t store_version(const struct store *st, enum store_view view)
{
    return view == STORE_HEAD ? st->head_version : st->committed_version;
}

/* ---- writing ---- */

static int judge(struct store *st, const struct store_change *c, const struct object *there,
                 struct err *e)
{
    const char *name = object_name(c->object);

    if (c->op == STORE_CREATE && there)
        return err_set(e, ERR_EXISTS, "\"%s\" already exists", name);
    if (c->op != STORE_CREATE && !there)
        return err_set(e, ERR_NOT_FOUND, "\"%s\" not found", name);
    if (st->is_full && !c->is_freeing)
        return store_is_full(e);
    if (st->pending_count >= STORE_PENDING_MAX || st->pending_bytes >= STORE_PENDING_MAX_BYTES)
        return err_set(e, ERR_BUSY, "too many writes are on their way to the disk");
    return 0;
}

static struct row *add_row(struct store *st)
{
    if (st->pending_count == st->pending_cap) {
        st->pending_cap = st->pending_cap ? st->pending_cap * 2 : 64;
        st->pending = own_resize(st->pending, st->pending_cap, sizeof *st->pending);
    }
    return &st->pending[st->pending_count++];
}

static void add_event(struct store *st, const struct store_change *c, unsigned kind,
                      struct object *now, struct object *before)
{
    static const enum event_type types[] = { [STORE_CREATE] = EVENT_ADDED,
                                             [STORE_UPDATE] = EVENT_MODIFIED,
                                             [STORE_DELETE] = EVENT_DELETED };
    struct store_event *ev = NEW(struct store_event);

    *ev = (struct store_event){ .refs = 1,
                                .kind = kind,
                                .type = types[c->op],
                                .version = st->version,
                                .now = object_ref(now),
                                .before = before ? object_ref(before) : NULL };
    history_add(st->history, ev);
}

int store_write(struct store *st, const struct store_change *c, struct object **ret, struct err *e)
{
    const struct kind *kind = object_kind(c->object);
    struct shelf_key key = { store_kind_number(st, kind), object_namespace(c->object),
                             object_name(c->object) };
    OWN(object_done) struct object *before = NULL, *now = NULL;
    size_t size;

    before = object_ref(shelf_get(st->head, &key));
    if (judge(st, c, before, e) < 0)
        return -1;
    now = object_with_version(c->object, st->version + 1);
    size = object_size(now);
    if (size > ROW_MAX_BYTES)
        return err_set(e, ERR_LIMIT, "an object of %zu bytes; at most %d", size, ROW_MAX_BYTES);
    st->head_version = ++st->version;
    st->head =
        c->op == STORE_DELETE ? shelf_drop(st->head, &key) : shelf_set(st->head, key.kind, now);
    *add_row(st) = (struct row){ .version = st->version,
                                 .op = c->op == STORE_DELETE ? DISK_DELETE : DISK_PUT,
                                 .kind = kind,
                                 .object = object_ref(now),
                                 .size = size };
    st->pending_bytes += size;
    store_cut_batch(st);
    if (before)
        store_add_stale(st,
                        (struct stale){ object_version(before), st->version, object_size(before) });
    if (c->op == STORE_DELETE)
        store_add_stale(st, (struct stale){ st->version, st->version, size });
    usage_change(st->usage, before, c->op == STORE_DELETE ? NULL : now);
    add_event(st, c, key.kind, now, before);
    store_schedule(st);
    *ret = take_ptr(&now);
    return 0;
}

struct object *store_lean(struct store *st, struct object *o)
{
    struct shelf_key key = { store_kind_number(st, object_kind(o)), object_namespace(o),
                             object_name(o) };
    struct object *lean;

    if (shelf_get(st->head, &key) != o)
        return NULL;
    lean = object_lean(o);
    st->head = shelf_set(st->head, key.kind, lean);
    return lean;
}

int store_snapshot_at(struct store *st, unsigned kind, uint64_t version, struct shelf **ret,
                      struct err *e)
{
    struct shelf *shelf = store_snapshot(st, STORE_COMMITTED, NULL);

    if (history_undo(st->history, kind, version, &shelf, e) < 0) {
        shelf_unref(shelf);
        return -1;
    }
    *ret = shelf;
    return 0;
}

int store_watch(struct store *st, struct store_watch *w, uint64_t version, struct err *e)
{
    return history_watch(st->history, w, version, e);
}

bool store_changes(struct store *st, unsigned kind, uint64_t version,
                   void (*fn)(void *ctx, const struct store_event *ev), void *ctx)
{
    return history_each(st->history, kind, version, fn, ctx);
}

struct addresses *store_addresses(struct store *st)
{
    return st->addresses;
}

struct usage *store_usage(struct store *st)
{
    return st->usage;
}

void store_stats(const struct store *st, struct store_stats *ret)
{
    *ret = st->stats;
    ret->objects = shelf_count(st->committed);
    ret->pending = st->pending_count;
    ret->watches = history_watches(st->history);
    ret->superseded = st->stale_count;
    ret->superseded_bytes = st->stale_bytes;
    ret->is_full = st->is_full;
}

/* ---- opening ---- */

static const struct kind *kind_of_resource(const struct store *st, struct span resource)
{
    for (size_t i = 0; i < st->kind_count; i++)
        if (span_is(resource, st->resources[i]))
            return &st->kinds[i];
    return NULL;
}

/* Packed, as what rests is: most of it nobody looks into soon. */
static int parse_row(const struct kind *kind, struct span body, struct object **ret, struct err *e)
{
    OWN(json_doc_done) struct json_doc *doc = NULL;
    OWN(object_done) struct object *o = NULL;

    if (json_parse(body, NULL, &doc, e) < 0 || object_parse(kind, json_doc_root(doc), &o, e) < 0)
        return -1;
    *ret = object_packed(o);
    return 0;
}

/* Made while the disk was full: nobody is told of it any more. */
static int load_bare_delete(struct store *st, const struct disk_row *r, unsigned kind)
{
    OWN_MEM char *namespace = span_dup(r->namespace), *name = span_dup(r->name);
    struct shelf_key key = { kind, namespace, name };
    const struct object *before = shelf_get(st->head, &key);

    if (before)
        store_add_stale(st,
                        (struct stale){ object_version(before), r->version, object_size(before) });
    store_add_stale(st, (struct stale){ r->version, r->version, 0 });
    st->head = shelf_drop(st->head, &key);
    st->version = st->head_version = r->version;
    return 0;
}

static int load_row(void *ctx, const struct disk_row *r, struct err *e)
{
    struct store *st = ctx;
    OWN(object_done) struct object *o = NULL;
    const struct kind *kind = kind_of_resource(st, r->resource);
    struct shelf_key key;
    struct object *before;

    if (!kind)
        return err_set(e, ERR_UNSUPPORTED,
                       "the store holds a '%.*s', which this program does not know",
                       SPAN_ARG(r->resource));
    if (st->version == 0) /* the first of all: nothing was before it */
        history_begin(st->history, r->version - 1);
    if (r->body.n == 0 && r->op == DISK_DELETE && r->version <= disk_compacted(st->disk))
        return load_bare_delete(st, r, store_kind_number(st, kind));
    if (parse_row(kind, r->body, &o, e) < 0)
        return err_wrap(e, "version %llu in the store", (unsigned long long)r->version);
    key = (struct shelf_key){ store_kind_number(st, kind), object_namespace(o), object_name(o) };
    before = object_ref(shelf_get(st->head, &key));
    st->head = r->op == DISK_DELETE ? shelf_drop(st->head, &key) : shelf_set(st->head, key.kind, o);
    st->version = st->head_version = r->version;
    if (before)
        store_add_stale(st,
                        (struct stale){ object_version(before), r->version, object_size(before) });
    if (r->op == DISK_DELETE)
        store_add_stale(st, (struct stale){ r->version, r->version, r->body.n });
    if (r->version > disk_compacted(st->disk))
        add_event(st,
                  &(struct store_change){ .op = r->op == DISK_DELETE ? STORE_DELETE
                                                : before             ? STORE_UPDATE
                                                                     : STORE_CREATE },
                  key.kind, o, before);
    object_unref(before);
    return 0;
}

static void name_resources(struct store *st)
{
    st->kinds = kinds_all(&st->kind_count);
    st->resources = own_array(st->kind_count, sizeof *st->resources);
    for (size_t i = 0; i < st->kind_count; i++) {
        const struct kind *k = &st->kinds[i];

        if (asprintf(&st->resources[i], "%s%s%s", k->plural, *k->group ? "." : "", k->group) < 0)
            abort();
    }
}

static int begin(struct store *st, const struct store_config *config, struct err *e)
{
    name_resources(st);
    st->history = history_new(st->loop, (unsigned)st->kind_count);
    st->history_max = config->history_max ? config->history_max : STORE_HISTORY_MAX;
    st->history_max_bytes =
        config->history_max_bytes ? config->history_max_bytes : STORE_HISTORY_MAX_BYTES;
    st->room_retry_ms = config->room_retry_ms ? config->room_retry_ms : STORE_ROOM_RETRY_MS;
    st->rest.fresh_ms = config->fresh_ms ? config->fresh_ms : STORE_FRESH_MS;
    st->rest.sweep_ms = config->sweep_ms ? config->sweep_ms : STORE_SWEEP_MS;
    if (disk_open(&(struct disk_config){ config->dir, config->vfs, config->checkpoint_pages },
                  &st->disk, e) < 0)
        return -1;
    st->version = st->head_version = disk_compacted(st->disk);
    history_begin(st->history, st->version);
    if (disk_load(st->disk, load_row, st, e) < 0)
        return -1;
    if (st->version == 0) {
        st->version = st->head_version = config->first_version;
        history_begin(st->history, st->version);
    }
    usage_recount(st->usage, st->head);
    st->committed = shelf_ref(st->head);
    st->committed_version = st->version;
    history_commit(st->history, st->version);
    if (ev_pool_new(st->loop, "store", 1, &st->writer, e) < 0 ||
        ev_pool_new(st->loop, "checkpoint", 1, &st->checkpointer, e) < 0)
        return -1;
    if (!disk_is_reserved(st->disk))
        store_become_full(st);
    store_rest_open(st);
    return 0;
}

int store_open(struct ev_loop *loop, const struct store_config *config, struct store **ret,
               struct err *e)
{
    struct store *st = NEW(struct store);

    st->loop = loop;
    st->waits_end = &st->waits;
    st->addresses = addresses_new(st);
    st->usage = usage_new();
    st->bodies.max = STORE_BATCH_BYTES_MAX + ROW_MAX_BYTES;
    if (begin(st, config, e) < 0) {
        store_close(st);
        return -1;
    }
    *ret = st;
    return 0;
}

void store_close(struct store *st)
{
    if (!st)
        return;
    st->is_closing = true;
    ev_timer_stop(st->loop, &st->room_timer);
    store_rest_close(st);
    ev_post_cancel(&st->flush_task); /* what is left is written below, without the writer */
    ev_pool_free(st->writer);
    store_drain(st);
    ev_pool_free(st->checkpointer);
    disk_close(st->disk);
    shelf_unref(st->head);
    shelf_unref(st->committed);
    history_free(st->history);
    addresses_free(st->addresses);
    usage_free(st->usage);
    for (size_t i = 0; st->resources && i < st->kind_count; i++)
        free(st->resources[i]);
    free(st->resources);
    free(st->pending);
    free(st->stale);
    buf_done(&st->bodies);
    ev_free_later(st->loop, st, free);
}
