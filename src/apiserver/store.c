#include "apiserver/store.h"

#include "apiserver/disk.h"
#include "apiserver/limits.h"
#include "base/log.h"
#include "ev/timer.h"
#include "ev/worker.h"
#include "kube/kind.h"

#include <stdio.h>
#include <string.h>

#define BODY_MAX_BYTES (16 << 20) /* far above what the verbs let in */

/* A write on its way to the disk. */
struct row {
    uint64_t version;
    enum disk_op op;
    const struct kind *kind;
    struct object *object; /* keeps the names */
    struct shelf *shelf;   /* the head with it */
    struct buf body;
};

/* A state that a later one replaced: its row goes when the history has moved past the later one. */
struct stale {
    uint64_t version;
    uint64_t until;
};

/* What the writer is given; one at a time. */
struct batch {
    struct ev_work work;
    struct row *rows;
    size_t n;
    struct disk_row *disk_rows;
    uint64_t garbage[STORE_GARBAGE_BATCH_MAX];
    struct disk_batch disk;
    struct shelf *shelf; /* the head as of its last row */
    uint64_t version;
    bool is_failed;
    struct err e;
};

struct store {
    struct ev_loop *loop;
    struct disk *disk;
    struct history *history;
    const struct kind *kinds;
    size_t kind_count;
    char **resources; /* by kind: "sandboxes.agents.x-k8s.io", as the file knows them */
    struct shelf *head, *committed;
    uint64_t version, committed_version;
    struct row *pending;
    size_t pending_count, pending_cap, pending_bytes;
    struct batch *batch; /* at the writer; NULL when it rests */
    struct ev_task flush_task;
    struct ev_pool *writer, *checkpointer;
    struct ev_work checkpoint_work, reserve_work;
    bool is_checkpointing, is_reserving, is_full, has_room, is_closing;
    struct ev_timer room_timer;
    struct store_wait *waits, **waits_end;
    struct stale *stale; /* oldest first, a ring */
    size_t stale_first, stale_count, stale_cap;
    struct store_stats stats;
};

static unsigned kind_number(const struct store *st, const struct kind *k)
{
    return (unsigned)(k - st->kinds);
}

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
    return view == STORE_HEAD ? st->version : st->committed_version;
}

/* ---- waiting ---- */

static void finish_wait(struct store_wait *w, const struct err *e)
{
    w->store = NULL;
    w->done(w->ctx, e);
}

static void on_waited_for_nothing(void *ctx)
{
    finish_wait(ctx, NULL);
}

void store_wait(struct store *st, struct store_wait *w, uint64_t version,
                void (*done)(void *ctx, const struct err *e), void *ctx)
{
    struct store_wait **at = st->waits_end;

    assert(!w->store);
    w->store = st;
    w->version = version;
    w->done = done;
    w->ctx = ctx;
    w->next = NULL;
    if (version <= st->committed_version) {
        ev_post(st->loop, &w->task, on_waited_for_nothing, w);
        return;
    }
    if (st->waits && CONTAINER(st->waits_end, struct store_wait, next)->version > version)
        for (at = &st->waits; (*at)->version <= version; at = &(*at)->next)
            continue;
    w->next = *at;
    *at = w;
    if (!w->next)
        st->waits_end = &w->next;
}

void store_wait_cancel(struct store_wait *w)
{
    struct store *st = w->store;

    if (!st)
        return;
    w->store = NULL;
    if (w->task.is_queued) {
        ev_post_cancel(&w->task);
        return;
    }
    for (struct store_wait **at = &st->waits; *at; at = &(*at)->next) {
        if (*at != w)
            continue;
        *at = w->next;
        if (!*at)
            st->waits_end = at;
        return;
    }
}

/* NULL: those that the committed state covers. Else all of them. */
static void end_waits(struct store *st, const struct err *e)
{
    while (st->waits && (e || st->waits->version <= st->committed_version)) {
        struct store_wait *w = st->waits;

        st->waits = w->next;
        if (!st->waits)
            st->waits_end = &st->waits;
        finish_wait(w, e);
    }
}

/* ---- what is garbage ---- */

