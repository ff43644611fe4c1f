#include "podstream/request.h"

#include "base/json.h"
#include "base/str.h"

#include <string.h>

#define NAME_MAX_BYTES 253 /* of a namespace, pod or container */

static const char *const verbs[] = {
    [POD_EXEC] = "exec", [POD_ATTACH] = "attach", [POD_FORWARD] = "portforward", [POD_LOG] = "log"
};

/* Cuts the path into its names; false when it is another path. */
static bool cut_path(struct span path, struct span *ns, struct span *pod, enum pod_verb *verb)
{
    static const char prefix[] = "/api/v1/namespaces/";
    struct span rest, word;

    if (!span_starts(path, prefix))
        return false;
    rest = span_skip(path, sizeof prefix - 1);
    if (!span_cut(&rest, '/', ns) || !span_cut(&rest, '/', &word) || !span_is(word, "pods") ||
        !span_cut(&rest, '/', pod))
        return false;
    for (size_t i = 0; i < LEN(verbs); i++) {
        if (span_is(rest, verbs[i])) {
            *verb = (enum pod_verb)i;
            return true;
        }
    }
    return false;
}

bool pod_request_is(struct span path)
{
    struct span ns, pod;
    enum pod_verb verb;

    return cut_path(path, &ns, &pod, &verb);
}

/* Names of objects: letters, digits, dashes and dots. So no name can lead a backend astray. */
static int add_name(struct pod_request *r, struct span name, const char *what, size_t *ret_at,
                    struct err *e)
{
    bool is_good = name.n > 0 && name.n <= NAME_MAX_BYTES && name.p[0] != '.' && name.p[0] != '-';

    for (size_t i = 0; i < name.n && is_good; i++) {
        uint8_t c = name.p[i];

        is_good = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
    }
    if (!is_good)
        return err_set(e, ERR_INVALID, "not the name of a %s: '%.*s'", what,
                       SPAN_ARG(span_slice(name, 0, 64)));
    *ret_at = r->text.n;
    return buf_add(&r->text, name, e) < 0 ? -1 : buf_addc(&r->text, 0, e);
}

/* A value of a query, as forms write it: '+' is a blank. Ends with a NUL, and may hold no other. */
static int add_value(struct pod_request *r, struct span raw, size_t *ret_at, struct err *e)
{
    OWN(buf_done) struct buf blanks = BUF_INIT(raw.n);
    size_t at = r->text.n;

    if (buf_add(&blanks, raw, e) < 0)
        return -1;
    for (size_t i = 0; i < blanks.n; i++) {
        if (blanks.p[i] == '+')
            blanks.p[i] = ' ';
    }
    if (str_percent_decode(buf_span(&blanks), &r->text, e) < 0)
        return err_set(e, ERR_LIMIT, "a command of more than %d bytes", POD_COMMAND_MAX_BYTES);
    if (span_find(span_skip(buf_span(&r->text), at), 0) != SIZE_MAX)
        return err_set(e, ERR_INVALID, "a NUL byte in a parameter");
    *ret_at = at;
    return buf_addc(&r->text, 0, e);
}

/* As Kubernetes reads it: there without a value means yes. */
static bool is_yes(struct span value)
{
    return !span_is_nocase(value, "false") && !span_is(value, "0");
}

static int add_ports(struct pod_request *r, struct span list, struct err *e)
{
    OWN(buf_done) struct buf plain = BUF_INIT(4096);
    struct span rest, one;
    uint64_t port;

    if (str_percent_decode(list, &plain, e) < 0) /* "%2C" */
        return err_set(e, ERR_INVALID, "too many ports");
    rest = buf_span(&plain);
    while (span_cut(&rest, ',', &one)) {
        if (!str_u64(one, UINT16_MAX, &port) || port == 0)
            return err_set(e, ERR_INVALID, "not a port: '%.*s'", SPAN_ARG(span_slice(one, 0, 64)));
        if (r->port_count == POD_PORTS_MAX)
            return err_set(e, ERR_INVALID, "more than %d ports", POD_PORTS_MAX);
        r->ports[r->port_count++] = (uint16_t)port;
    }
    return 0;
}

