/* JSON patch, as the library behind the public server reads RFC 6902: indices may count from the end,
 * "replace" of a member that is not there adds it, and an absent value equals null. */
#include "kube/patch.h"

#include "base/str.h"

struct op {
    struct span kind, path, from;
    const struct json *value;
};

/* Where a pointer leads: a container and the last part of the pointer, decoded. */
struct place {
    struct json_node *in;
    struct span key;
};

static int not_there(const char *op, struct span path, struct err *e)
{
    return err_set(e, ERR_INVALID, "%s operation does not apply: doc is missing path: \"%.*s\"", op,
                   SPAN_ARG(span_slice(path, 0, 256)));
}

/* "~1" is "/", "~0" is "~". */
static struct span decode(struct json_edit *ed, struct span part)
{
    struct span text;
    uint8_t *to;
    size_t n = 0;

    if (span_find(part, '~') == SIZE_MAX)
        return part;
    text = json_edit_text(ed, part);
    to = (uint8_t *)text.p;
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] == '~' && i + 1 < text.n && (text.p[i + 1] == '0' || text.p[i + 1] == '1'))
            to[n++] = text.p[++i] == '0' ? '~' : '/';
        else
            to[n++] = text.p[i];
    }
    return span_of(text.p, n);
}

/* An index, from the end when negative; `count` is how many there are to count. */
static bool index_of(struct span key, size_t count, size_t *ret)
{
    int64_t i;

    if (key.n > 1 && key.p[0] == '+')
        key = span_skip(key, 1);
    if (!str_i64(key, INT32_MIN, INT32_MAX, &i))
        return false;
    if (i < 0)
        i += (int64_t)count;
    if (i < 0 || (uint64_t)i >= count)
        return false;
    *ret = (size_t)i;
    return true;
}

/* The child, or NULL; *ret_is_bad when the key cannot name one: arrays only. */
static struct json_node *child_of(struct json_node *in, struct span key, bool *ret_is_bad)
{
    size_t i;

    *ret_is_bad = false;
    if (json_node_type(in) == JSON_OBJECT)
        return json_node_get_span(in, key);
    if (index_of(key, json_node_count(in), &i))
        return json_node_at(in, i);
    *ret_is_bad = true;
    return NULL;
}

static bool find(struct json_node *root, struct span path, struct place *ret)
{
    struct json_edit *ed = json_node_edit(root);
    size_t slash = span_find(path, '/');
    bool is_bad;

    if (slash == SIZE_MAX)
        return false;
    path = span_skip(path, slash + 1);
    while ((slash = span_find(path, '/')) != SIZE_MAX) {
        root = child_of(root, decode(ed, span_slice(path, 0, slash)), &is_bad);
        if (json_node_type(root) < JSON_ARRAY)
            return false;
        path = span_skip(path, slash + 1);
    }
    *ret = (struct place){ root, decode(ed, path) };
    return json_node_type(root) >= JSON_ARRAY;
}

static int bad_index(const char *op, struct span path, struct err *e)
{
    return err_set(e, ERR_INVALID, "error in %s for path: '%.*s': no such index", op,
                   SPAN_ARG(span_slice(path, 0, 256)));
}

static int put(struct place at, struct json_node *value, const char *op, struct span path,
               struct err *e)
{
    size_t count = json_node_count(at.in), i = count;

    if (json_node_type(at.in) == JSON_OBJECT) {
        (void)json_node_set_span(at.in, at.key, value);
        return 0;
    }
    if (!span_is(at.key, "-") && !index_of(at.key, count + 1, &i))
        return bad_index(op, path, e);
    json_node_insert(at.in, i, value);
    return 0;
}

static struct json_node *value_of(struct json_node *root, const struct op *op)
{
    struct json_edit *ed = json_node_edit(root);

    return op->value ? json_edit_view(ed, op->value) : json_edit_null(ed);
}

static int add(struct json_node *root, const struct op *op, struct err *e)
{
    struct place at;

    if (!find(root, op->path, &at))
        return not_there("add", op->path, e);
    return put(at, value_of(root, op), "add", op->path, e);
}

static int take(struct json_node *root, struct span path, const char *op, struct err *e)
{
    struct place at;
    size_t i;

    if (!find(root, path, &at))
        return not_there(op, path, e);
    if (json_node_type(at.in) == JSON_OBJECT)
        return json_node_remove_span(at.in, at.key)
                   ? 0
                   : err_set(e, ERR_INVALID,
                             "error in %s for path: '%.*s': Unable to remove nonexistent key", op,
                             SPAN_ARG(span_slice(path, 0, 256)));
    if (!index_of(at.key, json_node_count(at.in), &i))
        return bad_index(op, path, e);
    json_node_remove_at(at.in, i);
    return 0;
}

static int replace(struct json_node **root, const struct op *op, struct err *e)
{
    struct place at;
    size_t i;

    if (op->path.n == 0) {
        if (json_type(op->value) < JSON_ARRAY)
            return err_set(e, ERR_INVALID, "replace operation value must be object or array");
        *root = value_of(*root, op);
        return 0;
    }
    if (!find(*root, op->path, &at))
        return not_there("replace", op->path, e);
    if (json_node_type(at.in) == JSON_OBJECT) {
        (void)json_node_set_span(at.in, at.key, value_of(*root, op));
        return 0;
    }
    if (!index_of(at.key, json_node_count(at.in), &i))
        return bad_index("replace", op->path, e);
    json_node_replace_at(at.in, i, value_of(*root, op));
    return 0;
}

