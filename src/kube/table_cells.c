#include "kube/table_cells.h"

#include "kube/time.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define CELL_MAX_BYTES 4096 /* of a joined list; more is cut: nobody reads it in a table */
#define LIST_MAX       3    /* endpoints shown before "+ N more..." */
#define SORTED_MAX     64   /* labels and roles shown */

void cell_text(const struct cells *c, const char *text)
{
    json_out_cstr(c->o, text ? text : "");
}

void cell_text_or(const struct cells *c, const char *text, const char *empty)
{
    cell_text(c, text && text[0] ? text : empty);
}

void cell_i64(const struct cells *c, const struct json *v)
{
    int64_t n = 0;

    (void)json_i64(v, &n);
    json_out_i64(c->o, n);
}

const char *cells_age(const struct cells *c, const struct json *v, char text[32])
{
    struct timespec t;

    return kube_time_parse(json_str(v), &t) ? kube_age_text(text, c->now - t.tv_sec) : "<unknown>";
}

void cell_age(const struct cells *c, const struct json *v)
{
    char text[KUBE_AGE_BYTES];

    cell_text(c, cells_age(c, v, text));
}

void cell_created(const struct cells *c)
{
    cell_age(c, object_at(c->obj, "metadata.creationTimestamp"));
}

/* A list that is joined piece by piece, then becomes one cell. */
struct joined {
    struct buf text;
    const char *separator;
};

#define JOINED(sep)                                                                                \
    {                                                                                              \
        BUF_INIT(CELL_MAX_BYTES), sep                                                              \
    }

static void joined_done(struct joined *j)
{
    buf_done(&j->text);
}

static void join(struct joined *j, const char *fmt, ...) PRINTF(2, 3);
static void join(struct joined *j, const char *fmt, ...)
{
    va_list ap;

    if (j->text.n)
        buf_addf_capped(&j->text, "%s", j->separator);
    va_start(ap, fmt);
    buf_vaddf_capped(&j->text, fmt, ap);
    va_end(ap);
}

static void cell_joined(const struct cells *c, const struct joined *j, const char *empty)
{
    cell_text_or(c, buf_cstr(&j->text), empty);
}

static void join_strings(struct joined *j, const struct json *list)
{
    JSON_EACH(item, list)
    {
        join(j, "%.*s", SPAN_ARG(json_str(item)));
    }
}

static int by_text(const void *a, const void *b)
{
    const struct json *x = *(const struct json *const *)a, *y = *(const struct json *const *)b;
    struct span s = json_str(x), t = json_str(y);
    int order = memcmp(s.p, t.p, MIN(s.n, t.n));

    return order ? order : (s.n > t.n) - (s.n < t.n);
}

/* "a=1,b=2", by name. */
static void join_labels(struct joined *j, const struct json *labels)
{
    const struct json *names[SORTED_MAX];
    size_t n = 0;

    JSON_MEMBERS(name, value, labels)
    {
        if (n < SORTED_MAX && value)
            names[n++] = name;
    }
    qsort(names, n, sizeof names[0], by_text);
    for (size_t i = 0; i < n; i++)
        join(j, "%.*s=%.*s", SPAN_ARG(json_str(names[i])), SPAN_ARG(json_str(names[i] + 1)));
}

static void join_requirement(struct joined *j, const struct json *r)
{
    struct span key = json_str(json_get(r, "key")), op = json_str(json_get(r, "operator"));
    OWN(joined_done) struct joined values = JOINED(",");

    join_strings(&values, json_get(r, "values"));
    if (span_is(op, "Exists"))
        join(j, "%.*s", SPAN_ARG(key));
    else if (span_is(op, "DoesNotExist"))
        join(j, "!%.*s", SPAN_ARG(key));
    else
        join(j, "%.*s %s (%s)", SPAN_ARG(key), span_is(op, "In") ? "in" : "notin",
             buf_cstr(&values.text));
}

static void cell_selector(const struct cells *c, const struct json *selector)
{
    OWN(joined_done) struct joined j = JOINED(",");

    join_labels(&j, json_get(selector, "matchLabels"));
    JSON_EACH(r, json_get(selector, "matchExpressions"))
    {
        join_requirement(&j, r);
    }
    cell_joined(c, &j, "<none>");
}

/* Names and images of a pod template's containers: two cells. */
static void cells_containers(const struct cells *c)
{
    static const char *const members[] = { "name", "image" };

    EACH(member, members) {
        OWN(joined_done) struct joined j = JOINED(",");

        JSON_EACH(container, object_at(c->obj, "spec.template.spec.containers"))
        {
            join(&j, "%.*s", SPAN_ARG(json_str(json_get(container, *member))));
        }
        cell_joined(c, &j, "");
    }
}

