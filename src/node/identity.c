#include "node/identity.h"

#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "ev/timer.h"
#include "kube/lease.h"
#include "kube/time.h"
#include "node/limits.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#define LEASES         "kube-node-lease"
#define BODY_MAX_BYTES (16 * 1024)
#define RETRY_MS       2000

struct identity {
    struct ev_loop *loop;
    struct kube_client *client;
    char *name, *unenforced;
    uint64_t pods_max;
    struct kube_call *call;
    struct ev_timer timer;
    struct lease *lease;
    enum identity_step { ID_SPACE, ID_NODE, ID_STATUS } step;
    time_t since; /* how long what is said has been so */
    bool is_closing, is_releasing;
    ev_fn closed;
    void *ctx;
};

static void next(void *ctx);

/* ---- what is said ---- */

static void put(struct json_out *o, const char *key, const char *text)
{
    json_out_key(o, key);
    json_out_cstr(o, text);
}

static const char *arch(const struct utsname *u)
{
    if (strcmp(u->machine, "x86_64") == 0)
        return "amd64";
    return strcmp(u->machine, "aarch64") == 0 ? "arm64" : u->machine;
}

int identity_write_node(const char *name, struct buf *out, struct err *e)
{
    struct utsname u = { .machine = "" };
    struct json_out o;

    (void)uname(&u);
    json_out_init(&o, out, 0);
    json_out_object_begin(&o);
    put(&o, "apiVersion", "v1"), put(&o, "kind", "Node");
    json_out_key(&o, "metadata");
    json_out_object_begin(&o);
    put(&o, "name", name);
    json_out_key(&o, "labels");
    json_out_object_begin(&o);
    put(&o, "kubernetes.io/hostname", name);
    put(&o, "kubernetes.io/os", "linux"), put(&o, "beta.kubernetes.io/os", "linux");
    put(&o, "kubernetes.io/arch", arch(&u)), put(&o, "beta.kubernetes.io/arch", arch(&u));
    json_out_object_end(&o);
    json_out_object_end(&o);
    json_out_object_end(&o);
    return json_out_end(&o, e);
}

static uint64_t memory_kib(void)
{
    OWN(buf_done) struct buf text = BUF_INIT(16 * 1024);
    struct span rest, line;
    uint64_t kib = 0;
    struct err e;

    if (fd_read_file("/proc/meminfo", &text, &e) < 0)
        return 0;
    for (rest = buf_span(&text); span_cut(&rest, '\n', &line);)
        if (span_starts(line, "MemTotal:")) {
            line = span_trim(span_skip(line, 9));
            (void)str_u64(span_slice(line, 0, span_find(line, ' ')), UINT64_MAX / 2, &kib);
        }
    return kib;
}

static void put_resources(struct json_out *o, const char *key, uint64_t pods)
{
    char text[32];

    json_out_key(o, key);
    json_out_object_begin(o);
    (void)snprintf(text, sizeof text, "%ld", sysconf(_SC_NPROCESSORS_ONLN));
    put(o, "cpu", text);
    (void)snprintf(text, sizeof text, "%lluKi", (unsigned long long)memory_kib());
    put(o, "memory", text);
    (void)snprintf(text, sizeof text, "%llu", (unsigned long long)pods);
    put(o, "pods", text);
    json_out_object_end(o);
}

static void put_condition(struct json_out *o, const char *type, bool is_true, const char *reason,
                          const char *message, const char *const times[2])
{
    json_out_object_begin(o);
    put(o, "type", type), put(o, "status", is_true ? "True" : "False");
    put(o, "lastHeartbeatTime", times[0]), put(o, "lastTransitionTime", times[1]);
    put(o, "reason", reason), put(o, "message", message);
    json_out_object_end(o);
}

static void put_addresses(struct json_out *o, const char *name)
{
    static const char *const types[] = { "InternalIP", "Hostname" };

    json_out_key(o, "addresses");
    json_out_array_begin(o);
    for (size_t i = 0; i < LEN(types); i++) {
        json_out_object_begin(o);
        put(o, "type", types[i]), put(o, "address", i == 0 ? "127.0.0.1" : name);
        json_out_object_end(o);
    }
    json_out_array_end(o);
}

static void put_info(struct json_out *o)
{
    static const char *const none[] = { "machineID", "systemUUID", "bootID", "kubeProxyVersion" };
    struct utsname u = { .machine = "" };

    (void)uname(&u);
    json_out_key(o, "nodeInfo");
    json_out_object_begin(o);
    for (size_t i = 0; i < LEN(none); i++)
        put(o, none[i], "");
    put(o, "kernelVersion", u.release);
    put(o, "osImage", "silica host");
    put(o, "containerRuntimeVersion", "silica://" SILICA_VERSION);
    put(o, "kubeletVersion", "v" SILICA_VERSION "-silica");
    put(o, "operatingSystem", "linux"), put(o, "architecture", arch(&u));
    json_out_object_end(o);
}

static void put_limits(struct json_out *o, const char *unenforced, const char *const times[2])
{
    char text[256];

    (void)snprintf(text, sizeof text, IDENTITY_LIMITS_LACK, unenforced);
    put_condition(o, "SandboxLimitsEnforced", !*unenforced,
                  *unenforced ? "LimitsNotEnforced" : "LimitsEnforced",
                  *unenforced ? text : "all sandboxes together cannot take the machine", times);
}

