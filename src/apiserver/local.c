#include "apiserver/local_impl.h"

#include "apiserver/limits.h"

struct local *local_ref(struct local *l)
{
    l->refs++;
    return l;
}

void local_unref(struct local *l)
{
    if (--l->refs > 0)
        return;
    free(l->manager);
    user_done(&l->self);
    free(l);
}

int local_op(struct local *l, const struct kind *kind, const char *version, struct op *ret,
             struct status *st)
{
    *ret = (struct op){ .store = l->s->store,
                        .user = &l->self,
                        .kind = kind,
                        .version = version ? kind_version(kind, version) : &kind->versions[0],
                        .namespace = "",
                        .name = "",
                        .manager = l->manager,
                        .fields = CHECK_IGNORE,
                        .is_reserved = l->s->is_reserved,
                        .is_deputy = l->is_deputy };
    return ret->version ? 0 : status_no_resource(st);
}

void local_say_canceled(struct status *st)
{
    status_clear(st);
    (void)buf_add_capped(&st->message, SPAN("canceled"));
}

static void client_free(struct kube_client *base)
{
    struct local *l = CONTAINER(base, struct local, base);

    local_calls_cancel(l);
    local_watches_stop(l);
    snapshots_done(&l->snapshots);
    l->s = NULL;
    local_unref(l);
}

static const struct kube_client_ops ops = {
    .call = local_call_start,
    .call_cancel = local_call_cancel,
    .watch = local_watch_start,
    .watch_stop = local_watch_stop,
    .free = client_free,
};

void local_client_be_deputy(struct kube_client *c)
{
    CONTAINER(c, struct local, base)->is_deputy = true;
}

struct kube_client *local_client_new(struct apiserver *s, const char *manager)
{
    struct local *l = NEW(struct local);
    struct err e;

    l->self = (struct user)USER_INIT;
    if (user_set_name(&l->self, SPAN(USER_SELF), &e) < 0 ||
        user_add_group(&l->self, SPAN(GROUP_MASTERS), &e) < 0 ||
        user_add_group(&l->self, SPAN(GROUP_AUTHENTICATED), &e) < 0)
        abort(); /* constants that fit */
    l->base = (struct kube_client){ &ops, s->loop };
    l->s = s;
    l->manager = own_strdup(manager);
    l->refs = 1;
    return &l->base;
}
