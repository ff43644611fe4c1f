#include "kube/check.h"

#include "base/str.h"
#include "kube/cause.h"
#include "kube/quantity.h"
#include "kube/time.h"

#include <stdio.h>
#include <string.h>

bool check_mode_parse(struct span text, enum check_mode *ret)
{
    if (text.n == 0 || span_is(text, "Warn"))
        *ret = CHECK_WARN;
    else if (span_is(text, "Ignore"))
        *ret = CHECK_IGNORE;
    else if (span_is(text, "Strict"))
        *ret = CHECK_STRICT;
    else
        return false;
    return true;
}

void check_issues_done(struct check_issues *i)
{
    buf_done(&i->text);
    i->n = 0;
}

const char *check_issue(const struct check_issues *i, size_t n)
{
    return (const char *)i->text.p + i->at[n];
}

int check_issues_summary(const struct check_issues *i, struct buf *out, struct err *e)
{
    if (buf_addf(out, e, "strict decoding error: ") < 0)
        return -1;
    for (size_t n = 0; n < i->n; n++)
        if (buf_addf(out, e, "%s%s", n ? ", " : "", check_issue(i, n)) < 0)
            return -1;
    return 0;
}

struct walk {
    struct check_issues *issues; /* or NULL */
    bool is_loose;               /* custom kinds: types are not judged here */
    struct err *e;
};

static void add_issue(struct walk *w, const char *what, const struct field_path *at)
{
    struct check_issues *i = w->issues;
    char path[CAUSE_PATH_MAX_BYTES];
    size_t start;
    struct err e;

    if (!i || i->n == CHECK_ISSUES_MAX)
        return;
    start = i->text.n;
    if (buf_addf(&i->text, &e, "%s field \"%s\"", what, field_path_text(at, path)) < 0 ||
        buf_addc(&i->text, '\0', &e) < 0) {
        buf_truncate(&i->text, start);
        return;
    }
    i->at[i->n++] = start;
}

/* The names of the way without indexes, as the public decoder tells a place: "spec.containers.name". */
static const char *go_place(const struct field_path *at, char text[CAUSE_PATH_MAX_BYTES])
{
    char *p = text + CAUSE_PATH_MAX_BYTES - 1;
    bool is_last = true;

    *p = '\0';
    for (; at; at = at->parent) {
        size_t n = at->name.n;

        if (at->step != FIELD_NAME)
            continue;
        if ((size_t)(p - text) < n + 1)
            break;
        if (!is_last)
            *--p = '.';
        is_last = false;
        p -= n;
        memcpy(p, at->name.p, n);
    }
    return p;
}

/* "[]v1.Container", "map[string]string", "int32". `inner`: of one element. */
static const char *go_type(const struct schema_field *f, bool is_inner, char text[128])
{
    static const char *const scalars[] = {
        [SCHEMA_STRING] = "string",         [SCHEMA_INT32] = "int32",
        [SCHEMA_INT64] = "int64",           [SCHEMA_BOOL] = "bool",
        [SCHEMA_DOUBLE] = "float64",        [SCHEMA_BYTES] = "[]uint8",
        [SCHEMA_TIME] = "string",           [SCHEMA_MICROTIME] = "string",
        [SCHEMA_DURATION] = "string",       [SCHEMA_QUANTITY] = "resource.Quantity",
        [SCHEMA_INT_OR_STRING] = "int32",   [SCHEMA_RAW] = "runtime.RawExtension",
        [SCHEMA_STRINGS] = "v1.ExtraValue", [SCHEMA_OBJECT] = "",
    };
    const char *shape = is_inner || f->shape == SCHEMA_SINGLE ? ""
                        : f->shape == SCHEMA_LIST             ? "[]"
                                                              : "map[string]";

    if (f->value == SCHEMA_OBJECT)
        snprintf(text, 128, "%s%s.%s", shape, strchr(f->ref->package, '/') + 1, f->ref->name);
    else
        snprintf(text, 128, "%s%s", shape, f->go_name ? f->go_name : scalars[f->value]);
    return text;
}

