#include "controller/service.h"

#include "controller/names.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* One port and protocol of a Pod. */
struct port {
    int64_t number;
    struct span protocol;
    struct span name; /* the first that a container gave it, and that no other port has */
};

/* More are left out: the API has no such Pod. */
#define PORTS_MAX 1024

struct ports {
    struct port *v;
    size_t n;
};

static struct port *find(struct ports *all, int64_t number, struct span protocol)
{
    for (size_t i = 0; i < all->n; i++)
        if (all->v[i].number == number && span_eq(all->v[i].protocol, protocol))
            return &all->v[i];
    return NULL;
}

static bool is_taken(const struct ports *all, struct span name)
{
    for (size_t i = 0; i < all->n; i++)
        if (all->v[i].name.n && span_eq(all->v[i].name, name))
            return true;
    return false;
}

static void collect(struct ports *all, const struct json *container)
{
    JSON_EACH(port, json_get(container, "ports"))
    {
        struct span protocol = json_str(json_get(port, "protocol"));
        struct span name = json_str(json_get(port, "name"));
        struct port *known;
        int64_t number;

        if (!protocol.n)
            protocol = SPAN("TCP");
        if (!json_i64(json_get(port, "containerPort"), &number) || number <= 0)
            continue;
        known = find(all, number, protocol);
        if (!known && all->n < PORTS_MAX) {
            known = &all->v[all->n++];
            *known = (struct port){ number, protocol, SPAN_NONE };
        }
        if (known && !known->name.n && name.n && !is_taken(all, name))
            known->name = name;
    }
}

static int by_port(const void *a, const void *b)
{
    const struct port *x = a, *y = b;
    int order = (x->number > y->number) - (x->number < y->number);

    if (order)
        return order;
    order = memcmp(x->protocol.p, y->protocol.p, MIN(x->protocol.n, y->protocol.n));
    return order ? order : (x->protocol.n > y->protocol.n) - (x->protocol.n < y->protocol.n);
}

/* "p-8080-tcp", or with -2, -3 behind it when that is somebody's name already. */
static struct span make_name(struct json_edit *ed, const struct ports *all, const struct port *p)
{
    char base[64], text[96];
    size_t n = (size_t)snprintf(base, sizeof base, "p-%lld-%.*s", (long long)p->number,
                                (int)MIN(p->protocol.n, (size_t)16), (const char *)p->protocol.p);

    for (size_t i = 0; i < n && i < sizeof base; i++)
        base[i] = (char)tolower((unsigned char)base[i]);
    (void)snprintf(text, sizeof text, "%s", base);
    for (size_t i = 2; is_taken(all, span_cstr(text)); i++)
        (void)snprintf(text, sizeof text, "%s-%zu", base, i);
    return json_edit_text(ed, span_cstr(text));
}

static struct json_node *port_node(struct json_edit *ed, const struct port *p)
{
    struct json_node *node = json_edit_object(ed);

    json_node_set(node, "name", json_edit_str(ed, p->name));
    json_node_set(node, "protocol", json_edit_str(ed, p->protocol));
    json_node_set(node, "port", json_edit_i64(ed, p->number));
    json_node_set(node, "targetPort", json_edit_i64(ed, p->number));
    return node;
}

struct json_node *service_ports(struct json_edit *ed, const struct json *pod_spec)
{
    OWN_MEM struct port *places = own_array(PORTS_MAX, sizeof *places);
    struct ports all = { places, 0 };
    struct json_node *list;

    JSON_EACH(container, json_get(pod_spec, "containers"))
    {
        collect(&all, container);
    }
    JSON_EACH(container, json_get(pod_spec, "initContainers"))
    {
        if (span_is(json_str(json_get(container, "restartPolicy")), "Always"))
            collect(&all, container);
    }
    if (!all.n)
        return NULL;
    qsort(all.v, all.n, sizeof *all.v, by_port);
    list = json_edit_array(ed);
    for (size_t i = 0; i < all.n; i++) {
        if (!all.v[i].name.n)
            all.v[i].name = make_name(ed, &all, &all.v[i]);
        json_node_append(list, port_node(ed, &all.v[i]));
    }
    return list;
}
