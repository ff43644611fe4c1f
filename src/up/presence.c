#include "up/presence.h"

#include "base/log.h"
#include "base/time.h"
#include "kube/informer.h"
#include "up/names.h"
#include "up/given.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define NAME_AND_LABELS(name, app, part)                                                           \
    "\"metadata\":{\"name\":\"" name "\",\"labels\":{\"app\":\"" app "\",\"" UP_PART_LABEL         \
    "\":\"" part "\""
/* Nobody has to end anything when it is deleted, so it goes at once. */
#define POD(name, part, container)                                                                 \
    "{" NAME_AND_LABELS(                                                                           \
        name, name,                                                                                \
        part) "}},\"spec\":{\"nodeName\":\"" UP_NODE                                               \
              "\",\"terminationGracePeriodSeconds\":0,\"automountServiceAccountToken\":false,"     \
              "\"containers\":[" container "]}}"
#define SERVICE                                                                                    \
    "{" NAME_AND_LABELS(                                                                           \
        UP_ROUTER_SVC, UP_ROUTER,                                                                  \
        "router") "}},\"spec\":{\"selector\":{\"app\":"                                            \
                  "\"" UP_ROUTER                                                                   \
                  "\"},\"ports\":[{\"name\":\"http\",\"port\":8080,\"targetPort\":8080,"           \
                  "\"protocol\":\"TCP\"}]}}"
#define SLICE                                                                                              \
    "{" NAME_AND_LABELS(                                                                                   \
        UP_ROUTER_SVC, UP_ROUTER,                                                                          \
        "router") ",\"kubernetes.io/service-name\":\"" UP_ROUTER_SVC                                       \
                  "\"}},\"addressType\":\"IPv4\",\"endpoints\":[{\"addresses\":[\"127.0.0.1\"],"           \
                  "\"conditions\":{\"ready\":true,\"serving\":true,\"terminating\":false},\"targetRef\":{" \
                  "\"kind\":\"Pod\",\"name\":\"" UP_ROUTER                                                 \
                  "\"}}],\"ports\":[{\"name\":\"http\",\"port\":8080,"                                     \
                  "\"protocol\":\"TCP\"}]}"
#define ROUTER_CONTAINER                                                                           \
    "{\"name\":\"router\",\"image\":\"silica/sandbox-router\",\"ports\":[{\"name\":\"http\","      \
    "\"containerPort\":8080}]}"
#define CONTROLLER_CONTAINER                                                                       \
    "{\"name\":\"controller\",\"image\":\"silica/agent-sandbox-controller\"}"
#define DEPLOYMENT                                                                                 \
    "{" NAME_AND_LABELS(UP_CONTROLLER, UP_CONTROLLER,                                              \
                        "controller") "}},\"spec\":{\"replicas\":1,"                               \
                                      "\"selector\":{\"matchLabels\":{\"app\":\"" UP_CONTROLLER    \
                                      "\"}},\"template\":{\"metadata\":{"                          \
                                      "\"labels\":{\"app\":\"" UP_CONTROLLER                       \
                                      "\"}},\"spec\":{\"containers\":[" CONTROLLER_CONTAINER       \
                                      "]}}}}"

/* clang-format off */
static const struct presence_row {
    const char *group, *plural, *name, *text;
    bool is_everywhere;    /* else in the system's namespace only */
    const char *container; /* of a Pod */
} rows[] = {
    { "", "services", UP_ROUTER_SVC, SERVICE, true, NULL },
    { "discovery.k8s.io", "endpointslices", UP_ROUTER_SVC, SLICE, true, NULL },
    { "", "pods", UP_ROUTER, POD(UP_ROUTER, "router", ROUTER_CONTAINER), true, "router" },
    { "apps", "deployments", UP_CONTROLLER, DEPLOYMENT, false, NULL },
    { "", "pods", UP_CONTROLLER, POD(UP_CONTROLLER, "controller", CONTROLLER_CONTAINER), false, "controller" },
};
/* Copies of what the rows are, and of namespaces. */
static const struct { const char *group, *plural; bool is_marked; /* only those with our label */ } watched[] = {
    { "", "namespaces", false }, { "", "services", true }, { "discovery.k8s.io", "endpointslices", true },
    { "", "pods", true }, { "apps", "deployments", false },
};
/* clang-format on */

#define DEPLOYED                                                                                     \
    "{\"status\":{\"observedGeneration\":%lld,\"replicas\":%lld,\"updatedReplicas\":%lld,"           \
    "\"readyReplicas\":%lld,\"availableReplicas\":%lld,\"conditions\":[{\"type\":\"Available\","     \
    "\"status\":\"True\",\"reason\":\"BuiltIn\",\"message\":\"a part of silica up does this work\"," \
    "\"lastTransitionTime\":\"%s\",\"lastUpdateTime\":\"%s\"}]}}"
