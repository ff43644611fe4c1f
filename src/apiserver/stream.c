/* exec, attach, portforward and log: judged here, done by the pod side, another process (pods.h). What client and pod side
 * say to each other is passed on unread: this process has the keys, so it does not parse what comes out of a sandbox. */
#include "apiserver/authz.h"
#include "apiserver/limits.h"
#include "apiserver/log_options.h"
#include "apiserver/pods.h"
#include "base/json.h"
#include "base/log.h"
#include "base/str.h"
#include "http/relay.h"

#include <string.h>

#define DEFAULT_CONTAINER "kubectl.kubernetes.io/default-container"
#define NAMES_MAX_BYTES   4096 /* of containers in a refusal; then the list is cut */

static bool is_log(const struct call *c)
{
    return c->op.sub->sub == KIND_SUB_LOG;
}

/* ---- may it be done ---- */

/* A WebSocket opens with a GET, which needs the verb get: but no right to look shall be one to run something. */
static int check_create(struct call *c)
{
    const struct authz_ask ask = { .verb = "create",
                                   .group = c->req.group,
                                   .resource = c->req.resource,
                                   .subresource = c->req.subresource,
                                   .name = c->req.name,
                                   .namespace = c->req.namespace };

    return c->req.verb == VERB_GET ? authz_question(c->s->store, &c->user, &ask, &c->status) : 0;
}

/* Calls fn for the name of each container, those that prepare the Pod first. */
static void each_container(const struct object *pod, void (*fn)(void *ctx, const char *name),
                           void *ctx)
{
    static const char *const lists[] = { "spec.initContainers", "spec.containers",
                                         "spec.ephemeralContainers" };

    EACH(list, lists) {
        JSON_EACH(container, object_at(pod, *list))
        {
            const char *name = json_cstr(json_get(container, "name"));

            if (name)
                fn(ctx, name);
        }
    }
}

struct search {
    const char *wanted;
    const char *found; /* the Pod's own text */
};

static void compare(void *ctx, const char *name)
{
    struct search *s = ctx;

    if (strcmp(name, s->wanted) == 0)
        s->found = name;
}

static const char *find_container(const struct object *pod, const char *wanted)
{
    struct search s = { .wanted = wanted ? wanted : "" };

    each_container(pod, compare, &s);
    return s.found;
}

static void list_name(void *ctx, const char *name)
{
    struct buf *names = ctx;

    if (names->n)
        (void)buf_add_capped(names, SPAN(" "));
    (void)buf_add_capped(names, span_cstr(name));
}

/* *ret is a text of the Pod. */
static int pick_container(struct call *c, const struct object *pod, const char **ret)
{
    const struct json *list = object_at(pod, "spec.containers");
    OWN(buf_done) struct buf names = BUF_INIT(NAMES_MAX_BYTES);
    const char *given = call_query(c, "container");

    if (given && *given) {
        *ret = find_container(pod, given);
        if (*ret)
            return 0;
        return status_bad_request(&c->status, "container %s is not valid for pod %s", given,
                                  c->op.name);
    }
    *ret = find_container(pod, object_annotation(pod, DEFAULT_CONTAINER));
    if (!*ret && json_count(list) == 1)
        *ret = json_cstr(json_get(json_at(list, 0), "name"));
    if (*ret)
        return 0;
    each_container(pod, list_name, &names);
    return status_bad_request(&c->status,
                              "a container name must be specified for pod %s, choose one of: [%s]",
                              c->op.name, buf_cstr(&names));
}

/* Nothing runs any more. What it wrote may still be read. */
static int check_phase(struct call *c, const struct object *pod)
{
    const char *phase = object_text(pod, "status.phase");

    if (!phase || (strcmp(phase, "Succeeded") != 0 && strcmp(phase, "Failed") != 0))
        return 0;
    if (c->op.sub->sub == KIND_SUB_PORTFORWARD)
        return status_bad_request(
            &c->status, "unable to forward port because pod is not running. Current status=%s",
            phase);
    return status_bad_request(&c->status,
                              "cannot %s a container in a completed pod; current phase is %s",
                              c->op.sub->sub == KIND_SUB_EXEC ? "exec into" : "attach", phase);
}

static int write_user(const struct user *u, struct buf *out, struct err *e)
{
    struct json_out json;

    json_out_init(&json, out, 0);
    json_out_object_begin(&json);
    json_out_key(&json, "user"), json_out_cstr(&json, user_name(u));
    json_out_key(&json, "groups"), json_out_array_begin(&json);
    for (size_t i = 0; i < u->group_count; i++)
        json_out_cstr(&json, user_group(u, i));
    json_out_array_end(&json);
    json_out_object_end(&json);
    return json_out_end(&json, e);
}

/* Its last word, so that what the client wrote there does not count. */
static int write_caller(struct call *c, const struct object *pod, struct buf *out, struct err *e)
{
    OWN(buf_done) struct buf text = BUF_INIT(STREAM_CALLER_MAX_BYTES);
    struct pods *pods = c->s->pods;

    if (c->op.sub->sub != KIND_SUB_PORTFORWARD || !pods->ops->wants_caller ||
        !pods->ops->wants_caller(pods, pod))
        return 0;
    if (write_user(&c->user, &text, e) < 0 || buf_add(out, SPAN("&caller="), e) < 0)
        return -1;
    return str_percent_encode(buf_span(&text), "", out, e);
}

/* What the pod side is asked for: the client's words, then ours, which count. */
static int write_target(struct call *c, const struct object *pod, const char *container,
                        struct span query, struct buf *out)
{
    struct err e;

