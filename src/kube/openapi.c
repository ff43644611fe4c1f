#include "kube/openapi.h"

#include "kube/openapi_impl.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define KINDS_MAX 128 /* rows of kinds and their versions; far fewer are served */

/* The kinds of a document. */
struct chosen {
    const struct kind *kinds[KINDS_MAX];
    const char *versions[KINDS_MAX];
    size_t n;
};

/* group NULL: all of them. */
static void choose(struct chosen *c, const char *group, const char *version)
{
    size_t n;
    const struct kind *all = kinds_all(&n);

    for (size_t i = 0; i < n; i++)
        for (size_t v = 0; v < all[i].version_count; v++) {
            if (group &&
                (strcmp(all[i].group, group) != 0 || strcmp(all[i].versions[v].name, version) != 0))
                continue;
            assert(c->n < KINDS_MAX);
            c->kinds[c->n] = &all[i];
            c->versions[c->n++] = all[i].versions[v].name;
        }
}

/* Bodies that every group may take and give. */
static void add_types(const struct chosen *c, struct openapi_types *t)
{
    static const char *const meta[] = { "DeleteOptions", "Status", "ListMeta", "ObjectMeta" };

    EACH(name, meta) {
        openapi_types_add(t, schema_type("meta/v1", *name));
    }
    for (size_t i = 0; i < c->n; i++) {
        const struct kind *k = c->kinds[i];
        const struct kind_version *v = kind_version(k, c->versions[i]);

        openapi_types_add(t, v->type);
        for (size_t s = 0; s < v->sub_count; s++) {
            const struct kind_subresource *sub = &v->subs[s];
            const struct schema_type *body =
                sub->kind ? kind_body_type(sub->group ? sub->group : k->group,
                                           sub->version ? sub->version : v->name, sub->kind)
                          : NULL;

            if (body)
                openapi_types_add(t, body);
        }
    }
}

static void write_info(const struct openapi_writer *w, const struct openapi_info *info)
{
    json_out_key(w->o, "info"), json_out_object_begin(w->o);
    openapi_text(w, "title", "Kubernetes");
    openapi_text(w, "version", info->version);
    json_out_object_end(w->o);
}

static void write_paths(const struct openapi_writer *w, const struct chosen *c)
{
    json_out_key(w->o, "paths"), json_out_object_begin(w->o);
    for (size_t i = 0; i < c->n; i++)
        openapi_paths(w, c->kinds[i], kind_version(c->kinds[i], c->versions[i]));
    json_out_object_end(w->o);
}

static void write_document(const struct openapi_writer *w, const struct openapi_info *info,
                           const struct chosen *c)
{
    OWN(openapi_types_done) struct openapi_types types;

    openapi_types_init(&types);
    add_types(c, &types);
    json_out_object_begin(w->o);
    openapi_text(w, w->is_v3 ? "openapi" : "swagger", w->is_v3 ? "3.0.0" : "2.0");
    write_info(w, info);
    write_paths(w, c);
    if (w->is_v3)
        json_out_key(w->o, "components"), json_out_object_begin(w->o);
    json_out_key(w->o, w->is_v3 ? "schemas" : "definitions");
    openapi_schemas(w, &types, c->kinds, c->versions, c->n);
    if (w->is_v3) {
        json_out_key(w->o, "securitySchemes");
        json_out_raw(
            w->o,
            SPAN(
                "{\"BearerToken\":{\"type\":\"apiKey\",\"in\":\"header\",\"name\":\"authorization\"}}"));
        json_out_object_end(w->o);
    } else {
        json_out_key(w->o, "securityDefinitions");
        json_out_raw(
            w->o,
            SPAN(
                "{\"BearerToken\":{\"type\":\"apiKey\",\"in\":\"header\",\"name\":\"authorization\"}}"));
    }
    json_out_object_end(w->o);
}

int openapi_v3(const struct openapi_info *info, const char *group, const char *version,
               struct buf *out, struct err *e)
{
    struct chosen c = { .n = 0 };
    struct json_out o;
    struct openapi_writer w = { &o, true, false };

    choose(&c, group, version);
    if (c.n == 0)
        return err_set(e, ERR_NOT_FOUND, "no kind is served in '%s/%s'", group, version);
    json_out_init(&o, out, 0);
    write_document(&w, info, &c);
    return json_out_end(&o, e);
}

int openapi_v2(const struct openapi_info *info, struct buf *out, struct err *e)
{
    struct chosen c = { .n = 0 };
    struct json_out o;
    struct openapi_writer w = { &o, false, false };

    choose(&c, NULL, NULL);
    json_out_init(&o, out, 0);
    write_document(&w, info, &c);
    return json_out_end(&o, e);
}

/* FNV-1a: it tells documents apart for caches, nothing else. */
static uint64_t hash(struct span s)
{
    uint64_t h = 0xcbf29ce484222325;

    for (size_t i = 0; i < s.n; i++)
        h = (h ^ s.p[i]) * 0x100000001b3;
    return h;
}

static int write_entry(const struct openapi_info *info, const struct chosen *c, size_t i,
                       struct json_out *o, struct err *e)
{
    OWN(buf_done) struct buf document = BUF_INIT(OPENAPI_MAX_BYTES);
    const char *group = c->kinds[i]->group, *version = c->versions[i];
    char path[200], url[300];

    if (openapi_v3(info, group, version, &document, e) < 0)
        return -1;
    snprintf(path, sizeof path, "%s%s/%s", group[0] ? "apis/" : "api", group, version);
    snprintf(url, sizeof url, "/openapi/v3/%s?hash=%016" PRIX64, path, hash(buf_span(&document)));
    json_out_key(o, path), json_out_object_begin(o);
    json_out_key(o, "serverRelativeURL"), json_out_cstr(o, url);
    json_out_object_end(o);
    return 0;
}

/* True when an earlier row is of the same group and version. */
static bool is_told(const struct chosen *c, size_t i)
{
    for (size_t j = 0; j < i; j++)
        if (strcmp(c->kinds[j]->group, c->kinds[i]->group) == 0 &&
            strcmp(c->versions[j], c->versions[i]) == 0)
            return true;
    return false;
}

int openapi_v3_index(const struct openapi_info *info, struct buf *out, struct err *e)
{
    struct chosen c = { .n = 0 };
    size_t start = out->n;
    struct json_out o;

    choose(&c, NULL, NULL);
    json_out_init(&o, out, 0);
    json_out_object_begin(&o);
    json_out_key(&o, "paths"), json_out_object_begin(&o);
    for (size_t i = 0; i < c.n; i++) {
        if (!is_told(&c, i) && write_entry(info, &c, i, &o, e) < 0) {
            buf_truncate(out, start);
            return -1;
        }
    }
    json_out_object_end(&o);
    json_out_object_end(&o);
    return json_out_end(&o, e);
}
