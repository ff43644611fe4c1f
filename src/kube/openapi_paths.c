/* What can be done where: the operations of each kind. Clients look here for what a server understands
 * (fieldValidation, dryRun), and for which body an operation takes. */
#include "kube/openapi_impl.h"

#include <stdio.h>
#include <string.h>

#define PATCH_TYPE "io.k8s.apimachinery.pkg.apis.meta.v1.Patch"

enum operation {
    GET,
    LIST,
    CREATE,
    UPDATE,
    PATCH,
    DELETE,
    DELETE_COLLECTION,
};

static const struct {
    const char *method, *verb, *action;
    unsigned kind_verb;
} operations[] = {
    [GET] = { "get", "read", "get", KIND_GET },
    [LIST] = { "get", "list", "list", KIND_LIST },
    [CREATE] = { "post", "create", "post", KIND_CREATE },
    [UPDATE] = { "put", "replace", "put", KIND_UPDATE },
    [PATCH] = { "patch", "patch", "patch", KIND_PATCH },
    [DELETE] = { "delete", "delete", "delete", KIND_DELETE },
    [DELETE_COLLECTION] = { "delete", "deletecollection", "deletecollection",
                            KIND_DELETE_COLLECTION },
};

static const struct parameter {
    const char *name, *type;
    unsigned operations; /* bits of enum operation */
} parameters[] = {
    { "dryRun", "string",
      1 << CREATE | 1 << UPDATE | 1 << PATCH | 1 << DELETE | 1 << DELETE_COLLECTION },
    { "fieldManager", "string", 1 << CREATE | 1 << UPDATE | 1 << PATCH },
    { "fieldValidation", "string", 1 << CREATE | 1 << UPDATE | 1 << PATCH },
    { "force", "boolean", 1 << PATCH },
    { "gracePeriodSeconds", "integer", 1 << DELETE | 1 << DELETE_COLLECTION },
    { "propagationPolicy", "string", 1 << DELETE | 1 << DELETE_COLLECTION },
    { "allowWatchBookmarks", "boolean", 1 << LIST },
    { "continue", "string", 1 << LIST | 1 << DELETE_COLLECTION },
    { "fieldSelector", "string", 1 << LIST | 1 << DELETE_COLLECTION },
    { "labelSelector", "string", 1 << LIST | 1 << DELETE_COLLECTION },
    { "limit", "integer", 1 << LIST | 1 << DELETE_COLLECTION },
    { "resourceVersion", "string", 1 << LIST | 1 << DELETE_COLLECTION },
    { "resourceVersionMatch", "string", 1 << LIST | 1 << DELETE_COLLECTION },
    { "sendInitialEvents", "boolean", 1 << LIST },
    { "timeoutSeconds", "integer", 1 << LIST | 1 << DELETE_COLLECTION },
    { "watch", "boolean", 1 << LIST },
};

static void write_parameter(const struct openapi_writer *w, const char *name, const char *in,
                            const char *type)
{
    json_out_object_begin(w->o);
    openapi_text(w, "name", name);
    openapi_text(w, "in", in);
    if (strcmp(in, "path") == 0)
        json_out_key(w->o, "required"), json_out_bool(w->o, true);
    if (w->is_v3) {
        json_out_key(w->o, "schema"), json_out_object_begin(w->o);
        openapi_text(w, "type", type);
        json_out_object_end(w->o);
    } else {
        openapi_text(w, "type", type);
    }
    json_out_object_end(w->o);
}

struct target {
    const struct kind *kind;
    const struct kind_version *version;
    const struct kind_subresource *sub; /* or NULL */
    const char *body;                   /* the type an operation takes and gives */
    bool is_all;                        /* over all namespaces */
};

/* The media types of a body, all of one schema. */
static void write_content(const struct openapi_writer *w, const char *const *media,
                          const char *type)
{
    json_out_key(w->o, "content"), json_out_object_begin(w->o);
    for (; *media; media++) {
        json_out_key(w->o, *media), json_out_object_begin(w->o);
        json_out_key(w->o, "schema"), openapi_ref(w, type);
        json_out_object_end(w->o);
    }
    json_out_object_end(w->o);
}