static void name_and_age(const struct cells *c)
{
    cell_text(c, object_name(c->obj));
    cell_created(c);
}

static void namespace_cells(const struct cells *c)
{
    cell_text(c, object_name(c->obj));
    cell_text(c, object_text(c->obj, "status.phase"));
    cell_created(c);
}

static void config_map_cells(const struct cells *c)
{
    cell_text(c, object_name(c->obj));
    json_out_i64(c->o, (int64_t)(json_count(object_member(c->obj, "data")) +
                                 json_count(object_member(c->obj, "binaryData"))));
    cell_created(c);
}

static void secret_cells(const struct cells *c)
{
    cell_text(c, object_name(c->obj));
    cell_text(c, json_cstr(object_member(c->obj, "type")));
    json_out_i64(c->o, (int64_t)json_count(object_member(c->obj, "data")));
    cell_created(c);
}

/* Where a service is reached from outside, by its type. */
static void cell_external(const struct cells *c)
{
    const char *type = object_text(c->obj, "spec.type");
    OWN(joined_done) struct joined j = JOINED(",");

    if (!type) {
        cell_text(c, "<unknown>");
        return;
    }
    if (strcmp(type, "ExternalName") == 0) {
        cell_text(c, object_text(c->obj, "spec.externalName"));
        return;
    }
    if (strcmp(type, "LoadBalancer") == 0) {
        JSON_EACH(point, object_at(c->obj, "status.loadBalancer.ingress"))
        {
            struct span ip = json_str(json_get(point, "ip"));

            join(&j, "%.*s", SPAN_ARG(ip.n ? ip : json_str(json_get(point, "hostname"))));
        }
    }
    join_strings(&j, object_at(c->obj, "spec.externalIPs"));
    cell_joined(c, &j, strcmp(type, "LoadBalancer") == 0 ? "<pending>" : "<none>");
}

static void service_cells(const struct cells *c)
{
    OWN(joined_done) struct joined ports = JOINED(","), selector = JOINED(",");

    JSON_EACH(p, object_at(c->obj, "spec.ports"))
    {
        int64_t port = 0, node_port = 0;
        struct span protocol = json_str(json_get(p, "protocol"));

        (void)json_i64(json_get(p, "port"), &port);
        (void)json_i64(json_get(p, "nodePort"), &node_port);
        if (node_port > 0)
            join(&ports, "%" PRId64 ":%" PRId64 "/%.*s", port, node_port, SPAN_ARG(protocol));
        else
            join(&ports, "%" PRId64 "/%.*s", port, SPAN_ARG(protocol));
    }
    join_labels(&selector, object_at(c->obj, "spec.selector"));
    cell_text(c, object_name(c->obj));
    cell_text(c, object_text(c->obj, "spec.type"));
    cell_text_or(c, json_cstr(json_at(object_at(c->obj, "spec.clusterIPs"), 0)), "<none>");
    cell_external(c);
    cell_joined(c, &ports, "<none>");
    cell_created(c);
    cell_joined(c, &selector, "<none>");
}

static const char *const role_prefix = "node-role.kubernetes.io/";

static void cell_node_roles(const struct cells *c)
{
    const struct json *names[SORTED_MAX];
    OWN(joined_done) struct joined j = JOINED(",");
    size_t n = 0;

    JSON_MEMBERS(name, value, object_at(c->obj, "metadata.labels"))
    {
        if (n < SORTED_MAX && value && span_starts(json_str(name), role_prefix) &&
            json_str(name).n > strlen(role_prefix))
            names[n++] = name;
    }
    qsort(names, n, sizeof names[0], by_text);
    for (size_t i = 0; i < n; i++)
        join(&j, "%.*s", SPAN_ARG(span_skip(json_str(names[i]), strlen(role_prefix))));
    cell_joined(c, &j, "<none>");
}

static void cell_node_address(const struct cells *c, const char *type)
{
    JSON_EACH(a, object_at(c->obj, "status.addresses"))
    {
        if (span_is(json_str(json_get(a, "type")), type)) {
            cell_text(c, json_cstr(json_get(a, "address")));
            return;
        }
    }
    cell_text(c, "<none>");
}

