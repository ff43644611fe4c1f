#include "cli/status_seen.h"

#include "base/disk_room.h"
#include "base/fd.h"
#include "cli/api.h"
#include "node/images.h"
#include "router/problems.h"

#include <fcntl.h>
#include <stdio.h>

/* ---- rows ---- */

/* One more item of an array. */
static void add_item(struct buf *items, const struct buf *row)
{
    struct err e;

    /* An item that finds no room is counted, and not listed. */
    (void)buf_addf(items, &e, "%s%s", items->n ? "," : "", buf_cstr(row));
}

static void put_name(struct json_out *out, const char *kind, const char *space, const char *name)
{
    json_out_key(out, "kind"), json_out_cstr(out, kind);
    json_out_key(out, "namespace"), json_out_cstr(out, space);
    json_out_key(out, "name"), json_out_cstr(out, name);
}

/* space "": it is in none. */
static void add_row(struct seen *s, const char *kind, const char *space, const char *name,
                    const struct problem *p)
{
    OWN(buf_done) struct buf row = BUF_INIT(8192);
    struct json_out out;
    char shown[600];
    struct err e;

    s->problems++;
    (void)snprintf(shown, sizeof shown, "%s%s%s", space, *space ? "/" : "", name);
    problem_drop_controls(shown);
    if (!s->out) {
        /* A row that finds no room is counted, and not listed. */
        (void)buf_addf(&s->rows, &e, "problem   %s %s: %s\n          heals: %s\n", kind, shown,
                       p->text, p->heal);
        return;
    }
    json_out_init(&out, &row, 0);
    json_out_object_begin(&out);
    put_name(&out, kind, space, name);
    json_out_key(&out, "text"), json_out_cstr(&out, p->text);
    json_out_key(&out, "heals"), json_out_cstr(&out, p->heal);
    json_out_object_end(&out);
    if (json_out_end(&out, &e) == 0)
        add_item(&s->rows, &row);
}

static void add_problem(struct seen *s, const char *kind, const struct object *o,
                        const struct problem *p)
{
    add_row(s, kind, object_namespace(o), object_name(o), p);
}

static void add_suspended(struct seen *s, const char *kind, const struct object *o)
{
    OWN(buf_done) struct buf row = BUF_INIT(8192);
    struct json_out out;
    struct err e;

    if (!s->out) {
        /* A row that finds no room is not listed. */
        (void)buf_addf(&s->suspended, &e, "suspended %s %s/%s\n", kind, object_namespace(o),
                       object_name(o));
        return;
    }
    json_out_init(&out, &row, 0);
    json_out_object_begin(&out);
    put_name(&out, kind, object_namespace(o), object_name(o));
    json_out_object_end(&out);
    if (json_out_end(&out, &e) == 0)
        add_item(&s->suspended, &row);
}

static void show_pool(const struct seen *s, const struct object *pool)
{
    int64_t wanted = 1, ready = 0;

    (void)json_i64(object_at(pool, "spec.replicas"), &wanted);
    (void)json_i64(object_at(pool, "status.readyReplicas"), &ready);
    if (!s->out) {
        printf("pool      %s/%s: %lld of %lld ready\n", object_namespace(pool), object_name(pool),
               (long long)ready, (long long)wanted);
        return;
    }
    json_out_object_begin(s->out);
    json_out_key(s->out, "namespace"), json_out_cstr(s->out, object_namespace(pool));
    json_out_key(s->out, "name"), json_out_cstr(s->out, object_name(pool));
    json_out_key(s->out, "ready"), json_out_i64(s->out, ready);
    json_out_key(s->out, "wanted"), json_out_i64(s->out, wanted);
    json_out_object_end(s->out);
}

/* ---- what the API says ---- */

static void on_templates(void *ctx, const struct kube_answer *answer)
{
    struct seen *s = ctx;

    for (size_t i = 0; i < answer->item_count; i++)
        problem_add_name(&s->templates, answer->items[i]);
}

static void on_roles(void *ctx, const struct kube_answer *answer)
{
    struct seen *s = ctx;

    for (size_t i = 0; i < answer->item_count; i++)
        problem_add_name(&s->roles, answer->items[i]);
}

static void on_pools(void *ctx, const struct kube_answer *answer)
{
    struct seen *s = ctx;
    struct problem problem;

    for (size_t i = 0; i < answer->item_count; i++) {
        show_pool(ctx, answer->items[i]);
        if (problem_of_pool(answer->items[i], &s->templates, &problem))
            add_problem(ctx, "sandboxwarmpool", answer->items[i], &problem);
    }
}

static void on_claims(void *ctx, const struct kube_answer *answer)
{
    struct seen *s = ctx;
    struct problem problem;

    s->claims = answer->item_count;
    for (size_t i = 0; i < answer->item_count; i++) {
        const struct object *claim = answer->items[i];

        if (problem_of_claim(claim, &problem))
            add_problem(s, "sandboxclaim", claim, &problem);
        else if (problem_is_suspended(claim))
            add_suspended(s, "sandboxclaim", claim);
    }
}