/* Places in the text until it has stopped moving. */
struct places {
    size_t ns, pod, container, uid, since, caller;
    bool has_container, has_uid, has_since, has_caller;
    size_t *words;
    size_t cap;
};

static int add_word(struct pod_request *r, struct places *at, struct span value, struct err *e)
{
    if (r->argc == POD_COMMAND_MAX_WORDS)
        return err_set(e, ERR_LIMIT, "a command of more than %d words", POD_COMMAND_MAX_WORDS);
    if (r->argc == at->cap) {
        at->cap = at->cap ? 2 * at->cap : 16;
        at->words = own_resize(at->words, at->cap, sizeof *at->words);
    }
    return add_value(r, value, &at->words[r->argc++], e);
}

static int add_number(struct span value, const char *what, uint64_t *ret, struct err *e)
{
    if (str_u64(value, INT64_MAX, ret))
        return 0;
    return err_set(e, ERR_INVALID, "%s is not a number: '%.*s'", what,
                   SPAN_ARG(span_slice(value, 0, 64)));
}

/* "2026-11-16T09:30:00.5Z": compared as a text, so it has this form to the letter. */
static bool is_time(struct span s)
{
    static const char form[] = "0000-00-00T00:00:00";
    size_t n = sizeof form - 1;

    if (s.n <= n || s.n > n + 11 || s.p[s.n - 1] != 'Z' || (s.n > n + 1 && s.p[n] != '.'))
        return false;
    for (size_t i = 0; i + 1 < s.n; i++) {
        bool is_digit = s.p[i] >= '0' && s.p[i] <= '9';

        if (i != n && (i < n && form[i] != '0' ? s.p[i] != (uint8_t)form[i] : !is_digit))
            return false;
    }
    return s.n != n + 2;
}

static int add_since(struct pod_request *r, struct places *at, struct span value, struct err *e)
{
    if (add_value(r, value, &at->since, e) < 0)
        return -1;
    at->has_since = true;
    if (is_time(span_cstr((const char *)r->text.p + at->since)))
        return 0;
    return err_set(e, ERR_INVALID, "not a time: '%.*s'", SPAN_ARG(span_slice(value, 0, 64)));
}

static int add_log_wish(struct pod_request *r, struct places *at, struct span name,
                        struct span value, struct err *e)
{
    struct pod_log_wish *log = &r->log;

    if (span_is(name, "follow"))
        log->is_followed = is_yes(value);
    else if (span_is(name, "previous"))
        log->is_previous = is_yes(value);
    else if (span_is(name, "timestamps"))
        log->has_times = is_yes(value);
    else if (span_is(name, "tailLines"))
        return add_number(value, "tailLines", &log->tail, e);
    else if (span_is(name, "limitBytes"))
        return add_number(value, "limitBytes", &log->limit, e);
    else if (span_is(name, "since"))
        return add_since(r, at, value, e);
    else if (span_is(name, "stream") && span_is(value, "Stdout"))
        log->streams = POD_STREAMS_STDOUT;
    else if (span_is(name, "stream") && span_is(value, "Stderr"))
        log->streams = POD_STREAMS_STDERR;
    return 0;
}

static int add_parameter(struct pod_request *r, struct places *at, struct span name,
                         struct span value, struct err *e)
{
    if (span_is(name, "command"))
        return add_word(r, at, value, e);
    if (span_is(name, "ports"))
        return add_ports(r, value, e);
    if (span_is(name, "stdin"))
        r->has_stdin = is_yes(value);
    else if (span_is(name, "stdout"))
        r->has_stdout = is_yes(value);
    else if (span_is(name, "stderr"))
        r->has_stderr = is_yes(value);
    else if (span_is(name, "tty"))
        r->has_tty = is_yes(value);
    else if (span_is(name, "container") && value.n) {
        at->has_container = true;
        return add_name(r, value, "container", &at->container, e);
    } else if (span_is(name, "uid") && value.n) {
        at->has_uid = true;
        return add_name(r, value, "uid", &at->uid, e);
    } else if (r->verb == POD_FORWARD && span_is(name, "caller")) {
        at->has_caller = true;
        return add_value(r, value, &at->caller, e);
    } else if (r->verb == POD_LOG) {
        return add_log_wish(r, at, name, value, e);
    }
    return 0;
}