static void node_cells(const struct cells *c)
{
    const struct json *info = object_at(c->obj, "status.nodeInfo");
    const char *kernel = json_cstr(json_get(info, "kernelVersion"));
    const char *arch = json_cstr(json_get(info, "architecture"));
    const char *state = "Unknown";
    bool is_closed = false;
    char text[256];

    JSON_EACH(condition, object_at(c->obj, "status.conditions"))
    {
        if (span_is(json_str(json_get(condition, "type")), "Ready"))
            state = span_is(json_str(json_get(condition, "status")), "True") ? "Ready" : "NotReady";
    }
    (void)json_bool(object_at(c->obj, "spec.unschedulable"), &is_closed);
    cell_text(c, object_name(c->obj));
    snprintf(text, sizeof text, "%s%s", state, is_closed ? ",SchedulingDisabled" : "");
    cell_text(c, text);
    cell_node_roles(c);
    cell_created(c);
    cell_text(c, json_cstr(json_get(info, "kubeletVersion")));
    cell_node_address(c, "InternalIP");
    cell_node_address(c, "ExternalIP");
    cell_text_or(c, json_cstr(json_get(info, "osImage")), "<unknown>");
    snprintf(text, sizeof text, "%s%s%s%s", kernel && kernel[0] ? kernel : "<unknown>",
             arch && arch[0] ? " (" : "", arch ? arch : "", arch && arch[0] ? ")" : "");
    cell_text(c, text);
    cell_text_or(c, json_cstr(json_get(info, "containerRuntimeVersion")), "<unknown>");
}

static void cell_access_modes(const struct cells *c)
{
    static const char *const modes[][2] = { { "ReadWriteOnce", "RWO" },
                                            { "ReadOnlyMany", "ROX" },
                                            { "ReadWriteMany", "RWX" },
                                            { "ReadWriteOncePod", "RWOP" } };
    OWN(joined_done) struct joined j = JOINED(",");

    EACH(mode, modes) {
        JSON_EACH(given, object_at(c->obj, "status.accessModes"))
        {
            if (span_is(json_str(given), (*mode)[0])) {
                join(&j, "%s", (*mode)[1]);
                break;
            }
        }
    }
    cell_joined(c, &j, "");
}

static void claim_cells(const struct cells *c)
{
    const char *volume = object_text(c->obj, "spec.volumeName");
    bool is_bound = volume && volume[0];

    cell_text(c, object_name(c->obj));
    cell_text(c, object_is_deleting(c->obj) ? "Terminating" : object_text(c->obj, "status.phase"));
    cell_text(c, volume);
    cell_text(c, is_bound ? object_text(c->obj, "status.capacity.storage") : "");
    if (is_bound)
        cell_access_modes(c);
    else
        cell_text(c, "");
    cell_text(c, object_text(c->obj, "spec.storageClassName"));
    cell_text_or(c, object_text(c->obj, "spec.volumeAttributesClassName"), "<unset>");
    cell_created(c);
    cell_text_or(c, object_text(c->obj, "spec.volumeMode"), "<unset>");
}

/* The first of several members that says something: the two groups of events differ in names. */
static const struct json *first_of(const struct object *o, const char *const *paths)
{
    for (; *paths; paths++) {
        const struct json *v = object_at(o, *paths);

        if (v && !json_is_null(v) && !(json_type(v) == JSON_STRING && json_str(v).n == 0))
            return v;
    }
    return NULL;
}

#define FIRST(o, ...) first_of(o, (const char *const[]){ __VA_ARGS__, NULL })

static void cell_event_target(const struct cells *c)
{
    const struct json *about = FIRST(c->obj, "involvedObject", "regarding");
    struct span kind = json_str(json_get(about, "kind")), name = json_str(json_get(about, "name"));
    char text[512];
    size_t n = MIN(kind.n, (size_t)128);

    for (size_t i = 0; i < n; i++)
        text[i] = (char)tolower(kind.p[i]);
    snprintf(text + n, sizeof text - n, "%s%.*s", name.n ? "/" : "", SPAN_ARG(name));
    cell_text(c, text);
}

