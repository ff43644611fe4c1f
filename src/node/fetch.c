#include "node/fetch.h"

#include "base/time.h"
#include "node/claims.h"
#include "node/node_impl.h"

#include <string.h>

#define BODY_MAX_BYTES 4096

struct fetch {
    struct record *record;
    size_t at;
    fetch_fn done;
    void *ctx;
    struct ev_task task;
};

static void next(void *ctx);

static void finish(struct fetch *f, const struct err *e)
{
    fetch_fn done = f->done;
    void *ctx = f->ctx;

    free(f);
    done(ctx, e);
}

static void take(struct need *need, const struct kube_answer *answer)
{
    if (need->what != NEED_TOKEN) {
        need_set_object(need, answer->object);
        return;
    }
    need_set_token(need, json_cstr(json_get(json_get(answer->body, "status"), "token")));
    need->renew_ms = time_mono_ms() + need->seconds * 1000 / 5 * 4; /* as the kubelet does */
}

static void on_answer(void *ctx, const struct kube_answer *answer)
{
    struct fetch *f = ctx;
    struct need *need = &f->record->needs.v[f->at];
    const struct status *st = answer->refusal;
    struct err e;

    if (st && st->code != 404) {
        (void)err_set(&e, ERR_UNAVAILABLE, "cannot get %s \"%s\": %s",
                      need->what == NEED_TOKEN ? "a token of service account"
                                               : need_resource(need->what),
                      need->name, st->code ? buf_cstr(&st->message) : "no answer came");
        finish(f, &e);
        return;
    }
    if (!st)
        take(need, answer);
    f->at++;
    next(f);
}

static int write_token(const struct record *r, const struct need *need, struct buf *body,
                       struct err *e)
{
    struct json_out o;

    json_out_init(&o, body, 0);
    json_out_object_begin(&o);
    json_out_key(&o, "apiVersion"), json_out_cstr(&o, "authentication.k8s.io/v1");
    json_out_key(&o, "kind"), json_out_cstr(&o, "TokenRequest");
    json_out_key(&o, "spec");
    json_out_object_begin(&o);
    json_out_key(&o, "audiences");
    json_out_array_begin(&o);
    if (need->audience && *need->audience)
        json_out_cstr(&o, need->audience);
    json_out_array_end(&o);
    json_out_key(&o, "expirationSeconds"), json_out_u64(&o, need->seconds);
    json_out_key(&o, "boundObjectRef");
    json_out_object_begin(&o);
    json_out_key(&o, "apiVersion"), json_out_cstr(&o, "v1");
    json_out_key(&o, "kind"), json_out_cstr(&o, "Pod");
    json_out_key(&o, "name"), json_out_cstr(&o, r->name);
    json_out_key(&o, "uid"), json_out_cstr(&o, r->uid);
    json_out_object_end(&o);
    json_out_object_end(&o);
    json_out_object_end(&o);
    return json_out_end(&o, e);
}

/* It is known without asking. */
static bool is_there(struct record *r, struct need *need)
{
    struct object *claim =
        need->what == NEED_CLAIM ? claims_of_pod(r->node->claims, r->pod, need->name) : NULL;

    if (claim)
        need_set_object(need, claim);
    return claim || need->token;
}

static void next(void *ctx)
{
    struct fetch *f = ctx;
    struct record *r = f->record;
    OWN(buf_done) struct buf body = BUF_INIT(BODY_MAX_BYTES);
    struct kube_request rq = { .verb = KUBE_GET, .namespace = r->namespace };
    struct need *need;
    struct err e;

    while (f->at < r->needs.n && is_there(r, &r->needs.v[f->at]))
        f->at++;
    if (f->at == r->needs.n) {
        finish(f, NULL);
        return;
    }
    need = &r->needs.v[f->at];
    rq.name = need->name;
    if (need->what == NEED_TOKEN) {
        if (write_token(r, need, &body, &e) < 0) {
            finish(f, &e);
            return;
        }
        rq.verb = KUBE_CREATE;
        rq.sub = "token";
        rq.body = buf_span(&body);
    }
    rq.kind = kind_find("", "v1",
                        need->what == NEED_TOKEN ? "serviceaccounts" : need_resource(need->what));
    (void)kube_call_start(r->node->client, &rq, on_answer, f);
}

static void refuse(void *ctx)
{
    struct fetch *f = ctx;
    struct err e;

    (void)err_set(&e, ERR_LIMIT, "a Pod that names more than %d other objects", NEEDS_MAX);
    finish(f, &e);
}

void fetch_start(struct record *r, fetch_fn done, void *ctx)
{
    struct fetch *f = NEW(struct fetch);
    struct needs before;
    struct err e;
    int rc;

    f->record = r;
    f->done = done;
    f->ctx = ctx;
    before = r->needs;
    r->needs = (struct needs){ 0 };
    rc = needs_of_pod(r->pod, &r->needs, &e);
    needs_keep_tokens(&r->needs, &before, time_mono_ms());
    needs_done(&before);
    ev_post(r->node->loop, &f->task, rc < 0 ? refuse : next, f);
}
