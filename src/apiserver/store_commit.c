#include "apiserver/store_impl.h"

#include "apiserver/usage.h"
#include "base/log.h"
#include "base/time.h"

#include <string.h>

/* ---- waiting ---- */

static void finish_wait(struct store_wait *w, const struct err *e)
{
    w->store = NULL;
    w->done(w->ctx, e);
}

static void on_waited_for_nothing(void *ctx)
{
    struct store_wait *w = ctx;
    struct err e;

    if (history_is_undone(w->store->history, w->version)) {
        (void)err_set(&e, ERR_INTERNAL, "the write was undone when the disk failed");
        finish_wait(w, &e);
    } else {
        finish_wait(w, NULL);
    }
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
    if (version <= st->committed_version || history_is_undone(st->history, version)) {
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

/* A tenth more than is kept: so that compaction runs now and then, with something to do. */
#define COMPACT_AT 0.1

/* The i-th of them, the oldest being the first. */
static struct stale *stale_at(const struct store *st, size_t i)
{
    return &st->stale[(st->stale_first + i) % st->stale_cap];
}

void store_add_stale(struct store *st, struct stale stale)
{
    if (st->stale_count == st->stale_cap) {
        size_t cap = st->stale_cap ? st->stale_cap * 2 : 1024;
        struct stale *grown = own_array(cap, sizeof *grown);

        for (size_t i = 0; i < st->stale_count; i++)
            grown[i] = *stale_at(st, i);
        free(st->stale);
        st->stale = grown;
        st->stale_cap = cap;
        st->stale_first = 0;
    }
    st->stale_bytes += stale.size;
    *stale_at(st, st->stale_count++) = stale;
}

/* So many, with so many bytes, are more than are kept and that part of it besides. On a full disk old states are worth
 * less than the room they take. */
static bool is_too_much(const struct store *st, size_t count, size_t bytes, double slack)
{
    size_t max = st->is_full ? MIN(st->history_max, (size_t)STORE_HISTORY_FULL) : st->history_max;

    return (double)count > (double)max * (1 + slack) ||
           (double)bytes > (double)st->history_max_bytes * (1 + slack);
}

/* Puts what is too much of the history into the batch; it leaves the list when that has held. Only what is on disk
 * already: a row of this batch stays. There is room for more than the batch supersedes, so that the history keeps its bounds
 * however fast it is written to. */
static void collect_garbage(struct store *st, struct batch *b)
{
    size_t room = STORE_GARBAGE_BATCH_MAX + 2 * b->n, n = 0;

    if (b->n && !is_too_much(st, st->stale_count, st->stale_bytes, COMPACT_AT))
        return; /* rather with no write waiting behind it, or at once when there is much */
    b->disk.garbage = own_array(room, sizeof *b->disk.garbage);
    while (n < room && n < st->stale_count &&
           is_too_much(st, st->stale_count - n, st->stale_bytes - b->garbage_bytes, 0)) {
        const struct stale *s = stale_at(st, n);

        if (s->until > st->committed_version)
            break;
        b->disk.garbage[n++] = s->version;
        b->garbage_bytes += s->size;
        b->disk.compacted = MAX(b->disk.compacted, s->until);
    }
    b->disk.garbage_count = n;
}

static bool has_garbage(const struct store *st)
{
    return is_too_much(st, st->stale_count, st->stale_bytes, COMPACT_AT / 2) &&
           !st->is_garbage_resting;
}

/* ---- committing ---- */

static void row_done(struct row *r)
{
    object_unref(r->object);
    shelf_unref(r->shelf);
}

static void batch_free(struct batch *b)
{
    for (size_t i = 0; i < b->n; i++) {
        row_done(&b->rows[i]);
    }
    shelf_unref(b->shelf);
    free(b->rows);
    free(b->disk_rows);
    free(b->disk.garbage);
    free(b);
}

static void flush(void *ctx);

void store_schedule(struct store *st)
{
    if (st->batch || st->flush_task.is_queued || st->is_closing)
        return;
    st->gathers_until_us = time_mono_us() + STORE_GATHER_US;
    ev_post(st->loop, &st->flush_task, flush, st);
}

/* ---- a full disk ---- */

static void on_looked(void *ctx)
{
    struct store *st = ctx;

    st->is_looking = false;
    st->is_garbage_resting = false;
    if (st->has_room) {
        st->is_full = false;
        ev_timer_stop(st->loop, &st->room_timer);
        log_info("store.room", KV("objects", shelf_count(st->committed)));
    } else if (has_garbage(st)) {
        store_schedule(st);
    }
}

static void look(void *ctx)
{
    struct store *st = ctx;

    st->has_room = disk_has_room(st->disk);
}

static void look_for_room(void *ctx)
{
    struct store *st = ctx;

    ev_timer_start(st->loop, &st->room_timer, st->room_retry_ms, look_for_room, st);
    if (st->is_looking)
        return;
    st->is_looking = true;
    ev_pool_submit(st->writer, &st->room_work, look, on_looked, st);
}

int store_is_full(struct err *e)
{
    (void)err_set(e, ERR_NO_SPACE, "the disk of the store is full: only deletes are accepted");
    err_hint(e, "delete objects, or make room on the disk");
    return -1;
}

void store_become_full(struct store *st)
{
    if (st->is_full || st->is_closing)
        return;
    st->is_full = true;
    disk_release(st->disk);
    ev_timer_start(st->loop, &st->room_timer, st->room_retry_ms, look_for_room, st);
}

/* To clients; the log has the words of the disk. */
static const struct err *word_full(const struct store *st, struct err *e)
{
    if (st->is_full)
        (void)err_set(e, ERR_NO_SPACE,
                      "the disk of the store is full, and so is what was kept back for deletes");
    else
        (void)store_is_full(e);
    return e;
}

/* Everything after the committed state never was. */
static void undo(struct store *st, const struct err *e)
{
    struct err full;

    st->stats.failed_commits++;
    st->is_garbage_resting = true;
    log_error("store.commit", KV("err", e), KV("lost_writes", st->pending_count + st->batch->n));
    for (size_t i = 0; i < st->pending_count; i++)
        row_done(&st->pending[i]);
    st->pending_count = st->pending_bytes = st->cut_count = st->cut_bytes = 0;
    shelf_unref(st->head);
    st->head = shelf_ref(st->committed);
    st->head_version = st->committed_version;
    usage_recount(st->usage, st->head);
    while (st->stale_count && stale_at(st, st->stale_count - 1)->until > st->committed_version)
        st->stale_bytes -= stale_at(st, --st->stale_count)->size;
    history_take_back(st->history);
    if (e->code == ERR_NO_SPACE) {
        e = word_full(st, &full);
        store_become_full(st);
    }
    end_waits(st, e);
}

static void checkpoint(void *ctx)
{
    struct store *st = ctx;

    st->is_checkpoint_failed = disk_checkpoint(st->disk, &st->checkpoint_err) < 0;
}

static void on_checkpointed(void *ctx)
{
    struct store *st = ctx;

    st->is_checkpointing = false;
    if (!st->is_checkpoint_failed)
        return;
    log_warn("store.checkpoint", KV("err", (const struct err *)&st->checkpoint_err));
    if (st->checkpoint_err.code ==
        ERR_NO_SPACE) /* rather now than when the log has no room either */
        store_become_full(st);
}

/* The JSON of all rows in one block, which is kept for the next batch. Objects may be read on any thread. */
static int write_bodies(struct store *st, struct batch *b)
{
    size_t total = 0, at;

    buf_clear(&st->bodies);
    for (size_t i = 0; i < b->n; i++)
        total += b->rows[i].is_bare ? 0 : b->rows[i].size;
    if (buf_reserve(&st->bodies, total, &b->e) < 0)
        return -1;
    for (size_t i = 0; i < b->n; i++) {
        const struct row *r = &b->rows[i];

        at = st->bodies.n;
        if (!r->is_bare && object_write(r->object, kind_api_version(r->kind, &r->kind->versions[0]),
                                        &st->bodies, &b->e) < 0)
            return -1;
        b->disk_rows[i].body.n = st->bodies.n - at;
    }
    at = 0;
    for (size_t i = 0; i < b->n; i++) { /* it does not move any more */
        struct span *body = &b->disk_rows[i].body;

        body->p = body->n ? st->bodies.p + at : SPAN("").p;
        at += body->n;
    }
    return 0;
}

static void run_batch(void *ctx)
{
    struct store *st = ctx;
    struct batch *b = st->batch;

    b->is_failed = write_bodies(st, b) < 0 || disk_write(st->disk, &b->disk, &b->e) < 0;
    if (st->bodies.cap > STORE_BODIES_KEPT_BYTES)
        buf_done(&st->bodies);
}

static void accept(struct store *st, const struct batch *b)
{
    st->stats.commits++;
    st->stats.rows += b->n;
    st->is_garbage_resting = false;
    st->stale_first = st->stale_cap ? (st->stale_first + b->disk.garbage_count) % st->stale_cap : 0;
    st->stale_count -= b->disk.garbage_count;
    st->stale_bytes -= b->garbage_bytes;
    shelf_unref(st->committed);
    st->committed = shelf_ref(b->shelf);
    st->committed_version = b->version;
    history_commit(st->history, st->committed_version);
    if (b->disk.garbage_count && !st->is_full) /* memory is not what is short then */
        history_forget(st->history, b->disk.compacted);
    store_rest_later(st);
    end_waits(st, NULL);
}

static void make_bare(struct batch *b);
static void on_written(void *ctx);

/* The disk became full under deletes alone: they go on at once. */
static bool try_again(struct store *st, struct batch *b)
{
    if (!b->is_failed || b->e.code != ERR_NO_SPACE || b->n == 0 || st->is_full || st->is_closing)
        return false;
    for (size_t i = 0; i < b->n; i++)
        if (b->rows[i].op != DISK_DELETE)
            return false;
    store_become_full(st);
    make_bare(b);
    ev_pool_submit(st->writer, &b->work, run_batch, on_written, st);
    return true;
}

static void on_written(void *ctx)
{
    struct store *st = ctx;
    struct batch *b = st->batch;

    if (b->work.is_canceled) /* the store is being closed before its writer began */
        run_batch(st);
    if (try_again(st, b))
        return;
    if (b->is_failed)
        undo(st, &b->e);
    else
        accept(st, b);
    st->batch = NULL;
    batch_free(b);
    if (disk_wants_checkpoint(st->disk) && !st->is_checkpointing && !st->is_closing) {
        st->is_checkpointing = true;
        ev_pool_submit(st->checkpointer, &st->checkpoint_work, checkpoint, on_checkpointed, st);
    }
    if (st->pending_count || has_garbage(st))
        store_schedule(st);
}

/* On a full disk a delete costs next to nothing: its last state is not kept, and so it is history at once. */
static void make_bare(struct batch *b)
{
    for (size_t i = 0; i < b->n; i++) {
        if (b->rows[i].op != DISK_DELETE)
            continue;
        b->rows[i].is_bare = true;
        b->disk.compacted = MAX(b->disk.compacted, b->rows[i].version);
    }
}

void store_cut_batch(struct store *st)
{
    struct row *last = &st->pending[st->pending_count - 1];

    st->cut_count++;
    st->cut_bytes += last->size;
    if (st->cut_count < STORE_BATCH_ROWS_MAX && st->cut_bytes < STORE_BATCH_BYTES_MAX)
        return;
    last->shelf = shelf_ref(st->head);
    st->cut_count = st->cut_bytes = 0;
}

/* The pending writes up to the first that ends a batch: they go into one commit. Then *ret_shelf is the head with them. */
static size_t count_for_batch(struct store *st, struct shelf **ret_shelf)
{
    size_t n = 0;

    while (n < st->pending_count) {
        *ret_shelf = st->pending[n++].shelf;
        if (*ret_shelf)
            return n;
    }
    st->cut_count = st->cut_bytes = 0; /* all of them */
    *ret_shelf = n ? st->head : st->committed;
    return n;
}

static struct batch *make_batch(struct store *st)
{
    struct batch *b = NEW(struct batch);
    struct shelf *shelf;

    b->n = count_for_batch(st, &shelf);
    b->shelf = shelf_ref(shelf);
    b->rows = own_array(b->n ? b->n : 1, sizeof *b->rows);
    b->disk_rows = own_array(b->n ? b->n : 1, sizeof *b->disk_rows);
    for (size_t i = 0; i < b->n; i++) {
        struct row *r = &b->rows[i];

        *r = st->pending[i];
        st->pending_bytes -= r->size;
        b->disk_rows[i] =
            (struct disk_row){ .version = r->version,
                               .op = r->op,
                               .resource = span_cstr(st->resources[store_kind_number(st, r->kind)]),
                               .namespace = span_cstr(object_namespace(r->object)),
                               .name = span_cstr(object_name(r->object)) };
    }
    st->pending_count -= b->n;
    memmove(st->pending, st->pending + b->n, st->pending_count * sizeof *st->pending);
    b->version = b->n ? b->rows[b->n - 1].version : st->committed_version;
    b->disk.rows = b->disk_rows;
    b->disk.row_count = b->n;
    if (st->is_full)
        make_bare(b);
    collect_garbage(st, b);
    return b;
}

/* A write wakes controllers of this process, who write in turn: what follows from one write within the next calls of the loop
 * is committed with it, so that a chain of them costs whoever waits for its end one commit. */
static bool is_gathering(const struct store *st)
{
    return st->pending_count && st->pending_count < STORE_GATHER_ROWS_MAX &&
           ev_has_posted(st->loop) && time_mono_us() < st->gathers_until_us;
}

static void flush(void *ctx)
{
    struct store *st = ctx;

    if (st->batch || (!st->pending_count && !has_garbage(st)))
        return;
    if (is_gathering(st)) {
        ev_post(st->loop, &st->flush_task, flush, st);
        return;
    }
    st->batch = make_batch(st);
    ev_pool_submit(st->writer, &st->batch->work, run_batch, on_written, st);
}

void store_drain(struct store *st)
{
    while (st->pending_count) {
        st->batch = make_batch(st);
        run_batch(st);
        on_written(st);
    }
}
