/* Field selectors: few fields, known by kind. */
#include "kube/select.h"

/* "a" in the query is "b" in the object. */
struct field {
    const char *kind;
    const char *group;
    const char *name;
    const char *path;
};

/* clang-format off */
static const struct field fields[] = {
    { "Pod",        "", "spec.nodeName",            "spec.nodeName" },
    { "Pod",        "", "spec.host",                "spec.nodeName" },
    { "Pod",        "", "spec.restartPolicy",       "spec.restartPolicy" },
    { "Pod",        "", "spec.schedulerName",       "spec.schedulerName" },
    { "Pod",        "", "spec.serviceAccountName",  "spec.serviceAccountName" },
    { "Pod",        "", "spec.hostNetwork",         "spec.hostNetwork" },
    { "Pod",        "", "status.phase",             "status.phase" },
    { "Pod",        "", "status.podIP",             "status.podIP" },
    { "Pod",        "", "status.podIPs",            "status.podIP" },
    { "Pod",        "", "status.nominatedNodeName", "status.nominatedNodeName" },
    { "Node",       "", "spec.unschedulable",       "spec.unschedulable" },
    { "Namespace",  "", "status.phase",             "status.phase" },
    { "Secret",     "", "type",                     "type" },
    { "Service",    "", "spec.clusterIP",           "spec.clusterIP" },
    { "Service",    "", "spec.type",                "spec.type" },
    { "Event",      "", "involvedObject.kind",            "involvedObject.kind" },
    { "Event",      "", "involvedObject.namespace",       "involvedObject.namespace" },
    { "Event",      "", "involvedObject.name",            "involvedObject.name" },
    { "Event",      "", "involvedObject.uid",             "involvedObject.uid" },
    { "Event",      "", "involvedObject.apiVersion",      "involvedObject.apiVersion" },
    { "Event",      "", "involvedObject.resourceVersion", "involvedObject.resourceVersion" },
    { "Event",      "", "involvedObject.fieldPath",       "involvedObject.fieldPath" },
    { "Event",      "", "reason",                         "reason" },
    { "Event",      "", "reportingComponent",             "reportingComponent" },
    { "Event",      "", "source",                         "source.component" },
    { "Event",      "", "type",                           "type" },
    { "Event", "events.k8s.io", "regarding.kind",            "involvedObject.kind" },
    { "Event", "events.k8s.io", "regarding.namespace",       "involvedObject.namespace" },
    { "Event", "events.k8s.io", "regarding.name",            "involvedObject.name" },
    { "Event", "events.k8s.io", "regarding.uid",             "involvedObject.uid" },
    { "Event", "events.k8s.io", "regarding.apiVersion",      "involvedObject.apiVersion" },
    { "Event", "events.k8s.io", "regarding.resourceVersion", "involvedObject.resourceVersion" },
    { "Event", "events.k8s.io", "regarding.fieldPath",       "involvedObject.fieldPath" },
    { "Event", "events.k8s.io", "reason",                    "reason" },
    { "Event", "events.k8s.io", "reportingController",       "reportingComponent" },
    { "Event", "events.k8s.io", "type",                      "type" },
};
/* clang-format on */

struct term {
    const char *path; /* static */
    bool is_not;
    char *value;
};

struct field_selector {
    size_t n;
    struct term terms[];
};

/* Kinds of which the public server says which fields it knows; the others know the two of metadata. */
static bool has_fields(const struct kind *kind)
{
    EACH(f, fields) {
        if (strcmp(f->kind, kind->name) == 0 && strcmp(f->group, kind->group) == 0)
            return true;
    }
    return kind->traits & KIND_CUSTOM;
}

static const char *path_of(const struct kind *kind, struct span name, struct err *e)
{
    if (span_is(name, "metadata.name"))
        return "metadata.name";
    if (span_is(name, "metadata.namespace") && (kind_is_namespaced(kind) || !has_fields(kind)))
        return "metadata.namespace";
    EACH(f, fields) {
        if (strcmp(f->kind, kind->name) == 0 && strcmp(f->group, kind->group) == 0 &&
            span_is(name, f->name))
            return f->path;
    }
    name = span_slice(name, 0, 200);
    if (has_fields(kind))
        (void)err_set(e, ERR_PROTOCOL, "field label not supported: %.*s", SPAN_ARG(name));
    else
        (void)err_set(e, ERR_PROTOCOL,
                      "\"%.*s\" is not a known field selector: only \"metadata.name\", "
                      "\"metadata.namespace\"",
                      SPAN_ARG(name));
    return NULL;
}

