#include "runtime/store.h"

#include "runtime/limits.h"

/* What the next trip to a worker does, in this order. */
struct step {
    char *path; /* begin this file; NULL to go on with the one begun */
    size_t path_n;
    struct file_write_how how;
    struct buf data;
    bool commits;
};

struct store {
    struct runtime *rt;
    char *root_text;
    const struct store_events *events;
    void *ctx;
    struct step next, now;
    bool is_busy, is_full, is_closed, is_ended;
    struct ev_work work;
    /* the worker's, while is_busy */
    struct path_root root;
    struct file_write writer;
    struct err err;
    bool is_committed, is_clean; /* is_clean: nothing of the writer is left */
};

static void step_done(struct store *s, struct step *st)
{
    s->rt->store_bytes -= st->data.n;
    free(st->path);
    buf_done(&st->data);
    *st = (struct step){ .data = BUF_INIT(2 * STORE_PIECE_BYTES) };
}

struct store *store_new(struct runtime *rt, const char *root, const struct store_events *events,
                        void *ctx)
{
    struct store *s = NEW(struct store);

    s->rt = rt;
    s->root_text = own_strdup(root);
    s->events = events;
    s->ctx = ctx;
    s->root = (struct path_root)PATH_ROOT_NONE;
    s->writer = (struct file_write)FILE_WRITE_NONE;
    s->is_clean = true;
    step_done(s, &s->next);
    step_done(s, &s->now);
    return s;
}

static void store_free(void *obj)
{
    struct store *s = obj;

    step_done(s, &s->next);
    step_done(s, &s->now);
    free(s->root_text);
    free(s);
}

static int begin_file(struct store *s, struct err *e)
{
    struct span path = span_of(s->now.path, s->now.path_n);

    file_write_done(&s->writer);
    s->writer = (struct file_write)FILE_WRITE_NONE;
    path_root_close(&s->root);
    s->root = (struct path_root)PATH_ROOT_NONE;
    if (path_root_make(s->root_text, 0777, e) < 0 || path_root_open(&s->root, s->root_text, e) < 0)
        return -1;
    return file_write_begin(&s->writer, &s->root, path, &s->now.how, e);
}

static void run(void *ctx)
{
    struct store *s = ctx;
    struct err *e = &s->err;

    if (s->is_closed) { /* only to clean up: files may block */
        file_write_done(&s->writer);
        path_root_close(&s->root);
        s->is_clean = true;
        return;
    }
    s->is_clean = false;
    if (s->err.code || (s->now.path && begin_file(s, e) < 0))
        return;
    if (s->now.data.n && file_write_add(&s->writer, buf_span(&s->now.data), e) < 0)
        return;
    if (s->now.commits)
        s->is_committed = file_write_commit(&s->writer, e) == 0;
}

static void go(struct store *s);

static void done(void *ctx)
{
    struct store *s = ctx;

    s->is_busy = false;
    step_done(s, &s->now);
    if (s->is_closed) {
        if (!s->is_clean)
            go(s);
        else
            store_free(s);
        return;
    }
    if (!s->is_ended && (s->err.code || s->is_committed)) {
        s->is_ended = true;
        s->events->on_done(s->ctx, file_write_path(&s->writer), s->err.code ? &s->err : NULL);
        return;
    }
    if (s->is_full) {
        s->is_full = false;
        s->events->on_room(s->ctx);
    }
    if (!s->is_busy && (s->next.path || s->next.data.n || s->next.commits))
        go(s);
}

static void go(struct store *s)
{
    struct step swap = s->now;

    assert(!s->is_busy);
    s->now = s->next;
    s->next = swap;
    s->is_busy = true;
    ev_pool_submit(s->rt->files, &s->work, run, done, s);
}

void store_begin(struct store *s, struct span path, const struct file_write_how *how)
{
    step_done(s, &s->next); /* bytes of a file that is dropped need no writing */
    s->next.path = span_dup(path);
    s->next.path_n = path.n;
    s->next.how = *how;
    if (!s->is_busy)
        go(s);
}

bool store_add(struct store *s, struct span bytes)
{
    bool is_crowded;
    struct err e;

    if (s->is_ended)
        return true;
    (void)buf_add(&s->next.data, bytes, &e); /* fits: a sender is held from STORE_PIECE_BYTES on */
    s->rt->store_bytes += bytes.n;
    is_crowded = s->rt->store_bytes > STORE_ALL_MAX_BYTES;
    if (!s->is_busy && (is_crowded || s->next.data.n >= STORE_PIECE_BYTES / 4))
        go(s);
    s->is_full = s->is_busy && (is_crowded || s->next.data.n >= STORE_PIECE_BYTES);
    return !s->is_full;
}

void store_commit(struct store *s)
{
    if (s->is_ended)
        return;
    s->next.commits = true;
    if (!s->is_busy)
        go(s);
}

void store_close(struct store *s)
{
    if (!s)
        return;
    s->is_closed = true;
    step_done(s, &s->next);
    if (s->is_busy)
        return;
    if (!s->is_clean)
        go(s); /* a temporary file is to be removed, on a worker */
    else
        ev_free_later(s->rt->loop, s, store_free);
}