static void add_stale(struct store *st, uint64_t version, uint64_t until)
{
    if (st->stale_count == st->stale_cap) {
        size_t cap = st->stale_cap ? st->stale_cap * 2 : 1024;
        struct stale *grown = own_array(cap, sizeof *grown);

        for (size_t i = 0; i < st->stale_count; i++)
            grown[i] = st->stale[(st->stale_first + i) % st->stale_cap];
        free(st->stale);
        st->stale = grown;
        st->stale_cap = cap;
        st->stale_first = 0;
    }
    st->stale[(st->stale_first + st->stale_count++) % st->stale_cap] =
        (struct stale){ version, until };
}

/* Moves what is too much of the history into the batch. Only what is on disk already: a row of this batch stays. */
static void collect_garbage(struct store *st, struct batch *b)
{
    b->disk.garbage = b->garbage;
    if (st->stale_count < STORE_HISTORY_MAX + STORE_HISTORY_SLACK && b->n)
        return; /* rather with no write waiting behind it, or at once when there is much */
    while (st->stale_count > STORE_HISTORY_MAX && b->disk.garbage_count < LEN(b->garbage)) {
        struct stale *s = &st->stale[st->stale_first];

        if (s->until > st->committed_version)
            break;
        b->garbage[b->disk.garbage_count++] = s->version;
        b->disk.compacted = s->until;
        st->stale_first = (st->stale_first + 1) % st->stale_cap;
        st->stale_count--;
    }
}

/* ---- committing ---- */

static void row_done(struct row *r)
{
    object_unref(r->object);
    shelf_unref(r->shelf);
    buf_done(&r->body);
}

static void batch_free(struct batch *b)
{
    for (size_t i = 0; i < b->n; i++) {
        row_done(&b->rows[i]);
    }
    shelf_unref(b->shelf);
    free(b->rows);
    free(b->disk_rows);
    free(b);
}

static void flush(void *ctx);

static void schedule(struct store *st)
{
    if (!st->batch && !st->flush_task.is_queued)
        ev_post(st->loop, &st->flush_task, flush, st);
}

static bool has_garbage(const struct store *st)
{
    return st->stale_count > STORE_HISTORY_MAX + STORE_HISTORY_SLACK / 2;
}

static void on_reserved(void *ctx)
{
    struct store *st = ctx;

    st->is_reserving = false;
    if (st->has_room) {
        st->is_full = false;
        log_info("store.room", KV("objects", shelf_count(st->committed)));
    }
}

static void reserve(void *ctx)
{
    struct store *st = ctx;
    struct err e;

    st->has_room = disk_reserve(st->disk, &e) == 0;
}

static void look_for_room(void *ctx)
{
    struct store *st = ctx;

    if (!st->is_full)
        return;
    ev_timer_start(st->loop, &st->room_timer, STORE_ROOM_RETRY_MS, look_for_room, st);
    if (st->is_reserving)
        return;
    st->is_reserving = true;
    ev_pool_submit(st->writer, &st->reserve_work, reserve, on_reserved, st);
}

/* Everything after the committed state never was. */
static void undo(struct store *st, const struct err *e)
{
    st->stats.failed_commits++;
    log_error("store.commit", KV("err", e), KV("lost_writes", st->pending_count));
    if (e->code == ERR_NO_SPACE && !st->is_full) {
        st->is_full = true;
        disk_release(st->disk);
        ev_timer_start(st->loop, &st->room_timer, STORE_ROOM_RETRY_MS, look_for_room, st);
    }
    for (size_t i = 0; i < st->pending_count; i++)
        row_done(&st->pending[i]);
    st->pending_count = st->pending_bytes = 0;
    shelf_unref(st->head);
    st->head = shelf_ref(st->committed);
    while (st->stale_count &&
           st->stale[(st->stale_first + st->stale_count - 1) % st->stale_cap].until >
               st->committed_version)
        st->stale_count--;
    history_take_back(st->history);
    end_waits(st, e);
}

static void checkpoint(void *ctx)
{
    struct store *st = ctx;
    struct err e;

    if (disk_checkpoint(st->disk, &e) < 0)
        log_warn("store.checkpoint", KV("err", &e));
}