/* A value of the wrong type in `owner`'s member at the end of `at`. */
static int wrong_type(struct walk *w, const struct schema_type *owner, const struct field_path *at,
                      const struct json *v, const char *type)
{
    char place[CAUSE_PATH_MAX_BYTES];
    char shown[64] = "";
    const char *what = json_type(v) == JSON_BOOL ? "bool" : json_type_name(v);

    if (json_type(v) == JSON_NUMBER && strncmp(type, "int", 3) == 0)
        snprintf(shown, sizeof shown, " %.*s", SPAN_ARG(span_slice(json_number(v), 0, 40)));
    return err_set(w->e, ERR_INVALID,
                   "json: cannot unmarshal %s%s into Go struct field %s.%s of type %s", what, shown,
                   owner->name, go_place(at, place), type);
}

static int check_time(struct walk *w, const struct schema_field *f, struct span text)
{
    static const char *const layouts[] = { "2006-01-02T15:04:05Z07:00",
                                           "2006-01-02T15:04:05.000000Z07:00" };
    bool is_micro = f->value == SCHEMA_MICROTIME;
    struct timespec t;

    /* MicroTime wants exactly six digits. */
    if (kube_time_parse(text, &t) &&
        (!is_micro || (text.n > 26 && text.p[19] == '.' &&
                       (text.p[26] == 'Z' || text.p[26] == '+' || text.p[26] == '-'))))
        return 0;
    return err_set(w->e, ERR_INVALID,
                   "parsing time \"%.*s\" as \"%s\": cannot parse \"%.*s\" as \"%s\"",
                   SPAN_ARG(span_slice(text, 0, 100)), layouts[is_micro],
                   SPAN_ARG(span_slice(text, 0, 100)), "2006");
}

/* Where it stops being base64: line ends are no part of it, as Go decodes. */
static size_t base64_fault(struct span text)
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=\r\n";
    size_t i = 0;

    while (i < text.n && text.p[i] && strchr(alphabet, text.p[i]))
        i++;
    return i;
}

static int check_base64(struct walk *w, struct span text)
{
    OWN(buf_done) struct buf plain = BUF_INIT(text.n + 4);
    OWN(buf_done) struct buf bytes = BUF_INIT(text.n + 4);
    struct err e;

    for (size_t i = 0; i < text.n; i++)
        if (text.p[i] != '\n' && text.p[i] != '\r')
            /* Sized for all of it. */
            (void)buf_addc(&plain, text.p[i], &e);
    if (str_base64_decode(buf_span(&plain), &bytes, &e) == 0)
        return 0;
    return err_set(w->e, ERR_INVALID, "illegal base64 data at input byte %zu", base64_fault(text));
}

/* One value of a field that is no object. */
static int check_scalar(struct walk *w, const struct schema_type *owner,
                        const struct schema_field *f, const struct field_path *at,
                        const struct json *v)
{
    char type[128];
    enum json_type is = json_type(v);
    struct quantity q;
    int64_t n;
    bool is_right = true;

    switch (f->value) {
    case SCHEMA_STRING:
    case SCHEMA_DURATION:
        is_right = is == JSON_STRING;
        break;
    case SCHEMA_BOOL:
        is_right = is == JSON_BOOL;
        break;
    case SCHEMA_INT32:
        is_right = json_i64(v, &n) && n >= INT32_MIN && n <= INT32_MAX;
        break;
    case SCHEMA_INT64:
        is_right = json_i64(v, &n);
        break;
    case SCHEMA_DOUBLE:
        is_right = is == JSON_NUMBER;
        break;
    case SCHEMA_INT_OR_STRING:
        is_right = is == JSON_STRING || (json_i64(v, &n) && n >= INT32_MIN && n <= INT32_MAX);
        break;
    case SCHEMA_BYTES:
        if (is == JSON_STRING)
            return check_base64(w, json_str(v));
        is_right = false;
        break;
    case SCHEMA_TIME:
    case SCHEMA_MICROTIME:
        if (is == JSON_STRING)
            return check_time(w, f, json_str(v));
        is_right = false;
        break;
    case SCHEMA_QUANTITY:
        if (!quantity_parse(is == JSON_STRING ? json_str(v) : json_number(v), &q))
            return err_set(w->e, ERR_INVALID,
                           "quantities must match the regular expression "
                           "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'");
        break;
    case SCHEMA_STRINGS:
        is_right = is == JSON_ARRAY;
        JSON_EACH(item, v)
        {
            is_right = is_right && json_type(item) == JSON_STRING;
        }
        break;
    case SCHEMA_RAW:
    case SCHEMA_OBJECT:
        break;
    }
    return is_right ? 0 : wrong_type(w, owner, at, v, go_type(f, true, type));
}

