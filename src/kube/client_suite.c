#include "kube/client_suite_impl.h"

#include <stdio.h>

#define ROWS_MAX       128
#define SUITE_PAUSE_MS 10

/* What is freed when a row has ended. */
struct kept {
    struct kept *next;
    void *what;
    void (*free)(void *what);
};

static void keep(struct suite *s, void *what, void (*fn)(void *what))
{
    struct kept *k = NEW(struct kept);

    *k = (struct kept){ s->kept, what, fn };
    s->kept = k;
}

static void unref_object(void *o)
{
    object_unref(o);
}

static void free_edit(void *ed)
{
    json_edit_free(ed);
}

/* ---- the loop ---- */

static void on_deadline(void *ctx)
{
    struct suite *s = ctx;

    s->is_late = true;
    ev_loop_stop(s->loop);
}

void suite_until(struct suite *s, const bool *is_done)
{
    s->is_late = false;
    ev_timer_start(s->loop, &s->deadline, SUITE_DEADLINE_MS, on_deadline, s);
    while (!*is_done && !s->is_late)
        ev_loop_run(s->loop);
    ev_timer_stop(s->loop, &s->deadline);
    if (!*is_done)
        fail_msg("nothing came within %d ms", SUITE_DEADLINE_MS);
}

void suite_turns(struct suite *s)
{
    for (int i = 0; i < 50; i++)
        ev_loop_turn(s->loop);
}

static void set_true(void *ctx)
{
    *(bool *)ctx = true;
}

void suite_pause(struct suite *s)
{
    struct ev_timer timer = { 0 };
    bool is_over = false;

    ev_timer_start(s->loop, &timer, SUITE_PAUSE_MS, set_true, &is_over);
    while (!is_over)
        ev_loop_turn(s->loop);
}

/* ---- calls ---- */

static void result_free(void *what)
{
    struct result *r = what;

    object_unref(r->object);
    json_doc_unref(r->body);
    for (size_t i = 0; i < r->item_count; i++)
        object_unref(r->items[i]);
    free(r->items);
    free(r->next);
    free(r);
}

static void keep_refusal(struct result *r, const struct status *st)
{
    size_t n = 0;

    r->is_refused = true;
    r->code = st->code;
    (void)snprintf(r->reason, sizeof r->reason, "%s", st->reason ? st->reason : "");
    (void)snprintf(r->message, sizeof r->message, "%s", buf_cstr(&st->message));
    for (size_t i = 0; i < st->causes.n && n < sizeof r->fields; i++)
        n += (size_t)snprintf(r->fields + n, sizeof r->fields - n, "%s%s", i ? " " : "",
                              cause_field(&st->causes, i));
}

static void on_done(void *ctx, const struct kube_answer *a)
{
    struct result *r = ctx;
    struct err e;

    r->is_there = true;
    r->calls++;
    if (a->refusal)
        keep_refusal(r, a->refusal);
    if (a->object)
        r->object = object_ref(a->object);
    if (a->body && json_doc_of(a->body, &r->body, &e) < 0)
        fail_msg("%s", e.msg);
    r->items = own_array(a->item_count + 1, sizeof *r->items);
    for (r->item_count = 0; r->item_count < a->item_count; r->item_count++)
        r->items[r->item_count] = object_ref(a->items[r->item_count]);
    r->version = a->version;
    r->next = a->next ? own_strdup(a->next) : NULL;
    ev_loop_stop(r->suite->loop);
}

struct result *suite_start(struct suite *s, const struct kube_request *rq, struct kube_call **ret)
{
    struct result *r = NEW(struct result);
    struct kube_call *call;

    r->suite = s;
    keep(s, r, result_free);
    call = kube_call_start(s->client, rq, on_done, r);
    assert_non_null(call);
    assert_false(r->is_there); /* never inside the call */
    if (ret)
        *ret = call;
    return r;
}

struct result *suite_ask(struct suite *s, const struct kube_request *rq)
{
    struct result *r = suite_start(s, rq, NULL);

    suite_until(s, &r->is_there);
    return r;
}

struct result *suite_must(struct suite *s, const struct kube_request *rq)
{
    struct result *r = suite_ask(s, rq);

    if (r->is_refused)
        fail_msg("verb %d was refused with %d %s: %s", rq->verb, r->code, r->reason, r->message);
    return r;
}

