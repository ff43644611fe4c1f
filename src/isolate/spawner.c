#include "isolate/spawner.h"

#include "base/fd.h"
#include "base/packet.h"
#include "isolate/cgroup_spare.h"
#include "isolate/holder.h"
#include "isolate/spec.h"
#include "isolate/user_counts.h"
#include "isolate/yard.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#define LULL_MS 20 /* without a request: then there is time */

struct request {
    struct spawner_ask ask;
    int fds[SPAWNER_FDS]; /* -1: none */
    uint8_t text[SPEC_MAX_BYTES];
    size_t text_n;
};

struct spawner {
    const struct spawner_spec *spec;
    struct yard *yard; /* NULL: none could be had */
    struct cgroup_spare spare;
};

static void close_fds(struct request *r)
{
    for (int i = 0; i < SPAWNER_FDS; i++)
        own_fd_close(&r->fds[i]);
}

static int given(const struct request *r, enum spawner_fd which)
{
    return r->fds[which] < 0 ? 0 : r->fds[which];
}

/* Puts the descriptors that came in their places. */
static int sort_fds(struct request *r, const int *came, size_t n, struct err *e)
{
    size_t at = 0;

    for (int i = 0; i < SPAWNER_FDS; i++)
        r->fds[i] = r->ask.has[i] && at < n ? came[at++] : -1;
    while (at < n)
        (void)close(came[at++]);
    for (int i = 0; i < SPAWNER_FDS; i++)
        if (r->ask.has[i] && r->fds[i] < 0)
            return err_set(e, ERR_INTERNAL, "the keeper's descriptors did not come");
    return 0;
}

static int make(struct spawner *me, struct request *r, struct spawner_answer *answer, struct err *e)
{
    OWN(spec_done) struct spec spec = { 0 };
    struct box *box = NULL;
    int rc;

    if (spec_read(span_of(r->text, r->text_n), &spec, e) < 0)
        return -1;
    spec.box.runtime_fd = me->spec->runtime_fd;
    spec.box.control_fd = given(r, SPAWNER_CONTROL);
    spec.box.log_fd = given(r, SPAWNER_OUT);
    spec.box.err_fd = given(r, SPAWNER_ERR);
    spec.box.status_fd = given(r, SPAWNER_STATUS);
    spec.box.cellar_fd = given(r, SPAWNER_CELLAR);
    spec.box.is_staying = spec.is_kept && spec.box.command && !spec.ends_with_command;
    spec.box.yard = me->yard;
    spec.box.parent = me->spec->parent;
    spec.box.spare = &me->spare;
    spec.box.place = (struct box_place){
        .is_sibling = true,
        .parent_pidfd = me->spec->keeper_pidfd,
        .is_nested = me->spec->engine_fd >= 0,
        .join_pidfd = given(r, SPAWNER_JOIN),
        .ids_base = r->ask.ids_base,
    };
    rc = box_start(&spec.box, &box, e);
    if (rc < 0)
        return -1;
    rc = box_describe(box, &answer->box, e);
    (void)snprintf(answer->unenforced, sizeof answer->unenforced, "%s", box_unenforced(box));
    if (rc < 0)
        box_free(box); /* it has ended already: its cgroups go with it */
    else
        box_release(box);
    return rc;
}

/* False: the keeper is gone. */
static bool serve(struct spawner *me, struct request *r)
{
    struct iovec parts[] = { { &r->ask, sizeof r->ask }, { r->text, sizeof r->text } };
    struct spawner_answer answer = { 0 };
    int came[SPAWNER_FDS];
    size_t n, fd_count = LEN(came);
    struct err e;

    if (packet_receive(me->spec->fd, parts, LEN(parts), &n, came, &fd_count, &e) < 0 ||
        n < sizeof r->ask)
        return false;
    r->text_n = n - sizeof r->ask;
    answer.is_made =
        sort_fds(r, came, fd_count, &answer.e) == 0 && make(me, r, &answer, &answer.e) == 0;
    close_fds(r);
    return packet_send(me->spec->fd, &(struct iovec){ &answer, sizeof answer }, 1, NULL, 0, &e) ==
           0;
}

/* What the next sandbox will want is made when nobody waits for one. */
static void await_request(struct spawner *me)
{
    if (!holder_wants_spare() && !cgroup_spare_is_wanted(&me->spare))
        return;
    if (poll(&(struct pollfd){ .fd = me->spec->fd, .events = POLLIN }, 1, LULL_MS) != 0)
        return;
    if (holder_wants_spare()) {
        if (!cgroup_spare_is_wanted(&me->spare))
            cgroup_leave(); /* it is not to be in the next sandbox's groups */
        holder_make_spare();
    }
    if (cgroup_spare_is_wanted(&me->spare))
        cgroup_spare_make(&me->spare, me->spec->parent);
}

/* An account has rights over networks, and over all its sandboxes at once, only in a user namespace of its own. Entering it
 * makes us undumpable, and our /proc files root's, which is not in there. */
static bool enter_engine(const struct spawner_spec *spec)
{
    return spec->engine_fd < 0 ||
           (setns(spec->engine_fd, CLONE_NEWUSER) == 0 && prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0);
}

_Noreturn void spawner_run(const struct spawner_spec *spec)
{
    static struct request r;
    static struct spawner me;
    struct err e;

    (void)prctl(PR_SET_NAME, "silica-spawner");
    me.spec = spec;
    /* Kill us when the keeper ends; a change of namespaces forgets it. */
    if (!enter_engine(spec) || prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 ||
        poll(&(struct pollfd){ .fd = spec->keeper_pidfd, .events = POLLIN }, 1, 0) > 0)
        _exit(1);
    if (spec->engine_fd >= 0)
        user_counts_bound_engine();
    if (yard_open(&me.yard, &e) < 0)
        me.yard = NULL;
    while (serve(&me, &r))
        await_request(&me);
    cgroup_spare_done(&me.spare); /* the keeper removes what they are in */
    _exit(0);
}
