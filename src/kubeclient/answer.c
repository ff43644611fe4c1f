#include "kubeclient/answer.h"

#include "base/str.h"
#include "kubeclient/limits.h"
#include "kubeclient/request.h"

#include <string.h>

void answer_init(struct answer *a, const struct kube_request *rq)
{
    const struct kind_version *v = rest_version(rq->kind, rq->version);
    const struct kind_subresource *sub = v && rq->sub ? kind_subresource(v, rq->sub) : NULL;

    *a = (struct answer){ .verb = rq->verb,
                          .kind = rq->kind,
                          .is_other = sub && sub->kind,
                          .body = BUF_INIT(REST_OBJECT_MAX_BYTES) };
    cut_init(&a->cut, CUT_ITEMS, REST_OBJECT_MAX_BYTES);
}

static void truncate_items(struct answer *a, size_t n)
{
    while (a->n > n)
        object_unref(a->items[--a->n]);
}

void answer_done(struct answer *a)
{
    truncate_items(a, 0);
    free(take_ptr(&a->items));
    free(take_ptr(&a->next));
    buf_done(&a->body);
    cut_done(&a->cut);
    object_unref(take_ptr(&a->object));
    json_doc_unref(take_ptr(&a->doc));
}

void answer_begin(struct answer *a, int http_status)
{
    a->is_cut =
        http_status / 100 == 2 && (a->verb == KUBE_LIST || a->verb == KUBE_DELETE_COLLECTION);
    answer_drop_page(a);
}

static int add_item(struct answer *a, struct span bytes, struct err *e)
{
    OWN(json_doc_done) struct json_doc *doc = NULL;
    struct object *o;

    if (a->verb == KUBE_DELETE_COLLECTION)
        return 0; /* they were, and nobody asks */
    if (a->n == REST_LIST_MAX_ITEMS)
        return err_set(e, ERR_LIMIT, "a list of more than %d objects", REST_LIST_MAX_ITEMS);
    a->bytes += bytes.n;
    if (a->bytes > REST_LIST_MAX_BYTES)
        return err_set(e, ERR_LIMIT, "a list of more than %llu bytes", REST_LIST_MAX_BYTES);
    if (json_parse(bytes, NULL, &doc, e) < 0 ||
        object_parse(a->kind, json_doc_root(doc), &o, e) < 0)
        return err_wrap(e, "item %zu", a->n);
    if (a->n == a->room) {
        a->room = MAX((size_t)16, 2 * a->room);
        a->items = own_resize(a->items, a->room, sizeof(struct object *));
    }
    a->items[a->n++] = o;
    return 0;
}

int answer_add(struct answer *a, struct span bytes)
{
    if (a->broken.code)
        return -1;
    if (!a->is_cut)
        return buf_add(&a->body, bytes, &a->broken);
    while (bytes.n) {
        size_t used = 0;
        enum feed got = cut_feed(&a->cut, bytes, &used, &a->broken);

        if (got == FEED_BAD ||
            (got == FEED_DONE && add_item(a, buf_span(&a->cut.value), &a->broken) < 0))
            return -1;
        bytes = span_skip(bytes, used);
    }
    return 0;
}

bool answer_is_broken(const struct answer *a, struct err *ret)
{
    if (a->broken.code)
        *ret = a->broken;
    return a->broken.code != ERR_NONE;
}

struct span answer_body(const struct answer *a)
{
    return buf_span(&a->body);
}

/* A resourceVersion is opaque to clients, but every server counts with it, and so do we. */
static int read_version(const struct json *meta, uint64_t *ret, struct err *e)
{
    struct span text = json_str(json_get(meta, "resourceVersion"));

    if (text.n && !str_u64(text, UINT64_MAX, ret))
        return err_set(e, ERR_PROTOCOL, "a resourceVersion that is no number");
    return 0;
}

static int read_list(struct answer *a, struct kube_answer *ret, struct err *e)
{
    OWN(json_doc_done) struct json_doc *doc = NULL;
    const struct json *root, *meta;
    struct span next;

    if (cut_end(&a->cut, e) < 0 || json_parse(buf_span(&a->cut.envelope), NULL, &doc, e) < 0)
        return -1;
    root = json_doc_root(doc);
    meta = json_get(root, "metadata");
    if (a->verb == KUBE_LIST && !span_is(json_str(json_get(root, "kind")), a->kind->list_name))
        return err_set(e, ERR_PROTOCOL, "it is no %s", a->kind->list_name);
    if (read_version(meta, &a->version, e) < 0)
        return -1;
    next = json_str(json_get(meta, "continue"));
    free(a->next);
    a->next = next.n ? span_dup(next) : NULL;
    if (a->verb == KUBE_LIST)
        *ret = (struct kube_answer){
            .items = a->items, .item_count = a->n, .version = a->version, .next = a->next
        };
    return 0;
}

int answer_read(struct answer *a, struct kube_answer *ret, struct err *e)
{
    const struct json *root;
    struct span kind;

    *ret = (struct kube_answer){ 0 };
    if (a->is_cut)
        return read_list(a, ret, e);
    if (!a->body.n)
        return 0;
    if (json_parse(buf_span(&a->body), NULL, &a->doc, e) < 0)
        return -1;
    root = json_doc_root(a->doc);
    kind = json_str(json_get(root, "kind"));
    if (span_is(kind, "Status"))
        return 0; /* it was done, and there is nothing to show */
    if (a->is_other) {
        ret->body = root;
        return 0;
    }
    if (!span_is(kind, a->kind->name))
        return err_set(e, ERR_PROTOCOL, "it is no %s", a->kind->name);
    if (object_parse(a->kind, root, &a->object, e) < 0)
        return -1;
    ret->object = a->object;
    return 0;
}

const char *answer_next(const struct answer *a)
{
    return a->next;
}

void answer_begin_page(struct answer *a)
{
    a->page_from = a->n;
    answer_drop_page(a);
}

void answer_drop_page(struct answer *a)
{
    truncate_items(a, a->page_from);
    buf_clear(&a->body);
    cut_done(&a->cut);
    cut_init(&a->cut, CUT_ITEMS, REST_OBJECT_MAX_BYTES);
    object_unref(take_ptr(&a->object));
    json_doc_unref(take_ptr(&a->doc));
    a->broken = (struct err){ 0 };
}

void answer_restart(struct answer *a)
{
    a->page_from = 0;
    a->bytes = 0;
    free(take_ptr(&a->next));
    answer_drop_page(a);
}