int identity_write_status(const char *name, uint64_t pods_max, const char *unenforced, time_t now,
                          time_t since, struct buf *out, struct err *e)
{
    char text[TIME_TEXT_BYTES], since_text[TIME_TEXT_BYTES];
    const char *const times[2] = { text, since_text };
    struct json_out o;

    (void)kube_time_text(text, now);
    (void)kube_time_text(since_text, since);
    json_out_init(&o, out, 0);
    json_out_object_begin(&o);
    json_out_key(&o, "status");
    json_out_object_begin(&o);
    put_resources(&o, "capacity", pods_max), put_resources(&o, "allocatable", pods_max);
    json_out_key(&o, "conditions");
    json_out_array_begin(&o);
    put_condition(&o, "MemoryPressure", false, "KubeletHasSufficientMemory",
                  "kubelet has sufficient memory available", times);
    put_condition(&o, "DiskPressure", false, "KubeletHasNoDiskPressure",
                  "kubelet has no disk pressure", times);
    put_condition(&o, "PIDPressure", false, "KubeletHasSufficientPID",
                  "kubelet has sufficient PID available", times);
    put_limits(&o, unenforced, times);
    put_condition(&o, "Ready", true, "KubeletReady", "the node runs Pods as sandboxes", times);
    json_out_array_end(&o);
    put_addresses(&o, name);
    put_info(&o);
    json_out_object_end(&o);
    json_out_object_end(&o);
    return json_out_end(&o, e);
}

/* ---- saying it ---- */

static void finish_close(struct identity *id)
{
    ev_fn closed = id->closed;
    void *ctx = id->ctx;

    if (id->call || id->lease)
        return;
    free(id->name);
    free(id->unenforced);
    free(id);
    closed(ctx);
}

static void on_released(void *ctx)
{
    struct identity *id = ctx;

    id->lease = NULL;
    id->is_releasing = false;
    if (id->is_closing)
        finish_close(id);
    else
        ev_timer_start(id->loop, &id->timer, RETRY_MS, next, id); /* our status, then a new Lease */
}

/* The server was away, or this machine slept. */
static void on_lost(void *ctx)
{
    struct identity *id = ctx;

    log_warn("node.lease", KV("node", id->name), KV("why", "it could not be renewed"));
    id->is_releasing = true;
    lease_close(id->lease, on_released, id);
}

static void hold_lease(struct identity *id)
{
    if (id->lease)
        return;
    id->lease =
        lease_start(id->client, &(struct lease_spec){ .namespace = LEASES,
                                                      .name = id->name,
                                                      .identity = id->name,
                                                      .duration_ms = NODE_LEASE_SECONDS * 1000,
                                                      .renew_ms = NODE_LEASE_SECONDS * 900,
                                                      .retry_ms = NODE_LEASE_RENEW_MS,
                                                      .on_stopped = on_lost,
                                                      .ctx = id });
}

static void on_answer(void *ctx, const struct kube_answer *answer)
{
    struct identity *id = ctx;
    const struct status *st = answer->refusal;
    bool is_there = !st || (st->code == 409 && id->step != ID_STATUS);

    id->call = NULL;
    if (id->is_closing) {
        finish_close(id);
        return;
    }
    if (!is_there && !(st->code == 403 && id->step == ID_SPACE)) {
        log_warn("node.identity", KV("code", st->code), KV("err", buf_cstr(&st->message)));
        if (st->code == 404)
            id->step = ID_NODE; /* somebody deleted it */
        ev_timer_start(id->loop, &id->timer, RETRY_MS, next, id);
        return;
    }
    if (id->step == ID_STATUS) {
        hold_lease(id);
        ev_timer_start(id->loop, &id->timer, NODE_STATUS_EVERY_MS, next, id);
        return;
    }
    id->step++;
    ev_timer_start(id->loop, &id->timer, 0, next, id);
}

static void next(void *ctx)
{
    static const char space[] = "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{"
                                "\"name\":\"" LEASES "\"}}";
    struct identity *id = ctx;
    OWN(buf_done) struct buf body = BUF_INIT(BODY_MAX_BYTES);
    struct kube_request rq = { .verb = KUBE_CREATE };
    int rc = 0;
    struct err e;

    switch (id->step) {
    case ID_SPACE:
        rq.kind = kind_find("", "v1", "namespaces");
        rc = buf_add(&body, SPAN(space), &e);
        break;
    case ID_NODE:
        rq.kind = kind_find("", "v1", "nodes");
        rc = identity_write_node(id->name, &body, &e);
        break;
    case ID_STATUS:
        rq.verb = KUBE_PATCH;
        rq.patch = KUBE_PATCH_MERGE;
        rq.kind = kind_find("", "v1", "nodes");
        rq.name = id->name;
        rq.sub = "status";
        rc = identity_write_status(id->name, id->pods_max, id->unenforced, time(NULL), id->since,
                                   &body, &e);
        break;
    }
    if (rc < 0) {
        log_error("node.identity", KV("err", &e));
        return;
    }
    rq.body = buf_span(&body);
    id->call = kube_call_start(id->client, &rq, on_answer, id);
}

struct identity *identity_open(struct kube_client *client, const char *name, uint64_t pods_max,
                               const char *unenforced)
{
    struct identity *id = NEW(struct identity);

    id->loop = kube_client_loop(client);
    id->client = client;
    id->name = own_strdup(name);
    id->unenforced = own_strdup(unenforced);
    id->pods_max = pods_max;
    id->since = time(NULL);
    ev_timer_start(id->loop, &id->timer, 0, next, id);
    return id;
}

void identity_close(struct identity *id, ev_fn closed, void *ctx)
{
    id->is_closing = true;
    id->closed = closed;
    id->ctx = ctx;
    ev_timer_stop(id->loop, &id->timer);
    if (id->call)
        kube_call_cancel(id->call);
    if (id->lease && !id->is_releasing)
        lease_close(id->lease, on_released, id);
    else
        finish_close(id);
}