struct result *suite_refused(struct suite *s, const struct kube_request *rq, int code,
                             const char *reason)
{
    struct result *r = suite_ask(s, rq);

    assert_true(r->is_refused);
    if (r->code != code || strcmp(r->reason, reason) != 0)
        fail_msg("refused with %d %s (%s), not with %d %s", r->code, r->reason, r->message, code,
                 reason);
    assert_null(r->object);
    return r;
}

/* ---- objects ---- */

static struct object *parse(struct suite *s, const struct kind *kind, const char *text)
{
    OWN(json_doc_done) struct json_doc *doc = NULL;
    struct object *o = NULL;
    struct err e;

    if (json_parse(span_cstr(text), NULL, &doc, &e) < 0 ||
        object_parse(kind, json_doc_root(doc), &o, &e) < 0)
        fail_msg("%s: %s", e.msg, text);
    keep(s, o, unref_object);
    return o;
}

struct object *suite_object(struct suite *s, const struct kind *kind, const char *fmt, ...)
{
    char text[8192];
    va_list ap;

    va_start(ap, fmt);
    assert_true((size_t)vsnprintf(text, sizeof text, fmt, ap) < sizeof text);
    va_end(ap);
    return parse(s, kind, text);
}

struct object *suite_with(struct suite *s, struct object *o, const char *path, const char *json)
{
    struct json_edit *ed = json_edit_new(0);
    struct json_node *at = object_thaw(o, NULL, ed), *value = NULL;
    struct span rest = span_cstr(path), name;
    struct object *changed = NULL;
    struct json_node *root = at;
    struct err e;

    keep(s, ed, free_edit);
    if (json) {
        OWN(json_doc_done) struct json_doc *doc = NULL;

        assert_int_equal(json_parse(span_cstr(json), NULL, &doc, &e), 0);
        value = json_edit_doc(ed, doc);
    }
    while (span_cut(&rest, '.', &name)) {
        struct json_node *below = json_node_get_span(at, name);

        if (!rest.n) {
            if (value)
                json_node_set_span(at, name, value);
            else
                (void)json_node_remove_span(at, name);
            break;
        }
        at = below ? below : json_node_set_span(at, name, json_edit_object(ed));
    }
    if (object_freeze(object_kind(o), NULL, root, &changed, &e) < 0)
        fail_msg("%s", e.msg);
    keep(s, changed, unref_object);
    return changed;
}

struct object *suite_create(struct suite *s, const struct kind *kind, const char *fmt, ...)
{
    struct kube_request rq = { .verb = KUBE_CREATE, .kind = kind };
    char text[8192];
    va_list ap;

    va_start(ap, fmt);
    assert_true((size_t)vsnprintf(text, sizeof text, fmt, ap) < sizeof text);
    va_end(ap);
    rq.namespace = kind_is_namespaced(kind) ? s->namespace : NULL;
    rq.object = parse(s, kind, text);
    return suite_must(s, &rq)->object;
}

struct object *suite_get(struct suite *s, const struct kind *kind, const char *name)
{
    return suite_must(s, SUITE_RQ(s, .verb = KUBE_GET, .kind = kind, .name = name))->object;
}

const char *suite_names(struct suite *s, const struct result *r)
{
    OWN(buf_done) struct buf text = BUF_INIT(64 * 1024);
    char *kept;
    struct err e;

    for (size_t i = 0; i < r->item_count; i++)
        (void)buf_addf(&text, &e, "%s%s", i ? " " : "", object_name(r->items[i]));
    kept = own_strdup(buf_cstr(&text));
    keep(s, kept, free);
    return kept;
}

const char *suite_text(struct suite *s, const struct object *o, const char *path)
{
    OWN(buf_done) struct buf text = BUF_INIT(64 * 1024);
    const struct json *v = object_at(o, path);
    char *kept;
    struct err e;

    if (!v)
        return "(none)";
    assert_int_equal(json_write(v, &text, &e), 0);
    kept = own_strdup(buf_cstr(&text));
    keep(s, kept, free);
    return kept;
}

/* ---- watches ---- */

static void seen_free(void *what)
{
    struct seen *seen = what;

    object_unref(seen->last);
    free(seen);
}

static void on_event(void *ctx, enum kube_event type, struct object *o, uint64_t version)
{
    static const char marks[] = "+~-";
    struct seen *seen = ctx;
    size_t n = strlen(seen->text);

    assert_false(seen->is_over);
    assert_true(version > seen->version || (type == KUBE_BOOKMARK && version == seen->version));
    seen->version = version;
    if (type == KUBE_BOOKMARK) {
        assert_null(o);
        seen->bookmarks++;
        return;
    }
    (void)snprintf(seen->text + n, sizeof seen->text - n, "%c%s ", marks[type], object_name(o));
    object_unref(seen->last);
    seen->last = object_ref(o);
    if (seen->stop_after && --seen->stop_after == 0)
        kube_watch_stop(seen->watch);
    if (seen->wanted && strcmp(seen->text, seen->wanted) == 0) {
        seen->is_same = true;
        ev_loop_stop(seen->suite->loop);
    }
}

