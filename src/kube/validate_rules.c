/* Custom kinds: the rules of the schema, in the words of the public server's OpenAPI validation. */
#include "kube/validate_parts.h"

#include "kube/quantity.h"
#include "kube/time.h"

#include <regex.h>
#include <stdio.h>
#include <string.h>

#define QUANTITY_PATTERN                                                                           \
    "^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+("   \
    "\\.[0-9]*)?)|(\\.[0-9]+))))?$"

struct walk {
    struct causes *c;
    char path[CAUSE_PATH_MAX_BYTES]; /* of the value being judged, for the texts that repeat it */
};

static const char *type_name(const struct json *v)
{
    int64_t n;

    switch (json_type(v)) {
    case JSON_NUMBER:
        return json_i64(v, &n) ? "integer" : "number";
    case JSON_BOOL:
        return "boolean";
    case JSON_NONE:
    case JSON_NULL:
    case JSON_STRING:
    case JSON_ARRAY:
    case JSON_OBJECT:
        break;
    }
    return json_type_name(v);
}

/* "spec.x in body must be of type string: "integer"". */
static void wrong_type(struct walk *w, const struct field_path *at, const struct json *v,
                       const char *want)
{
    const char *is = type_name(v);

    causes_add_text(w->c, CAUSE_TYPE_INVALID, at, span_cstr(is),
                    "%s in body must be of type %s: \"%s\"", field_path_text(at, w->path), want,
                    is);
}

/* Whole numbers may be written 5.0. */
static bool whole_number(const struct json *v, int64_t *ret)
{
    double d;

    if (json_i64(v, ret))
        return true;
    if (!json_double(v, &d) || d != (double)(int64_t)d || d < -9e18 || d > 9e18)
        return false;
    *ret = (int64_t)d;
    return true;
}

static void check_int(struct walk *w, const struct schema_field *f, const struct field_path *at,
                      const struct json *v)
{
    const char *format = f->value == SCHEMA_INT32 ? "int32" : "int64";
    const struct schema_rules *r = f->rules;
    int64_t n;

    if (json_type(v) != JSON_NUMBER) {
        wrong_type(w, at, v, "integer");
        return;
    }
    if (!whole_number(v, &n)) {
        causes_add_text(w->c, CAUSE_TYPE_INVALID, at, SPAN("float64"),
                        "%s in body must be of type %s: \"float64\"", field_path_text(at, w->path),
                        format);
        causes_add_text(w->c, CAUSE_INVALID, NULL, SPAN(""),
                        "Checked value must be of type integer with format %s in %s", format,
                        field_path_text(at, w->path));
        return;
    }
    if (f->value == SCHEMA_INT32 && (n < INT32_MIN || n > INT32_MAX))
        causes_add_text(w->c, CAUSE_INVALID, NULL, SPAN(""),
                        "Checked value must be of type integer with format int32 in %s",
                        field_path_text(at, w->path));
    if (r && n < r->min)
        causes_add(w->c, CAUSE_INVALID, at, v, "%s in body should be greater than or equal to %lld",
                   field_path_text(at, w->path), (long long)r->min);
    if (r && n > r->max)
        causes_add(w->c, CAUSE_INVALID, at, v, "%s in body should be less than or equal to %lld",
                   field_path_text(at, w->path), (long long)r->max);
}

/* Patterns are constants of the table, a handful in all, and conditions are judged on every status
 * write: each thread keeps what it compiled. POSIX has what they use; one it cannot read is RE2's alone
 * and is not judged. */
#define PATTERNS_KEPT 32

static const regex_t *compiled(const char *pattern)
{
    static _Thread_local struct {
        const char *pattern; /* known by its address */
        bool is_good;
        regex_t re;
    } kept[PATTERNS_KEPT];
    size_t i = 0;

    while (i < PATTERNS_KEPT - 1 && kept[i].pattern && kept[i].pattern != pattern)
        i++;
    if (kept[i].pattern != pattern) {
        if (kept[i].is_good)
            regfree(&kept[i].re);
        kept[i].pattern = pattern;
        kept[i].is_good = regcomp(&kept[i].re, pattern, REG_EXTENDED | REG_NOSUB) == 0;
    }
    return kept[i].is_good ? &kept[i].re : NULL;
}

static bool matches(const char *pattern, const char *text)
{
    const regex_t *re = compiled(pattern);

    return !re || regexec(re, text, 0, NULL, 0) == 0;
}

static int64_t code_points(struct span s)
{
    int64_t n = 0;

    for (size_t i = 0; i < s.n; i++)
        n += (s.p[i] & 0xc0) != 0x80;
    return n;
}

/* Longer texts are not given to the matcher: its time can grow with the square. */
#define PATTERN_TEXT_MAX_BYTES 4096

