#include "router/review.h"

#include "base/json.h"
#include "base/log.h"
#include "base/str.h"
#include "ev/timer.h"
#include "kube/client.h"
#include "kube/keymap.h"

#include <openssl/evp.h>
#include <string.h>

#define CALL_MS      3000 /* the contract's */
#define ERROR_MS_MIN 1000 /* a failed call is not made again before */
#define DIGEST_BYTES 32

/* What is known of one token. */
struct row {
    struct keymap_node node;
    struct row *newer, *older; /* by when it was last asked for */
    struct review *review;
    char digest[2 * DIGEST_BYTES + 1];
    struct kube_call *call; /* NULL once answered */
    struct ev_timer deadline;
    struct review_wait *waiting;
    uint64_t until_ms;
    struct refusal verdict;
};

struct review {
    struct review_config config;
    const struct kind *kind;
    struct keymap rows;
    struct row *newest, *oldest;
};

struct review *review_new(const struct review_config *config)
{
    struct review *r = NEW(struct review);

    r->config = *config;
    r->kind = kind_find("authentication.k8s.io", "v1", "tokenreviews");
    return r;
}

/* ---- the order of rows ---- */

static void unlink_row(struct row *row)
{
    struct review *r = row->review;

    *(row->newer ? &row->newer->older : &r->newest) = row->older;
    *(row->older ? &row->older->newer : &r->oldest) = row->newer;
}

static void link_newest(struct row *row)
{
    struct review *r = row->review;

    row->newer = NULL;
    row->older = r->newest;
    *(r->newest ? &r->newest->newer : &r->oldest) = row;
    r->newest = row;
}

static void drop(struct row *row)
{
    unlink_row(row);
    keymap_remove(&row->review->rows, &row->node);
    ev_timer_stop(row->review->config.loop, &row->deadline);
    free(row);
}

void review_free(struct review *r)
{
    if (!r)
        return;
    while (r->oldest) {
        assert(!r->oldest->call); /* the client went first */
        drop(r->oldest);
    }
    keymap_done(&r->rows);
    free(r);
}

/* The oldest that nobody waits for. */
static bool make_room(struct review *r)
{
    struct row *row = r->oldest;

    if (r->rows.count < r->config.rows_max)
        return true;
    while (row && row->call)
        row = row->newer;
    if (row)
        drop(row);
    return row != NULL;
}

/* ---- the call ---- */

static void tell(struct row *row)
{
    struct refusal verdict = row->verdict;
    struct review_wait *list = take_ptr(&row->waiting); /* the row may go meanwhile */

    if (list)
        list->link = &list;
    while (list) {
        struct review_wait *w = list;

        review_cancel(w);
        w->done(w->ctx, &verdict);
    }
}

static void judge(struct row *row, const struct kube_answer *answer)
{
    uint64_t ttl_ms = row->review->config.ttl_ms;
    bool is_known = false;

    if (answer->refusal) {
        refusal_set(&row->verdict, 500, "tokenreview: %.250s",
                    answer->refusal->message.n ? buf_cstr(&answer->refusal->message)
                                               : "no answer from the API server");
        ttl_ms = MAX(ttl_ms / 3, (uint64_t)ERROR_MS_MIN);
    } else if (!answer->object ||
               !json_bool(object_at(answer->object, "status.authenticated"), &is_known) ||
               !is_known) {
        refusal_set(&row->verdict, 401, "unauthenticated");
    }
    row->until_ms = ev_now_ms(row->review->config.loop) + ttl_ms;
}

static void on_answer(void *ctx, const struct kube_answer *answer)
{
    struct row *row = ctx;

    row->call = NULL;
    ev_timer_stop(row->review->config.loop, &row->deadline);
    judge(row, answer);
    tell(row);
}

static void too_late(void *ctx)
{
    struct row *row = ctx;

    if (row->call)
        kube_call_cancel(row->call); /* on_answer follows */
}

static void write_audiences(const char *list, struct json_out *out)
{
    struct span rest = span_cstr(list), one;

    json_out_key(out, "audiences"), json_out_array_begin(out);
    while (span_cut(&rest, ',', &one)) {
        one = span_trim(one);
        if (one.n)
            json_out_str(out, one);
    }
    json_out_array_end(out);
}