#define CONDITION(type) "{\"type\":\"" type "\",\"status\":\"True\",\"lastTransitionTime\":\"%s\"}"
#define RUNNING                                                                                                                                                               \
    "{\"status\":{\"phase\":\"Running\",\"hostIP\":\"127.0.0.1\",\"podIP\":\"127.0.0.1\","                                                                                    \
    "\"podIPs\":[{\"ip\":\"127.0.0.1\"}],\"startTime\":\"%s\",\"conditions\":[" CONDITION("PodScheduled") "," CONDITION(                                                      \
        "Initialized") "," CONDITION("ContainersReady") "," CONDITION("Ready") "],\"containerStatuses\":[{\"name\":\"%s\",\"image\":\"built in\","                            \
                                                                               "\"imageID\":\"\",\"ready\":true,\"started\":true,\"restartCount\":0,\"state\":{\"running\":{" \
                                                                               "\"startedAt\":\"%s\"}}}]}}"

struct presence {
    struct kube_client *client;
    enum log_level level; /* of this process, where nobody wishes for another */
    struct informer *copies[LEN(watched)];
    size_t synced;
};

static struct informer *copy_of(struct presence *p, const char *plural)
{
    for (size_t i = 0; i < LEN(watched); i++)
        if (strcmp(watched[i].plural, plural) == 0)
            return p->copies[i];
    return NULL;
}

/* 409: somebody else made one of that name. 404, 403: the namespace went, or is going. */
static void on_written(void *ctx, const struct kube_answer *answer)
{
    const struct status *no = answer->refusal;

    (void)ctx;
    if (no && no->code && no->code != 409 && no->code != 404 && no->code != 403)
        log_warn("up.presence", KV("err", buf_cstr(&no->message)));
}

static void say_text(struct presence *p, const struct presence_row *row, const struct object *o,
                     const char *text)
{
    given_status(p->client, &(struct given){ row->group, row->plural, object_namespace(o), text },
                 object_name(o), on_written, p);
}

static void say_now(char now[TIME_TEXT_BYTES])
{
    struct timespec t;

    (void)clock_gettime(CLOCK_REALTIME, &t);
    (void)time_rfc3339(now, t, false);
}

/* What a kubelet would say. */
static void say_running(struct presence *p, const struct presence_row *row, const struct object *o)
{
    const char *phase = object_text(o, "status.phase");
    char now[TIME_TEXT_BYTES], text[2048];

    if (phase && strcmp(phase, "Running") == 0)
        return;
    say_now(now);
    (void)snprintf(text, sizeof text, RUNNING, now, now, now, now, now, row->container, now);
    say_text(p, row, o, text);
}

/* What a controller of Deployments would say of ours, and of those of the public manifests, whose work is done already. */
static void say_deployed(struct presence *p, const struct presence_row *row, const struct object *o)
{
    long long generation = object_generation(o);
    char now[TIME_TEXT_BYTES], text[2048];
    int64_t wanted = 1, ready = 0, seen = 0;

    (void)json_i64(object_at(o, "spec.replicas"), &wanted);
    (void)json_i64(object_at(o, "status.availableReplicas"), &ready);
    (void)json_i64(object_at(o, "status.observedGeneration"), &seen);
    if (ready == wanted && seen == generation)
        return;
    say_now(now);
    (void)snprintf(text, sizeof text, DEPLOYED, generation, (long long)wanted, (long long)wanted,
                   (long long)wanted, (long long)wanted, now, now);
    say_text(p, row, o, text);
}

/* The value of the last --zap-log-level among a container's arguments, in either form; "": there is none. */
static void read_zap_level(const struct json *args, char *ret, size_t size)
{
    static const char flag[] = "--zap-log-level";
    bool is_next = false;

    for (size_t i = 0; i < json_count(args); i++) {
        struct span arg = json_str(json_at(args, i));
        bool is_joined =
            span_starts(arg, flag) && arg.n > strlen(flag) && arg.p[strlen(flag)] == '=';

        if (is_joined)
            arg = span_skip(arg, strlen(flag) + 1);
        if (is_joined || is_next)
            (void)snprintf(ret, size, "%.*s", SPAN_ARG(arg));
        is_next = !is_joined && !is_next && span_is(arg, flag);
    }
}

/* The controllers run in this process: what people set at their Deployment to see more holds for its log. */
static void heed_log_level(const struct presence *p, const struct object *o)
{
    const struct json *containers = object_at(o, "spec.template.spec.containers");
    enum log_level level = p->level;
    char word[16] = "";

    if (strcmp(object_name(o), UP_CONTROLLER) != 0 ||
        strcmp(object_namespace(o), UP_NAMESPACE) != 0)
        return;
    for (size_t i = 0; i < json_count(containers); i++)
        read_zap_level(json_get(json_at(containers, i), "args"), word, sizeof word);
    if (word[0])
        level = log_level_of_zap(word);
    if (level == log_level())
        return;
    log_set_level(level);
    log_info("up.log_level", KV("zap", (const char *)word));
}

