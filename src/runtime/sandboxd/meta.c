/* GET /v1/metadata: what the sandbox's environment says about it, without what looks like a secret. Made once, at the
 * first request: the environment of a process does not change. */
#include "runtime/sandboxd/rest.h"

#include "base/json.h"
#include "runtime/limits.h"
#include "runtime/sandboxd/answer.h"

extern char **environ;

/* A name with one of these in it is withheld, whatever its case. */
static const char *const secrets[] = { "TOKEN", "SECRET", "PASSWORD", "PASSWD",  "CRED",
                                       "KEY",   "AUTH",   "BEARER",   "PRIVATE", "CERT" };

static struct buf made; /* the answer, once per process */

static bool has_word(struct span name, const char *word)
{
    size_t n = strlen(word);

    for (size_t at = 0; at + n <= name.n; at++)
        if (span_is_nocase(span_slice(name, at, at + n), word))
            return true;
    return false;
}

static bool is_shown(const char *entry, const char *prefix, struct span *ret_name)
{
    const char *equals = strchr(entry, '=');

    if (!equals || strncmp(entry, prefix, strlen(prefix)) != 0)
        return false;
    *ret_name = span_of(entry, (size_t)(equals - entry));
    if (ret_name->n < strlen(prefix)) /* the prefix reached behind the name */
        return false;
    EACH(word, secrets) {
        if (has_word(*ret_name, *word))
            return false;
    }
    return true;
}

static int by_name(const void *a, const void *b)
{
    const char *left = *(char *const *)a, *right = *(char *const *)b;
    size_t n = strcspn(left, "="), m = strcspn(right, "=");
    int order = memcmp(left, right, MIN(n, m));

    return order ? order : (n > m) - (n < m);
}

static void write_env(struct json_out *o, const char *prefix)
{
    OWN_MEM char **shown = NULL;
    struct span name;
    size_t n = 0;

    for (size_t i = 0; environ[i]; i++) {
        if (!is_shown(environ[i], prefix, &name))
            continue;
        shown = own_resize(shown, n + 1, sizeof *shown);
        shown[n++] = environ[i];
    }
    if (n)
        qsort(shown, n, sizeof *shown, by_name);
    for (size_t i = 0; i < n; i++) {
        if (i + 1 < n && by_name(&shown[i], &shown[i + 1]) == 0)
            continue; /* a name given twice */
        name = span_of(shown[i], strcspn(shown[i], "="));
        json_out_key_span(o, name), json_out_cstr(o, shown[i] + name.n + 1);
    }
}

static int make(const char *prefix, struct err *e)
{
    struct json_out o;

    made.max = RUNTIME_ANSWER_MAX_BYTES;
    sandboxd_json_begin(&o, &made);
    json_out_object_begin(&o);
    json_out_key(&o, "env");
    json_out_object_begin(&o);
    write_env(&o, prefix);
    json_out_object_end(&o);
    json_out_object_end(&o);
    if (json_out_end(&o, e) < 0)
        return -1;
    return buf_addc(&made, '\n', e);
}

void sandboxd_metadata(struct runtime *rt, struct http_exchange *x)
{
    struct err e;

    if (!made.n && make(rt->opt.metadata_prefix, &e) < 0) {
        buf_clear(&made);
        sandboxd_error(x, SANDBOXD_INTERNAL, e.msg);
        return;
    }
    http_answer(x, 200, "application/json", buf_span(&made));
}
