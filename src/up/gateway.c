#include "up/gateway.h"

#include "base/json_edit.h"
#include "base/log.h"
#include "base/time.h"
#include "isolate/dir.h"
#include "kube/informer.h"
#include "up/given.h"
#include "up/limits.h"
#include "up/names.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define GROUP           "gateway.networking.k8s.io"
#define CONTROLLER_NAME "silica.dev/router"
#define GATEWAY_PORT    80 /* the SDKs' */

struct gateway {
    struct kube_client *client;
    struct informer *gateways, *routes;
    size_t synced;
    void (*want)(void *ctx, bool is_wanted);
    void *ctx;
    bool is_wanted;
    char address[64]; /* "": not served now */
    char why[480];    /* why not; "" with no address: not known yet */
    bool is_pending;  /* it is being tried */
};

/* What a condition says. */
struct verdict {
    const char *type;
    bool is_true;
    const char *reason, *message;
};

/* ---- conditions ---- */

static const struct json *find_named(const struct json *list, const char *key, const char *name)
{
    JSON_EACH(item, list)
    {
        if (span_is(json_str(json_get(item, key)), name))
            return item;
    }
    return NULL;
}

/* old: the list that is there: the time of a condition that stays as it is stays, too. */
static void put_condition(struct json_out *out, const struct json *old, int64_t generation,
                          const struct verdict *v)
{
    const struct json *last = find_named(old, "type", v->type);
    const char *status = v->is_true ? "True" : "False";
    char now[TIME_TEXT_BYTES];
    struct timespec t;

    (void)clock_gettime(CLOCK_REALTIME, &t);
    json_out_object_begin(out);
    json_out_key(out, "type"), json_out_cstr(out, v->type);
    json_out_key(out, "status"), json_out_cstr(out, status);
    json_out_key(out, "reason"), json_out_cstr(out, v->reason);
    json_out_key(out, "message"), json_out_cstr(out, v->message);
    json_out_key(out, "observedGeneration"), json_out_i64(out, generation);
    json_out_key(out, "lastTransitionTime");
    if (span_is(json_str(json_get(last, "status")), status))
        json_out_value(out, json_get(last, "lastTransitionTime"));
    else
        json_out_cstr(out, time_rfc3339(now, t, false));
    json_out_object_end(out);
}

/* ---- writing ---- */

static void on_written(void *ctx, const struct kube_answer *answer)
{
    const struct status *no = answer->refusal;

    (void)ctx;
    if (no && no->code && no->code != 404 && no->code != 409)
        log_warn("up.gateway", KV("err", buf_cstr(&no->message)));
}

/* status: what it should be. gone: a member that merging would leave behind, or NULL. */
static void say(struct gateway *g, const struct object *o, struct span status, const char *gone)
{
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(GIVEN_TEXT_MAX_BYTES);
    OWN(buf_done) struct buf text = BUF_INIT(2 * GIVEN_TEXT_MAX_BYTES);
    OWN(json_doc_done) struct json_doc *doc = NULL;
    const struct json *now = object_member(o, "status");
    struct err e;

    if (json_parse(status, NULL, &doc, &e) < 0 ||
        json_node_equal_value(json_edit_doc(ed, doc), now))
        return;
    status = span_slice(status, 0, status.n - 1); /* without its last brace */
    if (buf_addf(&text, &e, "{\"status\":%.*s", SPAN_ARG(status)) < 0 ||
        (gone && json_get(now, gone) && buf_addf(&text, &e, ",\"%s\":null", gone) < 0) ||
        buf_addf(&text, &e, "}}") < 0) {
        log_warn("up.gateway", KV("err", &e));
        return;
    }
    given_status(
        g->client,
        &(struct given){ GROUP, object_kind(o)->plural, object_namespace(o), buf_cstr(&text) },
        object_name(o), on_written, g);
}

/* ---- a Gateway ---- */

static bool is_parent(const struct object *route, const struct json *ref, const struct object *gw)
{
    const char *kind = json_cstr(json_get(ref, "kind")),
               *space = json_cstr(json_get(ref, "namespace"));

    return (!kind || strcmp(kind, "Gateway") == 0) &&
           span_is(json_str(json_get(ref, "name")), object_name(gw)) &&
           strcmp(space ? space : object_namespace(route), object_namespace(gw)) == 0;
}

static int64_t count_routes(const struct gateway *g, const struct object *gw)
{
    OWN(informer_walk_done) struct informer_walk w = { 0 };
    struct object *route;
    int64_t n = 0;

    informer_walk_all(&w, g->routes);
    while ((route = informer_walk_next(&w))) {
        JSON_EACH(ref, object_at(route, "spec.parentRefs"))
        {
            if (!is_parent(route, ref, gw))
                continue;
            n++;
            break;
        }
    }
    return n;
}

/* NULL: the router serves it. */
static const char *unserved(const struct json *listener, const char **ret_message)
{
    int64_t port = 0;

    (void)json_i64(json_get(listener, "port"), &port);
    if (!span_is(json_str(json_get(listener, "protocol")), "HTTP")) {
        *ret_message = "only HTTP is served here";
        return "UnsupportedProtocol";
    }
    if (port != GATEWAY_PORT) {
        *ret_message = "only port 80 is served here";
        return "PortUnavailable";
    }
    return NULL;
}

