#include "router/pick.h"

#include <string.h>

void pick_cancel(struct pick *w)
{
    if (!w->link)
        return;
    *w->link = w->next;
    if (w->next)
        w->next->link = w->link;
    w->link = NULL;
    w->picker->waiting_count--;
    ev_timer_stop(w->picker->loop, &w->timer);
}

/* Looks again. is_last: what is not there now is not there. */
static void look(struct pick *w, bool is_last)
{
    struct refusal why = { 0 };
    struct picked at;
    enum pick_verdict verdict = w->picker->ops->find(w->picker, w->target, &at, &why);

    if (verdict == PICK_WAITING && !is_last)
        return;
    pick_cancel(w);
    w->done(w->ctx, verdict == PICK_FOUND ? PICK_FOUND : PICK_REFUSED, &at, &why);
}

static void too_late(void *ctx)
{
    look(ctx, true);
}

enum pick_verdict pick_start(struct pick *w, struct picker *p, const struct target *t,
                             struct picked *ret, struct refusal *why, pick_fn done, void *ctx)
{
    enum pick_verdict verdict = p->ops->find(p, t, ret, why);

    if (verdict != PICK_WAITING)
        return verdict;
    if (p->waiting_count >= PICK_WAITS_MAX)
        return PICK_REFUSED;
    *w = (struct pick){
        .next = p->waiting, .link = &p->waiting, .picker = p, .target = t, .done = done, .ctx = ctx
    };
    if (w->next)
        w->next->link = &w->next;
    p->waiting = w;
    p->waiting_count++;
    ev_timer_start(p->loop, &w->timer, PICK_WAIT_MS, too_late, w);
    return PICK_WAITING;
}

void picker_changed(struct picker *p, const char *namespace)
{
    struct pick *next;

    for (struct pick *w = p->waiting; w; w = next) {
        next = w->next;
        if (!namespace || strcmp(w->target->namespace, namespace) == 0)
            look(w, false);
    }
}
