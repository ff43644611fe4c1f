/* Types and fields as OpenAPI schemas. */
#include "kube/openapi_impl.h"

#include <stdio.h>
#include <string.h>

#define META "io.k8s.apimachinery.pkg.apis.meta.v1."

void openapi_types_init(struct openapi_types *t)
{
    (void)schema_types(&t->count);
    t->is_wanted = own_array(t->count, sizeof(bool));
}

void openapi_types_done(struct openapi_types *t)
{
    free(t->is_wanted);
}

static size_t index_of(const struct schema_type *type)
{
    size_t n;
    const struct schema_type *const *all = schema_types(&n);

    for (size_t i = 0; i < n; i++)
        if (all[i] == type)
            return i;
    return 0;
}

void openapi_types_add(struct openapi_types *t, const struct schema_type *type)
{
    size_t i = index_of(type);

    if (t->is_wanted[i])
        return;
    t->is_wanted[i] = true;
    for (size_t f = 0; f < type->field_count; f++)
        if (type->fields[f].ref)
            openapi_types_add(t, type->fields[f].ref);
}

void openapi_text(const struct openapi_writer *w, const char *name, const char *text)
{
    json_out_key(w->o, name), json_out_cstr(w->o, text);
}

void openapi_ref(const struct openapi_writer *w, const char *name)
{
    char text[256];

    snprintf(text, sizeof text, "#/%s/%s", w->is_v3 ? "components/schemas" : "definitions", name);
    json_out_object_begin(w->o);
    openapi_text(w, "$ref", text);
    json_out_object_end(w->o);
}

void openapi_gvk(const struct openapi_writer *w, const char *group, const char *version,
                 const char *kind)
{
    json_out_object_begin(w->o);
    openapi_text(w, "group", group);
    openapi_text(w, "kind", kind);
    openapi_text(w, "version", version);
    json_out_object_end(w->o);
}

static void gvk_list(const struct openapi_writer *w, const char *group, const char *version,
                     const char *kind)
{
    json_out_key(w->o, "x-kubernetes-group-version-kind");
    json_out_array_begin(w->o);
    openapi_gvk(w, group, version, kind);
    json_out_array_end(w->o);
}

/* Scalars that are types of their own in the public documents. */
static const char *scalar_ref(enum schema_value value)
{
    switch (value) {
    case SCHEMA_TIME:
        return META "Time";
    case SCHEMA_MICROTIME:
        return META "MicroTime";
    case SCHEMA_QUANTITY:
        return "io.k8s.apimachinery.pkg.api.resource.Quantity";
    case SCHEMA_INT_OR_STRING:
        return "io.k8s.apimachinery.pkg.util.intstr.IntOrString";
    case SCHEMA_DURATION:
        return META "Duration";
    case SCHEMA_RAW:
        return "io.k8s.apimachinery.pkg.runtime.RawExtension";
    case SCHEMA_STRING:
    case SCHEMA_INT32:
    case SCHEMA_INT64:
    case SCHEMA_BOOL:
    case SCHEMA_DOUBLE:
    case SCHEMA_BYTES:
    case SCHEMA_STRINGS:
    case SCHEMA_OBJECT:
        break;
    }
    return NULL;
}

static const struct plain {
    const char *type, *format;
} plains[] = {
    [SCHEMA_STRING] = { "string", NULL },     [SCHEMA_INT32] = { "integer", "int32" },
    [SCHEMA_INT64] = { "integer", "int64" },  [SCHEMA_BOOL] = { "boolean", NULL },
    [SCHEMA_DOUBLE] = { "number", "double" }, [SCHEMA_BYTES] = { "string", "byte" },
    [SCHEMA_STRINGS] = { "array", NULL },     [SCHEMA_OBJECT] = { NULL, NULL },
};

static void write_number(const struct openapi_writer *w, const char *name, int64_t v, int64_t none)
{
    if (v != none)
        json_out_key(w->o, name), json_out_i64(w->o, v);
}

static void write_value_rules(const struct openapi_writer *w, const struct schema_rules *r)
{
    if (!r)
        return;
    if (r->values) {
        json_out_key(w->o, "enum");
        json_out_array_begin(w->o);
        for (const char *const *v = r->values; *v; v++)
            json_out_cstr(w->o, *v);
        json_out_array_end(w->o);
    }
    write_number(w, "minimum", r->min, INT64_MIN);
    write_number(w, "maximum", r->max, INT64_MAX);
    write_number(w, "minLength", r->min_len, INT64_MIN);
    write_number(w, "maxLength", r->max_len, INT64_MAX);
    if (r->pattern)
        openapi_text(w, "pattern", r->pattern);
}

static void write_members(const struct openapi_writer *w, const struct schema_type *t);

/* The types of custom kinds have no name of their own in the public documents. */
static bool is_nameless(const struct schema_type *t)
{
    return strncmp(t->package, "agents/", 7) == 0 || strncmp(t->package, "extensions/", 11) == 0 ||
           strncmp(t->package, "gateway/", 8) == 0;
}