static void event_cells(const struct cells *c)
{
    const struct json *first =
        FIRST(c->obj, "firstTimestamp", "deprecatedFirstTimestamp", "eventTime");
    const struct json *last = FIRST(c->obj, "series.lastObservedTime", "lastTimestamp",
                                    "deprecatedLastTimestamp", "firstTimestamp", "eventTime");
    const struct json *count = FIRST(c->obj, "series.count", "count", "deprecatedCount");
    const char *host =
        json_cstr(FIRST(c->obj, "source.host", "deprecatedSource.host", "reportingInstance"));
    const char *component =
        json_cstr(FIRST(c->obj, "source.component", "deprecatedSource.component",
                        "reportingComponent", "reportingController"));
    const struct json *about = FIRST(c->obj, "involvedObject", "regarding");
    char text[512];
    int64_t n = 0;

    cell_age(c, last);
    cell_text(c, json_cstr(object_member(c->obj, "type")));
    cell_text(c, json_cstr(object_member(c->obj, "reason")));
    cell_event_target(c);
    cell_text(c, json_cstr(json_get(about, "fieldPath")));
    snprintf(text, sizeof text, "%s%s%s", component ? component : "", host ? ", " : "",
             host ? host : "");
    cell_text(c, text);
    json_out_str(c->o, span_trim(json_str(FIRST(c->obj, "message", "note"))));
    cell_age(c, first);
    (void)json_i64(count, &n);
    json_out_i64(c->o, n ? n : 1);
    cell_text(c, object_name(c->obj));
}

static void cell_ready_of(const struct cells *c)
{
    int64_t ready = 0, want = 0;
    char text[64];

    (void)json_i64(object_at(c->obj, "status.readyReplicas"), &ready);
    (void)json_i64(object_at(c->obj, "spec.replicas"), &want);
    snprintf(text, sizeof text, "%" PRId64 "/%" PRId64, ready, want);
    cell_text(c, text);
}

static void deployment_cells(const struct cells *c)
{
    cell_text(c, object_name(c->obj));
    cell_ready_of(c);
    cell_i64(c, object_at(c->obj, "status.updatedReplicas"));
    cell_i64(c, object_at(c->obj, "status.availableReplicas"));
    cell_created(c);
    cells_containers(c);
    cell_selector(c, object_at(c->obj, "spec.selector"));
}

static void replica_set_cells(const struct cells *c)
{
    cell_text(c, object_name(c->obj));
    cell_i64(c, object_at(c->obj, "spec.replicas"));
    cell_i64(c, object_at(c->obj, "status.replicas"));
    cell_i64(c, object_at(c->obj, "status.readyReplicas"));
    cell_created(c);
    cells_containers(c);
    cell_selector(c, object_at(c->obj, "spec.selector"));
}

/* "a,b,c + 2 more..." */
struct shown {
    struct joined list;
    size_t n;
};

static void show(struct shown *s, struct span text)
{
    if (s->n++ < LIST_MAX)
        join(&s->list, "%.*s", SPAN_ARG(text));
}

static void cell_shown(const struct cells *c, struct shown *s)
{
    if (s->n > LIST_MAX)
        buf_addf_capped(&s->list.text, " + %zu more...", s->n - LIST_MAX);
    cell_joined(c, &s->list, "<unset>");
    joined_done(&s->list);
}

static void slice_cells(const struct cells *c)
{
    struct shown ports = { JOINED(","), 0 }, points = { JOINED(","), 0 };

    JSON_EACH(p, object_member(c->obj, "ports"))
    {
        struct span number = json_number(json_get(p, "port")), name = json_str(json_get(p, "name"));

        show(&ports, number.n ? number : name.n ? name : SPAN("*"));
    }
    JSON_EACH(point, object_member(c->obj, "endpoints"))
    {
        JSON_EACH(address, json_get(point, "addresses"))
        {
            show(&points, json_str(address));
        }
    }
    cell_text(c, object_name(c->obj));
    cell_text(c, json_cstr(object_member(c->obj, "addressType")));
    cell_shown(c, &ports);
    cell_shown(c, &points);
    cell_created(c);
}

static void policy_cells(const struct cells *c)
{
    cell_text(c, object_name(c->obj));
    cell_selector(c, object_at(c->obj, "spec.podSelector"));
    cell_created(c);
}

static void lease_cells(const struct cells *c)
{
    cell_text(c, object_name(c->obj));
    cell_text(c, object_text(c->obj, "spec.holderIdentity"));
    cell_created(c);
}

static void runtime_class_cells(const struct cells *c)
{
    cell_text(c, object_name(c->obj));
    cell_text(c, json_cstr(object_member(c->obj, "handler")));
    cell_created(c);
}

/* An int-or-string as text. */
static void cell_bound(const struct cells *c, const char *path)
{
    const struct json *v = object_at(c->obj, path);

    if (json_type(v) == JSON_NUMBER)
        json_out_str(c->o, json_number(v));
    else
        cell_text_or(c, json_cstr(v), "N/A");
}

