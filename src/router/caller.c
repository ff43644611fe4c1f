#include "router/caller.h"

#include <string.h>

static void free_base(struct http_owner *o)
{
    caller_free(CONTAINER(o, struct caller, base));
}

static bool are_names(const struct json *groups)
{
    if (json_type(groups) != JSON_NONE && json_type(groups) != JSON_ARRAY)
        return false;
    JSON_EACH(group, groups)
    {
        const char *name = json_cstr(group);

        if (!name || !*name)
            return false;
    }
    return json_count(groups) <= CALLER_GROUPS_MAX;
}

int caller_parse(struct span text, struct caller **ret, struct err *e)
{
    static const struct json_limits limits = { .max_bytes = CALLER_MAX_BYTES,
                                               .max_nodes = 4 * CALLER_GROUPS_MAX,
                                               .max_depth = 4,
                                               .flags = JSON_REFUSE_DUPLICATES };
    OWN(json_doc_done) struct json_doc *doc = NULL;
    const struct json *root;
    struct caller *c;
    const char *user;

    if (json_parse(text, &limits, &doc, e) < 0)
        return err_wrap(e, "cannot tell who calls");
    root = json_doc_root(doc);
    user = json_cstr(json_get(root, "user"));
    if (!user || !*user || !are_names(json_get(root, "groups")))
        return err_set(e, ERR_INVALID, "cannot tell who calls: no user, or no list of groups");
    c = NEW(struct caller);
    c->base.free = free_base;
    c->user = user;
    c->text = (struct span){ (const uint8_t *)span_dup(text), text.n };
    c->doc = take_ptr(&doc);
    *ret = c;
    return 0;
}

void caller_free(struct caller *c)
{
    if (!c)
        return;
    json_doc_unref(c->doc);
    free((uint8_t *)c->text.p);
    free(c);
}

void caller_write(const struct caller *c, struct json_out *out)
{
    const struct json *groups = json_get(json_doc_root(c->doc), "groups");

    json_out_key(out, "user"), json_out_cstr(out, c->user);
    if (json_count(groups))
        json_out_key(out, "groups"), json_out_value(out, groups);
}

size_t caller_length(const uint8_t preface[CALLER_PREFACE_BYTES])
{
    size_t n = 0;

    for (size_t i = 0; i < CALLER_PREFACE_BYTES; i++)
        n = n << 8 | preface[i];
    return n <= CALLER_MAX_BYTES ? n : 0;
}

int caller_say(struct span text, struct buf *out, struct err *e)
{
    uint8_t preface[CALLER_PREFACE_BYTES];

    if (!text.n || text.n > CALLER_MAX_BYTES)
        return err_set(e, ERR_LIMIT, "who calls has %zu bytes; at most %d", text.n,
                       CALLER_MAX_BYTES);
    for (size_t i = 0; i < CALLER_PREFACE_BYTES; i++)
        preface[i] = (uint8_t)(text.n >> 8 * (CALLER_PREFACE_BYTES - 1 - i));
    return buf_add(out, span_of(preface, sizeof preface), e) < 0 ? -1 : buf_add(out, text, e);
}
