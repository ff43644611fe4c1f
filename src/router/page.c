#include "router/page.h"

#include "base/str.h"
#include "router/limits.h"
#include "router/problems.h"

#include <openssl/evp.h>
#include <string.h>

#define LABEL_POOL "agents.x-k8s.io/warm-pool-sandbox"
#define SECOND_BYTES                                                                               \
    19 /* "2026-01-02T03:04:05": some Events have a fraction behind it, others have none */

#define STYLE                                                                                       \
    "body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:72rem;padding:0 1rem;"     \
    "color:#1c2024;background:#fff}h1{font-size:1.4rem}h2{font-size:1.05rem;margin-top:2rem}"       \
    "table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.35rem .6rem;"         \
    "border-bottom:1px solid #dde1e6;vertical-align:top;overflow-wrap:anywhere}"                    \
    "th{font-weight:600;color:#4a5560}.bad{color:#a8201a;font-weight:600}.good{color:#1a6b34}"      \
    "p.note{color:#4a5560}@media(prefers-color-scheme:dark){body{color:#e4e7ea;background:#16191d}" \
    "th,p.note{color:#a3adb8}th,td{border-color:#343b43}.bad{color:#ff8a80}.good{color:#7bd88f}}"

static const struct row_text {
    const char *text;
    char c;
} escapes[] = {
    { "&amp;", '&' }, { "&lt;", '<' }, { "&gt;", '>' }, { "&quot;", '"' }, { "&#39;", '\'' }
};

/* ---- texts ---- */

static int raw(struct buf *out, const char *text, struct err *e)
{
    return buf_add(out, span_cstr(text), e);
}

static const char *escape_of(char c)
{
    for (size_t i = 0; i < LEN(escapes); i++)
        if (escapes[i].c == c)
            return escapes[i].text;
    return (unsigned char)c < ' ' || c == 0x7f ? " " : NULL;
}

/* Somebody's words, at most PAGE_TEXT_MAX_BYTES of them; a character is not cut in two. */
static int words(struct buf *out, const char *text, struct err *e)
{
    size_t n = text ? strlen(text) : 0;
    bool is_cut = n > PAGE_TEXT_MAX_BYTES;

    n = MIN(n, (size_t)PAGE_TEXT_MAX_BYTES);
    while (is_cut && n && ((unsigned char)text[n] & 0xc0) == 0x80)
        n--;
    for (size_t i = 0; i < n; i++) {
        const char *escape = escape_of(text[i]);

        if ((escape ? raw(out, escape, e) : buf_add(out, span_of(text + i, 1), e)) < 0)
            return -1;
    }
    return is_cut ? raw(out, "...", e) : 0;
}

static int cell(struct buf *out, const char *class, const char *text, struct err *e)
{
    return raw(out, class ? class : "<td>", e) < 0 || words(out, text, e) < 0
               ? -1
               : raw(out, "</td>", e);
}

static int number(struct buf *out, uint64_t n, struct err *e)
{
    return buf_addf(out, e, "<td>%llu</td>", (unsigned long long)n);
}

/* ---- objects ---- */

static const char *text_at(const struct json *v, const char *name)
{
    const char *text = json_cstr(json_get(v, name));

    return text ? text : "";
}

static const struct json *condition(const struct object *o, const char *type)
{
    const struct json *list = object_at(o, "status.conditions");

    JSON_EACH(c, list)
    {
        if (strcmp(text_at(c, "type"), type) == 0)
            return c;
    }
    return NULL;
}

static uint64_t count_at(const struct object *o, const char *path)
{
    uint64_t n = 0;

    (void)json_u64(object_at(o, path), &n);
    return n;
}

static bool is_short(const struct object *pool)
{
    return count_at(pool, "status.readyReplicas") < count_at(pool, "spec.replicas");
}

static bool is_suspended(const struct object *o)
{
    const char *mode = object_text(o, "spec.operatingMode");

    return mode && strcmp(mode, "Suspended") == 0;
}

static bool is_ready(const struct object *o)
{
    return strcmp(text_at(condition(o, "Ready"), "status"), "True") == 0;
}

/* Namespace and name, then the others. */
static int begin_row(struct buf *out, const struct object *o, struct err *e)
{
    return raw(out, "<tr>", e) < 0 || cell(out, NULL, object_namespace(o), e) < 0
               ? -1
               : cell(out, NULL, object_name(o), e);
}

