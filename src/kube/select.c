#include "kube/select_impl.h"

#include "base/str.h"

#include <stdio.h>

static int compare_spans(const void *pa, const void *pb)
{
    const struct span *a = pa, *b = pb;
    int order = memcmp(a->p, b->p, MIN(a->n, b->n));

    return order ? order : (a->n > b->n) - (a->n < b->n);
}

void selector_add_value(struct selector_req *r, struct span value)
{
    if ((r->n & (r->n - 1)) == 0)
        r->values = own_resize(r->values, r->n ? 2 * (size_t)r->n : 1, sizeof *r->values);
    r->values[r->n++] = value;
}

static void sort_values(struct selector_req *r)
{
    uint32_t kept = 0;

    if (r->n > 1)
        qsort(r->values, r->n, sizeof *r->values, compare_spans);
    for (uint32_t i = 0; i < r->n; i++)
        if (i == 0 || !span_eq(r->values[i], r->values[kept - 1]))
            r->values[kept++] = r->values[i];
    r->n = kept;
}

struct selector_req *selector_add(struct selector *s)
{
    if (s->n == s->cap) {
        s->cap = s->cap ? 2 * s->cap : 4;
        s->reqs = own_resize(s->reqs, s->cap, sizeof *s->reqs);
    }
    s->reqs[s->n] = (struct selector_req){ .op = OP_EXISTS };
    return &s->reqs[s->n++];
}

int selector_invalid(const char *path, struct span value, const struct names_faults *f,
                     struct err *e)
{
    char why[sizeof e->msg];

    return err_set(e, ERR_PROTOCOL, "%s: Invalid value: \"%.*s\": %s", path,
                   SPAN_ARG(span_slice(value, 0, 128)), names_join(f, why, sizeof why));
}

int selector_judge(struct selector_req *r, struct err *e)
{
    struct names_faults f;

    if (r->op == OP_GREATER || r->op == OP_LESS) {
        if (!str_i64(r->values[0], INT64_MIN, INT64_MAX, &r->number))
            return err_set(e, ERR_PROTOCOL,
                           "values[0]: Invalid value: \"%.*s\": for 'Gt', 'Lt' operators, the "
                           "value must be an integer",
                           SPAN_ARG(span_slice(r->values[0], 0, 128)));
    }
    sort_values(r);
    for (uint32_t i = 0; i < r->n; i++)
        if (!names_check(NAMES_LABEL_VALUE, r->values[i], &f)) {
            char path[160];

            (void)snprintf(path, sizeof path, "values[%u][%.*s]", i,
                           SPAN_ARG(span_slice(r->key, 0, 128)));
            return selector_invalid(path, r->values[i], &f, e);
        }
    return 0;
}

static int add_label(struct selector *s, struct span key, const struct json *value, struct err *e)
{
    struct selector_req *r = selector_add(s);
    struct names_faults f;

    r->key = key;
    r->op = OP_EQUALS;
    selector_add_value(r, json_str(value).p ? json_str(value) : SPAN(""));
    if (!names_check(NAMES_LABEL_KEY, key, &f))
        return selector_invalid("key", key, &f, e);
    return selector_judge(r, e);
}

static int add_expression(struct selector *s, const struct json *x, struct err *e)
{
    static const struct {
        const char *name;
        enum selector_op op;
    } ops[] = {
        { "In", OP_IN },
        { "NotIn", OP_NOT_IN },
        { "Exists", OP_EXISTS },
        { "DoesNotExist", OP_NOT_EXISTS },
    };
    struct selector_req *r = selector_add(s);
    struct span op = json_str(json_get(x, "operator"));
    struct names_faults f;
    bool is_known = false;

    r->key = json_str(json_get(x, "key"));
    EACH(o, ops) {
        if (span_is(op, o->name))
            r->op = o->op, is_known = true;
    }
    if (!is_known)
        return err_set(e, ERR_PROTOCOL, "\"%.*s\" is not a valid label selector operator",
                       SPAN_ARG(span_slice(op, 0, 128)));
    JSON_EACH(v, json_get(x, "values"))
    {
        selector_add_value(r, json_str(v).p ? json_str(v) : SPAN(""));
    }
    if (!names_check(NAMES_LABEL_KEY, r->key, &f))
        return selector_invalid("key", r->key, &f, e);
    if (r->op <= OP_NOT_IN && r->n == 0)
        return err_set(e, ERR_PROTOCOL,
                       "values: Invalid value: []: for 'in', 'notin' operators, values set can't "
                       "be empty");
    if (r->op >= OP_EXISTS && r->n)
        return err_set(e, ERR_PROTOCOL,
                       "values: Invalid value: values set must be empty for exists and does not "
                       "exist");
    return selector_judge(r, e);
}

