/* What the API has: versions, groups, resources; health and the like. All of it is made from the table of kinds. */
#include "apiserver/call.h"
#include "apiserver/metrics.h"

#include "base/json.h"
#include "kube/openapi.h"

#include <stdio.h>
#include <string.h>

#define DISCOVERY_MAX_BYTES (1 << 20)

static const struct {
    unsigned verb;
    const char *name;
} verb_names[] = { /* in the order the public server writes them */
                   { KIND_CREATE, "create" },
                   { KIND_DELETE, "delete" },
                   { KIND_DELETE_COLLECTION, "deletecollection" },
                   { KIND_GET, "get" },
                   { KIND_LIST, "list" },
                   { KIND_PATCH, "patch" },
                   { KIND_UPDATE, "update" },
                   { KIND_WATCH, "watch" }
};

static void write_texts(struct json_out *o, const char *key, const char *const *texts)
{
    if (!*texts)
        return;
    json_out_key(o, key), json_out_array_begin(o);
    for (; *texts; texts++)
        json_out_cstr(o, *texts);
    json_out_array_end(o);
}

static void write_verbs(struct json_out *o, unsigned verbs)
{
    json_out_key(o, "verbs"), json_out_array_begin(o);
    EACH(v, verb_names) {
        if (verbs & v->verb)
            json_out_cstr(o, v->name);
    }
    json_out_array_end(o);
}

/* ---- legacy: one document per group version ---- */

static void write_resource(struct json_out *o, const struct kind *k,
                           const struct kind_subresource *sub)
{
    char name[160];

    (void)snprintf(name, sizeof name, "%s%s%s", k->plural, sub ? "/" : "", sub ? sub->name : "");
    json_out_object_begin(o);
    json_out_key(o, "name"), json_out_cstr(o, name);
    json_out_key(o, "singularName"), json_out_cstr(o, sub ? "" : k->singular);
    json_out_key(o, "namespaced"), json_out_bool(o, kind_is_namespaced(k));
    if (sub && sub->group) {
        json_out_key(o, "group"), json_out_cstr(o, sub->group);
        json_out_key(o, "version"), json_out_cstr(o, sub->version);
    }
    json_out_key(o, "kind"), json_out_cstr(o, sub && sub->kind ? sub->kind : k->name);
    write_verbs(o, sub ? sub->verbs : k->verbs);
    if (!sub) {
        write_texts(o, "shortNames", k->short_names);
        write_texts(o, "categories", k->categories);
    }
    json_out_object_end(o);
}

static bool write_resources(struct json_out *o, const char *group, const char *version)
{
    size_t n;
    const struct kind *kinds = kinds_all(&n);
    bool is_found = false;
    char text[320];

    (void)snprintf(text, sizeof text, "%s%s%s", group, *group ? "/" : "", version);
    json_out_object_begin(o);
    json_out_key(o, "kind"), json_out_cstr(o, "APIResourceList");
    if (*group)
        json_out_key(o, "apiVersion"), json_out_cstr(o, "v1");
    json_out_key(o, "groupVersion"), json_out_cstr(o, text);
    json_out_key(o, "resources"), json_out_array_begin(o);
    for (size_t i = 0; i < n; i++) {
        const struct kind *k = &kinds[i];
        const struct kind_version *v = strcmp(k->group, group) ? NULL : kind_version(k, version);

        if (!v)
            continue;
        is_found = true;
        write_resource(o, k, NULL);
        for (size_t j = 0; j < v->sub_count; j++)
            write_resource(o, k, &v->subs[j]);
    }
    json_out_array_end(o);
    json_out_object_end(o);
    return is_found;
}

/* The versions of a group, the preferred first: those of its kinds, each once. */
#define GROUP_VERSIONS_MAX 8
static size_t versions_of(const char *group, const char *ret[GROUP_VERSIONS_MAX])
{
    size_t n, count = 0;
    const struct kind *kinds = kinds_all(&n);

    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; !strcmp(kinds[i].group, group) && j < kinds[i].version_count; j++) {
            const char *name = kinds[i].versions[j].name;
            size_t at = 0;

            while (at < count && strcmp(ret[at], name) != 0)
                at++;
            if (at == count && count < GROUP_VERSIONS_MAX)
                ret[count++] = name;
        }
    }
    return count;
}