static int check_members(struct walk *w, const struct schema_type *t, const struct field_path *at,
                         const struct json *v);

/* One element: an object of the field's type, or a scalar. Null is the empty value anywhere. */
static int check_value(struct walk *w, const struct schema_type *owner,
                       const struct schema_field *f, const struct field_path *at,
                       const struct json *v)
{
    char type[128];

    if (json_is_null(v))
        return 0;
    if (f->value != SCHEMA_OBJECT)
        return w->is_loose ? 0 : check_scalar(w, owner, f, at, v);
    if (json_type(v) == JSON_OBJECT)
        return check_members(w, f->ref, at, v);
    return w->is_loose ? 0 : wrong_type(w, owner, at, v, go_type(f, true, type));
}

/* The members of one object whose name was there before, by place. Found by sorting: a hostile object has
 * a hundred thousand members, and comparing each with each would take minutes. */
struct repeats {
    const struct json **names;
    size_t n;
    bool is_known;
};

static void repeats_done(struct repeats *r)
{
    free(r->names);
}

static int by_name(const void *a, const void *b)
{
    const struct json *x = *(const struct json *const *)a, *y = *(const struct json *const *)b;
    struct span s = json_str(x), t = json_str(y);
    int order = memcmp(s.p, t.p, MIN(s.n, t.n));

    if (order || s.n != t.n)
        return order ? order : (s.n > t.n) - (s.n < t.n);
    return (x > y) - (x < y);
}

static int by_place(const void *a, const void *b)
{
    const struct json *x = *(const struct json *const *)a, *y = *(const struct json *const *)b;

    return (x > y) - (x < y);
}

static void find_repeats(struct repeats *r, const struct json *object)
{
    size_t all = 0;

    r->is_known = true;
    r->names = own_array(json_count(object) + 1, sizeof(struct json *));
    JSON_MEMBERS(name, value, object)
    {
        if (value)
            r->names[all++] = name;
    }
    qsort(r->names, all, sizeof r->names[0], by_name);
    for (size_t i = all; i-- > 1;)
        if (!span_eq(json_str(r->names[i]), json_str(r->names[i - 1])))
            r->names[i] = NULL;
    for (size_t i = 1; i < all; i++)
        if (r->names[i])
            r->names[r->n++] = r->names[i];
    qsort(r->names, r->n, sizeof r->names[0], by_place);
}

/* Below, comparing is quicker than sorting. */
#define FEW_MEMBERS 12

static bool is_repeat(struct repeats *r, const struct json *object, const struct json *name)
{
    if (json_count(object) <= FEW_MEMBERS) {
        JSON_MEMBERS(other, value, object)
        {
            if (other == name || !value)
                return false;
            if (span_eq(json_str(other), json_str(name)))
                return true;
        }
    }
    if (!r->is_known)
        find_repeats(r, object);
    return bsearch(&name, r->names, r->n, sizeof r->names[0], by_place) != NULL;
}

static int check_map(struct walk *w, const struct schema_type *owner, const struct schema_field *f,
                     const struct field_path *at, const struct json *v)
{
    OWN(repeats_done) struct repeats repeats = { 0 };

    JSON_MEMBERS(name, value, v)
    {
        const struct field_path *here = AT_SPAN(at, json_str(name));

        if (w->issues && !w->is_loose && is_repeat(&repeats, v, name))
            add_issue(w, "duplicate", here);
        /* The decoder names the map, not the key. */
        if (check_value(w, owner, f, f->value == SCHEMA_OBJECT ? here : at, value) < 0)
            return -1;
    }
    return 0;
}

