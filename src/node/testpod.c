#include "node/testpod.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define KEPT_MAX 4096

static struct object *objects[KEPT_MAX];
static struct json_doc *docs[KEPT_MAX];
static struct needs *needs[KEPT_MAX];
static size_t object_count, doc_count, needs_count;

const struct json *testpod_value(const char *text)
{
    OWN_MEM char *quoted = own_strdup(text);
    struct err e;

    for (char *c = quoted; *c; c++)
        if (*c == '\'')
            *c = '"';
    assert_true(doc_count < KEPT_MAX);
    if (json_parse(span_cstr(quoted), NULL, &docs[doc_count], &e) < 0)
        fail_msg("%s: %s", e.msg, quoted);
    return json_doc_root(docs[doc_count++]);
}

struct object *testpod_object(const char *resource, const char *text)
{
    const struct json *body = testpod_value(text);
    struct err e;

    assert_true(object_count < KEPT_MAX);
    if (object_parse(kind_find("", "v1", resource), body, &objects[object_count], &e) < 0)
        fail_msg("%s: %s", e.msg, text);
    return objects[object_count++];
}

static void give(struct need *n, const char *text)
{
    const char *space = strchr(text, ' ');
    OWN_MEM char *resource = span_dup(span_of(text, (size_t)(space - text)));
    struct object *o;

    if (!need_resource(n->what) || strcmp(need_resource(n->what), resource) != 0)
        return;
    o = testpod_object(resource, space + 1);
    if (strcmp(object_name(o), n->name) == 0)
        need_set_object(n, o);
}

struct needs *testpod_needs(struct object *pod, const char *const *given)
{
    struct needs *ns = NEW(struct needs);
    struct err e;

    if (needs_of_pod(pod, ns, &e) < 0)
        fail_msg("%s", e.msg);
    for (size_t i = 0; i < ns->n; i++) {
        char token[128];

        for (const char *const *text = given; text && *text; text++)
            give(&ns->v[i], *text);
        (void)snprintf(token, sizeof token, "token-%s", ns->v[i].audience);
        if (ns->v[i].what == NEED_TOKEN)
            need_set_token(&ns->v[i], token);
    }
    assert_true(needs_count < KEPT_MAX);
    return needs[needs_count++] = ns;
}

void testpod_free(void)
{
    while (needs_count) {
        needs_done(needs[--needs_count]);
        free(needs[needs_count]);
    }
    while (object_count)
        object_unref(objects[--object_count]);
    while (doc_count)
        json_doc_unref(docs[--doc_count]);
}
