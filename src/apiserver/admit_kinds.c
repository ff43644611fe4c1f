/* What single kinds get when they are created, beyond the defaults of their fields: a Pod its account and the token of it,
 * a Service its address. */
#include "apiserver/admit.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#define TOKEN_MOUNT   "/var/run/secrets/kubernetes.io/serviceaccount"
#define TOKEN_SECONDS 3607 /* an hour and a little, as the public server has it */
#define ADDRESS_TRIES 64

static bool is_core(const struct op *op, const char *name)
{
    return !*op->kind->group && strcmp(op->kind->name, name) == 0;
}

static struct json_node *need(struct json_edit *ed, struct json_node *object, const char *name,
                              bool is_list)
{
    struct json_node *v = json_node_get(object, name);

    if (v && json_node_type(v) != JSON_NULL)
        return v;
    return json_node_set(object, name, is_list ? json_edit_array(ed) : json_edit_object(ed));
}

/* ---- Pod ---- */

static struct json_node *parse(struct json_edit *ed, const char *text)
{
    OWN(json_doc_done) struct json_doc *doc = NULL;
    struct err e;

    return json_parse(span_cstr(text), NULL, &doc, &e) < 0 ? json_edit_null(ed)
                                                           : json_edit_doc(ed, doc);
}

static bool mounts_token(struct json_node *container)
{
    struct json_node *mounts = json_node_get(container, "volumeMounts");

    for (size_t i = 0; i < json_node_count(mounts); i++)
        if (span_is(json_node_str(json_node_get(json_node_at(mounts, i), "mountPath")),
                    TOKEN_MOUNT))
            return true;
    return false;
}

/* The first containers to want it decide that the volume is there. */
static bool mount_in(struct json_edit *ed, struct json_node *containers, const char *volume)
{
    bool is_used = false;
    char text[256];

    for (size_t i = 0; i < json_node_count(containers); i++) {
        struct json_node *c = json_node_at(containers, i);

        if (mounts_token(c))
            continue;
        (void)snprintf(text, sizeof text,
                       "{\"name\":\"%s\",\"readOnly\":true,\"mountPath\":\"" TOKEN_MOUNT "\"}",
                       volume);
        json_node_append(need(ed, c, "volumeMounts", true), parse(ed, text));
        is_used = true;
    }
    return is_used;
}

static void mount_token(struct json_edit *ed, struct json_node *spec)
{
    static const char letters[] = "bcdfghjklmnpqrstvwxz2456789";
    char name[32] = "kube-api-access-", text[640];
    size_t n = strlen(name);
    uint8_t random[5];
    bool is_used;

    if (getrandom(random, sizeof random, 0) != sizeof random)
        abort();
    for (size_t i = 0; i < sizeof random; i++)
        name[n + i] = letters[random[i] % (sizeof letters - 1)];
    is_used = mount_in(ed, json_node_get(spec, "initContainers"), name);
    is_used |= mount_in(ed, json_node_get(spec, "containers"), name);
    if (!is_used)
        return;
    (void)snprintf(
        text, sizeof text,
        "{\"name\":\"%s\",\"projected\":{\"sources\":[{\"serviceAccountToken\":{\"expirationSeconds\":%d,"
        "\"path\":\"token\"}},{\"configMap\":{\"name\":\"kube-root-ca.crt\",\"items\":[{\"key\":\"ca.crt\","
        "\"path\":\"ca.crt\"}]}},{\"downwardAPI\":{\"items\":[{\"path\":\"namespace\",\"fieldRef\":{"
        "\"apiVersion\":\"v1\",\"fieldPath\":\"metadata.namespace\"}}]}}],\"defaultMode\":420}}",
        name, TOKEN_SECONDS);
    json_node_append(need(ed, spec, "volumes", true), parse(ed, text));
}

