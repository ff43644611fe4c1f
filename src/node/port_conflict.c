#include "node/port_conflict.h"

#include "base/log.h"
#include "net/port_holder.h"
#include "node/event.h"
#include "node/ports.h"

#include <stdio.h>
#include <string.h>

struct conflict {
    struct conflict *next;
    struct object *pod;
    char ip[ADDRESS_TEXT_BYTES];
    uint16_t port;
    bool is_told;
    struct net_port_holder holder; /* text "": no socket listens there (any more) */
};

struct port_conflicts {
    struct node *node;
    struct crew_job job;
    struct conflict *waiting, *looked_at; /* looked_at: the job's while it runs */
};

static void conflict_free(struct conflict *c)
{
    object_unref(c->pod);
    free(c);
}

/* Many Pods want the same port: who has it at all addresses has it for all of them. */
static const struct net_port_holder *known_holder(const struct conflict *list,
                                                  const struct conflict *of)
{
    for (; list != of; list = list->next)
        if (list->port == of->port && list->is_told == of->is_told && list->holder.is_everywhere)
            return &list->holder;
    return NULL;
}

static void run_look(void *ctx, struct engine *en, const struct err *e)
{
    struct port_conflicts *all = ctx;
    const struct net_port_holder *known;
    struct net_addr at;

    (void)en, (void)e;
    for (struct conflict *c = all->looked_at; c; c = c->next) {
        known = known_holder(all->looked_at, c);
        if (known)
            c->holder = *known;
        else if (net_addr_of_ip(span_cstr(c->ip), c->port, &at))
            (void)(c->is_told ? net_port_holder_find_user(&at, &c->holder)
                              : net_port_holder_find(&at, &c->holder));
    }
}

static void tell(const struct node *n, const struct conflict *c)
{
    const char *who = *c->holder.text ? c->holder.text : "another program";
    char text[512];

    (void)snprintf(text, sizeof text,
                   "port %u of the Pod's address %s is taken by %s%s; it is tried again, and the "
                   "router and port-forward reach it all the same",
                   c->port, c->ip, who,
                   c->holder.is_everywhere ? ", which listens on all addresses" : "");
    log_warn("port.taken", KV("pod", object_name(c->pod)), KV("port", c->port), KV("holder", who));
    node_event(n->events, &(struct event_spec){ .about = c->pod,
                                                .node = n->name,
                                                .is_warning = true,
                                                .reason = "PortTaken",
                                                .message = text });
}

/* A client that knows only the address reaches the holder. Our own account's programs, and root's, could do without that what
 * they want; another's could not. One that does not listen (yet) may be anyone's. */
static void hear(struct node *n, const struct conflict *c)
{
    bool is_strangers = !*c->holder.text || (c->holder.uid != geteuid() && c->holder.uid != 0);
    struct record *r = record_find_uid(n, object_uid(c->pod));
    bool is_news = r && ports_hear(r, c->port, is_strangers);

    if (!c->is_told || (is_news && is_strangers))
        tell(n, c);
}

static void looked(void *ctx);

static void look(struct port_conflicts *all)
{
    all->looked_at = take_ptr(&all->waiting);
    crew_submit(all->node->crew, &all->job, run_look, looked, all);
}

static void looked(void *ctx)
{
    struct port_conflicts *all = ctx;
    struct conflict *list = take_ptr(&all->looked_at);

    for (struct conflict *c = list, *next; c; c = next) {
        next = c->next;
        if (!all->node->is_closing)
            hear(all->node, c);
        conflict_free(c);
    }
    if (all->waiting && !all->node->is_closing)
        look(all);
}

struct port_conflicts *port_conflicts_new(struct node *n)
{
    struct port_conflicts *all = NEW(struct port_conflicts);

    all->node = n;
    return all;
}

void port_conflicts_free(struct port_conflicts *all)
{
    if (!all)
        return;
    for (struct conflict *c = all->waiting, *next; c; c = next) {
        next = c->next;
        conflict_free(c);
    }
    free(all);
}

void port_conflicts_add(struct port_conflicts *all, const struct record *r, uint16_t port,
                        bool is_told)
{
    struct conflict *c = NEW(struct conflict);

    c->pod = object_ref(r->pod);
    (void)snprintf(c->ip, sizeof c->ip, "%s", r->ip);
    c->port = port;
    c->is_told = is_told;
    c->next = all->waiting;
    all->waiting = c;
    if (!all->looked_at)
        look(all);
}
