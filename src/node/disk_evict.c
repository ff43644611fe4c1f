/* What becomes of Pods that hold too much, or fill the disk: their sandboxes are frozen, and end or go on. */
#include "node/disk_watch_impl.h"

#include "base/log.h"
#include "node/claims.h"
#include "node/event.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- standing still ---- */

static void tell(const struct disk_pod *p, bool is_warning, const char *reason, const char *message)
{
    const struct record *r = p->record;

    if (r->pod)
        node_event(r->node->events, &(struct event_spec){ .about = r->pod,
                                                          .node = r->node->name,
                                                          .is_warning = is_warning,
                                                          .reason = reason,
                                                          .message = message });
}

static void run_move(void *ctx, struct engine *en, const struct err *e)
{
    struct move *m = ctx;

    if (!en)
        m->e = *e;
    for (size_t i = 0; en && i < m->n; i++) {
        struct err why;

        /* One that has ended stands still. */
        if ((m->is_freeze ? engine_pause(en, m->boxes[i], &why)
                          : engine_resume(en, m->boxes[i], &why)) < 0 &&
            why.code != ERR_CLOSED && why.code != ERR_NOT_FOUND)
            m->e = why;
    }
}

/* The Pod is given to the next look at it only now: what is being killed must not be frozen meanwhile. */
static void moved(void *ctx)
{
    struct move *m = ctx, **at = &m->of->moves;
    struct disk_pod *p = m->pod;

    while (*at != m)
        at = &(*at)->next;
    *at = m->next;
    if (m->e.code)
        log_warn("disk.move", KV("freeze", m->is_freeze), KV("err", &m->e));
    if (p) {
        p->is_moving = false;
        p->is_frozen = m->is_freeze && !m->e.code;
        if (m->evicted && !p->record->evict_message)
            p->record->evict_message = take_ptr(&m->evicted);
        node_wake(m->of->node, p->record);
    }
    free(m->evicted);
    free(m->boxes);
    free(m);
}

static void start_move(struct disk_watch *w, struct disk_pod *p, bool is_freeze, char *evicted)
{
    const struct record *r = p->record;
    struct move *m = NEW(struct move);

    m->of = w;
    m->pod = p;
    m->is_freeze = is_freeze;
    m->evicted = evicted;
    m->boxes = own_array(r->life.n, sizeof *m->boxes);
    for (size_t i = 0; i < r->life.n; i++)
        if (r->life.v[i].now.state == RUN_UP)
            record_box(r, i, r->life.v[i].now.attempt, m->boxes[m->n++]);
    m->next = w->moves;
    w->moves = m;
    p->is_moving = true;
    crew_submit(w->node->crew, &m->job, run_move, moved, m);
}

/* ---- too much ---- */

static void tell_claim(const struct disk_pod *p, const struct volume *v)
{
    struct node *n = p->record->node;
    const struct object *claim = claims_at(n->claims, v->place);
    char text[320];

    if (!claim)
        return;
    (void)snprintf(text, sizeof text,
                   "it holds %" PRIu64 " MiB, its size is %s: Pod %s, which has it, is evicted",
                   v->limit.used >> 20, v->limit_text, p->record->name);
    node_event(n->events, &(struct event_spec){ .about = claim,
                                                .node = n->name,
                                                .is_warning = true,
                                                .reason = "VolumeSizeExceeded",
                                                .message = text });
}

/* v NULL: all volumes together. The kubelet's words, where it has any. */
void disk_evict(struct disk_watch *w, struct disk_pod *p, const struct volume *v, bool is_counted)
{
    char *text;
    int n;

    if (p->is_evicted || p->is_moving) /* the next look says so again */
        return;
    p->is_evicted = true;
    if (!v)
        n = asprintf(&text,
                     "Pod ephemeral local storage usage exceeds the total limit of containers %s. ",
                     p->total_text);
    else if (!is_counted)
        n = asprintf(&text, "Usage of volume \"%s\" cannot be counted, and its limit is \"%s\". ",
                     v->name, v->limit_text);
    else if (v->is_claim)
        n = asprintf(&text, "Usage of PersistentVolumeClaim \"%s\" exceeds its size \"%s\". ",
                     v->name, v->limit_text);
    else
        n = asprintf(&text, "Usage of EmptyDir volume \"%s\" exceeds the limit \"%s\". ", v->name,
                     v->limit_text);
    if (n < 0)
        abort();
    log_warn("disk.evict", KV("namespace", p->record->namespace), KV("pod", p->record->name),
             KV("why", (const char *)text), KV("bytes", v ? v->limit.used : p->total.used));
    if (v && v->is_claim)
        tell_claim(p, v);
    start_move(w, p, true, text);
}

/* ---- no room ---- */

/* What grew most since it was measured before stands still. */
void disk_freeze_most(struct disk_watch *w)
{
    struct disk_pod *most = NULL;
    uint64_t most_grew = DISK_GREW_BYTES;
    char text[200];

    for (struct disk_pod *p = w->pods; p; p = p->next) {
        uint64_t grew = 0;

        for (size_t i = 0; i < p->n; i++)
            grew += p->v[i].grew;
        if (grew >= most_grew && !p->is_frozen && !p->is_moving && !p->is_evicted) {
            most = p;
            most_grew = grew;
        }
    }
    if (!most)
        return;
    (void)snprintf(text, sizeof text,
                   "The disk has %" PRIu64 " MiB left, less than %" PRIu64
                   " MiB: this Pod writes most and stands still until there is room",
                   w->free_bytes >> 20, w->floor_bytes >> 20);
    log_warn("disk.freeze", KV("namespace", most->record->namespace), KV("pod", most->record->name),
             KV("free", w->free_bytes), KV("grew", most_grew));
    tell(most, true, "DiskPressure", text);
    start_move(w, most, true, NULL);
    for (size_t i = 0; i < most->n; i++)
        most->v[i].grew = 0;
}

void disk_freeze_again(struct disk_pod *p)
{
    if (p->is_frozen && !p->is_moving)
        start_move(p->record->node->disk, p, true, NULL);
}

void disk_thaw(struct disk_watch *w)
{
    for (struct disk_pod *p = w->pods; p; p = p->next) {
        if (!p->is_frozen || p->is_moving || p->is_evicted)
            continue;
        log_info("disk.thaw", KV("namespace", p->record->namespace), KV("pod", p->record->name));
        tell(p, false, "DiskPressureOver", "The disk has room again: this Pod goes on");
        start_move(w, p, false, NULL);
    }
}
