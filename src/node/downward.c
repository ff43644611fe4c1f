#include "node/downward.h"

#include "base/str.h"

#include <inttypes.h>
#include <string.h>

#define MILLI 1000000    /* billionths in a thousandth */
#define WHOLE 1000000000 /* and in one */

/* ---- fields ---- */

static int add_text(const char *text, struct buf *out, struct err *e)
{
    return buf_add(out, span_cstr(text), e);
}

/* A code point as Go's %q has it: what does not print is escaped. */
static int add_rune(struct span s, size_t n, struct buf *out, struct err *e)
{
    static const char names[] = "abtnvfr"; /* 7 to 13 */
    uint8_t c = s.p[0];

    if (c == '"' || c == '\\')
        return buf_addf(out, e, "\\%c", c);
    if (c >= 7 && c <= 13)
        return buf_addf(out, e, "\\%c", names[c - 7]);
    if (c < 0x20 || c == 0x7f)
        return buf_addf(out, e, "\\x%02x", c);
    if (n == 2 && c == 0xc2 &&
        (s.p[1] <= 0xa0 || s.p[1] == 0xad)) /* C1, no-break space, soft hyphen */
        return buf_addf(out, e, "\\u%04x", s.p[1]);
    return buf_add(out, span_slice(s, 0, n), e);
}

static int add_quoted(struct span s, struct buf *out, struct err *e)
{
    if (buf_addc(out, '"', e) < 0)
        return -1;
    while (s.n) {
        size_t need, n = str_utf8_len(s, &need);

        n = n ? n : need; /* JSON is UTF-8: always the first */
        if (add_rune(s, n, out, e) < 0)
            return -1;
        s = span_skip(s, n);
    }
    return buf_addc(out, '"', e);
}

static int by_name(const void *a, const void *b)
{
    struct span x = json_str(*(const struct json *const *)a),
                y = json_str(*(const struct json *const *)b);
    int order = memcmp(x.p, y.p, MIN(x.n, y.n));

    return order ? order : (x.n > y.n) - (x.n < y.n);
}

/* key="value", a line each, in order of keys. */
static int add_map(const struct json *map, struct buf *out, struct err *e)
{
    size_t n = json_type(map) == JSON_OBJECT ? json_count(map) : 0, i = 0;
    OWN_MEM const struct json **names = own_array(n + 1, sizeof *names);

    JSON_MEMBERS(name, value, map)
    names[i++] = name;
    qsort(names, n, sizeof *names, by_name);
    for (i = 0; i < n; i++) {
        if ((i && buf_addc(out, '\n', e) < 0) || buf_add(out, json_str(names[i]), e) < 0 ||
            buf_addc(out, '=', e) < 0 || add_quoted(json_str(names[i] + 1), out, e) < 0)
            return -1;
    }
    return 0;
}

/* "metadata.labels['key']": the key, or p == NULL. */
static struct span subscript(const char *path, const char *map)
{
    struct span s = span_cstr(path), head = span_cstr(map);

    if (!span_starts(s, map) || s.n < head.n + 4 || s.p[head.n] != '[' || !span_ends(s, "']") ||
        s.p[head.n + 1] != '\'')
        return SPAN_NONE;
    return span_slice(s, head.n + 2, s.n - 2);
}

int downward_field(const struct downward *d, const char *path, struct buf *out, struct err *e)
{
    static const char *const maps[] = { "labels", "annotations" };
    static const char *const texts[] = { "metadata.name", "metadata.namespace", "metadata.uid",
                                         "spec.nodeName", "spec.serviceAccountName" };

    for (size_t i = 0; i < LEN(maps); i++) {
        const struct json *map = json_get(object_meta(d->pod), maps[i]);
        char full[32];
        struct span key;

        (void)snprintf(full, sizeof full, "metadata.%s", maps[i]);
        if (strcmp(path, full) == 0)
            return add_map(map, out, e);
        key = subscript(path, full);
        if (key.p)
            return buf_add(out, json_str(json_get_span(map, key)), e);
    }
    for (size_t i = 0; i < LEN(texts); i++)
        if (strcmp(path, texts[i]) == 0)
            return add_text(object_text(d->pod, path), out, e);
    if (strcmp(path, "status.podIP") == 0 || strcmp(path, "status.podIPs") == 0)
        return add_text(d->pod_ip, out, e);
    if (strcmp(path, "status.hostIP") == 0 || strcmp(path, "status.hostIPs") == 0)
        return add_text(d->host_ip, out, e);
    return err_set(e, ERR_INVALID, "unsupported fieldPath: %s", path);
}

/* ---- resources ---- */

const struct json *downward_container(const struct object *pod, const char *name)
{
    static const char *const lists[] = { "spec.containers", "spec.initContainers" };

    for (size_t i = 0; i < LEN(lists); i++)
        JSON_EACH(container, object_at(pod, lists[i]))
    if (span_is(json_str(json_get(container, "name")), name))
        return container;
    return NULL;
}

bool downward_amount(const struct json *v, struct quantity *ret)
{
    return quantity_parse(json_type(v) == JSON_NUMBER ? json_number(v) : json_str(v), ret);
}

static __int128 rounded_up(__int128 v, __int128 by)
{
    return v / by + (v % by > 0);
}

/* What the node has of it, in billionths; -1: it is no resource that a container can ask about. */
static __int128 node_has(const struct downward *d, struct span resource)
{
    if (span_is(resource, "cpu"))
        return (__int128)d->cpu_milli * MILLI;
    if (span_is(resource, "memory"))
        return (__int128)d->memory_bytes * WHOLE;
    if (span_is(resource, "ephemeral-storage"))
        return (__int128)d->storage_bytes * WHOLE;
    return -1;
}

int downward_resource(const struct downward *d, const struct json *container,
                      const struct json *ref, struct buf *out, struct err *e)
{
    struct span what = json_str(json_get(ref, "resource")), rest = what, list = SPAN_NONE;
    const char *name = json_cstr(json_get(ref, "containerName"));
    struct quantity amount = { 0 }, divisor = { 0 };
    __int128 has, unit, by;

    if (name && *name) {
        container = downward_container(d->pod, name);
        if (!container)
            return err_set(e, ERR_NOT_FOUND, "container %s not found", name);
    }
    (void)span_cut(&rest, '.', &list);
    has = node_has(d, rest);
    if (has < 0 || (!span_is(list, "limits") && !span_is(list, "requests")))
        return err_set(e, ERR_INVALID, "unsupported container resource : %.*s", SPAN_ARG(what));
    if (!downward_amount(json_get_span(json_get_span(json_get(container, "resources"), list), rest),
                         &amount))
        amount.nano = span_is(list, "limits") ? has : 0;
    if (!downward_amount(json_get(ref, "divisor"), &divisor) || divisor.nano <= 0)
        divisor.nano = WHOLE;
    /* Processors are counted in thousandths, all else in ones: a divisor of 1m says so many thousandths. */
    unit = span_is(rest, "cpu") ? MILLI : WHOLE;
    by = rounded_up(divisor.nano, unit);
    return buf_addf(out, e, "%" PRId64, (int64_t)rounded_up(rounded_up(amount.nano, unit), by));
}
