#include "controller/service.h"

#include "controller/keys.h"
#include "controller/names.h"

#include <string.h>

static enum { SERVICE_UNSET, SERVICE_WANTED, SERVICE_REFUSED } wish(const struct object *sandbox)
{
    bool is_wanted;

    if (!json_bool(object_at(sandbox, "spec.service"), &is_wanted))
        return SERVICE_UNSET;
    return is_wanted ? SERVICE_WANTED : SERVICE_REFUSED;
}

static struct json_node *ports_of(const struct object *sandbox, struct json_edit *ed)
{
    return service_ports(ed, object_at(sandbox, "spec.podTemplate.spec"));
}

static struct step make(const struct object *sandbox, const char *hash, struct json_edit *ed)
{
    struct step step =
        step_create(ed, known_kinds()->service, object_namespace(sandbox), object_name(sandbox));
    struct json_node *meta = tree_object(step.body, "metadata"), *spec, *owners, *ports;

    tree_text(tree_object(meta, "labels"), LABEL_TRACKING, hash);
    owners = json_node_set(meta, "ownerReferences", json_edit_array(ed));
    json_node_append(owners, owner_reference(ed, sandbox));
    spec = tree_object(step.body, "spec");
    tree_text(spec, "clusterIP", "None");
    tree_text(tree_object(spec, "selector"), LABEL_TRACKING, hash);
    ports = ports_of(sandbox, ed);
    if (ports)
        json_node_set(spec, "ports", ports);
    return step;
}

/* ---- what differs ---- */

/* What a port is for us; its other fields are others' business. */
static bool is_same_port(const struct json *have, struct json_node *want)
{
    struct span protocol = json_str(json_get(have, "protocol"));

    return span_eq(json_str(json_get(have, "name")), json_node_str(json_node_get(want, "name"))) &&
           span_eq(protocol.n ? protocol : SPAN("TCP"),
                   json_node_str(json_node_get(want, "protocol"))) &&
           span_eq(json_number(json_get(have, "port")),
                   json_node_number(json_node_get(want, "port"))) &&
           span_eq(json_number(json_get(have, "targetPort")),
                   json_node_number(json_node_get(want, "targetPort")));
}

static bool are_same_ports(const struct json *have, struct json_node *want)
{
    size_t i = 0;

    if (json_count(have) != json_node_count(want))
        return false;
    JSON_EACH(port, have)
    {
        if (!is_same_port(port, json_node_at(want, i++)))
            return false;
    }
    return true;
}

static bool is_selector(const struct json *selector, const char *hash)
{
    return json_count(selector) == 1 && span_is(json_str(json_get(selector, LABEL_TRACKING)), hash);
}

/* A merge patch leaves members that it does not name: those of the old selector are taken out one by one. */
static bool patch_selector(const struct object *have, const char *hash, struct json_node *patch)
{
    const struct json *selector = object_at(have, "spec.selector");
    struct json_node *to;

    if (is_selector(selector, hash))
        return false;
    to = tree_object(tree_object(patch, "spec"), "selector");
    JSON_MEMBERS(name, value, selector)
    {
        (void)value;
        json_node_set_span(to, json_str(name), json_edit_null(json_node_edit(patch)));
    }
    tree_text(to, LABEL_TRACKING, hash);
    return true;
}

static bool patch_label(const struct object *have, const char *hash, struct json_node *patch)
{
    const char *label = object_label(have, LABEL_TRACKING);

    if (label && strcmp(label, hash) == 0)
        return false;
    tree_text(tree_object(tree_object(patch, "metadata"), "labels"), LABEL_TRACKING, hash);
    return true;
}

static bool patch_ports(const struct object *sandbox, const struct object *have,
                        struct json_node *patch)
{
    struct json_edit *ed = json_node_edit(patch);
    struct json_node *want = ports_of(sandbox, ed);

    if (are_same_ports(object_at(have, "spec.ports"), want))
        return false;
    json_node_set(tree_object(patch, "spec"), "ports", want ? want : json_edit_null(ed));
    return true;
}

static struct step correct(const struct object *sandbox, const struct object *have,
                           const char *hash, struct json_edit *ed)
{
    struct step step = step_patch(ed, have);
    bool differs = patch_label(have, hash, step.body);

    differs |= patch_selector(have, hash, step.body);
    if (wish(sandbox) == SERVICE_WANTED)
        differs |= patch_ports(sandbox, have, step.body);
    if (!differs)
        step.verb = STEP_NONE;
    return step;
}

/* ---- one that nobody owns ---- */

static int adopt(const struct object *sandbox, const struct object *have, const char *hash,
                 struct json_edit *ed, struct step *ret, struct err *e)
{
    const char *ip = object_text(have, "spec.clusterIP");

    if (!may_adopt(have, hash))
        return err_unowned(e, "service", have, sandbox);
    if (ip && *ip && strcmp(ip, "None") != 0)
        return err_set(e, ERR_CONFLICT,
                       "service \"%s\" is not headless (clusterIP %s): it is not adopted by "
                       "sandbox \"%s\"",
                       object_name(have), ip, object_name(sandbox));
    *ret = step_patch_locked(ed, have);
    json_node_set(tree_object(ret->body, "metadata"), "ownerReferences",
                  owner_references_with(ed, have, sandbox));
    (void)patch_label(have, hash, ret->body);
    (void)patch_selector(have, hash, ret->body);
    (void)patch_ports(sandbox, have, ret->body);
    return 0;
}

static int decide_wanted(const struct object *sandbox, const struct object *have, const char *hash,
                         struct json_edit *ed, struct service_verdict *ret, struct err *e)
{
    *ret = (struct service_verdict){ .is_required = true, .is_shown = true, .exists = true };
    if (!have) {
        ret->step = make(sandbox, hash, ed);
        return 0;
    }
    switch (ownership_of(have, sandbox)) {
    case OWNED:
        ret->step = correct(sandbox, have, hash, ed);
        return 0;
    case UNOWNED:
        return adopt(sandbox, have, hash, ed, &ret->step, e);
    case FOREIGN:
        break;
    }
    return err_foreign(e, "service", have, sandbox);
}

int service_decide(const struct object *sandbox, const struct object *have, struct json_edit *ed,
                   struct service_verdict *ret, struct err *e)
{
    char hash[NAME_HASH_BYTES];
    enum ownership owner = have ? ownership_of(have, sandbox) : UNOWNED;

    (void)name_hash(hash, span_cstr(object_name(sandbox)));
    *ret = (struct service_verdict){ 0 };
    switch (wish(sandbox)) {
    case SERVICE_WANTED:
        return decide_wanted(sandbox, have, hash, ed, ret, e);
    case SERVICE_REFUSED:
        if (owner == OWNED && !object_is_deleting(have))
            ret->step = step_delete(have);
        return 0;
    case SERVICE_UNSET:
        break;
    }
    if (owner == FOREIGN)
        return err_foreign(e, "service", have, sandbox);
    if (owner != OWNED)
        return 0;
    *ret = (struct service_verdict){ .is_required = true, .is_shown = true, .exists = true };
    ret->step = correct(sandbox, have, hash, ed);
    return 0;
}