static int check_field(struct walk *w, const struct schema_type *owner,
                       const struct schema_field *f, const struct field_path *at,
                       const struct json *v)
{
    static const enum json_type containers[] = {
        [SCHEMA_LIST] = JSON_ARRAY, [SCHEMA_MAP] = JSON_OBJECT
    };
    char type[128];
    size_t i = 0;

    if (json_is_null(v))
        return 0;
    if (f->shape == SCHEMA_SINGLE)
        return check_value(w, owner, f, at, v);
    if (json_type(v) != containers[f->shape])
        return w->is_loose ? 0 : wrong_type(w, owner, at, v, go_type(f, false, type));
    if (f->shape == SCHEMA_MAP)
        return check_map(w, owner, f, at, v);
    JSON_EACH(item, v)
    {
        if (check_value(w, owner, f, AT_INDEX(at, i), item) < 0)
            return -1;
        i++;
    }
    return 0;
}

/* A set of fields that were there already: types have fewer than this many. */
#define SEEN_MAX 128

struct seen {
    uint64_t bits[SEEN_MAX / 64];
};

static bool seen_before(struct seen *s, size_t i)
{
    uint64_t bit = 1ull << (i % 64);
    bool was = s->bits[i / 64] & bit;

    s->bits[i / 64] |= bit;
    return was;
}

static int check_members(struct walk *w, const struct schema_type *t, const struct field_path *at,
                         const struct json *v)
{
    OWN(repeats_done) struct repeats repeats = { 0 };
    struct seen seen = { 0 };
    bool has_kind = false, has_version = false;

    assert(t->field_count <= SEEN_MAX);
    JSON_MEMBERS(name, value, v)
    {
        struct span text = json_str(name);
        const struct field_path *here = AT_SPAN(at, text);
        const struct schema_field *f = schema_field(t, text);
        bool *type_meta = !t->has_type_meta             ? NULL
                          : span_is(text, "kind")       ? &has_kind
                          : span_is(text, "apiVersion") ? &has_version
                                                        : NULL;

        if (!f && !type_meta) {
            /* Said once, however often it is there. */
            if (w->issues && !is_repeat(&repeats, v, name))
                add_issue(w, "unknown", here);
            continue;
        }
        if (f && check_field(w, t, f, here, value) < 0)
            return -1;
        /* Told behind what its value has to say. */
        if ((f ? seen_before(&seen, (size_t)(f - t->fields)) : *type_meta) && !w->is_loose)
            add_issue(w, "duplicate", here);
        if (type_meta)
            *type_meta = true;
    }
    return 0;
}

/* Custom kinds: what is there twice, wherever it is, in order. */
static void note_duplicates(struct walk *w, const struct field_path *at, const struct json *v)
{
    OWN(repeats_done) struct repeats repeats = { 0 };
    size_t i = 0;

    JSON_MEMBERS(name, value, v)
    {
        const struct field_path *here = AT_SPAN(at, json_str(name));

        note_duplicates(w, here, value);
        if (is_repeat(&repeats, v, name))
            add_issue(w, "duplicate", here);
    }
    JSON_EACH(item, v)
    {
        note_duplicates(w, AT_INDEX(at, i), item);
        i++;
    }
}

static int by_text(const void *a, const void *b, void *ctx)
{
    const struct check_issues *i = ctx;

    return strcmp((const char *)i->text.p + *(const size_t *)a,
                  (const char *)i->text.p + *(const size_t *)b);
}