static int heal(struct buf *out, const struct problem *p, struct err *e)
{
    return raw(out, "<br>heals: <code>", e) < 0 || words(out, p->heal, e) < 0
               ? -1
               : raw(out, "</code>", e);
}

/* problem: what waiting does not heal, or NULL. */
static int ready_cells(struct buf *out, const struct object *o, const struct problem *problem,
                       struct err *e)
{
    const struct json *ready = condition(o, "Ready");
    const char *class = is_ready(o) ? "<td class=good>" : "<td class=bad>";

    if (is_suspended(o))
        return raw(out, "<td>suspended</td><td></td></tr>\n", e);
    if (cell(out, class, is_ready(o) ? "ready" : "not ready", e) < 0 || raw(out, "<td>", e) < 0)
        return -1;
    if (!is_ready(o) && (words(out, text_at(ready, "reason"), e) < 0 || raw(out, ": ", e) < 0 ||
                         words(out, text_at(ready, "message"), e) < 0))
        return -1;
    if (problem && heal(out, problem, e) < 0)
        return -1;
    return raw(out, "</td></tr>\n", e);
}

static int pool_row(struct buf *out, const struct object *o, struct err *e)
{
    const char *class = is_short(o) ? "<td class=bad>" : "<td class=good>";

    if (begin_row(out, o, e) < 0 ||
        cell(out, NULL, object_text(o, "spec.sandboxTemplateRef.name"), e) < 0 ||
        number(out, count_at(o, "spec.replicas"), e) < 0 || raw(out, class, e) < 0)
        return -1;
    return buf_addf(out, e, "%llu</td></tr>\n",
                    (unsigned long long)count_at(o, "status.readyReplicas"));
}

static int claim_row(struct buf *out, const struct object *o, struct err *e)
{
    struct problem problem;
    bool is_bad = problem_of_claim(o, &problem);

    return begin_row(out, o, e) < 0 || cell(out, NULL, object_text(o, "status.sandbox.name"), e) < 0
               ? -1
               : ready_cells(out, o, is_bad ? &problem : NULL, e);
}

static int sandbox_row(struct buf *out, const struct object *o, struct err *e)
{
    struct problem problem;
    bool is_bad = problem_of_sandbox(o, &problem);

    return begin_row(out, o, e) < 0 ||
                   cell(out, NULL, object_label(o, LABEL_POOL) ? "in a pool" : "in use", e) < 0
               ? -1
               : ready_cells(out, o, is_bad ? &problem : NULL, e);
}

/* ---- tables ---- */

typedef int (*row_fn)(struct buf *out, const struct object *o, struct err *e);

static int table(struct buf *out, const char *head, const struct page_list *list, row_fn row,
                 struct err *e)
{
    size_t n = MIN(list->n, (size_t)PAGE_ROWS_MAX);

    if (!n)
        return raw(out, "<p class=note>None.</p>\n", e);
    if (raw(out, head, e) < 0)
        return -1;
    for (size_t i = 0; i < n; i++)
        if (row(out, list->items[i], e) < 0)
            return -1;
    if (raw(out, "</table>\n", e) < 0)
        return -1;
    return list->is_cut || n < list->n
               ? raw(out, "<p class=note>There are more: kubectl lists them all.</p>\n", e)
               : 0;
}

/* ---- what is wrong ---- */

static const char *time_of(const struct object *event)
{
    static const char *const places[] = { "series.lastObservedTime", "lastTimestamp", "eventTime",
                                          "metadata.creationTimestamp" };

    for (size_t i = 0; i < LEN(places); i++)
        if (object_text(event, places[i]))
            return object_text(event, places[i]);
    return "";
}

/* The latest warnings, newest first. */
static size_t latest(const struct page_list *events, const struct object *ret[PAGE_WARNINGS_MAX])
{
    size_t n = 0, at;

    for (size_t i = 0; i < events->n; i++) {
        const struct object *o = events->items[i];
        const char *type = object_text(o, "type");

        if (!type || strcmp(type, "Warning") != 0)
            continue;
        for (at = n; at > 0 && strncmp(time_of(ret[at - 1]), time_of(o), SECOND_BYTES) < 0; at--)
            if (at < PAGE_WARNINGS_MAX)
                ret[at] = ret[at - 1];
        if (at < PAGE_WARNINGS_MAX) {
            ret[at] = o;
            n = MIN(n + 1, (size_t)PAGE_WARNINGS_MAX);
        }
    }
    return n;
}