/* Undoes "\\", "\," and "\=". */
static int unescape(struct span s, char **ret, struct err *e)
{
    OWN_MEM char *text = own_new(s.n + 1);
    size_t n = 0;

    for (size_t i = 0; i < s.n; i++) {
        bool is_escape = s.p[i] == '\\';

        if (s.p[i] == ',' || s.p[i] == '=' || s.p[i] == '\0')
            return err_set(e, ERR_PROTOCOL,
                           "invalid field selector: unescaped character in value: %u", s.p[i]);
        if (is_escape && ++i == s.n)
            return err_set(e, ERR_PROTOCOL, "invalid field selector: invalid escape sequence: \\");
        if (is_escape && !memchr("\\,=", s.p[i], 3))
            return err_set(e, ERR_PROTOCOL, "invalid field selector: invalid escape sequence: \\%c",
                           s.p[i]);
        text[n++] = (char)s.p[i];
    }
    *ret = take_ptr(&text);
    return 0;
}

/* Cuts at the next comma that is not escaped. */
static struct span cut_term(struct span *rest)
{
    struct span all = *rest;
    size_t i = 0;

    while (i < all.n && all.p[i] != ',')
        i += all.p[i] == '\\' && i + 1 < all.n ? 2 : 1;
    *rest = span_skip(all, i + 1);
    return span_slice(all, 0, i);
}

static int parse_term(const struct kind *kind, struct span all, struct span part, struct term *t,
                      struct err *e)
{
    size_t at = 0, op_n;

    while (at < part.n && part.p[at] != '=' &&
           !(part.p[at] == '!' && at + 1 < part.n && part.p[at + 1] == '='))
        at++;
    if (at == part.n)
        return err_set(e, ERR_PROTOCOL, "invalid selector: '%.*s'; can't understand '%.*s'",
                       SPAN_ARG(span_slice(all, 0, 128)), SPAN_ARG(span_slice(part, 0, 128)));
    t->is_not = part.p[at] == '!';
    op_n = at + 1 < part.n && part.p[at + 1] == '=' ? 2 : 1;
    if (unescape(span_skip(part, at + op_n), &t->value, e) < 0)
        return -1;
    t->path = path_of(kind, span_slice(part, 0, at), e);
    return t->path ? 0 : -1;
}

/* No field that is nothing: the public server takes it for no term at all. */
static bool is_nothing(struct span part)
{
    return span_is(part, "=") || span_is(part, "==") || span_is(part, "!=");
}

int field_selector_parse(const struct kind *kind, struct span text, struct field_selector **ret,
                         struct err *e)
{
    OWN(field_selector_done) struct field_selector *s = NULL;
    size_t commas = 0;

    if (text.n > SELECT_TEXT_MAX_BYTES)
        return err_set(e, ERR_LIMIT, "a selector of %zu bytes; at most %d", text.n,
                       SELECT_TEXT_MAX_BYTES);
    for (size_t i = 0; i < text.n; i++)
        commas += text.p[i] == ',';
    s = own_new(sizeof *s + (commas + 1) * sizeof *s->terms);
    for (struct span rest = text; rest.n;) {
        struct span part = cut_term(&rest);

        if (part.n == 0 || is_nothing(part))
            continue;
        if (parse_term(kind, text, part, &s->terms[s->n++], e) < 0)
            return -1;
    }
    *ret = take_ptr(&s);
    return 0;
}

void field_selector_free(struct field_selector *s)
{
    for (size_t i = 0; s && i < s->n; i++)
        free(s->terms[i].value);
    free(s);
}

void field_selector_done(struct field_selector **s)
{
    field_selector_free(*s);
    *s = NULL;
}

/* A field that is not there is the empty text, or "false" where the field is a yes or no. */
static bool is_value(const struct object *o, const char *path, const char *want)
{
    const struct json *v = object_at(o, path);
    bool is_set = false;

    if (strcmp(path, "spec.hostNetwork") == 0 || strcmp(path, "spec.unschedulable") == 0) {
        (void)json_bool(v, &is_set);
        return strcmp(want, is_set ? "true" : "false") == 0;
    }
    if (strcmp(path, "source.component") == 0 && json_str(v).n == 0)
        v = object_at(o, "reportingComponent");
    return span_is(json_str(v), want);
}

bool field_selector_matches(const struct field_selector *s, const struct object *o)
{
    for (size_t i = 0; s && i < s->n; i++)
        if (is_value(o, s->terms[i].path, s->terms[i].value) == s->terms[i].is_not)
            return false;
    return true;
}

const char *field_selector_value(const struct field_selector *s, const char *field)
{
    for (size_t i = 0; s && i < s->n; i++)
        if (!s->terms[i].is_not && strcmp(s->terms[i].path, field) == 0)
            return s->terms[i].value;
    return NULL;
}
