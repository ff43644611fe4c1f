#include "router/overview.h"

#include "base/disk_room.h"
#include "base/log.h"
#include "kube/client.h"
#include "router/limits.h"
#include "router/page.h"

enum { POOLS, CLAIMS, SANDBOXES, EVENTS, LISTS };

struct list {
    struct object **items;
    size_t n;
    bool is_cut;
};

struct overview {
    struct kube_client *client;
    int disk_fd;
    uint64_t floor_bytes;
    const struct kind *kinds[LISTS];
    struct list lists[LISTS];
    size_t at; /* which list is asked for */
    bool is_asking;
    struct overview_wait *waiting;
};

static void ask(struct overview *o);

/* ---- the end of a round ---- */

static void forget(struct overview *o)
{
    for (size_t i = 0; i < LISTS; i++) {
        for (size_t k = 0; k < o->lists[i].n; k++)
            object_unref(o->lists[i].items[k]);
        free(o->lists[i].items);
        o->lists[i] = (struct list){ 0 };
    }
}

static void tell(struct overview *o, int status, struct span text)
{
    struct overview_wait *w;

    o->is_asking = false;
    while ((w = o->waiting)) {
        overview_cancel(w);
        w->done(w->ctx, status, text);
    }
    forget(o);
}

static struct page_list of(const struct list *l)
{
    return (struct page_list){ l->items, l->n, l->is_cut };
}

/* NULL: there is room. */
static const char *disk_text(const struct overview *o, char *text, size_t n)
{
    struct disk_room room;
    struct err e;

    if (o->disk_fd < 0 || disk_room_read(o->disk_fd, o->floor_bytes, &room, &e) < 0 ||
        !disk_room_is_short(&room))
        return NULL;
    return disk_room_text(&room, text, n);
}

static void finish(struct overview *o)
{
    OWN(buf_done) struct buf html = BUF_INIT(PAGE_MAX_BYTES);
    char text[DISK_ROOM_TEXT_BYTES];
    const struct page page = { of(&o->lists[POOLS]), of(&o->lists[CLAIMS]),
                               of(&o->lists[SANDBOXES]), of(&o->lists[EVENTS]),
                               disk_text(o, text, sizeof text) };
    struct err e;

    if (page_write(&page, &html, &e) < 0)
        tell(o, 500, span_cstr(e.msg));
    else
        tell(o, 200, buf_span(&html));
}

/* ---- a round ---- */

static void on_list(void *ctx, const struct kube_answer *a)
{
    struct overview *o = ctx;
    struct list *l = &o->lists[o->at];

    if (a->refusal) {
        log_warn("overview.list", KV("what", o->kinds[o->at]->plural),
                 KV("why", buf_cstr(&a->refusal->message)));
        tell(o, 503, SPAN("The API server did not say what there is; see the router's log."));
        return;
    }
    l->items = own_new((a->item_count + 1) * sizeof *l->items);
    for (size_t i = 0; i < a->item_count; i++)
        l->items[l->n++] = object_ref(a->items[i]);
    l->is_cut = a->next != NULL;
    if (++o->at == LISTS)
        finish(o);
    else
        ask(o);
}

static void ask(struct overview *o)
{
    (void)kube_call_start(o->client,
                          &(struct kube_request){ .verb = KUBE_LIST,
                                                  .kind = o->kinds[o->at],
                                                  .limit = PAGE_OBJECTS_MAX },
                          on_list, o);
}

/* ---- who asks ---- */

bool overview_is_asked_for(const struct http_exchange *x)
{
    static const char *const names[] = { "x-sandbox-id", "x-sandbox-namespace", "x-sandbox-port",
                                         "x-sandbox-pod-ip", "x-sandbox-uid" };

    for (size_t i = 0; i < LEN(names); i++)
        if (http_field(x, names[i]).p)
            return false;
    return http_method_is(x, "GET") && span_is(http_path(x), "/") &&
           span_find_str(http_field(x, "accept"), SPAN("text/html")) < http_field(x, "accept").n;
}

void overview_start(struct overview *o, struct overview_wait *wait)
{
    wait->link = &o->waiting;
    wait->next = o->waiting;
    if (wait->next)
        wait->next->link = &wait->next;
    o->waiting = wait;
    if (o->is_asking)
        return;
    o->is_asking = true;
    o->at = 0;
    ask(o);
}

void overview_cancel(struct overview_wait *wait)
{
    if (!wait->link)
        return;
    *wait->link = wait->next;
    if (wait->next)
        wait->next->link = wait->link;
    wait->link = NULL;
    wait->next = NULL;
}

void overview_answer(struct http_exchange *x, struct span html)
{
    OWN(buf_done) struct buf policy = BUF_INIT(512);
    struct err e;

    if (page_policy(&policy, &e) < 0) {
        http_answer_detail(x, 500, e.msg);
        return;
    }
    http_answer_field(x, "content-security-policy", buf_span(&policy));
    http_answer_field(x, "x-frame-options", SPAN("DENY"));
    http_answer_field(x, "x-content-type-options", SPAN("nosniff"));
    http_answer_field(x, "referrer-policy", SPAN("no-referrer"));
    http_answer_field(x, "cross-origin-resource-policy", SPAN("same-origin"));
    http_answer_field(x, "cross-origin-opener-policy", SPAN("same-origin"));
    http_answer_field(x, "cache-control", SPAN("no-store"));
    http_answer(x, 200, "text/html; charset=utf-8", html);
}

/* ---- life ---- */

struct overview *overview_new(struct kube_client *client, int disk_fd, uint64_t floor_bytes)
{
    static const char *const what[LISTS][2] = { { "extensions.agents.x-k8s.io",
                                                  "sandboxwarmpools" },
                                                { "extensions.agents.x-k8s.io", "sandboxclaims" },
                                                { "agents.x-k8s.io", "sandboxes" },
                                                { "", "events" } };
    struct overview *o = NEW(struct overview);

    o->client = client;
    o->disk_fd = disk_fd;
    o->floor_bytes = floor_bytes;
    for (size_t i = 0; i < LISTS; i++)
        o->kinds[i] = kind_find(what[i][0], NULL, what[i][1]);
    return o;
}

void overview_free(struct overview *o)
{
    if (!o)
        return;
    assert(!o->waiting);
    forget(o);
    free(o);
}