/* "move" and "copy". The value is copied before its place is looked for: that may be inside it. */
static int transfer(struct json_node *root, const struct op *op, bool is_move, struct err *e)
{
    const char *name = is_move ? "move" : "copy";
    struct json_edit *ed = json_node_edit(root);
    struct json_node *value;
    struct place from, to;
    bool is_bad;

    if (!find(root, op->from, &from))
        return not_there(name, op->from, e);
    value = child_of(from.in, from.key, &is_bad);
    if (is_bad)
        return bad_index(name, op->from, e);
    if (!is_move)
        value = value ? json_node_copy(ed, value) : json_edit_null(ed);
    else if (take(root, op->from, name, e) < 0)
        return -1;
    if (!find(root, op->path, &to))
        return not_there(name, op->path, e);
    return put(to, value, name, op->path, e);
}

static int test(struct json_node *root, const struct op *op, struct err *e)
{
    struct json_node *value = root;
    struct place at;
    bool is_bad = false;

    if (op->path.n) {
        if (!find(root, op->path, &at))
            return not_there("test", op->path, e);
        value = child_of(at.in, at.key, &is_bad);
        if (is_bad)
            return bad_index("test", op->path, e);
    }
    if (json_node_type(value) <= JSON_NULL ? json_type(op->value) <= JSON_NULL
                                           : json_node_equal_value(value, op->value))
        return 0;
    return err_set(e, ERR_INVALID, "testing value %.*s failed: test failed",
                   SPAN_ARG(span_slice(op->path, 0, 256)));
}

static int run(struct json_node **root, const struct op *op, struct err *e)
{
    if (span_is(op->kind, "add"))
        return add(*root, op, e);
    if (span_is(op->kind, "remove"))
        return take(*root, op->path, "remove", e);
    if (span_is(op->kind, "replace"))
        return replace(root, op, e);
    if (span_is(op->kind, "move") || span_is(op->kind, "copy"))
        return transfer(*root, op, op->kind.p[0] == 'm', e);
    if (span_is(op->kind, "test"))
        return test(*root, op, e);
    return err_set(e, ERR_INVALID, "Unexpected kind: %.*s",
                   SPAN_ARG(op->kind.p ? span_slice(op->kind, 0, 64) : SPAN("unknown")));
}

static const char *go_type_name(const struct json *v)
{
    return json_type(v) == JSON_BOOL ? "bool" : json_type_name(v);
}

static int read_text(const struct json *op, const char *name, struct span *ret, struct err *e)
{
    const struct json *v = json_get(op, name);

    if (v && !json_is_null(v) && json_type(v) != JSON_STRING)
        return err_set(e, ERR_PROTOCOL,
                       "error decoding patch: json: cannot unmarshal %s into Go struct field "
                       "jsonPatchOp.%s of type string",
                       go_type_name(v), name);
    *ret = json_str(v);
    return 0;
}

static int read_op(const struct json *v, struct op *ret, struct err *e)
{
    if (!json_is_null(v) && json_type(v) != JSON_OBJECT)
        return err_set(e, ERR_PROTOCOL,
                       "error decoding patch: json: cannot unmarshal %s into Go value of type "
                       "handlers.jsonPatchOp",
                       go_type_name(v));
    if (read_text(v, "op", &ret->kind, e) < 0 || read_text(v, "path", &ret->path, e) < 0 ||
        read_text(v, "from", &ret->from, e) < 0)
        return -1;
    ret->value = json_get(v, "value");
    return 0;
}

static int check_ops(const struct json *patch, struct err *e)
{
    struct op op;

    if (json_type(patch) != JSON_ARRAY && !json_is_null(patch))
        return err_set(e, ERR_PROTOCOL,
                       "error decoding patch: json: cannot unmarshal %s into Go value of type "
                       "[]handlers.jsonPatchOp",
                       go_type_name(patch));
    JSON_EACH(v, patch)
    {
        if (read_op(v, &op, e) < 0)
            return -1;
    }
    if (json_count(patch) > PATCH_OPERATIONS_MAX)
        return err_set(e, ERR_LIMIT,
                       "The allowed maximum operations in a JSON patch is %d, got %zu",
                       PATCH_OPERATIONS_MAX, json_count(patch));
    return 0;
}

int patch_json(struct json_node **root, const struct json *patch, struct err *e)
{
    struct json_edit *ed = json_node_edit(*root);

    if (check_ops(patch, e) < 0)
        return -1;
    JSON_EACH(v, patch)
    {
        struct op op;

        if (read_op(v, &op, e) < 0 || run(root, &op, e) < 0)
            return -1;
        /* A copy into a copy doubles the depth, so what comes next must not walk it unchecked. */
        if (json_edit_is_full(ed))
            break;
    }
    if (json_edit_is_full(ed) || json_node_is_deeper(*root, JSON_DEPTH_MAX))
        return err_set(e, ERR_LIMIT, "the patch makes more of the object than there can be");
    return 0;
}