/* What one value is, as members of the open object. References stand behind allOf in version 3, where
 * nothing may stand beside them. */
static void write_value(const struct openapi_writer *w, const struct schema_field *f)
{
    const char *ref = f->ref ? f->ref->openapi : scalar_ref(f->value);

    if (f->ref && is_nameless(f->ref)) {
        write_members(w, f->ref);
    } else if (w->is_custom && !f->ref &&
               (f->value == SCHEMA_TIME || f->value == SCHEMA_MICROTIME)) {
        openapi_text(w, "type", "string");
        openapi_text(w, "format", "date-time");
    } else if (ref && w->is_v3) {
        json_out_key(w->o, "allOf");
        json_out_array_begin(w->o);
        openapi_ref(w, ref);
        json_out_array_end(w->o);
    } else if (ref) {
        char text[256];

        snprintf(text, sizeof text, "#/definitions/%s", ref);
        openapi_text(w, "$ref", text);
    } else {
        openapi_text(w, "type", plains[f->value].type);
        if (plains[f->value].format)
            openapi_text(w, "format", plains[f->value].format);
        if (f->value == SCHEMA_STRINGS) {
            json_out_key(w->o, "items"), json_out_object_begin(w->o);
            openapi_text(w, "type", "string");
            json_out_object_end(w->o);
        }
        write_value_rules(w, f->rules);
    }
}

static void write_list(const struct openapi_writer *w, const struct schema_field *f)
{
    static const char *const types[] = {
        [SCHEMA_LIST_ATOMIC] = "atomic", [SCHEMA_LIST_SET] = "set", [SCHEMA_LIST_MAP] = "map"
    };

    openapi_text(w, "type", "array");
    json_out_key(w->o, "items"), json_out_object_begin(w->o);
    write_value(w, f);
    json_out_object_end(w->o);
    if (f->keys) {
        json_out_key(w->o, "x-kubernetes-list-map-keys");
        json_out_array_begin(w->o);
        for (const char *const *key = f->keys; *key; key++)
            json_out_cstr(w->o, *key);
        json_out_array_end(w->o);
    }
    if (f->list != SCHEMA_LIST_UNSAID)
        openapi_text(w, "x-kubernetes-list-type", types[f->list]);
    if (f->rules) {
        write_number(w, "minItems", f->rules->min_items, INT64_MIN);
        write_number(w, "maxItems", f->rules->max_items, INT64_MAX);
    }
}

static void write_map(const struct openapi_writer *w, const struct schema_field *f)
{
    openapi_text(w, "type", "object");
    json_out_key(w->o, "additionalProperties"), json_out_object_begin(w->o);
    write_value(w, f);
    json_out_object_end(w->o);
    if (f->rules)
        write_number(w, "maxProperties", f->rules->max_props, INT64_MAX);
}

static void write_field(const struct openapi_writer *w, const struct schema_field *f)
{
    json_out_key(w->o, f->name);
    json_out_object_begin(w->o);
    if (f->doc && (w->is_v3 || f->shape != SCHEMA_SINGLE || (f->ref && is_nameless(f->ref)) ||
                   (!f->ref && !scalar_ref(f->value))))
        openapi_text(w, "description", f->doc); /* nothing stands beside a $ref of version 2 */
    if (f->shape == SCHEMA_LIST)
        write_list(w, f);
    else if (f->shape == SCHEMA_MAP)
        write_map(w, f);
    else
        write_value(w, f);
    if (f->preset)
        json_out_key(w->o, "default"), json_out_raw(w->o, span_cstr(f->preset));
    if (f->shape != SCHEMA_LIST && f->flags & SCHEMA_ATOMIC && !(f->ref && f->ref->is_atomic))
        openapi_text(w, "x-kubernetes-map-type", "atomic");
    if (f->merge_key)
        openapi_text(w, "x-kubernetes-patch-merge-key", f->merge_key);
    if (f->flags & (SCHEMA_PATCH_MERGE | SCHEMA_PATCH_REPLACE | SCHEMA_RETAIN_KEYS))
        openapi_text(w, "x-kubernetes-patch-strategy",
                     !(f->flags & SCHEMA_RETAIN_KEYS)
                         ? (f->flags & SCHEMA_PATCH_MERGE ? "merge" : "replace")
                     : f->flags & SCHEMA_PATCH_MERGE ? "merge,retainKeys"
                                                     : "retainKeys");
    json_out_object_end(w->o);
}

static void write_type_meta(const struct openapi_writer *w)
{
    static const char *const names[] = { "apiVersion", "kind" };

    EACH(name, names) {
        json_out_key(w->o, *name), json_out_object_begin(w->o);
        openapi_text(w, "type", "string");
        json_out_object_end(w->o);
    }
}