static void write_group_version(struct json_out *o, const char *group, const char *version)
{
    char text[320];

    (void)snprintf(text, sizeof text, "%s/%s", group, version);
    json_out_object_begin(o);
    json_out_key(o, "groupVersion"), json_out_cstr(o, text);
    json_out_key(o, "version"), json_out_cstr(o, version);
    json_out_object_end(o);
}

static void write_group(struct json_out *o, const char *group, bool is_alone)
{
    const char *versions[GROUP_VERSIONS_MAX];
    size_t n = versions_of(group, versions);

    json_out_object_begin(o);
    if (is_alone) {
        json_out_key(o, "kind"), json_out_cstr(o, "APIGroup");
        json_out_key(o, "apiVersion"), json_out_cstr(o, "v1");
    }
    json_out_key(o, "name"), json_out_cstr(o, group);
    json_out_key(o, "versions"), json_out_array_begin(o);
    for (size_t i = 0; i < n; i++)
        write_group_version(o, group, versions[i]);
    json_out_array_end(o);
    json_out_key(o, "preferredVersion"), write_group_version(o, group, versions[0]);
    json_out_object_end(o);
}

/* Groups stand together in the table: the first kind of each begins it. */
static bool begins_group(const struct kind *kinds, size_t i)
{
    for (size_t j = 0; j < i; j++)
        if (strcmp(kinds[j].group, kinds[i].group) == 0)
            return false;
    return *kinds[i].group != '\0';
}

static void write_groups(struct json_out *o)
{
    size_t n;
    const struct kind *kinds = kinds_all(&n);

    json_out_object_begin(o);
    json_out_key(o, "kind"), json_out_cstr(o, "APIGroupList");
    json_out_key(o, "apiVersion"), json_out_cstr(o, "v1");
    json_out_key(o, "groups"), json_out_array_begin(o);
    for (size_t i = 0; i < n; i++)
        if (begins_group(kinds, i))
            write_group(o, kinds[i].group, false);
    json_out_array_end(o);
    json_out_object_end(o);
}

static void write_api_versions(struct json_out *o, const char *address)
{
    json_out_object_begin(o);
    json_out_key(o, "kind"), json_out_cstr(o, "APIVersions");
    json_out_key(o, "versions"), json_out_array_begin(o), json_out_cstr(o, "v1"),
        json_out_array_end(o);
    json_out_key(o, "serverAddressByClientCIDRs"), json_out_array_begin(o);
    json_out_object_begin(o);
    json_out_key(o, "clientCIDR"), json_out_cstr(o, "0.0.0.0/0");
    json_out_key(o, "serverAddress"), json_out_cstr(o, address);
    json_out_object_end(o);
    json_out_array_end(o);
    json_out_object_end(o);
}

/* ---- aggregated: everything in one document ---- */

static void write_response_kind(struct json_out *o, const char *group, const char *version,
                                const char *kind)
{
    json_out_key(o, "responseKind"), json_out_object_begin(o);
    json_out_key(o, "group"), json_out_cstr(o, group);
    json_out_key(o, "version"), json_out_cstr(o, version);
    json_out_key(o, "kind"), json_out_cstr(o, kind);
    json_out_object_end(o);
}

static void write_aggregated_kind(struct json_out *o, const struct kind *k,
                                  const struct kind_version *v)
{
    bool is_custom = k->traits & KIND_CUSTOM; /* "": as the group and version it stands under */

    json_out_object_begin(o);
    json_out_key(o, "resource"), json_out_cstr(o, k->plural);
    write_response_kind(o, is_custom ? k->group : "", is_custom ? v->name : "", k->name);
    json_out_key(o, "scope"), json_out_cstr(o, kind_is_namespaced(k) ? "Namespaced" : "Cluster");
    json_out_key(o, "singularResource"), json_out_cstr(o, k->singular);
    write_verbs(o, k->verbs);
    write_texts(o, "shortNames", k->short_names);
    write_texts(o, "categories", k->categories);
    if (v->sub_count) {
        json_out_key(o, "subresources"), json_out_array_begin(o);
        for (size_t i = 0; i < v->sub_count; i++) {
            const struct kind_subresource *sub = &v->subs[i];

            json_out_object_begin(o);
            json_out_key(o, "subresource"), json_out_cstr(o, sub->name);
            write_response_kind(o,
                                sub->group  ? sub->group
                                : is_custom ? k->group
                                            : "",
                                sub->group  ? sub->version
                                : is_custom ? v->name
                                            : "",
                                sub->kind ? sub->kind : k->name);
            write_verbs(o, sub->verbs);
            json_out_object_end(o);
        }
        json_out_array_end(o);
    }
    json_out_object_end(o);
}

