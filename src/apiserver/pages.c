#include "apiserver/pages.h"

#include "base/json.h"
#include "base/str.h"

#include <string.h>

#define TOKEN_MAX_BYTES 2048

bool pages_selects(const struct call *c, const struct object *o)
{
    return (!c->labels || selector_matches_object(c->labels, o)) &&
           (!c->fields || field_selector_matches(c->fields, o));
}

void pages_init(struct pages *p, const struct call *c, struct shelf *shelf, uint64_t version,
                const struct shelf_key *after)
{
    struct shelf_key from = { op_number(c->op.kind), c->op.namespace, "" }, end = from;

    *p = (struct pages){
        .shelf = shelf, .version = version, .kind = from.kind, .namespace = c->op.namespace
    };
    if (*c->op.namespace) {
        struct shelf_key last = { from.kind, c->op.namespace, "\xff" }; /* no name begins with it */

        end = last;
    } else {
        end.kind++;
    }
    if (after)
        from = *after;
    p->left =
        shelf_rank(shelf, &end) - shelf_rank(shelf, &from) - (after && shelf_get(shelf, after));
    shelf_walk_init(&p->walk, shelf, &from, after != NULL);
}

void pages_done(struct pages *p)
{
    shelf_unref(p->shelf);
    p->shelf = NULL;
}

struct object *pages_next(struct pages *p, const struct call *c, size_t *budget)
{
    while (!p->is_over && *budget > 0) {
        unsigned kind = 0;
        struct object *o = shelf_walk_next(&p->walk, &kind);

        (*budget)--;
        if (!o || kind != p->kind ||
            (*p->namespace && strcmp(p->namespace, object_namespace(o)) != 0)) {
            p->is_over = true;
            break;
        }
        if (pages_selects(c, o))
            return o;
    }
    return NULL;
}

/* ---- continue tokens: opaque to clients, so base64 of JSON as the public server's ---- */

int pages_token_write(uint64_t version, const struct object *last, struct buf *out, struct err *e)
{
    OWN(buf_done) struct buf text = BUF_INIT(TOKEN_MAX_BYTES);
    struct json_out o;

    json_out_init(&o, &text, 0);
    json_out_object_begin(&o);
    json_out_key(&o, "v"), json_out_cstr(&o, "silica/1");
    json_out_key(&o, "rv"), json_out_u64(&o, version);
    json_out_key(&o, "ns"), json_out_cstr(&o, object_namespace(last));
    json_out_key(&o, "name"), json_out_cstr(&o, object_name(last));
    json_out_object_end(&o);
    return json_out_end(&o, e) < 0 ? -1 : str_base64_encode(buf_span(&text), out, e);
}

static bool take(const struct json *v, char *out, size_t n)
{
    const char *text = json_cstr(v);

    if (!text || strlen(text) >= n)
        return false;
    memcpy(out, text, strlen(text) + 1);
    return true;
}

bool pages_token_read(struct span text, struct pages_token *ret)
{
    OWN(buf_done) struct buf plain = BUF_INIT(TOKEN_MAX_BYTES);
    OWN(json_doc_done) struct json_doc *doc = NULL;
    const struct json *root;
    struct err e;

    if (str_base64_decode(text, &plain, &e) < 0 || json_parse(buf_span(&plain), NULL, &doc, &e) < 0)
        return false;
    root = json_doc_root(doc);
    return span_is(json_str(json_get(root, "v")), "silica/1") &&
           json_u64(json_get(root, "rv"), &ret->version) &&
           take(json_get(root, "ns"), ret->namespace, sizeof ret->namespace) &&
           take(json_get(root, "name"), ret->name, sizeof ret->name);
}