/* Which kind a type is the root of, if any. */
static const struct kind *kind_of_type(const struct schema_type *t, const char **ret_version)
{
    size_t n;
    const struct kind *kinds = kinds_all(&n);

    for (size_t i = 0; i < n; i++)
        for (size_t v = 0; v < kinds[i].version_count; v++)
            if (kinds[i].versions[v].type == t) {
                *ret_version = kinds[i].versions[v].name;
                return &kinds[i];
            }
    return NULL;
}

static void write_required(const struct openapi_writer *w, const struct schema_type *t)
{
    bool has_any = false;

    for (size_t i = 0; i < t->field_count; i++) {
        if (!(t->fields[i].flags & SCHEMA_REQUIRED))
            continue;
        if (!has_any) {
            json_out_key(w->o, "required");
            json_out_array_begin(w->o);
        }
        has_any = true;
        json_out_cstr(w->o, t->fields[i].name);
    }
    if (has_any)
        json_out_array_end(w->o);
}

static void write_members(const struct openapi_writer *w, const struct schema_type *t)
{
    const struct openapi_writer inner = { w->o, w->is_v3, is_nameless(t) };

    openapi_text(w, "type", "object");
    write_required(w, t);
    if (t->field_count || t->has_type_meta) {
        json_out_key(w->o, "properties"), json_out_object_begin(w->o);
        if (t->has_type_meta)
            write_type_meta(w);
        for (size_t i = 0; i < t->field_count; i++)
            write_field(&inner, &t->fields[i]);
        json_out_object_end(w->o);
    }
    if (t->is_atomic)
        openapi_text(w, "x-kubernetes-map-type", "atomic");
}

static void write_type(const struct openapi_writer *w, const struct schema_type *t)
{
    const char *version = NULL;
    const struct kind *k = kind_of_type(t, &version);

    if (is_nameless(t) && !t->is_custom)
        return;
    json_out_key(w->o, t->openapi);
    json_out_object_begin(w->o);
    write_members(w, t);
    if (k)
        gvk_list(w, k->group, version, k->name);
    json_out_object_end(w->o);
}

const char *openapi_list_name(const struct kind_version *v, char text[256])
{
    snprintf(text, 256, "%sList", v->type->openapi);
    return text;
}

static void write_list_type(const struct openapi_writer *w, const struct kind *k,
                            const struct kind_version *v)
{
    char name[256];

    json_out_key(w->o, openapi_list_name(v, name));
    json_out_object_begin(w->o);
    openapi_text(w, "type", "object");
    json_out_key(w->o, "required"), json_out_array_begin(w->o);
    json_out_cstr(w->o, "items");
    json_out_array_end(w->o);
    json_out_key(w->o, "properties"), json_out_object_begin(w->o);
    write_type_meta(w);
    json_out_key(w->o, "items"), json_out_object_begin(w->o);
    openapi_text(w, "type", "array");
    json_out_key(w->o, "items"), openapi_ref(w, v->type->openapi);
    json_out_object_end(w->o);
    json_out_key(w->o, "metadata"), openapi_ref(w, META "ListMeta");
    json_out_object_end(w->o);
    gvk_list(w, k->group, v->name, k->list_name);
    json_out_object_end(w->o);
}

/* The scalars that are types, each in the words of one line. */
static const struct {
    const char *name, *v2, *v3;
} scalars[] = {
    { META "Time", "{\"type\":\"string\",\"format\":\"date-time\"}", NULL },
    { META "MicroTime", "{\"type\":\"string\",\"format\":\"date-time\"}", NULL },
    { META "Duration", "{\"type\":\"string\"}", NULL },
    { META "Patch", "{\"type\":\"object\"}", NULL },
    { "io.k8s.apimachinery.pkg.runtime.RawExtension", "{\"type\":\"object\"}", NULL },
    { "io.k8s.apimachinery.pkg.api.resource.Quantity", "{\"type\":\"string\"}",
      "{\"oneOf\":[{\"type\":\"string\"},{\"type\":\"number\"}]}" },
    { "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
      "{\"type\":\"string\",\"format\":\"int-or-string\"}",
      "{\"format\":\"int-or-string\",\"oneOf\":[{\"type\":\"integer\"},{\"type\":\"string\"}]}" },
};

void openapi_schemas(const struct openapi_writer *w, const struct openapi_types *t,
                     const struct kind *const *kinds, const char *const *versions, size_t n)
{
    size_t count;
    const struct schema_type *const *all = schema_types(&count);

    json_out_object_begin(w->o);
    for (size_t i = 0; i < count; i++)
        if (t->is_wanted[i])
            write_type(w, all[i]);
    for (size_t i = 0; i < n; i++)
        if (kinds[i]->list_name[0])
            write_list_type(w, kinds[i], kind_version(kinds[i], versions[i]));
    EACH(s, scalars) {
        json_out_key(w->o, s->name);
        json_out_raw(w->o, span_cstr(w->is_v3 && s->v3 ? s->v3 : s->v2));
    }
    json_out_object_end(w->o);
}