static void budget_cells(const struct cells *c)
{
    cell_text(c, object_name(c->obj));
    cell_bound(c, "spec.minAvailable");
    cell_bound(c, "spec.maxUnavailable");
    cell_i64(c, object_at(c->obj, "status.disruptionsAllowed"));
    cell_created(c);
}

static void storage_class_cells(const struct cells *c)
{
    const char *is_default =
        object_annotation(c->obj, "storageclass.kubernetes.io/is-default-class");
    bool can_grow = false;
    char name[300];

    snprintf(name, sizeof name, "%s%s", object_name(c->obj),
             is_default && strcmp(is_default, "true") == 0 ? " (default)" : "");
    (void)json_bool(object_member(c->obj, "allowVolumeExpansion"), &can_grow);
    cell_text(c, name);
    cell_text(c, json_cstr(object_member(c->obj, "provisioner")));
    cell_text_or(c, json_cstr(object_member(c->obj, "reclaimPolicy")), "Delete");
    cell_text_or(c, json_cstr(object_member(c->obj, "volumeBindingMode")), "Immediate");
    json_out_bool(c->o, can_grow);
    cell_created(c);
}

static void cell_subjects(const struct cells *c, const char *kind)
{
    OWN(joined_done) struct joined j = JOINED(", ");

    JSON_EACH(s, object_member(c->obj, "subjects"))
    {
        struct span space = json_str(json_get(s, "namespace")),
                    name = json_str(json_get(s, "name"));

        if (!span_is(json_str(json_get(s, "kind")), kind))
            continue;
        if (strcmp(kind, "ServiceAccount") == 0)
            join(&j, "%.*s/%.*s", SPAN_ARG(space), SPAN_ARG(name));
        else
            join(&j, "%.*s", SPAN_ARG(name));
    }
    cell_joined(c, &j, "");
}

static void binding_cells(const struct cells *c)
{
    const struct json *role = object_member(c->obj, "roleRef");
    char text[400];

    snprintf(text, sizeof text, "%.*s/%.*s", SPAN_ARG(json_str(json_get(role, "kind"))),
             SPAN_ARG(json_str(json_get(role, "name"))));
    cell_text(c, object_name(c->obj));
    cell_text(c, text);
    cell_created(c);
    cell_subjects(c, "User");
    cell_subjects(c, "Group");
    cell_subjects(c, "ServiceAccount");
}

/* "cpu: 1/2, pods: 0/5", by name. */
static void quota_cell(const struct cells *c, bool is_limits)
{
    OWN(joined_done) struct joined j = JOINED(", ");
    const struct json *used = object_at(c->obj, "status.used"), *names[SORTED_MAX];
    size_t n = 0;

    JSON_MEMBERS(name, value, object_at(c->obj, "status.hard"))
    {
        if (n < SORTED_MAX && value && span_starts(json_str(name), "limits.") == is_limits)
            names[n++] = name;
    }
    qsort(names, n, sizeof names[0], by_text);
    for (size_t i = 0; i < n; i++) {
        struct span now = json_str(json_get_span(used, json_str(names[i])));

        join(&j, "%.*s: %.*s/%.*s", SPAN_ARG(json_str(names[i])), SPAN_ARG(now.n ? now : SPAN("0")),
             SPAN_ARG(json_str(names[i] + 1)));
    }
    cell_joined(c, &j, "");
}

static void quota_cells(const struct cells *c)
{
    cell_text(c, object_name(c->obj));
    quota_cell(c, false);
    quota_cell(c, true);
    cell_created(c);
}

static void scale_cells(const struct cells *c)
{
    cell_text(c, object_name(c->obj));
    cell_i64(c, object_at(c->obj, "spec.replicas"));
    cell_i64(c, object_at(c->obj, "status.replicas"));
    cell_created(c);
}

/* clang-format off */
#define NAME         { "Name", "string", "name", 0 }
#define TEXT(name)   { name, "string", "", 0 }
#define WIDE(name)   { name, "string", "", 1 }
#define NUMBER(name) { name, "integer", "", 0 }
#define COLUMNS(...) ((const struct table_column[]){ __VA_ARGS__ }), sizeof((const struct table_column[]){ __VA_ARGS__ }) / sizeof(struct table_column)