static void write_aggregated_group(struct json_out *o, const char *group)
{
    const char *versions[GROUP_VERSIONS_MAX];
    size_t version_count = versions_of(group, versions), n;
    const struct kind *kinds = kinds_all(&n);

    json_out_object_begin(o);
    json_out_key(o, "metadata"), json_out_object_begin(o);
    if (*group)
        json_out_key(o, "name"), json_out_cstr(o, group);
    json_out_key(o, "creationTimestamp"), json_out_null(o);
    json_out_object_end(o);
    json_out_key(o, "versions"), json_out_array_begin(o);
    for (size_t i = 0; i < version_count; i++) {
        json_out_object_begin(o);
        json_out_key(o, "version"), json_out_cstr(o, versions[i]);
        json_out_key(o, "resources"), json_out_array_begin(o);
        for (size_t j = 0; j < n; j++) {
            const struct kind_version *v =
                strcmp(kinds[j].group, group) ? NULL : kind_version(&kinds[j], versions[i]);

            if (v)
                write_aggregated_kind(o, &kinds[j], v);
        }
        json_out_array_end(o);
        json_out_key(o, "freshness"), json_out_cstr(o, "Current");
        json_out_object_end(o);
    }
    json_out_array_end(o);
    json_out_object_end(o);
}

static void write_aggregated(struct json_out *o, bool is_core)
{
    size_t n;
    const struct kind *kinds = kinds_all(&n);

    json_out_object_begin(o);
    json_out_key(o, "kind"), json_out_cstr(o, "APIGroupDiscoveryList");
    json_out_key(o, "apiVersion"), json_out_cstr(o, "apidiscovery.k8s.io/v2");
    json_out_key(o, "metadata"), json_out_object_begin(o), json_out_object_end(o);
    json_out_key(o, "items"), json_out_array_begin(o);
    if (is_core)
        write_aggregated_group(o, "");
    for (size_t i = 0; !is_core && i < n; i++)
        if (begins_group(kinds, i))
            write_aggregated_group(o, kinds[i].group);
    json_out_array_end(o);
    json_out_object_end(o);
}

static bool wants_aggregated(const struct call *c)
{
    struct span accept = http_field(c->x, "accept");

    return span_find_str(accept, SPAN("as=APIGroupDiscoveryList")) != SIZE_MAX &&
           span_find_str(accept, SPAN("v=v2;")) != SIZE_MAX;
}

/* ---- OpenAPI ---- */

/* What old clients ask for, and what they must be told, as '@' is no part of a media type. */
#define PROTO_ASKED "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
#define PROTO_TOLD  "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
#define PROTO_PATH  "/openapi/v2 in protobuf" /* where that document is kept */

/* Version 2 in protobuf: clients that name it take it first, and some take nothing else. */
static bool wants_proto(const struct call *c, struct span path)
{
    struct span accept = http_field(c->x, "accept");

    return span_is(path, "/openapi/v2") &&
           (accept_names(accept, PROTO_ASKED) || accept_names(accept, PROTO_TOLD));
}

