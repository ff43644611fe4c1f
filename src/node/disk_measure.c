/* How much volumes hold: one walk after the other, of those that may hold too much. */
#include "node/disk_watch_impl.h"

#include "base/time.h"

static void run_turn(void *ctx, struct engine *en, const struct err *e)
{
    struct disk_watch *w = ctx;
    struct turn *t = &w->turn;
    uint64_t began_ms = time_mono_ms(), now_ms = began_ms;

    (void)en;
    (void)e;
    for (size_t i = 0; i < t->n && (i == 0 || now_ms - began_ms < DISK_TURN_MS); i++) {
        struct walk *x = &t->v[i];
        struct err why;
        uint64_t from_ms = now_ms;

        x->is_done = volumes_count(w->node->dir_fd, x->place, now_ms + DISK_WALK_MOST_MS, &x->count,
                                   &why) == 0;
        now_ms = time_mono_ms();
        x->took_ms = now_ms - from_ms;
    }
    t->took_ms = now_ms - began_ms;
}

static void judge_total(struct disk_watch *w, struct disk_pod *p, uint64_t now_ms)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < p->n; i++)
        sum += p->v[i].is_claim ? 0 : p->v[i].limit.used;
    if (volume_limit_judge(&p->total, sum, now_ms))
        disk_evict(w, p, NULL, true);
}

static void judge(struct disk_watch *w, const struct walk *x, uint64_t now_ms)
{
    struct disk_pod *p = x->pod;
    struct volume *v = &p->v[x->at];
    uint64_t bytes = x->count.bytes;
    bool is_partial = x->count.is_partial && !x->count.is_cut, could_be_over;

    v->measured_ms = now_ms;
    v->took_ms = x->took_ms;
    /* Of what cannot be counted it is known only how much was written to the disk. */
    could_be_over =
        is_partial && v->is_measured && x->fell - v->fell >= volume_limit_room(&v->limit);
    if (!is_partial || !v->is_measured)
        v->fell = x->fell;
    v->changes = x->changes;
    if (x->count.is_cut) /* so much at least */
        bytes = MAX(bytes, v->limit.used);
    v->grew = v->is_measured && bytes > v->limit.used ? bytes - v->limit.used : 0;
    if (!v->is_measured)
        volume_limit_start(&v->limit, v->limit.limit, bytes);
    v->is_measured = true;
    if (volume_limit_judge(&v->limit, bytes, now_ms))
        disk_evict(w, p, v, true);
    else if (could_be_over)
        disk_evict(w, p, v, false);
    if (!v->is_claim)
        judge_total(w, p, now_ms);
}

static void turn_done(void *ctx)
{
    struct disk_watch *w = ctx;
    struct turn *t = &w->turn;
    uint64_t now_ms = time_mono_ms();

    for (size_t i = 0; i < t->n; i++) {
        if (t->v[i].pod && t->v[i].is_done)
            judge(w, &t->v[i], now_ms);
        free(t->v[i].place);
    }
    t->n = 0;
    t->is_busy = false;
    w->rest_ms = now_ms + MIN(t->took_ms * DISK_REST_TIMES, (uint64_t)DISK_REST_MOST_MS);
    if (w->is_short)
        disk_freeze_most(w);
}

static bool is_due(const struct disk_watch *w, const struct disk_pod *p, const struct volume *v,
                   uint64_t now_ms)
{
    uint64_t fell = w->fell - v->fell;
    bool is_limited =
        v->limit.limit != VOLUME_NO_LIMIT || (!v->is_claim && p->total.limit != VOLUME_NO_LIMIT);

    if (p->is_evicted || p->is_frozen || now_ms < v->measured_ms + v->took_ms * DISK_REST_TIMES)
        return false;
    if (!v->is_measured || v->limit.over_ms || (!v->is_claim && p->total.over_ms))
        return true;
    if (fell && (fell >= volume_limit_room(&v->limit) ||
                 (!v->is_claim && fell >= volume_limit_room(&p->total)) ||
                 (w->is_near && (w->is_short || fell >= DISK_GREW_BYTES))))
        return true;
    return is_limited && w->changes != v->changes && now_ms - v->measured_ms >= DISK_FULL_LOOK_MS;
}

static void add_walk(struct disk_watch *w, struct disk_pod *p, size_t at)
{
    w->turn.v[w->turn.n++] = (struct walk){ .pod = p,
                                            .at = at,
                                            .place = own_strdup(p->v[at].place),
                                            .fell = w->fell,
                                            .changes = w->changes };
}

/* Those that grew when they were last measured come first; the others in turn. */
void disk_measure(struct disk_watch *w, uint64_t now_ms)
{
    struct disk_pod *from = w->cursor ? w->cursor : w->pods, *p = from;

    for (struct disk_pod *q = w->pods; q; q = q->next)
        for (size_t i = 0; i < q->n && w->turn.n < DISK_TURN_MAX; i++)
            if (q->v[i].grew && is_due(w, q, &q->v[i], now_ms))
                add_walk(w, q, i);
    do {
        for (size_t i = 0; i < p->n && w->turn.n < DISK_TURN_MAX; i++)
            if (!p->v[i].grew && is_due(w, p, &p->v[i], now_ms))
                add_walk(w, p, i);
        p = p->next ? p->next : w->pods;
    } while (p != from && w->turn.n < DISK_TURN_MAX);
    w->cursor = p;
    if (!w->turn.n)
        return;
    w->scan_ms = 0; /* again when these are done */
    w->turn.is_busy = true;
    crew_submit(w->node->crew, &w->turn.job, run_turn, turn_done, w);
}
