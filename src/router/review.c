#include "router/review.h"

#include "base/json.h"
#include "base/log.h"
#include "base/str.h"
#include "ev/timer.h"
#include "kube/client.h"
#include "kube/keymap.h"
#include "router/caller.h"

#include <openssl/evp.h>
#include <string.h>

#define CALL_MS      3000 /* the contract's */
#define ERROR_MS_MIN 1000 /* a failed call is not made again before */
#define DIGEST_BYTES 32

/* The two kinds of questions. */
static const struct asked {
    const char *group, *plural;
    const char *name; /* in what goes wrong */
    const char *yes;  /* the member that says so */
} asked[] = {
    [REVIEW_TOKENS] = { "authentication.k8s.io", "tokenreviews", "tokenreview",
                        "status.authenticated" },
    [REVIEW_ACCESS] = { "authorization.k8s.io", "subjectaccessreviews", "subjectaccessreview",
                        "status.allowed" },
};

struct question {
    struct span key;   /* all of it: equal keys have one answer */
    struct refusal no; /* what is said when the answer is no */
    int (*make)(const struct review *r, const struct question *q, struct object **ret,
                struct err *e);
    const struct caller *caller;
    const struct target *target;
};

/* What is known of one. */
struct row {
    struct keymap_node node;
    struct row *newer, *older; /* by when it was last asked for */
    struct review *review;
    char digest[2 * DIGEST_BYTES + 1];
    struct kube_call *call; /* NULL once answered */
    struct ev_timer deadline;
    struct review_wait *waiting;
    uint64_t until_ms;
    struct refusal no, verdict;
};

struct review {
    struct review_config config;
    const struct asked *asked;
    const struct kind *kind;
    struct keymap rows;
    struct row *newest, *oldest;
};

struct review *review_new(const struct review_config *config)
{
    struct review *r = NEW(struct review);

    r->config = *config;
    r->asked = &asked[config->what];
    r->kind = kind_find(r->asked->group, "v1", r->asked->plural);
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
    const struct review *r = row->review;
    uint64_t ttl_ms = r->config.ttl_ms;
    bool is_yes = false;

    if (answer->refusal) {
        refusal_set(&row->verdict, 500, "%s: %.250s", r->asked->name,
                    answer->refusal->message.n ? buf_cstr(&answer->refusal->message)
                                               : "no answer from the API server");
        ttl_ms = MAX(ttl_ms / 3, (uint64_t)ERROR_MS_MIN);
    } else if (!answer->object || !json_bool(object_at(answer->object, r->asked->yes), &is_yes) ||
               !is_yes) {
        row->verdict = row->no;
        ttl_ms = r->config.no_ttl_ms ? r->config.no_ttl_ms : ttl_ms;
    }
    row->until_ms = ev_now_ms(r->config.loop) + ttl_ms;
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

static int parse_object(const struct review *r, struct json_out *out, struct object **ret,
                        struct err *e)
{
    OWN(json_doc_done) struct json_doc *doc = NULL;

    return json_out_end(out, e) < 0 || json_parse(buf_span(out->out), NULL, &doc, e) < 0 ||
                   object_parse(r->kind, json_doc_root(doc), ret, e) < 0
               ? -1
               : 0;
}

static int make_token(const struct review *r, const struct question *q, struct object **ret,
                      struct err *e)
{
    OWN(buf_done) struct buf text = BUF_INIT(2 * HTTP_HEAD_MAX_BYTES + 4096);
    struct json_out out;
    int rc;

    if (!str_utf8_valid(q->key))
        return err_set(e, ERR_INVALID, "no token of anybody's looks so");
    json_out_init(&out, &text, 0);
    json_out_object_begin(&out);
    json_out_key(&out, "spec"), json_out_object_begin(&out);
    json_out_key(&out, "token"), json_out_str(&out, q->key);
    if (r->config.audiences && *r->config.audiences)
        write_audiences(r->config.audiences, &out);
    json_out_object_end(&out);
    json_out_object_end(&out);
    rc = parse_object(r, &out, ret, e);
    if (text.n)
        OPENSSL_cleanse(text.p, text.n);
    return rc;
}

/* A uid may be another sandbox's of that namespace: then a right to one name is not enough. */
static const char *name_of(const struct target *t)
{
    return t->uid[0] ? "" : t->id;
}

/* To be led to a port of a sandbox is what a port-forward to its Pod is: the same right is asked for, under the sandbox's
 * name, which is its Pod's. */
static int make_access(const struct review *r, const struct question *q, struct object **ret,
                       struct err *e)
{
    OWN(buf_done) struct buf text = BUF_INIT(8 * CALLER_MAX_BYTES);
    struct json_out out;