static int parse(struct pod_request *r, struct places *at, struct span path, struct span query,
                 struct err *e)
{
    struct span ns, pod, pair;

    if (!cut_path(path, &ns, &pod, &r->verb))
        return err_set(e, ERR_INVALID, "no stream of a pod");
    if (add_name(r, ns, "namespace", &at->ns, e) < 0 || add_name(r, pod, "pod", &at->pod, e) < 0)
        return -1;
    while (span_cut(&query, '&', &pair)) {
        size_t eq = span_find(pair, '=');
        struct span value = eq == SIZE_MAX ? SPAN("") : span_skip(pair, eq + 1);

        if (add_parameter(r, at, span_slice(pair, 0, eq), value, e) < 0)
            return -1;
    }
    if (r->has_tty)
        r->has_stderr = false; /* a terminal has one output */
    if (r->verb == POD_FORWARD || r->verb == POD_LOG)
        return 0;
    if (!r->has_stdin && !r->has_stdout && !r->has_stderr)
        return err_set(e, ERR_INVALID, "you must specify at least 1 of stdin, stdout, stderr");
    if (r->verb == POD_EXEC && r->argc == 0)
        return err_set(e, ERR_INVALID, "you must specify at least one command for the container");
    return 0;
}

int pod_request_parse(struct span path, struct span query, struct pod_request **ret, struct err *e)
{
    struct pod_request *r = NEW(struct pod_request);
    struct places at = { 0 };
    int got;

    r->text.max = POD_COMMAND_MAX_BYTES + 4096;
    r->log.tail = r->log.limit = UINT64_MAX;
    got = parse(r, &at, path, query, e);
    if (got == 0) {
        const char *text = (const char *)r->text.p;

        r->ns = text + at.ns;
        r->pod = text + at.pod;
        r->container = at.has_container ? text + at.container : "";
        r->uid = at.has_uid ? text + at.uid : "";
        r->caller = at.has_caller ? text + at.caller : "";
        r->log.since = at.has_since ? text + at.since : "";
        r->argv = own_array(r->argc + 1, sizeof *r->argv);
        for (size_t i = 0; i < r->argc; i++)
            r->argv[i] = (char *)r->text.p + at.words[i];
        *ret = r;
    } else {
        pod_request_free(r);
    }
    free(at.words);
    return got;
}

void pod_request_free(struct pod_request *r)
{
    if (!r)
        return;
    free(r->argv);
    buf_done(&r->text);
    free(r);
}

/* ---- the size of a terminal ---- */

void pod_resize_init(struct pod_resize *z)
{
    z->text = (struct buf)BUF_INIT(POD_RESIZE_MAX_BYTES);
}

void pod_resize_done(struct pod_resize *z)
{
    buf_done(&z->text);
}

/* {"Width":80,"Height":24} */
static bool read_size(struct span text, uint16_t *ret_cols, uint16_t *ret_rows)
{
    OWN(json_doc_done) struct json_doc *doc = NULL;
    const struct json *root;
    int64_t cols, rows;
    struct err e;

    if (json_parse(text, NULL, &doc, &e) < 0)
        return false;
    root = json_doc_root(doc);
    if (!json_i64(json_get(root, "Width"), &cols) || !json_i64(json_get(root, "Height"), &rows) ||
        cols < 1 || rows < 1 || cols > UINT16_MAX || rows > UINT16_MAX)
        return false;
    *ret_cols = (uint16_t)cols;
    *ret_rows = (uint16_t)rows;
    return true;
}

bool pod_resize_feed(struct pod_resize *z, struct span in, size_t *ret_used, uint16_t *ret_cols,
                     uint16_t *ret_rows)
{
    for (size_t i = 0; i < in.n; i++) {
        bool is_size;

        if (in.p[i] == '{') /* the object has no other inside: whatever came before it was none */
            buf_clear(&z->text);
        (void)buf_add_capped(&z->text, span_of(in.p + i, 1));
        if (in.p[i] != '}')
            continue;
        is_size = read_size(buf_span(&z->text), ret_cols, ret_rows);
        buf_done(&z->text);
        if (is_size) {
            *ret_used = i + 1;
            return true;
        }
    }
    *ret_used = in.n;
    return false;
}
