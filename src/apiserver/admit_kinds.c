/* What single kinds get when they are created, beyond the defaults of their fields: a Pod its account and the token of it,
 * a Service its address. */
#include "apiserver/addresses.h"
#include "apiserver/admit.h"
#include "apiserver/definition.h"
#include "kube/default.h"

#include <stdio.h>
#include <string.h>

#define TOKEN_MOUNT   "/var/run/secrets/kubernetes.io/serviceaccount"
#define TOKEN_SECONDS 3607 /* an hour and a little, as the public server has it */

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
    char name[32] = "kube-api-access-", text[640];
    bool is_used;

    admit_suffix(name + strlen(name));
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

/* An address of this server's is of this family. */
#define FAMILY "IPv4"

static bool has_no_address(struct json_node *spec)
{
    return json_node_type(spec) != JSON_OBJECT ||
           span_is(json_node_str(json_node_get(spec, "type")), "ExternalName");
}

/* Nothing is allocated for it and nothing selected: it may be of any families. */
static bool is_free_of_families(struct json_node *spec)
{
    return span_is(json_node_str(json_node_get(spec, "clusterIP")), "None") &&
           !json_node_count(json_node_get(spec, "selector"));
}

static int refuse_service(struct op *op, struct json_node *body, struct status *st)
{
    const char *name = json_node_cstr(json_node_get(json_node_get(body, "metadata"), "name"));

    return st->causes.n ? status_invalid(st, op->kind, name ? name : "") : 0;
}

/* The policy agrees with the families, and with what it was: a family is only let go of by one that wants a single one. */
static int check_policy(struct op *op, struct json_node *body, struct json_node *was,
                        struct status *st)
{
    struct json_node *spec = json_node_get(body, "spec"), *old = json_node_get(was, "spec");
    const struct field_path *at = AT(AT(NULL, "spec"), "ipFamilyPolicy");
    struct span policy = json_node_str(json_node_get(spec, "ipFamilyPolicy"));
    size_t n = json_node_count(json_node_get(spec, "ipFamilies"));
    bool is_single = span_is(policy, "SingleStack");

    if (is_single && n > 1)
        causes_add_text(&st->causes, CAUSE_INVALID, at, policy,
                        "must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families "
                        "are specified");
    else if (!is_single && n == 1 && json_node_count(json_node_get(old, "ipFamilies")) > 1)
        causes_add_text(&st->causes, CAUSE_INVALID, at, policy,
                        "must be 'SingleStack' to release the secondary IP family");
    return refuse_service(op, body, st);
}

/* Only what there are addresses for can be asked for. */
static int check_families(struct op *op, struct json_node *body, struct json_node *spec,
                          struct status *st)
{
    const struct field_path *at = AT(NULL, "spec");
    struct span policy = json_node_str(json_node_get(spec, "ipFamilyPolicy"));
    struct json_node *families = json_node_get(spec, "ipFamilies");
    struct span address = json_node_str(json_node_get(spec, "clusterIP"));

    if (!json_node_count(families) && span_find(address, ':') != SIZE_MAX)
        causes_add_text(&st->causes, CAUSE_INVALID, AT_INDEX(AT(at, "clusterIPs"), 0), address,
                        "IPv6 is not configured on this cluster");
    if (span_is(policy, "RequireDualStack"))
        causes_add_text(&st->causes, CAUSE_INVALID, AT(at, "ipFamilyPolicy"), policy,
                        "this cluster is not configured for dual-stack services");
    for (size_t i = 0; i < json_node_count(families); i++) {
        struct span family = json_node_str(json_node_at(families, i));

        if (!span_is(family, FAMILY))
            causes_add_text(&st->causes, CAUSE_INVALID, AT_INDEX(AT(at, "ipFamilies"), i), family,
                            "not configured on this cluster");
    }
    return refuse_service(op, body, st);
}

static void fill_families(struct json_edit *ed, struct json_node *spec, bool is_free)
{
    struct json_node *families = need(ed, spec, "ipFamilies", true);
    struct span policy = json_node_str(json_node_get(spec, "ipFamilyPolicy"));

    if (json_node_count(families) == 0)
        json_node_append(families, json_edit_cstr(ed, FAMILY));
    if (!is_free || span_is(policy, "SingleStack") || json_node_count(families) > 1)
        return;
    json_node_append(families,
                     json_edit_cstr(ed, span_is(json_node_str(json_node_at(families, 0)), "IPv6")
                                            ? "IPv4"
                                            : "IPv6"));
}

static int admit_service(struct op *op, struct json_edit *ed, struct json_node *body,
                         struct status *st)
{
    struct json_node *spec = json_node_get(body, "spec");
    bool is_free = is_free_of_families(spec);
    char picked[ADDRESSES_TEXT_BYTES];

    if (has_no_address(spec))
        return 0;
    if (!json_node_str(json_node_get(spec, "ipFamilyPolicy")).n)
        json_node_set(spec, "ipFamilyPolicy",
                      json_edit_cstr(ed, is_free ? "RequireDualStack" : "SingleStack"));
    if (check_policy(op, body, NULL, st) < 0 ||
        (!is_free && check_families(op, body, spec, st) < 0))
        return -1;
    fill_families(ed, spec, is_free);
    if (!json_node_str(json_node_get(spec, "clusterIP")).n) {
        if (!addresses_pick(store_addresses(op->store), picked))
            return status_internal(st, "failed to allocate a serviceIP: range is full");
        json_node_set(spec, "clusterIP", json_edit_cstr(ed, picked));
    }
    if (!json_node_get(spec, "clusterIPs"))
        json_node_append(need(ed, spec, "clusterIPs", true),
                         json_edit_str(ed, json_node_str(json_node_get(spec, "clusterIP"))));
    return 0;
}

/* ---- Event ---- */

static bool is_event(const struct op *op)
{
    return op_number(op->kind) == op_number(kind_find("", "v1", "events"));
}

/* They end by age and by number; nobody's leave is asked. */
static void strip_finalizers(struct json_node *body)
{
    (void)json_node_remove(json_node_get(body, "metadata"), "finalizers");
}

int admit_kind(struct op *op, struct json_edit *ed, struct json_node *body, struct status *st)
{
    if (is_core(op, "Pod"))
        return admit_pod(op, ed, body, st);
    if (is_core(op, "Service"))
        return admit_service(op, ed, body, st);
    if (is_event(op))
        strip_finalizers(body);
    if (definition_is_one(op->kind))
        return definition_admit(op, ed, body, st);
    return 0;
}

int admit_kind_updated(struct op *op, struct json_node *body, struct json_node *was,
                       struct status *st)
{
    struct json_node *spec = json_node_get(body, "spec");

    if (is_event(op))
        strip_finalizers(body);
    if (is_core(op, "Service") && !op->sub && !default_is_kept(body, was, "spec") &&
        !has_no_address(spec)) {
        if (check_policy(op, body, was, st) < 0)
            return -1;
        return is_free_of_families(spec) ? 0 : check_families(op, body, spec, st);
    }
    if (definition_is_one(op->kind) && !op->sub)
        definition_adopt(op, body, was);
    return 0;
}
