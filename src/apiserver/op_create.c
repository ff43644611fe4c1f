#include "apiserver/admit.h"
#include "apiserver/definition.h"
#include "apiserver/grant.h"
#include "apiserver/namespace_limit.h"
#include "apiserver/op_write.h"
#include "apiserver/quota.h"
#include "apiserver/reserved.h"

#include <string.h>

#define NAME_TRIES_MAX 8 /* a made-up name that is taken: 27^5 of them make that rare */

static int refuse_taken(struct op *op, const struct object *o, struct status *st)
{
    static const char deleting[] = "object is being deleted: ";
    OWN(buf_done) struct buf said = BUF_INIT(STATUS_TEXT_MAX_BYTES);
    struct shelf_key key = { op_number(op->kind), object_namespace(o), object_name(o) };
    const struct object *there = store_get(op->store, STORE_HEAD, &key);

    (void)status_exists(st, op->kind, object_name(o));
    if (!there || !object_is_deleting(there))
        return -1;
    buf_move(&said, &st->message);
    (void)buf_add_capped(&st->message, SPAN(deleting));
    (void)buf_add_capped(&st->message, buf_span(&said));
    return -1;
}

int op_commit(struct op *op, enum store_op what, struct object *o, bool is_freeing,
              struct object **ret, struct status *st)
{
    struct store_change change = { .op = what, .object = o, .is_freeing = is_freeing };
    struct shelf_key key = { op_number(op->kind), object_namespace(o), object_name(o) };
    struct err e;

    if (reserved_check(op, key.namespace, key.name, st) < 0 ||
        namespace_limit_check(op, what, o, st) < 0 || quota_check(op, what, o, st) < 0)
        return -1;
    if (op->is_dry_run) {
        const struct object *there = store_get(op->store, STORE_HEAD, &key);

        if (what == STORE_CREATE && there)
            return refuse_taken(op, o, st);
        /* No version is made: what would be changed keeps its own. */
        *ret = there ? object_with_version(o, object_version(there)) : object_ref(o);
        return 0;
    }
    if (store_write(op->store, &change, ret, &e) == 0) {
        quota_tell(op->store, key.namespace);
        return 0;
    }
    if (e.code == ERR_EXISTS)
        return refuse_taken(op, o, st);
    if (e.code == ERR_NOT_FOUND)
        return status_not_found(st, op->kind, object_name(o));
    return status_of_err(st, &e);
}

static void stamp(struct json_edit *ed, const struct kind *kind, struct json_node *body)
{
    struct json_node *meta = json_node_get(body, "metadata");
    char uid[37], now[TIME_TEXT_BYTES];

    admit_uuid(uid);
    json_node_set(meta, "uid", json_edit_cstr(ed, uid));
    json_node_set(meta, "creationTimestamp", json_edit_cstr(ed, admit_now(now)));
    if (kind->traits & KIND_GENERATION)
        json_node_set(meta, "generation", json_edit_i64(ed, 1));
}

static const char *name_of(struct json_node *body)
{
    const char *name = json_node_cstr(json_node_get(json_node_get(body, "metadata"), "name"));

    return name ? name : "";
}

/* One attempt: another made-up name is another. */
static int create_once(struct op *op, struct json_edit *ed, struct json_node *body,
                       struct object **ret, struct status *st)
{
    OWN(object_done) struct object *mine = NULL, *o = NULL;

    if (admit_new(op, ed, body, st) < 0 || admit_track(op, NULL, body, st) < 0)
        return -1;
    if (kind_is_namespaced(op->kind) && admit_namespace(op, op->namespace, name_of(body), st) < 0)
        return -1;
    if (grant_check(op, body, NULL, st) < 0)
        return -1;
    stamp(ed, op->kind, body);
    if (admit_rules(op, body, NULL, &mine, st) < 0 || admit_store(op, mine, NULL, &o, st) < 0)
        return -1;
    return op_commit(op, STORE_CREATE, o, false, ret, st);
}

int op_create(struct op *op, struct json_edit *ed, struct json_node *body, struct object **ret,
              struct status *st)
{
    OWN(object_done) struct object *given = NULL;
    struct json_node *meta;
    bool is_made_up;
    int tries = 0;

    if (admit_body(op, body, NULL, st) < 0)
        return -1;
    meta = json_node_get(body, "metadata");
    is_made_up = json_node_str(json_node_get(meta, "name")).n == 0;
    given = object_ref(definition_given(op, name_of(body)));
    if (given) {
        op->name = object_name(given);
        return op_replace(op, ed, given, body, ret, st);
    }
    while (create_once(op, ed, body, ret, st) < 0) {
        if (!is_made_up || st->code != 409 || ++tries == NAME_TRIES_MAX)
            return -1;
        status_clear(st);
        (void)json_node_remove(meta, "name");
    }
    return 0;
}

int op_create_given(struct store *store, const struct kind *kind, const char *namespace,
                    const char *json, struct status *st)
{
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
    OWN(json_doc_done) struct json_doc *doc = NULL;
    OWN(object_done) struct object *o = NULL;
    struct op op = { .store = store,
                     .kind = kind,
                     .version = &kind->versions[0],
                     .namespace = namespace,
                     .name = "",
                     .manager = "silica" };
    struct json_node *body;
    struct err e;

    if (json_parse(span_cstr(json), NULL, &doc, &e) < 0)
        return status_of_err(st, &e);
    body = json_edit_doc(ed, doc);
    json_node_set(body, "apiVersion", json_edit_cstr(ed, kind_api_version(kind, op.version)));
    json_node_set(body, "kind", json_edit_cstr(ed, kind->name));
    return op_create(&op, ed, body, &o, st);
}
