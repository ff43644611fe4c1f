#include "kube/validate_parts.h"

#include "base/str.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

bool valid_count(struct causes *c, const struct field_path *at, const struct json *list)
{
    char shown[24];

    if (json_count(list) <= VALID_LIST_MAX)
        return true;
    snprintf(shown, sizeof shown, "%zu", json_count(list));
    causes_add_shown(c, CAUSE_TOO_MANY, at, shown, "must have at most %d items", VALID_LIST_MAX);
    return false;
}

bool valid_has_text(const struct json *v)
{
    return json_type(v) == JSON_STRING && json_str(v).n > 0;
}

bool valid_need_text(struct causes *c, const struct field_path *at, const struct json *v)
{
    if (valid_has_text(v))
        return true;
    causes_add(c, CAUSE_REQUIRED, at, NULL, NULL);
    return false;
}

bool valid_name(struct causes *c, const struct field_path *at, const struct json *v,
                enum names_rule rule)
{
    struct names_faults faults;
    struct span text = json_str(v);

    if (names_check(rule, text.p ? text : SPAN(""), &faults))
        return true;
    for (unsigned i = 0; i < faults.n; i++)
        causes_add_text(c, CAUSE_INVALID, at, text, "%s", faults.text[i]);
    return false;
}

void valid_name_if(struct causes *c, const struct field_path *at, const struct json *v,
                   enum names_rule rule)
{
    if (valid_has_text(v))
        (void)valid_name(c, at, v, rule);
}

bool valid_is_one_of(struct span text, const char *const *values)
{
    for (; *values; values++)
        if (span_is(text, *values))
            return true;
    return false;
}

void valid_one_of(struct causes *c, const struct field_path *at, const struct json *v,
                  const char *const *values)
{
    if (valid_has_text(v) && !valid_is_one_of(json_str(v), values))
        causes_add_unsupported(c, at, v, values);
}

void valid_range(struct causes *c, const struct field_path *at, const struct json *v, int64_t min,
                 int64_t max)
{
    int64_t n;

    if (json_i64(v, &n) && (n < min || n > max))
        causes_add(c, CAUSE_INVALID, at, v, "must be between %lld and %lld, inclusive",
                   (long long)min, (long long)max);
}

void valid_not_negative(struct causes *c, const struct field_path *at, const struct json *v)
{
    int64_t n;

    if (json_i64(v, &n) && n < 0)
        causes_add(c, CAUSE_INVALID, at, v, "must be greater than or equal to 0");
}

void valid_port(struct causes *c, const struct field_path *at, const struct json *v)
{
    if (json_type(v) == JSON_NUMBER)
        valid_range(c, at, v, 1, 65535);
    else if (json_type(v) == JSON_STRING)
        (void)valid_name(c, at, v, NAMES_PORT);
}

/* The faults of one key or value, told at the map. */
static void label_part(struct causes *c, const struct field_path *at, struct span text,
                       enum names_rule rule)
{
    struct names_faults faults;

    if (names_check(rule, text, &faults))
        return;
    for (unsigned i = 0; i < faults.n; i++)
        causes_add_text(c, CAUSE_INVALID, at, text, "%s", faults.text[i]);
}

void valid_labels(struct causes *c, const struct field_path *at, const struct json *labels)
{
    JSON_MEMBERS(name, value, labels)
    {
        label_part(c, at, json_str(name), NAMES_LABEL_KEY);
        label_part(c, at, json_str(value), NAMES_LABEL_VALUE);
    }
}