static void write_body(const struct openapi_writer *w, const struct target *t, enum operation op)
{
    static const char *const any[] = { "*/*", NULL };
    static const char *const core_patches[] = { "application/apply-patch+yaml",
                                                "application/json-patch+json",
                                                "application/merge-patch+json",
                                                "application/strategic-merge-patch+json", NULL };
    static const char *const custom_patches[] = { "application/apply-patch+yaml",
                                                  "application/json-patch+json",
                                                  "application/merge-patch+json", NULL };
    const char *const *media = op != PATCH                     ? any
                               : t->kind->traits & KIND_CUSTOM ? custom_patches
                                                               : core_patches;
    const char *type = op == PATCH ? PATCH_TYPE
                       : op == DELETE || op == DELETE_COLLECTION
                           ? "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"
                           : t->body;

    json_out_key(w->o, "requestBody"), json_out_object_begin(w->o);
    write_content(w, media, type);
    if (op != DELETE && op != DELETE_COLLECTION)
        json_out_key(w->o, "required"), json_out_bool(w->o, true);
    json_out_object_end(w->o);
}

static void write_responses(const struct openapi_writer *w, const struct target *t,
                            enum operation op)
{
    static const char *const json[] = { "application/json", NULL };
    char list[256];
    const char *type = op == LIST ? openapi_list_name(t->version, list)
                       : op == DELETE || op == DELETE_COLLECTION
                           ? "io.k8s.apimachinery.pkg.apis.meta.v1.Status"
                           : t->body;

    json_out_key(w->o, "responses"), json_out_object_begin(w->o);
    json_out_key(w->o, op == CREATE ? "201" : "200"), json_out_object_begin(w->o);
    openapi_text(w, "description", op == CREATE ? "Created" : "OK");
    if (w->is_v3)
        write_content(w, json, type);
    else
        json_out_key(w->o, "schema"), openapi_ref(w, type);
    json_out_object_end(w->o);
    json_out_object_end(w->o);
}

/* "patchAppsV1NamespacedDeploymentStatus" */
static void write_id(const struct openapi_writer *w, const struct target *t, enum operation op)
{
    OWN(buf_done) struct buf id = BUF_INIT(512);
    struct span group = span_cstr(t->kind->group[0] ? t->kind->group : "core"), part;
    const char *const tail[] = { t->version->name, kind_is_namespaced(t->kind) ? "namespaced" : "",
                                 t->kind->name, t->sub ? t->sub->name : "",
                                 t->is_all ? "forAllNamespaces" : "" };

    buf_addf_capped(&id, "%s", operations[op].verb);
    while (span_cut(&group, '.', &part))
        buf_addf_capped(&id, "%c%.*s", part.p[0] & ~0x20, SPAN_ARG(span_skip(part, 1)));
    EACH(word, tail) {
        if ((*word)[0])
            buf_addf_capped(&id, "%c%s", (*word)[0] & ~0x20, *word + 1);
    }
    for (size_t i = 0; i < id.n; i++)
        if (id.p[i] == '-')
            id.p[i] = '_';
    openapi_text(w, "operationId", buf_cstr(&id));
}

static void write_parameters(const struct openapi_writer *w, const struct target *t,
                             enum operation op)
{
    json_out_key(w->o, "parameters"), json_out_array_begin(w->o);
    EACH(p, parameters) {
        if (p->operations & 1u << op)
            write_parameter(w, p->name, "query", p->type);
    }
    if (!w->is_v3 && op != GET && op != LIST) {
        const char *type = op == PATCH ? PATCH_TYPE
                           : op == DELETE || op == DELETE_COLLECTION
                               ? "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"
                               : t->body;

        json_out_object_begin(w->o);
        openapi_text(w, "name", "body");
        openapi_text(w, "in", "body");
        if (op != DELETE && op != DELETE_COLLECTION)
            json_out_key(w->o, "required"), json_out_bool(w->o, true);
        json_out_key(w->o, "schema"), openapi_ref(w, type);
        json_out_object_end(w->o);
    }
    json_out_array_end(w->o);
}