static int write_document(struct span path, struct buf *out, struct err *e)
{
    static const struct openapi_info info = { "v1.36.3" };
    struct span rest, group = SPAN_NONE, version = SPAN_NONE;
    OWN_MEM char *group_text = NULL, *version_text = NULL;

    if (span_is(path, PROTO_PATH))
        return openapi_v2_proto(&info, out, e);
    if (span_is(path, "/openapi/v2"))
        return openapi_v2(&info, out, e);
    if (span_is(path, "/openapi/v3"))
        return openapi_v3_index(&info, out, e);
    if (span_starts(path, "/openapi/v3/api/")) {
        version = span_skip(path, 16);
    } else if (span_starts(path, "/openapi/v3/apis/")) {
        rest = span_skip(path, 17);
        if (span_cut(&rest, '/', &group))
            version = rest;
    }
    if (!version.n)
        return err_set(e, ERR_NOT_FOUND, "no such document");
    group_text = span_dup(group);
    version_text = span_dup(version);
    return openapi_v3(&info, group_text, version_text, out, e);
}

static void answer_document(struct call *c, struct span path)
{
    struct api_document *d = c->s->documents;
    OWN(buf_done) struct buf bytes = BUF_INIT(OPENAPI_MAX_BYTES);
    bool is_proto = wants_proto(c, path);
    struct err e;

    if (is_proto)
        path = SPAN(PROTO_PATH);
    while (d && !span_is(path, d->path))
        d = d->next;
    if (!d && write_document(path, &bytes, &e) < 0) {
        (void)status_no_resource(&c->status);
        call_refuse(c);
        return;
    }
    if (!d) {
        d = NEW(struct api_document);
        d->path = span_dup(path);
        d->bytes.max = OPENAPI_MAX_BYTES;
        buf_move(&d->bytes, &bytes);
        d->next = c->s->documents;
        c->s->documents = d;
    }
    call_answer_bytes(c, 200,
                      is_proto                       ? PROTO_TOLD
                      : span_is(path, "/openapi/v3") ? "text/plain; charset=utf-8" /* as public */
                                                     : "application/json",
                      buf_span(&d->bytes));
}

/* ---- paths ---- */

static void write_version(struct json_out *o)
{
    json_out_object_begin(o);
    json_out_key(o, "major"), json_out_cstr(o, "1");
    json_out_key(o, "minor"), json_out_cstr(o, "36");
    json_out_key(o, "emulationMajor"), json_out_cstr(o, "1");
    json_out_key(o, "emulationMinor"), json_out_cstr(o, "36");
    json_out_key(o, "minCompatibilityMajor"), json_out_cstr(o, "1");
    json_out_key(o, "minCompatibilityMinor"), json_out_cstr(o, "35");
    json_out_key(o, "gitVersion"), json_out_cstr(o, "v1.36.3+silica-" SILICA_VERSION);
    json_out_key(o, "gitCommit"), json_out_cstr(o, "");
    json_out_key(o, "gitTreeState"), json_out_cstr(o, "clean");
    json_out_key(o, "buildDate"), json_out_cstr(o, "1970-01-01T00:00:00Z");
    json_out_key(o, "goVersion"), json_out_cstr(o, "none");
    json_out_key(o, "compiler"), json_out_cstr(o, "gcc");
    json_out_key(o, "platform"), json_out_cstr(o, "linux/amd64");
    json_out_object_end(o);
}

static void answer_json(struct call *c, struct json_out *o, struct buf *body, bool is_found)
{
    struct err e;
    bool is_aggregated = wants_aggregated(c);
    struct accept wanted;

    if (accept_read(http_field(c->x, "accept"), &wanted))
        c->is_yaml = wanted.is_yaml;

    if (!is_found && span_starts(http_path(c->x), "/api/")) {
        (void)status_no_resource(&c->status);
        call_refuse(c);
        return;
    }
    if (!is_found || json_out_end(o, &e) < 0) {
        call_no_page(c);
        return;
    }
    call_answer_bytes(c, 200,
                      is_aggregated
                          ? "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
                          : "application/json",
                      buf_span(body));
}

/* "/apis/GROUP" or "/apis/GROUP/VERSION"; "/api/v1". */
static bool write_below(struct json_out *o, struct span path)
{
    char group[256] = "", version[64] = "";
    struct span rest = path, part;

    if (span_starts(path, "/apis/")) {
        rest = span_skip(path, 6);
        if (!span_cut(&rest, '/', &part) || part.n >= sizeof group)
            return false;
        memcpy(group, part.p, part.n);
    } else {
        rest = span_skip(path, 5);
    }
    if (span_cut(&rest, '/', &part)) {
        if (part.n >= sizeof version || rest.n)
            return false;
        memcpy(version, part.p, part.n);
        return write_resources(o, group, version);
    }
    if (*group) {
        const char *versions[GROUP_VERSIONS_MAX];

        if (versions_of(group, versions) == 0)
            return false;
        write_group(o, group, true);
        return true;
    }
    return false;
}

