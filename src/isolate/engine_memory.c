/* Volumes that are memory: the keeper has the place, its callers do the work there. Nobody else keeps a descriptor of it: when
 * the keeper dies it is gone. */
#include "isolate/engine_impl.h"

#include "isolate/cellar.h"

static int ask_cellar(struct engine *en, int *ret_fd, struct err *e)
{
    OWN(buf_done) struct buf packet = BUF_INIT(WIRE_MAX_BYTES);
    struct wire_answer a;

    *ret_fd = -1;
    if (engine_connect(en, en->starts_keeper, e) < 0 ||
        wire_write_ask(WIRE_CELLAR, "memory", &packet, e) < 0)
        return -1;
    if (engine_ask_fd(en, buf_span(&packet), ENGINE_CREATE_MS, &a, ret_fd, e) == 0)
        return *ret_fd < 0 ? err_set(e, ERR_PROTOCOL, "the keeper sent no descriptor") : 0;
    if (e->code == ERR_PROTOCOL) /* it does not know what it was asked for */
        return err_set(e, ERR_UNSUPPORTED, "the keeper that runs is of an older version");
    return -1;
}

int engine_has_memory(struct engine *en, struct err *e)
{
    OWN_FD int fd = -1;

    return ask_cellar(en, &fd, e);
}

int engine_make_memory(struct engine *en, const struct cellar_volume *v, struct err *e)
{
    OWN_FD int fd = -1;

    return ask_cellar(en, &fd, e) < 0 ? -1 : cellar_make(fd, v, e);
}

int engine_drop_memory(struct engine *en, const char *prefix, struct err *e)
{
    OWN_FD int fd = -1;

    return ask_cellar(en, &fd, e) < 0 ? -1 : cellar_drop(fd, prefix, e);
}