static const struct table_maker makers[] = {
    { "", "pods", COLUMNS(NAME, TEXT("Ready"), TEXT("Status"), TEXT("Restarts"), TEXT("Age"), WIDE("IP"), WIDE("Node"),
      WIDE("Nominated Node"), WIDE("Readiness Gates")), table_pod_cells },
    { "", "namespaces", COLUMNS(NAME, TEXT("Status"), TEXT("Age")), namespace_cells },
    { "", "configmaps", COLUMNS(NAME, TEXT("Data"), TEXT("Age")), config_map_cells },
    { "", "secrets", COLUMNS(NAME, TEXT("Type"), TEXT("Data"), TEXT("Age")), secret_cells },
    { "", "serviceaccounts", COLUMNS(NAME, TEXT("Age")), name_and_age },
    { "", "services", COLUMNS(NAME, TEXT("Type"), TEXT("Cluster-IP"), TEXT("External-IP"), TEXT("Port(s)"), TEXT("Age"),
      WIDE("Selector")), service_cells },
    { "", "nodes", COLUMNS(NAME, TEXT("Status"), TEXT("Roles"), TEXT("Age"), TEXT("Version"), WIDE("Internal-IP"),
      WIDE("External-IP"), WIDE("OS-Image"), WIDE("Kernel-Version"), WIDE("Container-Runtime")), node_cells },
    { "", "persistentvolumeclaims", COLUMNS(NAME, TEXT("Status"), TEXT("Volume"), TEXT("Capacity"), TEXT("Access Modes"),
      TEXT("StorageClass"), TEXT("VolumeAttributesClass"), TEXT("Age"), WIDE("VolumeMode")), claim_cells },
    { "", "resourcequotas", COLUMNS(NAME, TEXT("Request"), TEXT("Limit"), TEXT("Age")), quota_cells },
    { NULL, "events", COLUMNS(TEXT("Last Seen"), TEXT("Type"), TEXT("Reason"), TEXT("Object"), WIDE("Subobject"), WIDE("Source"),
      TEXT("Message"), WIDE("First Seen"), WIDE("Count"), { "Name", "string", "name", 1 }), event_cells },
    { "apps", "deployments", COLUMNS(NAME, TEXT("Ready"), TEXT("Up-to-date"), TEXT("Available"), TEXT("Age"), WIDE("Containers"),
      WIDE("Images"), WIDE("Selector")), deployment_cells },
    { "apps", "replicasets", COLUMNS(NAME, NUMBER("Desired"), NUMBER("Current"), NUMBER("Ready"), TEXT("Age"), WIDE("Containers"),
      WIDE("Images"), WIDE("Selector")), replica_set_cells },
    { "autoscaling", "scales", COLUMNS(NAME, NUMBER("Desired"), NUMBER("Available"), { "Age", "date", "", 0 }),
      scale_cells },
    { "discovery.k8s.io", "endpointslices", COLUMNS(NAME, TEXT("AddressType"), TEXT("Ports"), TEXT("Endpoints"), TEXT("Age")),
      slice_cells },
    { "networking.k8s.io", "networkpolicies", COLUMNS(NAME, TEXT("Pod-Selector"), TEXT("Age")), policy_cells },
    { "coordination.k8s.io", "leases", COLUMNS(NAME, TEXT("Holder"), TEXT("Age")), lease_cells },
    { "node.k8s.io", "runtimeclasses", COLUMNS(NAME, TEXT("Handler"), TEXT("Age")), runtime_class_cells },
    { "policy", "poddisruptionbudgets", COLUMNS(NAME, TEXT("Min Available"), TEXT("Max Unavailable"),
      NUMBER("Allowed Disruptions"), TEXT("Age")), budget_cells },
    { "storage.k8s.io", "storageclasses", COLUMNS(NAME, TEXT("Provisioner"), TEXT("ReclaimPolicy"), TEXT("VolumeBindingMode"),
      TEXT("AllowVolumeExpansion"), TEXT("Age")), storage_class_cells },
    { "rbac.authorization.k8s.io", "rolebindings", COLUMNS(NAME, TEXT("Role"), TEXT("Age"), WIDE("Users"), WIDE("Groups"),
      WIDE("ServiceAccounts")), binding_cells },
    { "rbac.authorization.k8s.io", "clusterrolebindings", COLUMNS(NAME, TEXT("Role"), TEXT("Age"), WIDE("Users"), WIDE("Groups"),
      WIDE("ServiceAccounts")), binding_cells },
};
/* clang-format on */

const struct table_maker *table_maker(const char *group, const char *plural)
{
    EACH(m, makers) {
        if (strcmp(m->plural, plural) == 0 && (!m->group || strcmp(m->group, group) == 0))
            return m;
    }
    return NULL;
}