/* "/readyz", and its one check by name. */
static bool is_health(struct span path, bool *ret_is_known)
{
    static const char *const paths[] = { "/healthz", "/livez", "/readyz" };

    EACH(p, paths) {
        size_t n = strlen(*p);

        if (!span_starts(path, *p) || (path.n > n && path.p[n] != '/'))
            continue;
        *ret_is_known = path.n == n || span_is(span_skip(path, n), "/ping");
        return true;
    }
    return false;
}

/* Everything that can be asked for, for people who look around. */
static void write_paths(struct json_out *o)
{
    static const char *const others[] = { "/healthz",    "/livez",  "/metrics", "/openapi/v2",
                                          "/openapi/v3", "/readyz", "/version" };
    size_t n;
    const struct kind *kinds = kinds_all(&n);

    json_out_object_begin(o);
    json_out_key(o, "paths"), json_out_array_begin(o);
    json_out_cstr(o, "/api"), json_out_cstr(o, "/api/v1"), json_out_cstr(o, "/apis");
    for (size_t i = 0; i < n; i++) {
        const char *versions[GROUP_VERSIONS_MAX];
        size_t count = begins_group(kinds, i) ? versions_of(kinds[i].group, versions) : 0;
        char text[400];

        for (size_t v = 0; v < count; v++) {
            if (v == 0) {
                (void)snprintf(text, sizeof text, "/apis/%s", kinds[i].group);
                json_out_cstr(o, text);
            }
            (void)snprintf(text, sizeof text, "/apis/%s/%s", kinds[i].group, versions[v]);
            json_out_cstr(o, text);
        }
    }
    EACH(p, others) {
        json_out_cstr(o, *p);
    }
    json_out_array_end(o);
    json_out_object_end(o);
}

static void answer_metrics(struct call *c)
{
    OWN(buf_done) struct buf text = BUF_INIT(CALL_ANSWER_MAX_BYTES);
    struct err e;

    if (metrics_write(c->s->metrics, c->s->store, &text, &e) < 0) {
        (void)status_of_err(&c->status, &e);
        call_refuse(c);
    } else {
        call_answer_bytes(c, 200, "text/plain; version=0.0.4; charset=utf-8", buf_span(&text));
    }
}

bool discovery_answer(struct call *c, struct span path)
{
    OWN(buf_done) struct buf body = BUF_INIT(DISCOVERY_MAX_BYTES);
    struct json_out o;
    bool is_found = true;

    if (!http_method_is(c->x, "GET") && !http_method_is(c->x, "HEAD"))
        return false;
    if (is_health(path, &is_found)) {
        if (is_found)
            call_answer_bytes(c, 200, "text/plain; charset=utf-8", SPAN("ok"));
        else
            call_no_page(c);
        return true;
    }
    if (span_is(path, "/metrics")) {
        answer_metrics(c);
        return true;
    }
    if (path.n > 1 && path.p[path.n - 1] == '/')
        path.n--;
    if (span_starts(path, "/openapi/")) {
        answer_document(c, path);
        return true;
    }
    json_out_init(&o, &body, 0);
    if (span_is(path, "/"))
        write_paths(&o);
    else if (span_is(path, "/version"))
        write_version(&o);
    else if (span_is(path, "/api"))
        wants_aggregated(c) ? write_aggregated(&o, true) : write_api_versions(&o, c->s->address);
    else if (span_is(path, "/apis"))
        wants_aggregated(c) ? write_aggregated(&o, false) : write_groups(&o);
    else if (span_starts(path, "/api/") || span_starts(path, "/apis/"))
        is_found = write_below(&o, path);
    else
        return false;
    answer_json(c, &o, &body, is_found);
    return true;
}