static void check_text(struct walk *w, const struct schema_field *f, const struct field_path *at,
                       const struct json *v)
{
    const struct schema_rules *r = f->rules;
    int64_t n;

    if (!r)
        return;
    n = code_points(json_str(v));
    if (r->values && r->is_enum && !valid_is_one_of(json_str(v), r->values))
        causes_add_unsupported(w->c, at, v, r->values);
    if (n < r->min_len)
        causes_add(w->c, CAUSE_INVALID, at, v, "%s in body should be at least %lld chars long",
                   field_path_text(at, w->path), (long long)r->min_len);
    if (n > r->max_len)
        causes_add(w->c, CAUSE_TOO_LONG, at, NULL, "may not be more than %lld bytes",
                   (long long)r->max_len);
    if (r->pattern && (json_str(v).n > PATTERN_TEXT_MAX_BYTES || !json_cstr(v) ||
                       !matches(r->pattern, json_cstr(v))))
        causes_add(w->c, CAUSE_INVALID, at, v, "%s in body should match '%s'",
                   field_path_text(at, w->path), r->pattern);
}

static void check_time(struct walk *w, const struct field_path *at, const struct json *v)
{
    struct timespec t;
    int64_t n;
    struct span is = json_type(v) == JSON_STRING ? json_str(v)
                     : json_type(v) == JSON_NUMBER
                         ? (json_i64(v, &n) ? SPAN("int64") : SPAN("float64"))
                         : span_cstr(type_name(v));

    if (json_type(v) == JSON_STRING && kube_time_parse(is, &t))
        return;
    is = span_slice(is, 0, 100);
    causes_add_text(w->c, CAUSE_TYPE_INVALID, at, is,
                    "%s in body must be of type date-time: \"%.*s\"", field_path_text(at, w->path),
                    SPAN_ARG(is));
}

static void check_int_or_string(struct walk *w, const struct schema_field *f,
                                const struct field_path *at, const struct json *v)
{
    struct quantity q;
    int64_t n;

    if (json_type(v) != JSON_STRING && !json_i64(v, &n)) {
        wrong_type(w, at, v, "integer,string");
        causes_add_text(w->c, CAUSE_INVALID, NULL, SPAN(""),
                        "\"%s\" must validate at least one schema (anyOf)",
                        field_path_text(at, w->path));
        wrong_type(w, at, v, "integer");
        if (json_type(v) == JSON_NUMBER)
            causes_add_text(w->c, CAUSE_INVALID, NULL, SPAN(""),
                            "Checked value must be of type integer (default format) in %s",
                            field_path_text(at, w->path));
        return;
    }
    if (f->value == SCHEMA_QUANTITY && json_type(v) == JSON_STRING &&
        !quantity_parse(json_str(v), &q))
        causes_add(w->c, CAUSE_INVALID, at, v, "%s in body should match '%s'",
                   field_path_text(at, w->path), QUANTITY_PATTERN);
}

static void check_members(struct walk *w, const struct schema_type *t, const struct field_path *at,
                          const struct json *v);

static void check_strings(struct walk *w, const struct field_path *at, const struct json *v)
{
    size_t i = 0;

    if (json_type(v) != JSON_ARRAY)
        wrong_type(w, at, v, "array");
    JSON_EACH(item, v)
    {
        if (json_type(item) != JSON_STRING)
            wrong_type(w, AT_INDEX(at, i), item, "string");
        i++;
    }
}

/* One value: an element, where the field is a list or a map. */
static void check_value(struct walk *w, const struct schema_field *f, const struct field_path *at,
                        const struct json *v)
{
    switch (f->value) {
    case SCHEMA_STRING:
    case SCHEMA_BYTES:
    case SCHEMA_DURATION:
        if (json_type(v) == JSON_STRING) {
            check_text(w, f, at, v);
            return;
        }
        wrong_type(w, at, v, "string");
        if (f->rules && f->rules->values && f->rules->is_enum)
            causes_add_unsupported(w->c, at, v, f->rules->values);
        return;
    case SCHEMA_INT32:
    case SCHEMA_INT64:
        check_int(w, f, at, v);
        return;
    case SCHEMA_BOOL:
        if (json_type(v) != JSON_BOOL)
            wrong_type(w, at, v, "boolean");
        return;
    case SCHEMA_DOUBLE:
        if (json_type(v) != JSON_NUMBER)
            wrong_type(w, at, v, "number");
        return;
    case SCHEMA_TIME:
    case SCHEMA_MICROTIME:
        check_time(w, at, v);
        return;
    case SCHEMA_QUANTITY:
    case SCHEMA_INT_OR_STRING:
        check_int_or_string(w, f, at, v);
        return;
    case SCHEMA_STRINGS:
        check_strings(w, at, v);
        return;
    case SCHEMA_OBJECT:
        if (json_type(v) == JSON_OBJECT)
            check_members(w, f->ref, at, v);
        else
            wrong_type(w, at, v, "object");
        return;
    case SCHEMA_RAW:
        return;
    }
}