static void put_listener(struct json_out *out, const struct gateway *g, const struct object *gw,
                         const struct json *listener)
{
    const struct json *old = json_get(find_named(object_at(gw, "status.listeners"), "name",
                                                 json_cstr(json_get(listener, "name"))),
                                      "conditions");
    const char *message = "", *reason = unserved(listener, &message);
    const struct verdict verdicts[] = {
        { "Accepted", !reason, reason ? reason : "Accepted", message },
        { "Programmed", !reason && *g->address,
          reason        ? "Invalid"
          : *g->address ? "Programmed"
                        : "Pending",
          reason ? message : g->why },
        { "ResolvedRefs", true, "ResolvedRefs", "" },
    };

    json_out_object_begin(out);
    json_out_key(out, "name"), json_out_value(out, json_get(listener, "name"));
    json_out_key(out, "attachedRoutes"), json_out_i64(out, reason ? 0 : count_routes(g, gw));
    json_out_key(out, "supportedKinds"), json_out_array_begin(out);
    json_out_object_begin(out);
    json_out_key(out, "group"), json_out_cstr(out, GROUP);
    json_out_key(out, "kind"), json_out_cstr(out, "HTTPRoute");
    json_out_object_end(out);
    json_out_array_end(out);
    json_out_key(out, "conditions"), json_out_array_begin(out);
    EACH(v, verdicts) {
        put_condition(out, old, object_generation(gw), v);
    }
    json_out_array_end(out);
    json_out_object_end(out);
}

static void put_status(struct json_out *out, const struct gateway *g, const struct object *gw)
{
    const struct json *old = object_at(gw, "status.conditions");
    bool is_served = *g->address;
    const struct verdict verdicts[] = {
        { "Accepted", true, "Accepted", "the router of silica up serves it" },
        { "Programmed", is_served,
          is_served       ? "Programmed"
          : g->is_pending ? "Pending"
                          : "AddressNotUsable",
          is_served ? "the router listens there" : g->why },
    };

    json_out_object_begin(out);
    if (is_served) {
        json_out_key(out, "addresses"), json_out_array_begin(out);
        json_out_object_begin(out);
        json_out_key(out, "type"), json_out_cstr(out, "IPAddress");
        json_out_key(out, "value"), json_out_cstr(out, g->address);
        json_out_object_end(out);
        json_out_array_end(out);
    }
    json_out_key(out, "conditions"), json_out_array_begin(out);
    EACH(v, verdicts) {
        put_condition(out, old, object_generation(gw), v);
    }
    json_out_array_end(out);
    json_out_key(out, "listeners"), json_out_array_begin(out);
    JSON_EACH(listener, object_at(gw, "spec.listeners"))
    put_listener(out, g, gw, listener);
    json_out_array_end(out);
    json_out_object_end(out);
}

static void look_at_gateway(struct gateway *g, const struct object *gw)
{
    OWN(buf_done) struct buf text = BUF_INIT(GIVEN_TEXT_MAX_BYTES);
    struct json_out out;
    struct err e;

    if (g->synced < 2 || (!*g->address && !*g->why))
        return;
    json_out_init(&out, &text, 0);
    put_status(&out, g, gw);
    if (json_out_end(&out, &e) < 0)
        log_warn("up.gateway", KV("name", object_name(gw)), KV("err", &e));
    else
        say(g, gw, buf_span(&text), *g->address ? NULL : "addresses");
}

/* ---- a route ---- */

static bool leads_to_router(const struct object *route)
{
    JSON_EACH(rule, object_at(route, "spec.rules"))
    {
        JSON_EACH(backend, json_get(rule, "backendRefs"))
        {
            if (!span_is(json_str(json_get(backend, "name")), UP_ROUTER_SVC))
                return false;
        }
    }
    return true;
}

static void put_parent(struct json_out *out, const struct object *route, const struct json *ref)
{
    bool is_ours = leads_to_router(route);
    const struct json *old = NULL;
    const struct verdict verdicts[] = {
        { "Accepted", true, "Accepted", "" },
        { "ResolvedRefs", is_ours, is_ours ? "ResolvedRefs" : "BackendNotFound",
          is_ours ? "" : "requests go to " UP_ROUTER_SVC ": nothing else is served here" },
    };

    JSON_EACH(parent, object_at(route, "status.parents"))
    {
        if (span_is(json_str(json_get(parent, "controllerName")), CONTROLLER_NAME))
            old = json_get(parent, "conditions");
    }
    json_out_object_begin(out);
    json_out_key(out, "parentRef"), json_out_value(out, ref);
    json_out_key(out, "controllerName"), json_out_cstr(out, CONTROLLER_NAME);
    json_out_key(out, "conditions"), json_out_array_begin(out);
    EACH(v, verdicts) {
        put_condition(out, old, object_generation(route), v);
    }
    json_out_array_end(out);
    json_out_object_end(out);
}