static void on_checkpointed(void *ctx)
{
    struct store *st = ctx;

    st->is_checkpointing = false;
}

static void run_batch(void *ctx)
{
    struct store *st = ctx;
    struct batch *b = st->batch;

    b->is_failed = disk_write(st->disk, &b->disk, &b->e) < 0;
}

static void accept(struct store *st, const struct batch *b)
{
    st->stats.commits++;
    st->stats.rows += b->n;
    shelf_unref(st->committed);
    st->committed = shelf_ref(b->shelf);
    st->committed_version = b->version;
    history_commit(st->history, st->committed_version);
    if (b->disk.garbage_count)
        history_forget(st->history, b->disk.compacted);
    end_waits(st, NULL);
}

static void on_written(void *ctx)
{
    struct store *st = ctx;
    struct batch *b = st->batch;

    if (b->work.is_canceled) /* the store is being closed before its writer began */
        run_batch(st);
    st->batch = NULL;
    if (b->is_failed)
        undo(st, &b->e);
    else
        accept(st, b);
    batch_free(b);
    if (disk_wants_checkpoint(st->disk) && !st->is_checkpointing && !st->is_closing) {
        st->is_checkpointing = true;
        ev_pool_submit(st->checkpointer, &st->checkpoint_work, checkpoint, on_checkpointed, st);
    }
    if (st->pending_count || has_garbage(st))
        schedule(st);
}

/* How many of the pending writes go into one commit. */
static size_t count_for_batch(const struct store *st)
{
    size_t bytes = 0, n = 0;

    while (n < st->pending_count && n < STORE_BATCH_ROWS_MAX && bytes < STORE_BATCH_BYTES_MAX)
        bytes += st->pending[n++].body.n;
    return n;
}

static struct batch *make_batch(struct store *st)
{
    struct batch *b = NEW(struct batch);

    b->n = count_for_batch(st);
    b->rows = own_array(b->n ? b->n : 1, sizeof *b->rows);
    b->disk_rows = own_array(b->n ? b->n : 1, sizeof *b->disk_rows);
    for (size_t i = 0; i < b->n; i++) {
        struct row *r = &b->rows[i];

        *r = st->pending[i];
        st->pending_bytes -= r->body.n;
        b->disk_rows[i] =
            (struct disk_row){ .version = r->version,
                               .op = r->op,
                               .resource = span_cstr(st->resources[kind_number(st, r->kind)]),
                               .namespace = span_cstr(object_namespace(r->object)),
                               .name = span_cstr(object_name(r->object)),
                               .body = buf_span(&r->body) };
    }
    st->pending_count -= b->n;
    memmove(st->pending, st->pending + b->n, st->pending_count * sizeof *st->pending);
    b->version = b->n ? b->rows[b->n - 1].version : st->committed_version;
    b->shelf = shelf_ref(b->n ? b->rows[b->n - 1].shelf : st->committed);
    b->disk.rows = b->disk_rows;
    b->disk.row_count = b->n;
    collect_garbage(st, b);
    return b;
}