static int make_object(const struct review *r, struct span token, struct object **ret,
                       struct err *e)
{
    OWN(json_doc_done) struct json_doc *doc = NULL;
    OWN(buf_done) struct buf text = BUF_INIT(2 * HTTP_HEAD_MAX_BYTES + 4096);
    struct json_out out;
    int rc;

    json_out_init(&out, &text, 0);
    json_out_object_begin(&out);
    json_out_key(&out, "spec"), json_out_object_begin(&out);
    json_out_key(&out, "token"), json_out_str(&out, token);
    if (r->config.audiences && *r->config.audiences)
        write_audiences(r->config.audiences, &out);
    json_out_object_end(&out);
    json_out_object_end(&out);
    rc = json_out_end(&out, e) < 0 || json_parse(buf_span(&text), NULL, &doc, e) < 0 ||
                 object_parse(r->kind, json_doc_root(doc), ret, e) < 0
             ? -1
             : 0;
    if (text.n)
        OPENSSL_cleanse(text.p, text.n);
    return rc;
}

static void ask(struct row *row, struct object *body)
{
    row->call = kube_call_start(
        row->review->config.client,
        &(struct kube_request){ .verb = KUBE_CREATE, .kind = row->review->kind, .object = body },
        on_answer, row);
    ev_timer_start(row->review->config.loop, &row->deadline, CALL_MS, too_late, row);
}

/* ---- asking ---- */

static bool digest(struct span token, char ret[2 * DIGEST_BYTES + 1])
{
    static const char hex[] = "0123456789abcdef";
    uint8_t raw[EVP_MAX_MD_SIZE];
    unsigned n = 0;

    if (!EVP_Digest(token.p, token.n, raw, &n, EVP_sha256(), NULL) || n != DIGEST_BYTES)
        return false;
    for (unsigned i = 0; i < n; i++) {
        ret[2 * i] = hex[raw[i] >> 4];
        ret[2 * i + 1] = hex[raw[i] & 15];
    }
    ret[2 * n] = '\0';
    return true;
}

static struct row *add_row(struct review *r, const char *key)
{
    struct row *row = NEW(struct row);

    row->review = r;
    memcpy(row->digest, key, sizeof row->digest);
    keymap_add(&r->rows, &row->node, "", row->digest);
    link_newest(row);
    return row;
}

/* The row, fresh or with its call under way; NULL: *why. */
static struct row *row_of(struct review *r, struct span token, struct refusal *why)
{
    OWN(object_done) struct object *body = NULL;
    char key[2 * DIGEST_BYTES + 1];
    struct keymap_node *n;
    struct row *row = NULL;
    struct err e;

    if (!digest(token, key)) {
        refusal_set(why, 500, "tokenreview: no digest");
        return NULL;
    }
    n = keymap_get(&r->rows, "", key);
    if (n)
        row = CONTAINER(n, struct row, node);
    if (row && (row->call || row->until_ms > ev_now_ms(r->config.loop))) {
        unlink_row(row);
        link_newest(row);
        return row;
    }
    if (row)
        drop(row);
    if (!str_utf8_valid(token) || make_object(r, token, &body, &e) < 0) {
        refusal_set(why, 401, "unauthenticated"); /* no token of anybody's looks so */
        return NULL;
    }
    if (!make_room(r)) {
        refusal_set(why, 503, "too many tokens at once");
        return NULL;
    }
    row = add_row(r, key);
    ask(row, body);
    return row;
}

bool review_start(struct review *r, struct span token, struct review_wait *wait,
                  struct refusal *why)
{
    struct row *row;

    why->status = 0;
    if (!token.n) {
        if (r->config.is_token_required)
            refusal_set(why, 401, "unauthenticated");
        return true;
    }
    row = row_of(r, token, why);
    if (!row)
        return true;
    if (!row->call) {
        *why = row->verdict;
        if (why->status == 500)
            refusal_set(why, 500, "tokenreview (cached): %.250s",
                        row->verdict.detail + strlen("tokenreview: "));
        return true;
    }
    wait->link = &row->waiting;
    wait->next = row->waiting;
    if (wait->next)
        wait->next->link = &wait->next;
    row->waiting = wait;
    return false;
}

void review_cancel(struct review_wait *wait)
{
    if (!wait->link)
        return;
    *wait->link = wait->next;
    if (wait->next)
        wait->next->link = wait->link;
    wait->link = NULL;
}
