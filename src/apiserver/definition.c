#include "apiserver/definition.h"

#include "apiserver/admit.h"

#include <stdio.h>
#include <string.h>

#define GIVEN "silica.dev/built-in"

/* definitions.json, made by tools/crds from the tables that the kinds themselves are made of. */
extern const uint8_t definitions_json[];
extern const size_t definitions_json_bytes;

bool definition_is_one(const struct kind *k)
{
    return strcmp(k->plural, "customresourcedefinitions") == 0;
}

bool definition_is_given(const struct object *o)
{
    return object_annotation(o, GIVEN) != NULL;
}

struct object *definition_given(const struct op *op, const char *name)
{
    struct shelf_key key = { op_number(op->kind), "", name };
    struct object *o = definition_is_one(op->kind) ? store_get(op->store, STORE_HEAD, &key) : NULL;

    return o && definition_is_given(o) ? o : NULL;
}

/* "sandboxes.agents.x-k8s.io": the kind that a definition of this name is of. */
static const struct kind *kind_named(struct span name)
{
    size_t n;
    const struct kind *kinds = kinds_all(&n);

    for (size_t i = 0; i < n; i++) {
        size_t plural = strlen(kinds[i].plural);

        if (kinds[i].traits & KIND_CUSTOM && span_starts(name, kinds[i].plural) &&
            name.n > plural && name.p[plural] == '.' &&
            span_is(span_skip(name, plural + 1), kinds[i].group))
            return &kinds[i];
    }
    return NULL;
}

/* ---- the status ---- */

static struct json_node *texts(struct json_edit *ed, const char *const *list)
{
    struct json_node *out = json_edit_array(ed);

    for (; *list; list++)
        json_node_append(out, json_edit_cstr(ed, *list));
    return out;
}

static void add_condition(struct json_edit *ed, struct json_node *list, const char *type,
                          const char *reason, const char *message)
{
    struct json_node *one = json_edit_object(ed);
    char now[TIME_TEXT_BYTES];

    json_node_set(one, "type", json_edit_cstr(ed, type));
    json_node_set(one, "status", json_edit_cstr(ed, "True"));
    json_node_set(one, "lastTransitionTime", json_edit_cstr(ed, admit_now(now)));
    json_node_set(one, "reason", json_edit_cstr(ed, reason));
    json_node_set(one, "message", json_edit_cstr(ed, message));
    json_node_append(list, one);
}

/* What is served is what the kind is, whatever a definition says. */
static void write_status(struct json_edit *ed, const struct kind *k, struct json_node *body)
{
    struct json_node *status = json_edit_object(ed), *names = json_edit_object(ed);
    struct json_node *list = json_edit_array(ed), *stored = json_edit_array(ed);

    add_condition(ed, list, "NamesAccepted", "NoConflicts", "no conflicts found");
    add_condition(ed, list, "Established", "InitialNamesAccepted",
                  "the initial names have been accepted");
    json_node_set(status, "conditions", list);
    json_node_set(names, "plural", json_edit_cstr(ed, k->plural));
    json_node_set(names, "singular", json_edit_cstr(ed, k->singular));
    if (*k->short_names)
        json_node_set(names, "shortNames", texts(ed, k->short_names));
    json_node_set(names, "kind", json_edit_cstr(ed, k->name));
    json_node_set(names, "listKind", json_edit_cstr(ed, k->list_name));
    if (*k->categories)
        json_node_set(names, "categories", texts(ed, k->categories));
    json_node_set(status, "acceptedNames", names);
    json_node_append(stored, json_edit_cstr(ed, k->versions[0].name));
    json_node_set(status, "storedVersions", stored);
    json_node_set(body, "status", status);
}

/* ---- what others write ---- */

int definition_admit(struct op *op, struct json_edit *ed, struct json_node *body, struct status *st)
{
    const char *name = json_node_cstr(json_node_get(json_node_get(body, "metadata"), "name"));
    const struct kind *k = kind_named(span_cstr(name ? name : ""));

    if (!k)
        return status_forbidden(st, op->kind, name ? name : "",
                                "this server serves a fixed set of kinds, and this is none of "
                                "them; definitions of other kinds need a cluster");
    write_status(ed, k, body);
    return 0;
}

void definition_adopt(struct op *op, struct json_node *body, struct json_node *was)
{
    struct json_node *meta = json_node_get(body, "metadata");
    struct json_node *notes = json_node_get(meta, "annotations");

    if (!op->user || json_node_equal(json_node_get(body, "spec"), json_node_get(was, "spec")))
        return;
    (void)json_node_remove(notes, GIVEN);
    if (notes && !json_node_count(notes))
        (void)json_node_remove(meta, "annotations");
}

/* ---- ours ---- */

static int put(struct store *store, const struct json *definition, struct err *e)
{
    OWN(status_done) struct status st = STATUS_INIT;
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
    OWN(object_done) struct object *made = NULL;
    const struct kind *kind = kind_find("apiextensions.k8s.io", "v1", "customresourcedefinitions");
    const char *name = json_cstr(json_get(json_get(definition, "metadata"), "name"));
    struct op op = { .store = store,
                     .kind = kind,
                     .version = &kind->versions[0],
                     .namespace = "",
                     .name = name,
                     .manager = "silica",
                     .is_tracked = true }; /* nobody's fields: nobody's apply conflicts with them */
    struct shelf_key key = { op_number(kind), "", name };
    const struct object *there = store_get(store, STORE_HEAD, &key);
    struct json_node *body = json_edit_view(ed, definition), *meta, *notes;
    char version[24];
    int rc;

    if (there && !definition_is_given(there))
        return 0;
    meta = json_node_get(body, "metadata");
    notes = json_node_set(meta, "annotations", json_edit_object(ed));
    json_node_set(notes, GIVEN, json_edit_cstr(ed, "true"));
    if (there) {
        (void)snprintf(version, sizeof version, "%llu", (unsigned long long)object_version(there));
        json_node_set(meta, "resourceVersion", json_edit_cstr(ed, version));
        rc = op_update(&op, ed, body, &made, &st);
    } else {
        op.name = "";
        rc = op_create(&op, ed, body, &made, &st);
    }
    return rc == 0 ? 0
                   : err_set(e, ERR_INTERNAL, "cannot make the definition '%s': %s", name,
                             buf_cstr(&st.message));
}

int definition_seed(struct store *store, struct err *e)
{
    OWN(json_doc_done) struct json_doc *doc = NULL;

    if (json_parse(span_of(definitions_json, definitions_json_bytes), NULL, &doc, e) < 0)
        return -1;
    JSON_EACH(one, json_doc_root(doc))
    {
        if (put(store, one, e) < 0)
            return -1;
    }
    return 0;
}

void definition_warn(struct op *op, const char *name)
{
    const struct kind *k = definition_is_one(op->kind) ? kind_named(span_cstr(name)) : NULL;

    if (k && !op->is_dry_run)
        op_warn(op,
                "%s is served by this server itself: its objects stay, and its first definition "
                "comes back",
                name);
}