static int warning_row(struct buf *out, const struct object *o, struct err *e)
{
    char when[SECOND_BYTES + 1];

    (void)snprintf(when, sizeof when, "%s", time_of(o));
    if (raw(out, "<tr>", e) < 0 || cell(out, NULL, when, e) < 0 || raw(out, "<td>", e) < 0 ||
        words(out, object_text(o, "involvedObject.kind"), e) < 0 || raw(out, " ", e) < 0 ||
        words(out, object_namespace(o), e) < 0 || raw(out, "/", e) < 0 ||
        words(out, object_text(o, "involvedObject.name"), e) < 0 || raw(out, "</td>", e) < 0)
        return -1;
    return cell(out, NULL, object_text(o, "reason"), e) < 0 ||
                   cell(out, NULL, object_text(o, "message"), e) < 0
               ? -1
               : raw(out, "</tr>\n", e);
}

static size_t count_wrong(const struct page *p)
{
    size_t n = 0;

    for (size_t i = 0; i < p->pools.n; i++)
        n += is_short(p->pools.items[i]);
    for (size_t i = 0; i < p->claims.n; i++)
        n += !is_ready(p->claims.items[i]);
    for (size_t i = 0; i < p->sandboxes.n; i++)
        n += !is_ready(p->sandboxes.items[i]) && !is_suspended(p->sandboxes.items[i]);
    return n;
}

static int summary(const struct page *p, struct buf *out, struct err *e)
{
    size_t wrong = count_wrong(p);

    if (p->disk && (raw(out, "<p class=bad>The disk is nearly full: ", e) < 0 ||
                    words(out, p->disk, e) < 0 || raw(out, ".</p>\n", e) < 0))
        return -1;
    if (!wrong)
        return raw(
            out, "<p class=good>All pools are full, all claims and sandboxes are ready.</p>\n", e);
    return buf_addf(
        out, e,
        "<p class=bad>%zu of the pools, claims and sandboxes %s not full, or not ready.</p>\n",
        wrong, wrong == 1 ? "is" : "are");
}

static int warnings(const struct page *p, struct buf *out, struct err *e)
{
    const struct object *rows[PAGE_WARNINGS_MAX];
    size_t n = latest(&p->events, rows);

    if (!n)
        return raw(out, "<p class=note>None.</p>\n", e);
    if (raw(out, "<table><tr><th>when<th>of<th>reason<th>message</tr>\n", e) < 0)
        return -1;
    for (size_t i = 0; i < n; i++)
        if (warning_row(out, rows[i], e) < 0)
            return -1;
    return raw(out, "</table>\n", e);
}

int page_write(const struct page *p, struct buf *out, struct err *e)
{
    return raw(out,
               "<!doctype html>\n<html lang=en><head><meta charset=utf-8><title>silica</title>"
               "<meta name=viewport content=\"width=device-width\"><meta http-equiv=refresh content=5>"
               "<style>" STYLE "</style></head><body>\n<h1>silica</h1>\n",
               e) < 0 ||
                   summary(p, out, e) < 0 || raw(out, "<h2>Latest warnings</h2>\n", e) < 0 ||
                   warnings(p, out, e) < 0 || raw(out, "<h2>Pools</h2>\n", e) < 0 ||
                   table(out,
                         "<table><tr><th>namespace<th>name<th>template<th>wanted<th>ready</tr>\n",
                         &p->pools, pool_row, e) < 0 ||
                   raw(out, "<h2>Claims</h2>\n", e) < 0 ||
                   table(out, "<table><tr><th>namespace<th>name<th>sandbox<th>state<th>why</tr>\n",
                         &p->claims, claim_row, e) < 0 ||
                   raw(out, "<h2>Sandboxes</h2>\n", e) < 0 ||
                   table(out, "<table><tr><th>namespace<th>name<th>use<th>state<th>why</tr>\n",
                         &p->sandboxes, sandbox_row, e) < 0
               ? -1
               : raw(out, "</body></html>\n", e);
}

int page_policy(struct buf *out, struct err *e)
{
    unsigned char sum[EVP_MAX_MD_SIZE];
    unsigned n = 0;

    if (!EVP_Digest(STYLE, strlen(STYLE), sum, &n, EVP_sha256(), NULL))
        return err_set(e, ERR_INTERNAL, "cannot make a digest of the page's style");
    if (raw(out, "default-src 'none'; style-src 'sha256-", e) < 0 ||
        str_base64_encode(span_of(sum, n), out, e) < 0)
        return -1;
    return raw(out, "'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'", e);
}
