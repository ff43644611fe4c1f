#include "apiserver/pages.h"

#include "base/json.h"
#include "base/str.h"

#include <string.h>

#define TOKEN_MAX_BYTES (PAGES_TOKEN_MAX_BYTES / 2) /* before base64 */

const struct kind pages_list_options = { .group = "meta.k8s.io", .name = "ListOptions" };

void pages_init(struct pages *p, const struct selection *want, struct shelf *shelf,
                uint64_t version, const struct shelf_key *after)
{
    struct shelf_key from = { want->kind, want->namespace, "" }, end = from;

    *p = (struct pages){ .shelf = shelf, .version = version, .want = want };
    if (*want->namespace) {
        struct shelf_key last = { from.kind, want->namespace, "\xff" }; /* no name begins with it */

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

struct object *pages_next(struct pages *p, size_t *budget)
{
    const struct selection *want = p->want;

    while (!p->is_over && *budget > 0) {
        unsigned kind = 0;
        struct object *o = shelf_walk_next(&p->walk, &kind);

        (*budget)--;
        if (!o || kind != want->kind ||
            (*want->namespace && strcmp(want->namespace, object_namespace(o)) != 0)) {
            p->is_over = true;
            break;
        }
        if (selection_holds(want, o))
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

/* ---- which state ---- */

bool pages_read_version(const char *text, uint64_t *ret, bool *ret_is_given)
{
    *ret = 0;
    *ret_is_given = text && *text;
    return !*ret_is_given || str_u64(span_cstr(text), UINT64_MAX, ret);
}

/* From the state the token names, or an honest 410. */
static int choose_continued(const struct pages_ask *ask, struct pages_token *token,
                            struct shelf **ret, struct status *st)
{
    if (!pages_token_read(span_cstr(ask->next), token))
        return status_bad_request(st, "invalid continue token: continue key is not valid: "
                                      "the token is none of this server");
    if (ask->version && *ask->version && strcmp(ask->version, "0") != 0)
        return status_bad_request(st,
                                  "specifying resource version is not allowed when using continue");
    if (snapshots_find(ask->snapshots, token->version, ask->now_ms, ret))
        return 0;
    return status_expired(
        st, "The provided continue parameter is too old to display a consistent list result. You "
            "must start a new list without the continue parameter.");
}

/* What may be said of versions together. */
static int check_match(const struct pages_ask *ask, bool is_given, bool is_exactly_zero,
                       struct status *st)
{
    const char *match = ask->match;

    if (match && *match && !is_given)
        causes_add(&st->causes, CAUSE_FORBIDDEN, AT(NULL, "resourceVersionMatch"), NULL,
                   "resourceVersionMatch is forbidden unless resourceVersion is provided");
    else if (match && *match && strcmp(match, "Exact") != 0 && strcmp(match, "NotOlderThan") != 0)
        causes_add_text(&st->causes, CAUSE_NOT_SUPPORTED, AT(NULL, "resourceVersionMatch"),
                        span_cstr(match), "supported values: \"Exact\", \"NotOlderThan\", \"\"");
    else if (is_exactly_zero)
        causes_add(&st->causes, CAUSE_FORBIDDEN, AT(NULL, "resourceVersionMatch"), NULL,
                   "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
    if (ask->has_initial_events)
        causes_add(&st->causes, CAUSE_FORBIDDEN, AT(NULL, "sendInitialEvents"), NULL,
                   "sendInitialEvents is forbidden for list");
    return st->causes.n ? status_invalid(st, &pages_list_options, "") : 0;
}

static int choose_state(const struct pages_ask *ask, unsigned kind, struct shelf **ret,
                        uint64_t *ret_version, struct status *st)
{
    uint64_t wanted, there = store_version(ask->store, ask->view);
    bool is_given, is_exact = ask->match && strcmp(ask->match, "Exact") == 0;
    struct err e;

    if (!pages_read_version(ask->version, &wanted, &is_given))
        return status_bad_request(
            st,
            "invalid resource version: resourceVersion: Invalid value: \"%s\": strconv.ParseUint: "
            "parsing \"%s\": invalid syntax",
            ask->version, ask->version);
    if (check_match(ask, is_given, is_exact && wanted == 0, st) < 0)
        return -1;
    if (wanted > there)
        return status_too_new(st, wanted, there);
    if (is_exact && wanted != there) {
        *ret_version = wanted;
        if (snapshots_find(ask->snapshots, wanted, ask->now_ms, ret) ||
            store_snapshot_at(ask->store, kind, wanted, ret, &e) == 0)
            return 0;
        return status_expired(st, "The resourceVersion for the provided list is too old.");
    }
    *ret = store_snapshot(ask->store, ask->view, ret_version);
    return 0;
}

int pages_open(struct pages *p, const struct selection *want, const struct pages_ask *ask,
               struct status *st)
{
    struct pages_token token;
    struct shelf *shelf = NULL;
    struct shelf_key after;
    uint64_t version = 0;

    if (!ask->next || !*ask->next) {
        if (choose_state(ask, want->kind, &shelf, &version, st) < 0)
            return -1;
        pages_init(p, want, shelf, version, NULL);
        return 0;
    }
    if (choose_continued(ask, &token, &shelf, st) < 0)
        return -1;
    after = (struct shelf_key){ want->kind, token.namespace, token.name };
    pages_init(p, want, shelf, token.version, &after);
    return 0;
}