    json_out_init(&out, &text, 0);
    json_out_object_begin(&out);
    json_out_key(&out, "spec"), json_out_object_begin(&out);
    caller_write(q->caller, &out);
    json_out_key(&out, "resourceAttributes"), json_out_object_begin(&out);
    json_out_key(&out, "verb"), json_out_cstr(&out, "create");
    json_out_key(&out, "resource"), json_out_cstr(&out, "pods");
    json_out_key(&out, "subresource"), json_out_cstr(&out, "portforward");
    json_out_key(&out, "namespace"), json_out_cstr(&out, q->target->namespace);
    if (*name_of(q->target))
        json_out_key(&out, "name"), json_out_cstr(&out, name_of(q->target));
    json_out_object_end(&out);
    json_out_object_end(&out);
    json_out_object_end(&out);
    return parse_object(r, &out, ret, e);
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

static bool digest(struct span key, char ret[2 * DIGEST_BYTES + 1])
{
    static const char hex[] = "0123456789abcdef";
    uint8_t raw[EVP_MAX_MD_SIZE];
    unsigned n = 0;

    if (!EVP_Digest(key.p, key.n, raw, &n, EVP_sha256(), NULL) || n != DIGEST_BYTES)
        return false;
    for (unsigned i = 0; i < n; i++) {
        ret[2 * i] = hex[raw[i] >> 4];
        ret[2 * i + 1] = hex[raw[i] & 15];
    }
    ret[2 * n] = '\0';
    return true;
}

static struct row *add_row(struct review *r, const char *key, const struct refusal *no)
{
    struct row *row = NEW(struct row);

    row->review = r;
    row->no = *no;
    memcpy(row->digest, key, sizeof row->digest);
    keymap_add(&r->rows, &row->node, "", row->digest);
    link_newest(row);
    return row;
}

/* The row, fresh or with its call under way; NULL: *why. */
static struct row *row_of(struct review *r, const struct question *q, struct refusal *why)
{
    OWN(object_done) struct object *body = NULL;
    char key[2 * DIGEST_BYTES + 1];
    struct keymap_node *n;
    struct row *row = NULL;
    struct err e;

    if (!digest(q->key, key)) {
        refusal_set(why, 500, "%s: no digest", r->asked->name);
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
    if (q->make(r, q, &body, &e) < 0) {
        *why = q->no;
        return NULL;
    }
    if (!make_room(r)) {
        refusal_set(why, 503, "too many questions to the API server at once");
        return NULL;
    }
    row = add_row(r, key, &q->no);
    ask(row, body);
    return row;
}

static bool start(struct review *r, const struct question *q, struct review_wait *wait,
                  struct refusal *why)
{
    struct row *row = row_of(r, q, why);

    if (!row)
        return true;
    if (!row->call) {
        *why = row->verdict;
        if (why->status == 500)
            refusal_set(why, 500, "%s (cached): %.250s", r->asked->name,
                        row->verdict.detail + strlen(r->asked->name) + 2);
        return true;
    }
    wait->link = &row->waiting;
    wait->next = row->waiting;
    if (wait->next)
        wait->next->link = &wait->next;
    row->waiting = wait;
    return false;
}

bool review_start(struct review *r, struct span token, struct review_wait *wait,
                  struct refusal *why)
{
    struct question q = { .key = token, .make = make_token };

    assert(r->config.what == REVIEW_TOKENS);
    refusal_set(&q.no, 401, "unauthenticated");
    why->status = 0;
    if (token.n)
        return start(r, &q, wait, why);
    if (r->config.is_token_required)
        *why = q.no;
    return true;
}

bool review_access(struct review *r, const struct caller *caller, const struct target *t,
                   struct review_wait *wait, struct refusal *why)
{
    OWN(buf_done) struct buf key = BUF_INIT(CALLER_MAX_BYTES + 4 * TARGET_NAME_BYTES);
    struct question q = { .make = make_access, .caller = caller, .target = t };
    struct err e;

    assert(r->config.what == REVIEW_ACCESS);
    refusal_set(
        &q.no, 403,
        "User \"%.100s\" may not forward ports of Pods in namespace %s: the right to create "
        "pods/portforward is missing.",
        caller->user, t->namespace);
    why->status = 0;
    /* A name holds no blank, and the text is one JSON value: no two questions have one key. */
    if (buf_addf(&key, &e, "%s %s ", t->namespace, name_of(t)) < 0 ||
        buf_add(&key, caller->text, &e) < 0) {
        *why = q.no;
        return true;
    }
    q.key = buf_span(&key);
    return start(r, &q, wait, why);
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