static void say_status(struct presence *p, const struct presence_row *row, const struct object *o)
{
    if (row->container && presence_part(o))
        say_running(p, row, o);
    else if (strcmp(row->plural, "deployments") == 0)
        say_deployed(p, row, o);
}

/* A Deployment of the public manifests, wherever it was put. */
static bool is_built_in(const struct object *o)
{
    return strcmp(object_kind(o)->plural, "deployments") == 0 &&
           (strcmp(object_name(o), UP_CONTROLLER) == 0 || strcmp(object_name(o), UP_ROUTER) == 0 ||
            strcmp(object_name(o), "sandbox-router-deployment") == 0);
}

static bool is_in(const struct presence_row *row, const char *namespace)
{
    return row->is_everywhere || strcmp(namespace, UP_NAMESPACE) == 0;
}

static void look(struct presence *p, const char *namespace)
{
    struct object *space;

    if (p->synced < LEN(watched))
        return;
    space = informer_get(p->copies[0], "", namespace);
    if (!space || object_is_deleting(space))
        return;
    EACH(row, rows) {
        struct object *o = informer_get(copy_of(p, row->plural), namespace, row->name);

        if (!is_in(row, namespace))
            continue;
        if (o)
            say_status(p, row, o);
        else
            given_create(p->client,
                         &(struct given){ row->group, row->plural, namespace, row->text },
                         on_written, p);
    }
}

static void look_at(struct presence *p, const struct object *o)
{
    static const struct presence_row deployment = { .group = "apps", .plural = "deployments" };
    const char *namespace = object_namespace(o);

    if (is_built_in(o) && !object_is_deleting(o)) {
        heed_log_level(p, o);
        say_deployed(p, &deployment, o);
    }
    look(p, *namespace ? namespace : object_name(o));
}

static void on_add(void *ctx, struct object *o, bool is_initial)
{
    (void)is_initial;
    look_at(ctx, o);
}

static void on_update(void *ctx, struct object *old, struct object *now)
{
    (void)old;
    if (is_built_in(now))
        look_at(ctx, now);
}

static void on_delete(void *ctx, struct object *last)
{
    const char *namespace = object_namespace(last);

    look(ctx, *namespace ? namespace : object_name(last));
}

static void on_synced(void *ctx)
{
    struct presence *p = ctx;
    OWN(informer_walk_done) struct informer_walk w = { 0 };
    struct object *space;

    if (++p->synced < LEN(watched))
        return;
    informer_walk_all(&w, p->copies[0]);
    while ((space = informer_walk_next(&w)))
        look(p, object_name(space));
}

int presence_open(struct kube_client *client, struct presence **ret, struct err *e)
{
    static const struct informer_listener listener = {
        .on_add = on_add, .on_update = on_update, .on_delete = on_delete, .on_synced = on_synced
    };
    struct presence *p = NEW(struct presence);

    p->client = client;
    p->level = log_level();
    for (size_t i = 0; i < LEN(watched); i++) {
        const struct informer_spec spec = {
            .kind = kind_find(watched[i].group, NULL, watched[i].plural),
            .labels = watched[i].is_marked ? UP_PART_LABEL : NULL,
        };

        if (informer_new(client, &spec, &p->copies[i], e) < 0) {
            presence_close(p);
            return -1;
        }
        informer_listen(p->copies[i], &listener, p);
    }
    for (size_t i = 0; i < LEN(watched); i++)
        informer_start(p->copies[i]);
    *ret = p;
    return 0;
}

void presence_close(struct presence *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < LEN(watched); i++)
        if (p->copies[i])
            informer_close(p->copies[i]);
    free(p);
}

static const struct presence_row *row_of(const struct kind *kind, const char *namespace,
                                         const char *name)
{
    EACH(row, rows) {
        if (strcmp(kind->plural, row->plural) == 0 && strcmp(kind->group, row->group) == 0 &&
            strcmp(name, row->name) == 0 && is_in(row, namespace))
            return row;
    }
    return NULL;
}

/* The Service of the API server itself, and where it leads; others' clients find the server by them. */
static bool is_api(const struct kind *kind, const char *namespace, const char *name)
{
    return strcmp(name, "kubernetes") == 0 && strcmp(namespace, "default") == 0 &&
           (strcmp(kind->plural, "services") == 0 || strcmp(kind->plural, "endpointslices") == 0 ||
            strcmp(kind->plural, "endpoints") == 0);
}

bool presence_has(const struct kind *kind, const char *namespace, const char *name)
{
    return row_of(kind, namespace, name) || is_api(kind, namespace, name);
}

const char *presence_part(const struct object *pod)
{
    const struct presence_row *row =
        row_of(object_kind(pod), object_namespace(pod), object_name(pod));
    const char *node = object_text(pod, "spec.nodeName");

    return row && node && strcmp(node, UP_NODE) == 0 ? row->container : NULL;
}