    if (buf_addf(out, &e, "/api/v1/namespaces/%s/pods/%s/%s?", c->op.namespace, c->op.name,
                 c->op.sub->name) == 0 &&
        buf_add(out, query, &e) == 0 &&
        (!container || buf_addf(out, &e, "&container=%s", container) == 0) &&
        buf_addf(out, &e, "&uid=%s", object_uid(pod)) == 0 && write_caller(c, pod, out, &e) == 0)
        return 0;
    return status_of_err(&c->status, &e);
}

/* ---- passing it on ---- */

static void on_answered(void *ctx)
{
    struct call *c = ctx;

    c->s->stream_waiting_bytes -= c->waiting_bytes;
    c->waiting_bytes = 0;
}

static void on_failed(void *ctx, struct http_exchange *x, const struct err *e)
{
    OWN(buf_done) struct buf body = BUF_INIT(STATUS_TEXT_MAX_BYTES);
    struct call *c = ctx;
    struct err unsaid;

    log_warn("api.stream_failed", KV("namespace", c->op.namespace), KV("pod", c->op.name),
             KV("err", e));
    (void)status_internal(&c->status, "error dialing backend: %s", e->msg);
    (void)status_write(&c->status, &body, &unsaid);
    c->told = c->status.code;
    http_answer(x, c->status.code, "application/json", buf_span(&body));
}

static void on_done(void *ctx)
{
    struct call *c = ctx;

    if (http_relay_status(c->relay))
        c->told = http_relay_status(c->relay);
    c->relay = NULL;
    on_answered(c);
    c->s->stream_count--;
    key_limit_leave(&c->s->stream_limit, take_ptr(&c->stream_row));
    call_free(c);
}

static void pass_on(struct call *c, const struct net_addr *at, struct span target)
{
    const struct http_relay_spec spec = { .client = c->s->streams,
                                          .to = { .host = "pod", .addr = at },
                                          .target = target,
                                          .head_ms = STREAM_HEAD_MS,
                                          .on_failed = on_failed,
                                          .on_answered = on_answered,
                                          .on_done = on_done,
                                          .ctx = c };

    c->s->stream_count++;
    c->s->stream_waiting_bytes += c->waiting_bytes = target.n;
    c->relay = http_relay_start(c->x, &spec);
}

/* What a namespace may have keeps its tenants from the streams of others. Administrators need a way in all the same. */
static int check_room(struct call *c, size_t query_bytes)
{
    struct apiserver *s = c->s;

    if (s->stream_count >= STREAMS_MAX ||
        s->stream_waiting_bytes + query_bytes > STREAM_WAITING_MAX_BYTES)
        return status_too_many(&c->status, 1, "too many streams at once");
    if (user_is_in(&c->user, GROUP_MASTERS) ||
        key_limit_enter(&s->stream_limit, c->op.namespace, &c->stream_row))
        return 0;
    return status_too_many(
        &c->status, 1, "the Pods of namespace '%s' have %d streams, which is as many as they may",
        c->op.namespace, STREAMS_PER_NAMESPACE_MAX);
}

/* Nobody has it (yet). */
static void answer_unplaced(struct call *c)
{
    if (is_log(c)) {
        call_answer_bytes(c, 204, NULL, SPAN_NONE);
        return;
    }
    (void)status_bad_request(&c->status, "pod %s does not have a host assigned", c->op.name);
    call_refuse(c);
}

static void pass_to_pod(struct call *c, const struct object *pod, const char *container,
                        struct span query)
{
    OWN(buf_done) struct buf target = BUF_INIT(API_HEAD_MAX_BYTES + STREAM_TARGET_EXTRA_BYTES);
    struct pods *pods = c->s->pods;
    struct net_addr at;
    struct err e;

    if (!pods || pods->ops->find(pods, pod, &at, &e) < 0) {
        if (!pods || e.code == ERR_NOT_FOUND) {
            answer_unplaced(c);
            return;
        }
        (void)status_internal(&c->status, "error dialing backend: %s", e.msg);
    } else if (write_target(c, pod, container, query, &target) == 0 &&
               check_room(c, query.n) == 0) {
        log_info("api.stream", KV("id", http_id(c->x)), KV("user", user_name(&c->user)),
                 KV("what", c->op.sub->name), KV("namespace", c->op.namespace),
                 KV("pod", c->op.name), KV("container", container ? container : ""));
        pass_on(c, &at, buf_span(&target));
        return;
    }
    call_refuse(c);
}

void stream_answer(struct call *c)
{
    OWN(buf_done) struct buf log_query = BUF_INIT(1024);
    OWN(object_done) struct object *pod = NULL;
    const char *container = NULL;

    if (is_log(c)) {
        if (log_options_read(c, &log_query) < 0) {
            call_refuse(c);
            return;
        }
    } else if (check_create(c) < 0) {
        call_refuse(c);
        return;
    } else if (!http_upgrade(c->x).p) {
        /* Before the Pod is looked for: clients take a 404 here for the news that it is gone. */
        (void)status_bad_request(&c->status, "Upgrade request required");
        call_refuse(c);
        return;
    }
    if (op_get(&c->op, STORE_COMMITTED, &pod, &c->status) < 0 ||
        (c->op.sub->sub != KIND_SUB_PORTFORWARD && pick_container(c, pod, &container) < 0) ||
        (!is_log(c) && check_phase(c, pod) < 0))
        call_refuse(c);
    else
        pass_to_pod(c, pod, container, is_log(c) ? buf_span(&log_query) : http_query(c->x));
}

void stream_close_all(struct apiserver *s)
{
    for (struct call *c = s->calls; c; c = c->next)
        if (c->relay)
            http_relay_close(c->relay);
}