/* The keys of one element, as JSON: {"containerPort":1,"protocol":"TCP"}. */
static int write_keys(const struct schema_field *f, const struct json *item, struct buf *out,
                      struct err *e)
{
    struct json_out o;

    json_out_init(&o, out, 0);
    if (f->list == SCHEMA_LIST_SET) {
        json_out_value(&o, item);
        return json_out_end(&o, e);
    }
    json_out_object_begin(&o);
    for (const char *const *key = f->keys; *key; key++) {
        const struct json *value = json_get(item, *key);

        if (value)
            json_out_key(&o, *key), json_out_value(&o, value);
    }
    json_out_object_end(&o);
    return json_out_end(&o, e);
}

struct keyed {
    size_t at, n; /* the keys, in the text */
    size_t index; /* of the element */
    const struct buf *text;
};

static int by_keys(const void *a, const void *b)
{
    const struct keyed *x = a, *y = b;
    struct span s = span_of(x->text->p + x->at, x->n), t = span_of(y->text->p + y->at, y->n);
    int order = memcmp(s.p, t.p, MIN(s.n, t.n));

    if (order || s.n != t.n)
        return order ? order : (s.n > t.n) - (s.n < t.n);
    return (x->index > y->index) - (x->index < y->index);
}

/* Elements of maps and sets are there once. Sorted, as a list may have a hundred thousand of them. */
static void check_unique(struct walk *w, const struct schema_field *f, const struct field_path *at,
                         const struct json *v)
{
    OWN(buf_done) struct buf text = BUF_INIT(JSON_TEXT_MAX_BYTES);
    OWN_MEM struct keyed *rows = NULL;
    size_t n = 0;
    struct err e;

    if (f->list != SCHEMA_LIST_MAP && f->list != SCHEMA_LIST_SET)
        return;
    rows = own_array(json_count(v) + 1, sizeof *rows);
    JSON_EACH(item, v)
    {
        rows[n] = (struct keyed){ text.n, 0, n, &text };
        if (write_keys(f, item, &text, &e) < 0)
            return;
        rows[n].n = text.n - rows[n].at;
        n++;
    }
    qsort(rows, n, sizeof *rows, by_keys);
    for (size_t i = 1; i < n; i++) {
        char shown[512];

        if (rows[i].n != rows[i - 1].n ||
            memcmp(text.p + rows[i].at, text.p + rows[i - 1].at, rows[i].n) != 0)
            continue;
        snprintf(shown, sizeof shown, "%.*s", (int)MIN(rows[i].n, (size_t)500),
                 (const char *)text.p + rows[i].at);
        causes_add_shown(w->c, CAUSE_DUPLICATE, AT_INDEX(at, rows[i].index), shown, NULL);
    }
}

static void check_count(struct walk *w, const struct schema_field *f, const struct field_path *at,
                        const struct json *v)
{
    const struct schema_rules *r = f->rules;
    int64_t n = (int64_t)json_count(v);
    char shown[24];

    if (!r)
        return;
    snprintf(shown, sizeof shown, "%lld", (long long)n);
    if (f->shape == SCHEMA_LIST && n > r->max_items)
        causes_add_shown(w->c, CAUSE_TOO_MANY, at, shown, "must have at most %lld items",
                         (long long)r->max_items);
    if (f->shape == SCHEMA_LIST && n < r->min_items)
        causes_add_shown(w->c, CAUSE_INVALID, at, shown,
                         "%s in body should have at least %lld items", field_path_text(at, w->path),
                         (long long)r->min_items);
    if (f->shape == SCHEMA_MAP && n > r->max_props)
        causes_add_shown(w->c, CAUSE_TOO_MANY, at, shown, "must have at most %lld items",
                         (long long)r->max_props);
}

static void check_field(struct walk *w, const struct schema_field *f, const struct field_path *at,
                        const struct json *v)
{
    size_t i = 0;

    if (f->shape == SCHEMA_SINGLE) {
        check_value(w, f, at, v);
        return;
    }
    if (json_type(v) != (f->shape == SCHEMA_LIST ? JSON_ARRAY : JSON_OBJECT)) {
        wrong_type(w, at, v, f->shape == SCHEMA_LIST ? "array" : "object");
        return;
    }
    check_count(w, f, at, v);
    JSON_EACH(item, v)
    {
        check_value(w, f, AT_INDEX(at, i), item);
        i++;
    }
    JSON_MEMBERS(name, value, v)
    {
        check_value(w, f, AT_SPAN(at, json_str(name)), value);
    }
    if (f->shape == SCHEMA_LIST)
        check_unique(w, f, at, v);
}