static struct object *parent_of(struct gateway *g, const struct object *route,
                                const struct json *ref)
{
    const char *space = json_cstr(json_get(ref, "namespace")),
               *name = json_cstr(json_get(ref, "name"));
    struct object *gw =
        name ? informer_get(g->gateways, space ? space : object_namespace(route), name) : NULL;

    return gw && is_parent(route, ref, gw) ? gw : NULL;
}

static void look_at_route(struct gateway *g, const struct object *route)
{
    OWN(buf_done) struct buf text = BUF_INIT(GIVEN_TEXT_MAX_BYTES);
    struct json_out out;
    struct err e;

    if (g->synced < 2)
        return;
    json_out_init(&out, &text, 0);
    json_out_object_begin(&out);
    json_out_key(&out, "parents"), json_out_array_begin(&out);
    JSON_EACH(ref, object_at(route, "spec.parentRefs"))
    {
        if (parent_of(g, route, ref))
            put_parent(&out, route, ref);
    }
    json_out_array_end(&out);
    json_out_object_end(&out);
    if (json_out_end(&out, &e) < 0)
        log_warn("up.gateway", KV("route", object_name(route)), KV("err", &e));
    else
        say(g, route, buf_span(&text), NULL);
}

/* ---- looking ---- */

static void look_at_all(struct gateway *g)
{
    OWN(informer_walk_done) struct informer_walk gateways = { 0 }, routes = { 0 };
    struct object *o;

    informer_walk_all(&gateways, g->gateways);
    while ((o = informer_walk_next(&gateways)))
        look_at_gateway(g, o);
    informer_walk_all(&routes, g->routes);
    while ((o = informer_walk_next(&routes)))
        look_at_route(g, o);
}

/* A route counts at its Gateway, and a Gateway is what a route is attached to: there are few of both. */
static void look(struct gateway *g)
{
    bool is_wanted = informer_count(g->gateways) > 0;

    if (g->synced < 2)
        return;
    if (is_wanted != g->is_wanted) {
        g->is_wanted = is_wanted;
        g->want(g->ctx, is_wanted);
    }
    look_at_all(g);
}

static void on_add(void *ctx, struct object *o, bool is_initial)
{
    (void)o, (void)is_initial;
    look(ctx);
}

static void on_update(void *ctx, struct object *old, struct object *now)
{
    (void)old, (void)now;
    look(ctx);
}

static void on_delete(void *ctx, struct object *last)
{
    (void)last;
    look(ctx);
}

static void on_synced(void *ctx)
{
    struct gateway *g = ctx;

    g->synced++;
    look(g);
}

void gateway_hear(struct gateway *g, int dir_fd)
{
    OWN(buf_done) struct buf text = BUF_INIT(UP_FILE_MAX_BYTES);
    OWN(json_doc_done) struct json_doc *doc = NULL;
    const char *address, *why, *hint;
    struct err e;

    if (dir_read(dir_fd, UP_GATEWAY_FILE, &text, &e) < 0 ||
        json_parse(buf_span(&text), NULL, &doc, &e) < 0) {
        log_warn("up.gateway", KV("err", &e));
        return;
    }
    address = json_cstr(json_get(json_doc_root(doc), "address"));
    why = json_cstr(json_get(json_doc_root(doc), "error"));
    hint = json_cstr(json_get(json_doc_root(doc), "hint"));
    (void)snprintf(g->address, sizeof g->address, "%s", address ? address : "");
    (void)snprintf(g->why, sizeof g->why, "%s%s%s", why ? why : "", hint && *hint ? "; " : "",
                   hint ? hint : "");
    g->is_pending = !address && !why && g->is_wanted;
    if (g->is_pending)
        (void)snprintf(g->why, sizeof g->why, "the router does not listen there yet");
    look(g);
}

/* ---- life ---- */

int gateway_open(struct kube_client *client, void (*want)(void *ctx, bool is_wanted), void *ctx,
                 struct gateway **ret, struct err *e)
{
    static const struct informer_listener listener = {
        .on_add = on_add, .on_update = on_update, .on_delete = on_delete, .on_synced = on_synced
    };
    struct gateway *g = NEW(struct gateway);
    const struct informer_spec gateways = { .kind = kind_find(GROUP, NULL, "gateways") },
                               routes = { .kind = kind_find(GROUP, NULL, "httproutes") };

    g->client = client;
    g->want = want;
    g->ctx = ctx;
    if (informer_new(client, &gateways, &g->gateways, e) < 0 ||
        informer_new(client, &routes, &g->routes, e) < 0) {
        gateway_close(g);
        return -1;
    }
    informer_listen(g->gateways, &listener, g);
    informer_listen(g->routes, &listener, g);
    informer_start(g->gateways);
    informer_start(g->routes);
    *ret = g;
    return 0;
}

void gateway_close(struct gateway *g)
{
    if (!g)
        return;
    if (g->gateways)
        informer_close(g->gateways);
    if (g->routes)
        informer_close(g->routes);
    free(g);
}