static void selector_requirement(struct causes *c, const struct field_path *at,
                                 const struct json *r)
{
    static const char *const lists[] = { "In", "NotIn", NULL };
    static const char *const bare[] = { "Exists", "DoesNotExist", NULL };
    const struct json *op = json_get(r, "operator"), *values = json_get(r, "values");
    size_t i = 0;

    if (valid_is_one_of(json_str(op), lists)) {
        if (!json_count(values))
            causes_add(c, CAUSE_REQUIRED, AT(at, "values"), NULL,
                       "must be specified when `operator` is 'In' or 'NotIn'");
    } else if (valid_is_one_of(json_str(op), bare)) {
        if (json_count(values))
            causes_add(c, CAUSE_FORBIDDEN, AT(at, "values"), NULL,
                       "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
    } else {
        causes_add_text(c, CAUSE_INVALID, AT(at, "operator"), json_str(op),
                        "not a valid selector operator");
    }
    label_part(c, AT(at, "key"), json_str(json_get(r, "key")), NAMES_LABEL_KEY);
    JSON_EACH(value, values)
    {
        label_part(c, AT_INDEX(AT(at, "values"), i), json_str(value), NAMES_LABEL_VALUE);
        i++;
    }
}

void valid_label_selector(struct causes *c, const struct field_path *at,
                          const struct json *selector)
{
    size_t i = 0;

    valid_labels(c, AT(at, "matchLabels"), json_get(selector, "matchLabels"));
    JSON_EACH(r, json_get(selector, "matchExpressions"))
    {
        selector_requirement(c, AT_INDEX(AT(at, "matchExpressions"), i), r);
        i++;
    }
}

static bool is_ip(const char *text)
{
    uint8_t address[16];

    return inet_pton(AF_INET, text, address) == 1 || inet_pton(AF_INET6, text, address) == 1;
}

bool valid_ip(struct causes *c, const struct field_path *at, const struct json *v)
{
    const char *text = json_cstr(v);

    if (text && is_ip(text))
        return true;
    causes_add_text(c, CAUSE_INVALID, at, json_str(v),
                    "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)");
    return false;
}

bool valid_cidr(struct causes *c, const struct field_path *at, const struct json *v)
{
    const char *text = json_cstr(v);
    const char *slash = text ? strchr(text, '/') : NULL;
    char address[64];
    uint64_t bits;

    if (slash && (size_t)(slash - text) < sizeof address) {
        memcpy(address, text, (size_t)(slash - text));
        address[slash - text] = '\0';
        if (is_ip(address) && str_u64(span_cstr(slash + 1), strchr(address, ':') ? 128 : 32, &bits))
            return true;
    }
    causes_add_text(c, CAUSE_INVALID, at, json_str(v),
                    "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)");
    return false;
}

void valid_no_dots(struct causes *c, const struct field_path *at, const struct json *v)
{
    struct span rest = json_str(v), part;

    while (span_cut(&rest, '/', &part)) {
        if (span_is(part, "..")) {
            causes_add_text(c, CAUSE_INVALID, at, json_str(v), "must not contain '..'");
            return;
        }
    }
}

void valid_relative_path(struct causes *c, const struct field_path *at, const struct json *v)
{
    if (span_starts(json_str(v), "/"))
        causes_add_text(c, CAUSE_INVALID, at, json_str(v), "must be a relative path");
    valid_no_dots(c, at, v);
}

static bool is_nothing(const struct json *v)
{
    return !v || json_is_null(v);
}

bool valid_same(const struct json *a, const struct json *b)
{
    OWN(json_edit_done) struct json_edit *ed = NULL;

    if (a == b)
        return true;
    if (is_nothing(a) || is_nothing(b))
        return is_nothing(a) && is_nothing(b);
    if (json_type(a) != json_type(b))
        return false;
    if (json_type(a) == JSON_STRING)
        return span_eq(json_str(a), json_str(b));
    ed = json_edit_new(0);
    return json_node_equal_value(json_edit_view(ed, a), b);
}

void valid_unchanged(struct causes *c, const struct field_path *at, const struct json *now,
                     const struct json *was)
{
    if (valid_same(now, was))
        return;
    if (now)
        causes_add(c, CAUSE_INVALID, at, now, "field is immutable");
    else
        causes_add_shown(c, CAUSE_INVALID, at, json_type(was) == JSON_STRING ? "\"\"" : "null",
                         "field is immutable");
}