static void write_operation(const struct openapi_writer *w, const struct target *t,
                            enum operation op)
{
    const struct kind_subresource *sub = t->sub;

    json_out_key(w->o, operations[op].method);
    json_out_object_begin(w->o);
    write_id(w, t, op);
    write_parameters(w, t, op);
    if (w->is_v3 && op != GET && op != LIST)
        write_body(w, t, op);
    write_responses(w, t, op);
    openapi_text(w, "x-kubernetes-action", operations[op].action);
    json_out_key(w->o, "x-kubernetes-group-version-kind");
    openapi_gvk(w, sub && sub->group ? sub->group : t->kind->group,
                sub && sub->version ? sub->version : t->version->name,
                sub && sub->kind ? sub->kind : t->kind->name);
    json_out_object_end(w->o);
}

static void write_path(const struct openapi_writer *w, const struct target *t, const char *path,
                       bool is_item, unsigned verbs)
{
    static const enum operation of_item[] = { GET, UPDATE, PATCH, DELETE };
    static const enum operation of_sub[] = { GET, CREATE, UPDATE, PATCH };
    static const enum operation of_list[] = { LIST, CREATE, DELETE_COLLECTION };
    const enum operation *ops = t->sub ? of_sub : is_item ? of_item : of_list;
    size_t n = t->sub ? LEN(of_sub) : is_item ? LEN(of_item) : LEN(of_list);

    json_out_key(w->o, path);
    json_out_object_begin(w->o);
    for (size_t i = 0; i < n; i++)
        if (operations[ops[i]].kind_verb & verbs && (!t->is_all || ops[i] == LIST))
            write_operation(w, t, ops[i]);
    json_out_key(w->o, "parameters"), json_out_array_begin(w->o);
    if (strstr(path, "{name}"))
        write_parameter(w, "name", "path", "string");
    if (strstr(path, "{namespace}"))
        write_parameter(w, "namespace", "path", "string");
    write_parameter(w, "pretty", "query", "string");
    json_out_array_end(w->o);
    json_out_object_end(w->o);
}

/* The type of a subresource's body; those that are streams have none. */
static const char *sub_body(const struct target *t)
{
    const struct kind_subresource *sub = t->sub;
    const struct schema_type *type;

    if (!sub->kind)
        return t->version->type->openapi;
    type = kind_body_type(sub->group ? sub->group : t->kind->group,
                          sub->version ? sub->version : t->version->name, sub->kind);
    return type ? type->openapi : NULL;
}

void openapi_paths(const struct openapi_writer *w, const struct kind *k,
                   const struct kind_version *v)
{
    struct target t = { k, v, NULL, v->type->openapi, false };
    bool is_namespaced = kind_is_namespaced(k);
    char base[256], path[512];

    snprintf(base, sizeof base, "/%s%s%s/%s", k->group[0] ? "apis/" : "api", k->group, "", v->name);
    snprintf(path, sizeof path, "%s%s/%s", base, is_namespaced ? "/namespaces/{namespace}" : "",
             k->plural);
    write_path(w, &t, path, false, k->verbs);
    if (is_namespaced && k->verbs & KIND_LIST) {
        t.is_all = true;
        snprintf(path, sizeof path, "%s/%s", base, k->plural);
        write_path(w, &t, path, false, KIND_LIST);
        t.is_all = false;
    }
    if (!(k->verbs & KIND_GET))
        return;
    snprintf(path, sizeof path, "%s%s/%s/{name}", base,
             is_namespaced ? "/namespaces/{namespace}" : "", k->plural);
    write_path(w, &t, path, true, k->verbs);
    for (size_t i = 0; i < v->sub_count; i++) {
        t.sub = &v->subs[i];
        t.body = sub_body(&t);
        snprintf(path, sizeof path, "%s%s/%s/{name}/%s", base,
                 is_namespaced ? "/namespaces/{namespace}" : "", k->plural, v->subs[i].name);
        if (t.body)
            write_path(w, &t, path, true, v->subs[i].verbs);
    }
}