static void check_members(struct walk *w, const struct schema_type *t, const struct field_path *at,
                          const struct json *v)
{
    for (size_t i = 0; i < t->field_count; i++) {
        const struct schema_field *f = &t->fields[i];
        const struct json *value = json_get(v, f->name);

        if (value && !json_is_null(value))
            check_field(w, f, AT(at, f->name), value);
        else if (f->flags & SCHEMA_REQUIRED)
            causes_add(w->c, CAUSE_REQUIRED, AT(at, f->name), NULL, NULL);
    }
}

/* A Sandbox keeps the claims it was made with: presence and value. */
static void sandbox_transition(const struct validation *v, struct causes *c)
{
    const struct json *now = object_at(v->object, "spec.volumeClaimTemplates");
    const struct json *was = object_at(v->old, "spec.volumeClaimTemplates");

    if (!valid_same(now, was))
        causes_add(c, CAUSE_INVALID, AT(NULL, "spec"), NULL, "volumeClaimTemplates is immutable");
}

/* What a scale shows must be a number that a Scale can hold; said with a dot before the path. */
static void check_scaled(const struct validation *v, struct causes *c, const char *path)
{
    const struct json *n = object_at(v->object, path);
    const char *is = json_type(n) == JSON_NUMBER ? "float64"
                     : json_type(n) == JSON_BOOL ? "bool"
                                                 : json_type_name(n);
    struct span text = json_type(n) == JSON_STRING ? json_str(n) : json_number(n);
    char at[128];
    int64_t value;

    snprintf(at, sizeof at, ".%s", path);
    if (!n || json_is_null(n))
        return;
    if (!json_i64(n, &value)) {
        double d;

        /* Go shows 3.0 as 3. */
        if (json_double(n, &d) && d == (double)(int64_t)d)
            text = span_slice(text, 0, span_find(text, '.'));
        causes_add_shown(c, CAUSE_INVALID, AT(NULL, at), "0",
                         "%s accessor error: %.*s is of the type %s, expected int64", at,
                         SPAN_ARG(span_slice(text, 0, 100)), is);
    } else if (value < 0) {
        causes_add(c, CAUSE_INVALID, AT(NULL, at), n, "should be a non-negative integer");
    } else if (value > INT32_MAX) {
        causes_add(c, CAUSE_INVALID, AT(NULL, at), n, "should be less than or equal to %d",
                   INT32_MAX);
    }
}

/* Causes after which rules between fields are not looked at. */
static bool is_blocking(const struct causes *c)
{
    for (size_t i = 0; i < c->n; i++) {
        enum cause_type t = c->rows[i].type;

        if (t == CAUSE_NOT_SUPPORTED || t == CAUSE_REQUIRED || t == CAUSE_TOO_LONG ||
            t == CAUSE_TOO_MANY || t == CAUSE_TYPE_INVALID)
            return true;
    }
    return false;
}

/* The rules that the definitions have in CEL. */
static const struct transition {
    const char *group, *version, *plural;
    void (*check)(const struct validation *v, struct causes *c);
} transitions[] = {
    { "agents.x-k8s.io", "v1beta1", "sandboxes", sandbox_transition },
};

void validate_rules(const struct validation *v, struct causes *c)
{
    const struct schema_type *t = v->version->type;
    struct walk w = { .c = c };

    for (size_t i = 0; i < t->field_count; i++) {
        const struct schema_field *f = &t->fields[i];
        const struct json *value = object_member(v->object, f->name);

        if (strcmp(f->name, "metadata") == 0 ||
            (v->old && value && value == object_member(v->old, f->name)))
            continue;
        if (value && !json_is_null(value))
            check_field(&w, f, AT(NULL, f->name), value);
        else if (f->flags & SCHEMA_REQUIRED)
            causes_add(c, CAUSE_REQUIRED, AT(NULL, f->name), NULL, NULL);
    }
    if (v->version->scale) {
        check_scaled(v, c, v->version->scale->spec_replicas);
        check_scaled(v, c, v->version->scale->status_replicas);
    }
    EACH(r, transitions) {
        if (strcmp(r->plural, v->kind->plural) != 0 || strcmp(r->group, v->kind->group) != 0 ||
            strcmp(r->version, v->version->name) != 0)
            continue;
        if (is_blocking(c))
            causes_add_shown(
                c, CAUSE_INVALID, NULL, "null",
                "some validation rules were not checked because the object was invalid; "
                "correct the existing errors to complete validation");
        else if (v->old)
            r->check(v, c);
    }
}