static void flush(void *ctx)
{
    struct store *st = ctx;

    if (st->batch || (!st->pending_count && !has_garbage(st)))
        return;
    st->batch = make_batch(st);
    ev_pool_submit(st->writer, &st->batch->work, run_batch, on_written, st);
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
    if (st->is_full && !c->is_freeing) {
        (void)err_set(e, ERR_NO_SPACE, "the disk of the store is full: only deletes are accepted");
        err_hint(e, "delete objects, or make room on the disk");
        return -1;
    }
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
    struct shelf_key key = { kind_number(st, kind), object_namespace(c->object),
                             object_name(c->object) };
    OWN(object_done) struct object *before = NULL, *now = NULL;
    OWN(buf_done) struct buf body = BUF_INIT(BODY_MAX_BYTES);
    struct shelf *next;
    struct row *row;

    before = object_ref(shelf_get(st->head, &key));
    if (judge(st, c, before, e) < 0)
        return -1;
    now = object_with_version(c->object, st->version + 1);
    if (object_write(now, kind_api_version(kind, &kind->versions[0]), &body, e) < 0)
        return -1;
    st->version++;
    next =
        c->op == STORE_DELETE ? shelf_remove(st->head, &key) : shelf_put(st->head, key.kind, now);
    shelf_unref(st->head);
    st->head = next;
    row = add_row(st);
    *row = (struct row){ .version = st->version,
                         .op = c->op == STORE_DELETE ? DISK_DELETE : DISK_PUT,
                         .kind = kind,
                         .object = object_ref(now),
                         .shelf = shelf_ref(next),
                         .body = BUF_INIT(BODY_MAX_BYTES) };
    buf_move(&row->body, &body);
    st->pending_bytes += row->body.n;
    if (before)
        add_stale(st, object_version(before), st->version);
    if (c->op == STORE_DELETE)
        add_stale(st, st->version, st->version);
    add_event(st, c, key.kind, now, before);
    schedule(st);
    *ret = take_ptr(&now);
    return 0;
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

void store_stats(const struct store *st, struct store_stats *ret)
{
    *ret = st->stats;
    ret->objects = shelf_count(st->committed);
    ret->pending = st->pending_count;
    ret->watches = history_watches(st->history);
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

static int parse_row(const struct kind *kind, struct span body, struct object **ret, struct err *e)
{
    OWN(json_doc_done) struct json_doc *doc = NULL;

    return json_parse(body, NULL, &doc, e) < 0 ? -1
                                               : object_parse(kind, json_doc_root(doc), ret, e);
}

static int load_row(void *ctx, const struct disk_row *r, struct err *e)
{
    struct store *st = ctx;
    OWN(object_done) struct object *o = NULL;
    const struct kind *kind = kind_of_resource(st, r->resource);
    struct shelf_key key;
    struct object *before;
    struct shelf *next;

    if (!kind)
        return err_set(e, ERR_UNSUPPORTED,
                       "the store holds a '%.*s', which this program does not know",
                       SPAN_ARG(r->resource));
    if (parse_row(kind, r->body, &o, e) < 0)
        return err_wrap(e, "version %llu in the store", (unsigned long long)r->version);
    key = (struct shelf_key){ kind_number(st, kind), object_namespace(o), object_name(o) };
    before = object_ref(shelf_get(st->head, &key));
    next = r->op == DISK_DELETE ? shelf_remove(st->head, &key) : shelf_put(st->head, key.kind, o);
    shelf_unref(st->head);
    st->head = next;
    st->version = r->version;
    if (before)
        add_stale(st, object_version(before), r->version);
    if (r->op == DISK_DELETE)
        add_stale(st, r->version, r->version);
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
    if (disk_open(config->dir, config->vfs, &st->disk, e) < 0)
        return -1;
    st->version = disk_compacted(st->disk);
    history_begin(st->history, st->version);
    if (disk_load(st->disk, load_row, st, e) < 0)
        return -1;
    st->committed = shelf_ref(st->head);
    st->committed_version = st->version;
    history_commit(st->history, st->version);
    return ev_pool_new(st->loop, "store", 1, &st->writer, e) < 0 ||
                   ev_pool_new(st->loop, "checkpoint", 1, &st->checkpointer, e) < 0
               ? -1
               : 0;
}

int store_open(struct ev_loop *loop, const struct store_config *config, struct store **ret,
               struct err *e)
{
    struct store *st = NEW(struct store);

    st->loop = loop;
    st->waits_end = &st->waits;
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
    ev_pool_free(st->writer);
    while (st->pending_count) {
        st->batch = make_batch(st);
        run_batch(st);
        on_written(st);
    }
    ev_pool_free(st->checkpointer);
    ev_post_cancel(&st->flush_task);
    disk_close(st->disk);
    shelf_unref(st->head);
    shelf_unref(st->committed);
    history_free(st->history);
    for (size_t i = 0; st->resources && i < st->kind_count; i++)
        free(st->resources[i]);
    free(st->resources);
    free(st->pending);
    free(st->stale);
    ev_free_later(st->loop, st, free);
}
