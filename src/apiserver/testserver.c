#include "apiserver/testserver.h"

#include <stdio.h>
#include <string.h>

static void die(const struct err *e)
{
    (void)fprintf(stderr, "testserver: %s\n", e->msg);
    abort();
}

void testserver_begin(struct testserver *t, const char *vfs)
{
    struct apiserver_config config = { .listen = "127.0.0.1:0", .vfs = vfs };
    struct err e;

    *t = (struct testserver){ 0 };
    scratch_make(&t->dir);
    config.data = t->dir.path;
    if (ev_loop_new(&t->loop, &e) < 0 || apiserver_open(t->loop, &config, &t->server, &e) < 0)
        die(&e);
    t->client = local_client_new(t->server, "test");
    testserver_settle(t);
}

void testserver_end(struct testserver *t)
{
    kube_client_free(t->client);
    apiserver_close(t->server);
    ev_loop_free(t->loop);
    scratch_remove(&t->dir);
    while (t->answers) {
        struct testanswer *a = t->answers;

        t->answers = a->next;
        object_unref(a->object);
        free(a);
    }
}

static void on_done(void *ctx, const struct kube_answer *answer)
{
    struct testanswer *a = ctx;

    a->is_there = true;
    if (answer->refusal) {
        a->code = answer->refusal->code ? answer->refusal->code : -1;
        (void)snprintf(a->message, sizeof a->message, "%s", buf_cstr(&answer->refusal->message));
    }
    a->object = answer->object ? object_ref(answer->object) : NULL;
    a->item_count = answer->item_count;
    ev_loop_stop(a->loop);
}

const struct testanswer *testserver_ask(struct testserver *t, const struct kube_request *rq)
{
    struct testanswer *a = NEW(struct testanswer);

    a->next = t->answers;
    a->loop = t->loop;
    t->answers = a;
    (void)kube_call_start(t->client, rq, on_done, a);
    while (!a->is_there)
        ev_loop_run(t->loop);
    return a;
}

const struct kind *testserver_kind(const char *plural)
{
    const char *dot = strchr(plural, '.');
    char name[64];
    const struct kind *k;

    (void)snprintf(name, sizeof name, "%.*s", dot ? (int)(dot - plural) : (int)strlen(plural),
                   plural);
    k = kind_find(dot ? dot + 1 : "", NULL, name);
    assert(k);
    return k;
}

const struct testanswer *testserver_create(struct testserver *t, const char *plural,
                                           const char *namespace, const char *json)
{
    OWN(json_doc_done) struct json_doc *doc = NULL;
    OWN(object_done) struct object *o = NULL;
    const struct kind *kind = testserver_kind(plural);
    struct err e;

    if (json_parse(span_cstr(json), NULL, &doc, &e) < 0 ||
        object_parse(kind, json_doc_root(doc), &o, &e) < 0)
        die(&e);
    return testserver_ask(
        t, &(struct kube_request){
               .verb = KUBE_CREATE, .kind = kind, .namespace = namespace, .object = o });
}

const struct testanswer *testserver_get(struct testserver *t, const char *plural,
                                        const char *namespace, const char *name)
{
    return testserver_ask(t, &(struct kube_request){ .verb = KUBE_GET,
                                                     .kind = testserver_kind(plural),
                                                     .namespace = namespace,
                                                     .name = name });
}

const struct testanswer *testserver_delete(struct testserver *t, const char *plural,
                                           const char *namespace, const char *name,
                                           enum kube_propagation how)
{
    return testserver_ask(t, &(struct kube_request){ .verb = KUBE_DELETE,
                                                     .kind = testserver_kind(plural),
                                                     .namespace = namespace,
                                                     .name = name,
                                                     .propagation = how });
}

void testserver_settle(struct testserver *t)
{
    struct store *store = t->server->store;
    uint64_t version;

    do { /* until some turns in a row have written nothing */
        version = store_version(store, STORE_HEAD);
        for (int i = 0; i < 20; i++)
            ev_loop_turn(t->loop);
    } while (version != store_version(store, STORE_HEAD) ||
             version != store_version(store, STORE_COMMITTED));
}