/* Moves the texts that requirements borrow from a document into one block of the selector. */
static void own_texts(struct selector *s)
{
    size_t bytes = 0, at = 0;

    for (uint32_t i = 0; i < s->n; i++) {
        bytes += s->reqs[i].key.n;
        for (uint32_t k = 0; k < s->reqs[i].n; k++)
            bytes += s->reqs[i].values[k].n;
    }
    s->text = own_new(bytes + 1);
    for (uint32_t i = 0; i < s->n; i++)
        for (uint32_t k = 0; k <= s->reqs[i].n; k++) {
            struct span *t = k ? &s->reqs[i].values[k - 1] : &s->reqs[i].key;

            if (t->n)
                memcpy(s->text + at, t->p, t->n);
            t->p = (uint8_t *)s->text + at;
            at += t->n;
        }
}

static int compare_keys(const void *pa, const void *pb)
{
    const struct selector_req *a = pa, *b = pb;

    return compare_spans(&a->key, &b->key);
}

int selector_of(const struct json *label_selector, struct selector **ret, struct err *e)
{
    OWN(selector_done) struct selector *s = NEW(struct selector);

    s->is_nothing = json_type(label_selector) != JSON_OBJECT;
    JSON_MEMBERS(name, value, json_get(label_selector, "matchLabels"))
    {
        if (add_label(s, json_str(name), value, e) < 0)
            return -1;
    }
    JSON_EACH(x, json_get(label_selector, "matchExpressions"))
    {
        if (add_expression(s, x, e) < 0)
            return -1;
    }
    if (s->n > 1)
        qsort(s->reqs, s->n, sizeof *s->reqs, compare_keys);
    own_texts(s);
    *ret = take_ptr(&s);
    return 0;
}

int selector_of_map(const struct json *map, struct selector **ret, struct err *e)
{
    OWN(selector_done) struct selector *s = NEW(struct selector);

    JSON_MEMBERS(name, value, map)
    {
        if (add_label(s, json_str(name), value, e) < 0)
            return -1;
    }
    if (s->n > 1)
        qsort(s->reqs, s->n, sizeof *s->reqs, compare_keys);
    own_texts(s);
    *ret = take_ptr(&s);
    return 0;
}

void selector_free(struct selector *s)
{
    if (!s)
        return;
    for (uint32_t i = 0; i < s->n; i++)
        free(s->reqs[i].values);
    free(s->reqs);
    free(s->text);
    free(s);
}

void selector_done(struct selector **s)
{
    selector_free(*s);
    *s = NULL;
}

static bool has_value(const struct selector_req *r, struct span value)
{
    if (r->n == 1)
        return span_eq(r->values[0], value);
    return bsearch(&value, r->values, r->n, sizeof *r->values, compare_spans) != NULL;
}

static bool meets(const struct selector_req *r, const struct json *labels)
{
    const struct json *v = json_get_span(labels, r->key);
    struct span value = json_str(v);
    int64_t number;

    switch (r->op) {
    case OP_IN:
    case OP_EQUALS:
    case OP_DOUBLE_EQUALS:
        return v && has_value(r, value);
    case OP_NOT_IN:
    case OP_NOT_EQUALS:
        return !v || !has_value(r, value);
    case OP_GREATER:
        return v && str_i64(value, INT64_MIN, INT64_MAX, &number) && number > r->number;
    case OP_LESS:
        return v && str_i64(value, INT64_MIN, INT64_MAX, &number) && number < r->number;
    case OP_EXISTS:
        return v != NULL;
    case OP_NOT_EXISTS:
        return v == NULL;
    }
    return false;
}

bool selector_matches(const struct selector *s, const struct json *labels)
{
    if (!s)
        return true;
    for (uint32_t i = 0; i < s->n; i++)
        if (!meets(&s->reqs[i], labels))
            return false;
    return !s->is_nothing;
}

bool selector_matches_object(const struct selector *s, const struct object *o)
{
    return selector_is_everything(s) || selector_matches(s, json_get(object_meta(o), "labels"));
}

bool selector_is_everything(const struct selector *s)
{
    return !s || (s->n == 0 && !s->is_nothing);
}

static int write_requirement(const struct selector_req *r, struct buf *out, struct err *e)
{
    static const char *const ops[] = { " in (", " notin (", "=", "==", "!=", ">", "<", "", "" };

    if (buf_addf(out, e, "%s%.*s%s", r->op == OP_NOT_EXISTS ? "!" : "", SPAN_ARG(r->key),
                 ops[r->op]) < 0)
        return -1;
    for (uint32_t i = 0; i < r->n; i++)
        if ((i && buf_addc(out, ',', e) < 0) || buf_add(out, r->values[i], e) < 0)
            return -1;
    return r->op <= OP_NOT_IN ? buf_addc(out, ')', e) : 0;
}

int selector_write(const struct selector *s, struct buf *out, struct err *e)
{
    for (uint32_t i = 0; s && i < s->n; i++)
        if ((i && buf_addc(out, ',', e) < 0) || write_requirement(&s->reqs[i], out, e) < 0)
            return -1;
    return 0;
}