/* Duplicates first, then the unknown ones sorted: the public server finds them in two steps. */
static int check_custom(struct walk *w, const struct schema_type *t, const struct json *body)
{
    const struct json *meta = json_get(body, "metadata");
    const struct schema_field *f = schema_field(t, SPAN("metadata"));
    struct walk strict = { NULL, false, w->e };
    size_t first;

    if (w->issues)
        note_duplicates(w, NULL, body);
    if (meta && !json_is_null(meta) && json_type(meta) != JSON_OBJECT)
        return err_set(w->e, ERR_INVALID,
                       "json: cannot unmarshal %s into Go value of type v1.ObjectMeta",
                       json_type(meta) == JSON_BOOL ? "bool" : json_type_name(meta));
    if (meta && check_members(&strict, f->ref, NULL, meta) < 0)
        return -1;
    first = w->issues ? w->issues->n : 0;
    if (check_members(w, t, NULL, body) < 0)
        return -1;
    if (w->issues)
        qsort_r(w->issues->at + first, w->issues->n - first, sizeof w->issues->at[0], by_text,
                w->issues);
    return 0;
}

int check_object(const struct schema_type *t, const struct json *body, struct check_issues *issues,
                 struct err *e)
{
    struct walk w = { issues, t->is_custom, e };

    if (json_type(body) != JSON_OBJECT)
        return err_set(e, ERR_INVALID, "json: cannot unmarshal %s into Go value of type v1.%s",
                       json_type(body) == JSON_BOOL ? "bool" : json_type_name(body), t->name);
    return t->is_custom ? check_custom(&w, t, body) : check_members(&w, t, NULL, body);
}

/* ---- trees ---- */

static int check_opened(struct walk *w, const struct schema_type *t, const struct field_path *at,
                        struct json_node *node, const struct json *was);

/* The value of a member, and what stood there before; only what was opened and is no object of fields is written out for it. */
static int check_node(struct walk *w, const struct schema_type *owner, const struct schema_field *f,
                      const struct field_path *at, struct json_node *v, const struct json *was)
{
    OWN(json_doc_done) struct json_doc *doc = NULL;
    const struct json *plain = json_node_plain(v);

    if (plain)
        return plain == was ? 0 : check_field(w, owner, f, at, plain);
    if (f->shape == SCHEMA_SINGLE && f->value == SCHEMA_OBJECT && json_node_type(v) == JSON_OBJECT)
        return check_opened(w, f->ref, at, v, was);
    if (json_node_freeze(v, &doc, w->e) < 0)
        return -1;
    return check_field(w, owner, f, at, json_doc_root(doc));
}

static int check_opened(struct walk *w, const struct schema_type *t, const struct field_path *at,
                        struct json_node *node, const struct json *was)
{
    for (size_t i = 0; i < json_node_count(node); i++) {
        struct span name = json_node_name_at(node, i);
        const struct schema_field *f = schema_field(t, name);

        if (f && check_node(w, t, f, AT_SPAN(at, name), json_node_value_at(node, i),
                            json_get_span(was, name)) < 0)
            return -1;
    }
    return 0;
}

int check_tree(const struct schema_type *t, struct json_node *body, const struct object *was,
               struct err *e)
{
    struct walk w = { NULL, false, e };
    OWN(json_doc_done) struct json_doc *doc = NULL;

    if (json_node_type(body) != JSON_OBJECT) {
        if (json_node_freeze(body, &doc, e) < 0)
            return -1;
        return check_object(t, json_doc_root(doc), NULL, e);
    }
    for (size_t i = 0; i < t->field_count; i++) {
        const struct schema_field *f = &t->fields[i];
        bool is_meta = strcmp(f->name, "metadata") == 0;
        struct json_node *v = t->is_custom && !is_meta ? NULL : json_node_get(body, f->name);

        if (!v)
            continue; /* not there, or of a custom kind: judged by validation */
        if (t->is_custom && json_node_type(v) != JSON_OBJECT && json_node_type(v) != JSON_NULL)
            return err_set(e, ERR_INVALID,
                           "json: cannot unmarshal %s into Go value of type v1.ObjectMeta",
                           json_node_type(v) == JSON_BOOL ? "bool" : json_node_type_name(v));
        /* Custom kinds tell the place from their metadata on. */
        if (check_node(&w, t, f, t->is_custom ? NULL : AT(NULL, f->name), v,
                       was ? object_member(was, f->name) : NULL) < 0)
            return -1;
    }
    return 0;
}