static int admit_pod(struct op *op, struct json_edit *ed, struct json_node *body, struct status *st)
{
    struct json_node *spec = json_node_get(body, "spec");
    const char *account = json_node_cstr(json_node_get(spec, "serviceAccountName"));
    struct shelf_key key = { op_number(kind_find("", "v1", "serviceaccounts")), op->namespace,
                             "default" };
    const struct object *there;
    bool wants_token = true;

    if (account && *account)
        key.name = account;
    there = store_get(op->store, STORE_HEAD, &key);
    if (!there && strcmp(key.name, "default") != 0)
        return status_forbidden(
            st, op->kind, json_node_cstr(json_node_get(json_node_get(body, "metadata"), "name")),
            "error looking up service account %s/%s: serviceaccount \"%s\" not found",
            op->namespace, key.name, key.name);
    json_node_set(spec, "serviceAccountName", json_edit_cstr(ed, key.name));
    json_node_set(spec, "serviceAccount", json_edit_cstr(ed, key.name));
    if (!json_node_bool(json_node_get(spec, "automountServiceAccountToken"), &wants_token) && there)
        (void)json_bool(object_member(there, "automountServiceAccountToken"), &wants_token);
    if (wants_token)
        mount_token(ed, spec);
    return 0;
}

/* ---- Service ---- */

static bool is_taken(struct op *op, const char *address)
{
    struct shelf_key from = { op_number(kind_find("", "v1", "services")), "", "" };
    struct shelf *shelf = store_snapshot(op->store, STORE_HEAD, NULL);
    struct shelf_walk walk;
    struct object *o;
    bool is_found = false;
    unsigned kind;

    shelf_walk_init(&walk, shelf, &from, false);
    while (!is_found && (o = shelf_walk_next(&walk, &kind)) && kind == from.kind) {
        const char *his = object_text(o, "spec.clusterIP");

        is_found = his && strcmp(his, address) == 0;
    }
    shelf_unref(shelf);
    return is_found;
}

static int pick_address(struct op *op, char text[32], struct status *st)
{
    for (int i = 0; i < ADDRESS_TRIES; i++) {
        uint16_t n;

        if (getrandom(&n, sizeof n, 0) != sizeof n)
            abort();
        if (n < 16 || (n & 0xff) == 0xff)
            continue;
        (void)snprintf(text, 32, "10.96.%u.%u", n >> 8, n & 0xff);
        if (!is_taken(op, text))
            return 0;
    }
    return status_internal(st, "failed to allocate a serviceIP: range is full");
}

static int admit_service(struct op *op, struct json_edit *ed, struct json_node *body,
                         struct status *st)
{
    struct json_node *spec = json_node_get(body, "spec"), *list;
    struct span address = json_node_str(json_node_get(spec, "clusterIP"));
    struct span policy = json_node_str(json_node_get(spec, "ipFamilyPolicy"));
    char picked[32];

    if (json_node_type(spec) != JSON_OBJECT ||
        span_is(json_node_str(json_node_get(spec, "type")), "ExternalName"))
        return 0;
    if (!address.n) {
        if (pick_address(op, picked, st) < 0)
            return -1;
        address = json_node_str(json_node_set(spec, "clusterIP", json_edit_cstr(ed, picked)));
    }
    if (!json_node_get(spec, "clusterIPs"))
        json_node_append(need(ed, spec, "clusterIPs", true), json_edit_str(ed, address));
    if (!json_node_get(spec, "ipFamilies")) {
        bool is_dual = span_is(policy, "RequireDualStack") ||
                       (span_is(address, "None") && !policy.n &&
                        !json_node_count(json_node_get(spec, "selector")));

        list = need(ed, spec, "ipFamilies", true);
        json_node_append(list,
                         json_edit_cstr(ed, span_find(address, ':') == SIZE_MAX ? "IPv4" : "IPv6"));
        if (is_dual)
            json_node_append(list, json_edit_cstr(ed, "IPv6"));
        if (!policy.n)
            json_node_set(spec, "ipFamilyPolicy",
                          json_edit_cstr(ed, is_dual ? "RequireDualStack" : "SingleStack"));
    } else if (!policy.n) {
        json_node_set(spec, "ipFamilyPolicy", json_edit_cstr(ed, "SingleStack"));
    }
    return 0;
}

int admit_kind(struct op *op, struct json_edit *ed, struct json_node *body, struct status *st)
{
    if (is_core(op, "Pod"))
        return admit_pod(op, ed, body, st);
    if (is_core(op, "Service"))
        return admit_service(op, ed, body, st);
    return 0;
}