static void on_end(void *ctx, const struct status *why)
{
    struct seen *seen = ctx;

    seen->is_over = true;
    seen->ends++;
    seen->code = why->code;
    (void)snprintf(seen->message, sizeof seen->message, "%s", buf_cstr(&why->message));
    ev_loop_stop(seen->suite->loop);
}

struct seen *suite_watch(struct suite *s, const struct kube_watch_spec *spec)
{
    static const struct kube_watch_events events = { on_event, on_end };
    struct seen *seen = NEW(struct seen);

    seen->suite = s;
    keep(s, seen, seen_free);
    seen->watch = kube_watch_start(s->client, spec, &events, seen);
    assert_string_equal(seen->text, "");
    assert_false(seen->is_over);
    return seen;
}

void suite_sees(struct seen *seen, const char *wanted)
{
    struct suite *s = seen->suite;

    seen->wanted = wanted;
    seen->is_same = strcmp(seen->text, wanted) == 0;
    s->is_late = false;
    ev_timer_start(s->loop, &s->deadline, SUITE_DEADLINE_MS, on_deadline, s);
    while (!seen->is_same && !seen->is_over && !s->is_late && strlen(seen->text) <= strlen(wanted))
        ev_loop_run(s->loop);
    ev_timer_stop(s->loop, &s->deadline);
    assert_string_equal(seen->text, wanted);
}

void suite_stop(struct seen *seen)
{
    kube_watch_stop(seen->watch);
    assert_false(seen->is_over); /* in a later turn */
    suite_until(seen->suite, &seen->is_over);
    assert_int_equal(seen->code, 0);
}

/* ---- rows ---- */

static void find_kinds(struct suite *s)
{
    s->namespaces = kind_find("", "v1", "namespaces");
    s->config_maps = kind_find("", "v1", "configmaps");
    s->pods = kind_find("", "v1", "pods");
    s->accounts = kind_find("", "v1", "serviceaccounts");
    s->deployments = kind_find("apps", "v1", "deployments");
    s->sandboxes = kind_find("agents.x-k8s.io", NULL, "sandboxes");
}

static void drop_kept(struct suite *s)
{
    while (s->kept) {
        struct kept *k = s->kept;

        s->kept = k->next;
        k->free(k->what);
        free(k);
    }
}

struct run {
    const struct client_suite *target;
    const struct suite_row *row;
};

static void run_row(void **state)
{
    const struct run *run = *state;
    struct suite *s =
        NEW(struct suite); /* on the heap: after a failure the loop may still know it */
    struct object *made;

    s->target = run->target;
    s->loop = run->target->loop;
    find_kinds(s);
    s->client = run->target->open(run->target->ctx);
    assert_ptr_equal(kube_client_loop(s->client), s->loop);
    made = suite_create(s, s->namespaces, "{\"metadata\":{\"generateName\":\"suite-\"}}");
    (void)snprintf(s->namespace, sizeof s->namespace, "%s", object_name(made));
    run->row->run(s);
    (void)suite_must(s, &(struct kube_request){
                            .verb = KUBE_DELETE, .kind = s->namespaces, .name = s->namespace });
    kube_client_free(s->client);
    suite_turns(s);
    drop_kept(s);
    free(s);
}

int client_suite_run(const struct client_suite *target)
{
    static const struct suite_row *const tables[] = { suite_write_rows, suite_read_rows,
                                                      suite_watch_rows, suite_sub_rows,
                                                      suite_life_rows,  suite_informer_rows };
    static struct run runs[ROWS_MAX];
    static struct CMUnitTest tests[ROWS_MAX];
    size_t n = 0;

    EACH(table, tables) {
        for (const struct suite_row *row = *table; row->name; row++) {
            assert_true(n < ROWS_MAX);
            if (row->needs_versions && target->has_one_version)
                continue;
            runs[n] = (struct run){ target, row };
            tests[n] = (struct CMUnitTest){ row->name, run_row, NULL, NULL, &runs[n] };
            n++;
        }
    }
    return _cmocka_run_group_tests("client suite", tests, n, NULL, NULL);
}