static void on_sandboxes(void *ctx, const struct kube_answer *answer)
{
    struct seen *s = ctx;
    struct problem problem;

    for (size_t i = 0; i < answer->item_count; i++) {
        const struct object *sandbox = answer->items[i];

        if (problem_of_sandbox(sandbox, &problem))
            add_problem(s, "sandbox", sandbox, &problem);
        else if (!problem_is_owned(sandbox) && problem_is_suspended(sandbox))
            add_suspended(s, "sandbox", sandbox);
    }
}

static void on_bindings(void *ctx, const struct kube_answer *answer)
{
    struct seen *s = ctx;
    struct problem problem;

    for (size_t i = 0; i < answer->item_count; i++) {
        const struct object *o = answer->items[i];

        if (problem_of_binding(o, &s->roles, &problem))
            add_problem(s, *object_namespace(o) ? "rolebinding" : "clusterrolebinding", o,
                        &problem);
    }
}

static int list(struct seen *s, struct api *api, const char *group, const char *plural,
                kube_done_fn on_answer, struct err *e)
{
    const struct kube_request request = { .verb = KUBE_LIST,
                                          .kind = kind_find(group, NULL, plural) };

    return api_call(api, &request, on_answer, s, e);
}

static int ask_bindings(struct seen *s, struct api *api, struct err *e)
{
    static const char group[] = "rbac.authorization.k8s.io";

    return list(s, api, group, "clusterroles", on_roles, e) < 0 ||
                   list(s, api, group, "roles", on_roles, e) < 0 ||
                   list(s, api, group, "clusterrolebindings", on_bindings, e) < 0 ||
                   list(s, api, group, "rolebindings", on_bindings, e) < 0
               ? -1
               : 0;
}

/* ---- what the data directory says ---- */

static void look_at_disk(struct seen *s, const struct place_info *info, int fd, const char *dir)
{
    struct problem problem = { .heal = "make room there: what stands still goes on then" };
    uint64_t floor_bytes = 0;
    struct disk_room room;
    struct err e;

    (void)json_u64(json_get(json_doc_root(info->doc), "disk_floor"), &floor_bytes);
    if (disk_room_read(fd, floor_bytes, &room, &e) < 0 || !disk_room_is_short(&room))
        return;
    (void)disk_room_text(&room, problem.text, sizeof problem.text);
    add_row(s, "disk", "", dir, &problem);
}

/* The node reads it when it starts, and when a Pod names an image that its table has not. */
static void look_at_images(struct seen *s, int fd, const char *dir)
{
    struct problem problem = { 0 };
    struct images *table;
    struct err e;

    if (images_load(fd, dir, &table, &e) == 0) {
        images_free(table);
        return;
    }
    (void)snprintf(problem.text, sizeof problem.text, "%.*s", (int)sizeof problem.text - 1, e.msg);
    problem_drop_controls(problem.text);
    (void)snprintf(problem.heal, sizeof problem.heal,
                   "mend it%s%.300s; until then the table of before is in use", *e.hint ? ": " : "",
                   e.hint);
    add_row(s, "images", "", IMAGES_FILE, &problem);
}

static void look_at_place(struct seen *s, const struct place_info *info, const char *dir)
{
    OWN_FD int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return;
    look_at_disk(s, info, fd, dir);
    look_at_images(s, fd, dir);
}

/* ---- all of it ---- */

static int put_array(struct seen *s, const char *name, const struct buf *items, struct err *e)
{
    OWN(buf_done) struct buf array = BUF_INIT(SEEN_ROWS_MAX_BYTES + 2);
    OWN(json_doc_done) struct json_doc *doc = NULL;

    if (buf_addf(&array, e, "[%s]", items->n ? buf_cstr(items) : "") < 0 ||
        json_parse(buf_span(&array), NULL, &doc, e) < 0)
        return -1;
    json_out_key(s->out, name), json_out_value(s->out, json_doc_root(doc));
    return 0;
}

int seen_ask(struct seen *s, const struct place_info *info, const char *dir, struct err *e)
{
    static const char group[] = "extensions.agents.x-k8s.io";
    OWN(api_done) struct api api = API_INIT;

    if (api_open(&api, info->kubeconfig, e) < 0 ||
        list(s, &api, group, "sandboxtemplates", on_templates, e) < 0)
        return -1;
    if (s->out)
        json_out_key(s->out, "pools"), json_out_array_begin(s->out);
    if (list(s, &api, group, "sandboxwarmpools", on_pools, e) < 0)
        return -1;
    if (s->out)
        json_out_array_end(s->out);
    if (list(s, &api, group, "sandboxclaims", on_claims, e) < 0 ||
        list(s, &api, "agents.x-k8s.io", "sandboxes", on_sandboxes, e) < 0 ||
        ask_bindings(s, &api, e) < 0)
        return -1;
    look_at_place(s, info, dir);
    if (s->out) {
        json_out_key(s->out, "claims"), json_out_u64(s->out, s->claims);
        return put_array(s, "suspended", &s->suspended, e) < 0 ||
                       put_array(s, "problems", &s->rows, e) < 0
                   ? -1
                   : 0;
    }
    printf("claims    %zu\n", s->claims);
    printf("%s%s", s->suspended.n ? buf_cstr(&s->suspended) : "",
           s->rows.n ? buf_cstr(&s->rows) : "");
    return 0;
}

void seen_done(struct seen *s)
{
    buf_done(&s->rows);
    buf_done(&s->suspended);
    buf_done(&s->templates);
    buf_done(&s->roles);
}
