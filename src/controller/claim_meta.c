/* Labels and annotations that a claim adds. */
#include "controller/claim_spec.h"

#include "controller/keys.h"
#include "controller/names.h"
#include "kube/names.h"

#include <string.h>

#define INVALID "invalid additionalPodMetadata: "

static enum claim_fault refuse(struct err *e, const char *what, struct span key, const char *why)
{
    (void)err_set(e, ERR_INVALID, INVALID "%s \"%.*s\": %s", what, SPAN_ARG(key), why);
    return CLAIM_METADATA;
}

/* "example.com" of "example.com/x"; false: there is none. */
static bool domain_of(struct span key, struct span *ret)
{
    size_t slash = span_find(key, '/');

    *ret = span_slice(key, 0, slash);
    return slash != SIZE_MAX;
}

static bool is_below(struct span domain, const char *parent)
{
    size_t n = strlen(parent);

    return span_is_nocase(domain, parent) ||
           (domain.n > n && domain.p[domain.n - n - 1] == '.' &&
            span_is_nocase(span_skip(domain, domain.n - n), parent));
}

static enum claim_fault check_label(struct span key, struct span value, const char *const *domains,
                                    struct err *e)
{
    struct names_faults faults;
    char why[NAMES_FAULT_MAX_BYTES];
    struct span domain;

    if (!names_check(NAMES_LABEL_KEY, key, &faults))
        return refuse(e, "label key", key, names_join(&faults, why, sizeof why));
    if (span_is(key, "app") && span_is_nocase(value, "sandbox-router"))
        return refuse(e, "label", key, "the value \"sandbox-router\" is the router's");
    if (!domain_of(key, &domain))
        return refuse(e, "label", key, "a domain prefix is required");
    for (; *domains && !is_below(domain, *domains); domains++)
        ;
    if (!*domains)
        return refuse(e, "label", key, "its domain is not among those that claims may use");
    if (!names_check(NAMES_LABEL_VALUE, value, &faults))
        return refuse(e, "value of label", key, names_join(&faults, why, sizeof why));
    return CLAIM_FINE;
}

static enum claim_fault check_annotation(struct span key, struct err *e)
{
    static const char *const reserved[] = { "kubernetes.io", "k8s.io", "agents.x-k8s.io" };
    struct names_faults faults;
    char why[NAMES_FAULT_MAX_BYTES];
    struct span domain;

    if (!names_check(NAMES_LABEL_KEY, key, &faults))
        return refuse(e, "annotation key", key, names_join(&faults, why, sizeof why));
    if (!domain_of(key, &domain) || span_is(key, NOTE_SAFE_TO_EVICT))
        return CLAIM_FINE;
    EACH(name, reserved) {
        if (is_below(domain, *name))
            return refuse(e, "annotation", key, "its domain is reserved");
    }
    return CLAIM_FINE;
}

enum claim_fault claim_check_metadata(const struct object *claim, const char *const *domains,
                                      struct err *e)
{
    const struct json *more = object_at(claim, "spec.additionalPodMetadata");
    enum claim_fault fault = CLAIM_FINE;

    JSON_MEMBERS(key, value, json_get(more, "labels"))
    {
        fault = check_label(json_str(key), json_str(value), domains, e);
        if (fault)
            return fault;
    }
    JSON_MEMBERS(note, text, json_get(more, "annotations"))
    {
        (void)text;
        fault = check_annotation(json_str(note), e);
        if (fault)
            return fault;
    }
    return CLAIM_FINE;
}

/* ---- what the Pod gets ---- */

static int add_map(struct json_node *to, const struct json *map, struct err *e)
{
    JSON_MEMBERS(key, value, map)
    {
        struct json_node *have = json_node_get_span(to, json_str(key));

        if (have && !span_eq(json_node_str(have), json_str(value)))
            return err_set(
                e, ERR_CONFLICT,
                "additionalPodMetadata: \"%.*s\" is set to another value by the template",
                SPAN_ARG(json_str(key)));
        json_node_set_span(to, json_str(key), json_edit_view(json_node_edit(to), value));
    }
    return 0;
}

static void copy_map(struct json_node *to, const struct json *map)
{
    JSON_MEMBERS(key, value, map)
    {
        json_node_set_span(to, json_str(key), json_edit_view(json_node_edit(to), value));
    }
}

/* What is said for the Pod wins over what the claim says of itself, and that over the template. */
static void ask_for_addresses(const struct object *claim, const struct object *template,
                              struct json_node *notes)
{
    const char *note = object_annotation(claim, NOTE_POD_ADDRESSES);

    if (!note)
        note = object_annotation(template, NOTE_POD_ADDRESSES);
    if (note && !json_node_get(notes, NOTE_POD_ADDRESSES))
        tree_text(notes, NOTE_POD_ADDRESSES, note);
}

int claim_pod_metadata(const struct object *claim, const struct object *template,
                       struct json_node *meta, struct err *e)
{
    const struct json *from = object_at(template, "spec.podTemplate.metadata");
    const struct json *more = object_at(claim, "spec.additionalPodMetadata");
    const char *by = object_label(claim, LABEL_CREATED_BY);
    struct json_node *labels = tree_object(meta, "labels");
    struct json_node *notes = tree_object(meta, "annotations");
    char hash[NAME_HASH_BYTES];

    copy_map(labels, json_get(from, "labels"));
    copy_map(notes, json_get(from, "annotations"));
    tree_text(labels, LABEL_CLAIM_UID, object_uid(claim));
    tree_text(labels, LABEL_TEMPLATE_REF, name_hash(hash, span_cstr(object_name(template))));
    if (by && *by)
        tree_text(labels, LABEL_CREATED_BY, by);
    else
        (void)json_node_remove(labels, LABEL_CREATED_BY);
    if (add_map(labels, json_get(more, "labels"), e) < 0 ||
        add_map(notes, json_get(more, "annotations"), e) < 0)
        return -1;
    ask_for_addresses(claim, template, notes);
    return 0;
}
