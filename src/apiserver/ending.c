#include "apiserver/ending.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void ending_done(struct ending *e)
{
    for (size_t i = 0; i < e->finalizer_count; i++)
        free(e->finalizers[i].name);
    e->finalizer_count = e->kind_count = 0;
}

static void add_finalizer(struct ending *e, const char *name)
{
    size_t i = 0;

    while (i < e->finalizer_count && strcmp(e->finalizers[i].name, name) != 0)
        i++;
    if (i == ENDING_FINALIZERS_MAX)
        return;
    if (i == e->finalizer_count) {
        e->finalizers[i].name = own_strdup(name);
        e->finalizers[i].count = 0;
        e->finalizer_count++;
    }
    e->finalizers[i].count++;
}

void ending_add(struct ending *e, const struct kind *kind, const struct object *o)
{
    size_t i = 0;

    while (i < e->kind_count && e->kinds[i].kind != kind)
        i++;
    if (i == ENDING_KINDS_MAX)
        return;
    if (i == e->kind_count) {
        e->kinds[i].kind = kind;
        e->kinds[i].count = 0;
        e->kind_count++;
    }
    e->kinds[i].count++;
    JSON_EACH(name, json_get(object_meta(o), "finalizers"))
    {
        if (json_cstr(name))
            add_finalizer(e, json_cstr(name));
    }
}

/* ---- texts ---- */

/* Entries in the order of their names. */
static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void join(struct buf *out, char **texts, size_t n)
{
    qsort(texts, n, sizeof *texts, by_text);
    for (size_t i = 0; i < n; i++) {
        buf_addf_capped(out, "%s%s", i ? ", " : "", texts[i]);
        free(texts[i]);
    }
}

static void describe_kinds(const struct ending *e, struct buf *out)
{
    char *texts[ENDING_KINDS_MAX];

    for (size_t i = 0; i < e->kind_count; i++)
        if (asprintf(&texts[i], "%s.%s has %zu resource instances", e->kinds[i].kind->plural,
                     e->kinds[i].kind->group, e->kinds[i].count) < 0)
            abort();
    join(out, texts, e->kind_count);
}

static void describe_finalizers(const struct ending *e, struct buf *out)
{
    char *texts[ENDING_FINALIZERS_MAX];

    for (size_t i = 0; i < e->finalizer_count; i++)
        if (asprintf(&texts[i], "%s in %zu resource instances", e->finalizers[i].name,
                     e->finalizers[i].count) < 0)
            abort();
    join(out, texts, e->finalizer_count);
}

/* ---- conditions ---- */

struct condition {
    const char *type, *status, *reason, *message;
};

static struct json_node *find(struct json_node *list, const char *type)
{
    for (size_t i = 0; i < json_node_count(list); i++)
        if (span_is(json_node_str(json_node_get(json_node_at(list, i), "type")), type))
            return json_node_at(list, i);
    return NULL;
}

static bool says(struct json_node *condition, const char *member, const char *text)
{
    return span_is(json_node_str(json_node_get(condition, member)), text);
}

static bool put(struct json_node *list, const struct condition *c, const char *now)
{
    struct json_edit *ed = json_node_edit(list);
    struct json_node *there = find(list, c->type);

    if (there && says(there, "status", c->status) && says(there, "reason", c->reason) &&
        says(there, "message", c->message))
        return false;
    if (!there) {
        there = json_edit_object(ed);
        json_node_append(list, there);
        json_node_set(there, "type", json_edit_cstr(ed, c->type));
    }
    if (!says(there, "status", c->status)) {
        json_node_set(there, "status", json_edit_cstr(ed, c->status));
        json_node_set(there, "lastTransitionTime", json_edit_cstr(ed, now));
    }
    json_node_set(there, "reason", json_edit_cstr(ed, c->reason));
    json_node_set(there, "message", json_edit_cstr(ed, c->message));
    return true;
}

bool ending_write(const struct ending *e, struct json_node *namespace, const char *now)
{
    OWN(buf_done)
    struct buf kinds = BUF_INIT(ENDING_TEXT_MAX_BYTES), held = BUF_INIT(ENDING_TEXT_MAX_BYTES);
    struct json_edit *ed = json_node_edit(namespace);
    struct json_node *status = json_node_get(namespace, "status"), *list;
    bool is_changed = false;

    (void)buf_add_capped(&kinds, SPAN("Some resources are remaining: "));
    describe_kinds(e, &kinds);
    (void)buf_add_capped(&held, SPAN("Some content in the namespace has finalizers remaining: "));
    describe_finalizers(e, &held);
    const struct condition conditions[] = {
        { "NamespaceDeletionDiscoveryFailure", "False", "ResourcesDiscovered",
          "All resources successfully discovered" },
        { "NamespaceDeletionGroupVersionParsingFailure", "False", "ParsedGroupVersions",
          "All legacy kube types successfully parsed" },
        { "NamespaceDeletionContentFailure", "False", "ContentDeleted",
          "All content successfully deleted, may be waiting on finalization" },
        { "NamespaceContentRemaining", e->kind_count ? "True" : "False",
          e->kind_count ? "SomeResourcesRemain" : "ContentRemoved",
          e->kind_count ? buf_cstr(&kinds) : "All content successfully removed" },
        { "NamespaceFinalizersRemaining", e->finalizer_count ? "True" : "False",
          e->finalizer_count ? "SomeFinalizersRemain" : "ContentHasNoFinalizers",
          e->finalizer_count ? buf_cstr(&held) : "All content-preserving finalizers finished" },
    };
    if (json_node_type(status) != JSON_OBJECT)
        status = json_node_set(namespace, "status", json_edit_object(ed));
    list = json_node_get(status, "conditions");
    if (json_node_type(list) != JSON_ARRAY)
        list = json_node_set(status, "conditions", json_edit_array(ed));
    EACH(c, conditions) {
        is_changed |= put(list, c, now);
    }
    return is_changed;
}
