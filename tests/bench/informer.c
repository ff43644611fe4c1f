/* informer OBJECTS EVENTS POD.json [trim]: what a copy of so many Pods costs, each parsed for itself as a client over HTTPS
 * does it, and how many events a second it takes in, with an index, a listener and a work queue behind it. */
#include "bench/measure.h"

#include "base/fd.h"
#include "ev/loop.h"
#include "kube/informer.h"
#include "kube/queue.h"

#include <malloc.h>

/* A client with one list, and a watch whose events are given by hand. */
struct source {
    struct kube_client base;
    struct kube_call call;
    struct kube_watch watch;
    kube_done_fn done;
    struct kube_watch_events events;
    void *call_ctx, *watch_ctx;
    struct ev_task end;
};

static struct kube_call *on_call(struct kube_client *c, const struct kube_request *rq,
                                 kube_done_fn done, void *ctx)
{
    struct source *s = CONTAINER(c, struct source, base);

    (void)rq;
    s->done = done;
    s->call_ctx = ctx;
    s->call = (struct kube_call){ c };
    return &s->call;
}

static struct kube_watch *on_watch(struct kube_client *c, const struct kube_watch_spec *spec,
                                   const struct kube_watch_events *events, void *ctx)
{
    struct source *s = CONTAINER(c, struct source, base);

    (void)spec;
    s->events = *events;
    s->watch_ctx = ctx;
    s->watch = (struct kube_watch){ c };
    return &s->watch;
}

static void on_end(void *ctx)
{
    OWN(status_done) struct status why = STATUS_INIT;
    struct source *s = ctx;

    s->events.on_end(s->watch_ctx, &why);
}

static void on_stop(struct kube_watch *w)
{
    struct source *s = CONTAINER(w, struct source, watch);

    ev_post(s->base.loop, &s->end, on_end, s);
}

static const struct kube_client_ops ops = { .call = on_call,
                                            .watch = on_watch,
                                            .watch_stop = on_stop };

/* The pod with another name and version. */
static struct object *make(struct object *like, unsigned number, uint64_t version, struct buf *text)
{
    const struct kind *pods = object_kind(like);
    OWN(json_doc_done) struct json_doc *doc = NULL;
    char name[32];
    struct object *named = NULL, *o = NULL, *numbered;
    struct err e;

    (void)snprintf(name, sizeof name, "pod-%u", number);
    buf_clear(text);
    must(object_with_meta(like, &(struct meta_change){ .name = name, .uid = name }, &named, &e) ==
                 0 &&
             object_write(named, "v1", text, &e) == 0 &&
             json_parse(buf_span(text), NULL, &doc, &e) == 0 &&
             object_parse(pods, json_doc_root(doc), &o, &e) == 0,
         "a pod");
    numbered = object_with_version(o, version);
    object_unref(named);
    object_unref(o);
    return numbered;
}

struct counts {
    struct queue *queue;
    uint64_t worked;
};

static void on_update(void *ctx, struct object *old, struct object *now)
{
    struct counts *n = ctx;

    (void)old;
    queue_add(n->queue, object_namespace(now), object_name(now), QUEUE_NORMAL);
}

static void work(void *ctx, struct queue_item *item)
{
    ((struct counts *)ctx)->worked++;
    queue_done(item);
}

static uint64_t heap(void)
{
    struct mallinfo2 m = mallinfo2();

    return m.uordblks + m.hblkhd;
}

/* What the list brings, a page at a time, each Pod parsed for itself. Bytes of heap for each. */
static double fill(struct source *source, struct object *like, unsigned objects, struct buf *text)
{
    uint64_t before = heap();

    for (unsigned i = 0; i < objects; i += INFORMER_PAGE) {
        struct object *page[INFORMER_PAGE];
        unsigned n = MIN(objects - i, (unsigned)INFORMER_PAGE);

        for (unsigned j = 0; j < n; j++)
            page[j] = make(like, i + j, i + j + 1, text);
        source->done(source->call_ctx,
                     &(struct kube_answer){ .items = page,
                                            .item_count = n,
                                            .version = objects + 1,
                                            .next = i + n < objects ? "more" : NULL });
        for (unsigned j = 0; j < n; j++)
            object_unref(page[j]);
        ev_loop_turn(source->base.loop);
        ev_loop_turn(source->base.loop);
    }
    return (double)(heap() - before) / objects;
}

/* What the watch brings. Events a second. */
static double feed(struct source *source, struct informer *inf, const char *namespace,
                   unsigned events)
{
    uint64_t version = informer_count(inf) + 1;
    int64_t began = now_ns();

    for (unsigned i = 0; i < events; i++) {
        struct object *now = object_with_version(informer_get(inf, namespace, "pod-7"), ++version);

        source->events.on_event(source->watch_ctx, KUBE_MODIFIED, now, version);
        object_unref(now);
        if (i % 64 == 63) /* as many as one read of the socket brings */
            ev_loop_turn(source->base.loop);
    }
    for (int i = 0; i < 4; i++)
        ev_loop_turn(source->base.loop);
    return events / ((double)(now_ns() - began) / 1e9);
}

int main(int argc, char **argv)
{
    static const struct informer_index by[] = { { informer_keys_path, "spec.nodeName", true },
                                                { informer_keys_namespace, NULL, false } };
    OWN(buf_done) struct buf text = BUF_INIT(1 << 20);
    OWN(json_doc_done) struct json_doc *doc = NULL;
    struct source source = { .base = { .ops = &ops } };
    struct queue_spec spec = { .name = "bench", .workers = 10, .work = work };
    struct counts counts = { 0 };
    struct informer *inf = NULL;
    struct object *like = NULL;
    double bytes, rate;
    struct err e;

    must(argc == 4 || argc == 5, "usage: informer OBJECTS EVENTS POD.json [trim]");
    must(fd_read_file(argv[3], &text, &e) == 0 &&
             json_parse(buf_span(&text), NULL, &doc, &e) == 0 &&
             object_parse(kind_find("", "v1", "pods"), json_doc_root(doc), &like, &e) == 0 &&
             ev_loop_new(&source.base.loop, &e) == 0,
         argv[3]);
    spec.ctx = &counts;
    counts.queue = queue_new(source.base.loop, &spec);
    must(informer_new(&source.base,
                      &(struct informer_spec){ .kind = object_kind(like),
                                               .trim = argc == 5 ? informer_trim_managed : NULL,
                                               .indexes = by,
                                               .index_count = LEN(by) },
                      &inf, &e) == 0,
         "an informer");
    informer_listen(inf, &(struct informer_listener){ .on_update = on_update }, &counts);
    informer_start(inf);
    bytes = fill(&source, like, (unsigned)number(argv[1], "objects"), &text);
    rate = feed(&source, inf, object_namespace(like), (unsigned)number(argv[2], "events"));
    must(counts.worked > 0, "work");
    (void)printf("{\"objects\":%zu,\"object_bytes\":%.0f,\"events_per_second\":%.0f}\n",
                 informer_count(inf), bytes, rate);
    informer_close(inf);
    queue_close(counts.queue, NULL, NULL);
    object_unref(like);
    ev_loop_free(source.base.loop);
    return 0;
}
