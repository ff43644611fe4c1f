#include "kube/yaml.h"

#include "base/str.h"
#include "kube/yaml_scalar.h"

#include <string.h>
#include <yaml.h>

#define ANCHOR_MAX_BYTES 128

struct anchor {
    char name[ANCHOR_MAX_BYTES];
    struct json_node *node; /* NULL: still being read, so an alias to it would contain itself */
};

struct kube_yaml {
    yaml_parser_t parser;
    struct json_edit *ed; /* of the call */
    struct anchor *anchors;
    size_t anchor_count;
    struct buf repeats;
    bool is_started, is_over;
};

struct kube_yaml *kube_yaml_new(struct span text)
{
    struct kube_yaml *y = NEW(struct kube_yaml);

    if (!yaml_parser_initialize(&y->parser))
        abort(); /* out of memory */
    yaml_parser_set_input_string(&y->parser, text.p ? text.p : (const uint8_t *)"", text.n);
    y->repeats = (struct buf)BUF_INIT(YAML_REPEATS_MAX_BYTES);
    return y;
}

void kube_yaml_free(struct kube_yaml *y)
{
    if (!y)
        return;
    yaml_parser_delete(&y->parser);
    buf_done(&y->repeats);
    free(y->anchors);
    free(y);
}

void kube_yaml_done(struct kube_yaml **y)
{
    kube_yaml_free(take_ptr(y));
}

const char *kube_yaml_repeats(const struct kube_yaml *y)
{
    return y->repeats.n ? buf_cstr(&y->repeats) : NULL;
}

/* What the parser found, in the words and with the line numbers of the public clients' library. */
static int parser_error(struct kube_yaml *y, struct err *e)
{
    const yaml_parser_t *p = &y->parser;
    size_t line = p->context_mark.line ? p->context_mark.line : p->problem_mark.line;
    const char *problem = p->problem ? p->problem : "unknown problem parsing YAML content";

    y->is_over = true;
    if (line && p->error == YAML_SCANNER_ERROR)
        line++;
    if (line)
        return err_set(e, ERR_INVALID, "yaml: line %zu: %s", line, problem);
    return err_set(e, ERR_INVALID, "yaml: %s", problem);
}

static int next_event(struct kube_yaml *y, yaml_event_t *event, struct err *e)
{
    return yaml_parser_parse(&y->parser, event) ? 0 : parser_error(y, e);
}

static struct anchor *find_anchor(struct kube_yaml *y, const yaml_char_t *name)
{
    for (size_t i = y->anchor_count; i-- > 0;)
        if (strcmp(y->anchors[i].name, (const char *)name) == 0)
            return &y->anchors[i];
    return NULL;
}

/* Notes that a node with this name begins; *ret is its index, or SIZE_MAX without a name. */
static int begin_anchor(struct kube_yaml *y, const yaml_char_t *name, size_t *ret, struct err *e)
{
    struct anchor *a;

    *ret = SIZE_MAX;
    if (!name)
        return 0;
    if (y->anchor_count == YAML_ANCHORS_MAX || strlen((const char *)name) >= ANCHOR_MAX_BYTES)
        return err_set(e, ERR_LIMIT,
                       "yaml: too many anchors, or one with a longer name than %d bytes",
                       ANCHOR_MAX_BYTES - 1);
    if (!y->anchors)
        y->anchors = own_array(YAML_ANCHORS_MAX, sizeof *y->anchors);
    *ret = y->anchor_count++;
    a = &y->anchors[*ret];
    memcpy(a->name, name, strlen((const char *)name) + 1);
    a->node = NULL;
    return 0;
}

static void end_anchor(struct kube_yaml *y, size_t at, struct json_node *node)
{
    if (at != SIZE_MAX)
        y->anchors[at].node = node;
}

static int read_alias(struct kube_yaml *y, const yaml_char_t *name, struct json_node **ret,
                      struct err *e)
{
    struct anchor *a = find_anchor(y, name);

    if (!a)
        return err_set(e, ERR_INVALID, "yaml: unknown anchor '%.100s' referenced", name);
    if (!a->node)
        return err_set(e, ERR_INVALID, "yaml: anchor '%.100s' value contains itself", name);
    *ret = json_node_copy(y->ed, a->node);
    if (json_edit_is_full(y->ed))
        return err_set(e, ERR_LIMIT, "yaml: document contains excessive aliasing");
    return 0;
}

static bool has_tag(const yaml_event_t *event, const char *name)
{
    const char *tag = (const char *)event->data.scalar.tag;

    return tag && strncmp(tag, "tag:yaml.org,2002:", 18) == 0 && strcmp(tag + 18, name) == 0;
}

/* Base64 in the text, bytes in the value. */
static int read_binary(struct kube_yaml *y, struct span text, struct json_node **ret, struct err *e)
{
    OWN(buf_done) struct buf plain = BUF_INIT(text.n + 1), bytes = BUF_INIT(text.n + 1);

    for (size_t i = 0; i < text.n; i++)
        if (!strchr(" \r\n\t", text.p[i]) && buf_addc(&plain, text.p[i], e) < 0)
            return -1;
    if (str_base64_decode(buf_span(&plain), &bytes, e) < 0)
        return err_set(e, ERR_INVALID, "yaml: !!binary value contains invalid base64 data");
    *ret = json_edit_str(y->ed, buf_span(&bytes));
    return 0;
}

static int read_scalar(struct kube_yaml *y, const yaml_event_t *event, struct json_node **ret,
                       struct err *e)
{
    struct span text = span_of(event->data.scalar.value, event->data.scalar.length);
    struct yaml_scalar s = { .type = JSON_STRING };

    if (has_tag(event, "binary"))
        return read_binary(y, text, ret, e);
    if ((event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
         event->data.scalar.plain_implicit) ||
        has_tag(event, "int") || has_tag(event, "float") || has_tag(event, "bool") ||
        has_tag(event, "null"))
        yaml_scalar_resolve(text, &s);
    if (s.is_infinite)
        return err_set(e, ERR_INVALID, "json: unsupported value: %.*s",
                       SPAN_ARG(span_slice(text, 0, 40)));
    if (s.type == JSON_NULL)
        *ret = json_edit_null(y->ed);
    else if (s.type == JSON_BOOL)
        *ret = json_edit_bool(y->ed, s.is_true);
    else if (s.type == JSON_NUMBER)
        *ret = json_edit_number(y->ed, span_cstr(s.number));
    else
        *ret = json_edit_str(y->ed, text);
    return 0;
}

static int read_node(struct kube_yaml *y, yaml_event_t *event, unsigned depth,
                     struct json_node **ret, struct err *e);

/* Reads the event that follows and the node that begins with it. */
static int read_next(struct kube_yaml *y, unsigned depth, struct json_node **ret, struct err *e)
{
    yaml_event_t event;
    int status;

    if (next_event(y, &event, e) < 0)
        return -1;
    status = read_node(y, &event, depth, ret, e);
    yaml_event_delete(&event);
    return status;
}

static int read_sequence(struct kube_yaml *y, unsigned depth, struct json_node *array,
                         struct err *e)
{
    for (;;) {
        struct json_node *item = NULL;
        yaml_event_t event;
        int status = 0;
        bool is_end;

        if (next_event(y, &event, e) < 0)
            return -1;
        is_end = event.type == YAML_SEQUENCE_END_EVENT;
        if (!is_end)
            status = read_node(y, &event, depth, &item, e);
        yaml_event_delete(&event);
        if (is_end || status < 0)
            return status;
        json_node_append(array, item);
        if (json_edit_is_full(y->ed))
            return err_set(e, ERR_LIMIT, "yaml: document is too large");
    }
}

/* The text of a key. JSON has only strings. */
static int key_text(struct kube_yaml *y, struct json_node *key, struct span *ret, struct err *e)
{
    bool is_true;

    switch (json_node_type(key)) {
    case JSON_STRING:
        *ret = json_node_str(key);
        return 0;
    case JSON_NUMBER:
        *ret = json_node_number(key);
        return 0;
    case JSON_BOOL:
        *ret = json_node_bool(key, &is_true) && is_true ? SPAN("true") : SPAN("false");
        return 0;
    case JSON_NULL:
        return err_set(e, ERR_INVALID, "unsupported map key of type: null");
    case JSON_NONE:
    case JSON_ARRAY:
    case JSON_OBJECT:
        break;
    }
    return err_set(e, ERR_INVALID, "yaml: invalid map key: a %s", json_node_type_name(key));
}

/* `<<`: members of other mappings that are not there, here or later. */
static int merge_in(struct kube_yaml *y, struct json_node *into, struct json_node *from,
                    struct err *e)
{
    if (json_node_type(from) == JSON_ARRAY) {
        for (size_t i = 0; i < json_node_count(from); i++) {
            if (json_node_type(json_node_at(from, i)) == JSON_ARRAY ||
                merge_in(y, into, json_node_at(from, i), e) < 0)
                return err_set(e, ERR_INVALID,
                               "yaml: map merge requires map or sequence of maps as the value");
        }
        return 0;
    }
    if (json_node_type(from) != JSON_OBJECT)
        return err_set(e, ERR_INVALID,
                       "yaml: map merge requires map or sequence of maps as the value");
    for (size_t i = 0; i < json_node_count(from); i++) {
        struct span name = json_node_name_at(from, i);

        if (!json_node_get_span(into, name))
            json_node_set_span(into, name, json_node_copy(y->ed, json_node_value_at(from, i)));
    }
    return 0;
}

static void note_repeat(struct kube_yaml *y, struct span name, size_t line)
{
    if (!y->repeats.n)
        buf_addf_capped(&y->repeats, "yaml: unmarshal errors:");
    buf_addf_capped(&y->repeats, "\n  line %zu: key \"%.*s\" already set in map", line,
                    SPAN_ARG(span_slice(name, 0, 100)));
}

/* One key and its value; *ret_is_end when the mapping ended instead. */
static int read_pair(struct kube_yaml *y, unsigned depth, struct json_node *object,
                     struct json_node **merge, bool *ret_is_end, struct err *e)
{
    struct json_node *key = NULL, *value = NULL;
    yaml_event_t event;
    struct span name;
    bool is_merge;
    size_t line;
    int status = 0;

    if (next_event(y, &event, e) < 0)
        return -1;
    *ret_is_end = event.type == YAML_MAPPING_END_EVENT;
    line = event.start_mark.line + 1;
    is_merge = event.type == YAML_SCALAR_EVENT &&
               event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
               event.data.scalar.length == 2 && memcmp(event.data.scalar.value, "<<", 2) == 0;
    if (!*ret_is_end)
        status = read_node(y, &event, depth, &key, e);
    yaml_event_delete(&event);
    if (status < 0 || *ret_is_end)
        return status;
    if (key_text(y, key, &name, e) < 0 || read_next(y, depth, &value, e) < 0)
        return -1;
    if (is_merge) {
        if (!*merge)
            *merge = json_edit_array(y->ed);
        json_node_append(*merge, value);
        return 0;
    }
    if (json_node_get_span(object, name))
        note_repeat(y, name, line);
    json_node_set_span(object, name, value);
    return 0;
}

static int read_mapping(struct kube_yaml *y, unsigned depth, struct json_node *object,
                        struct err *e)
{
    struct json_node *merge = NULL;
    bool is_end = false;

    while (!is_end) {
        if (read_pair(y, depth, object, &merge, &is_end, e) < 0)
            return -1;
        if (json_edit_is_full(y->ed))
            return err_set(e, ERR_LIMIT, "yaml: document is too large");
    }
    for (size_t i = 0; i < json_node_count(merge); i++)
        if (merge_in(y, object, json_node_at(merge, i), e) < 0)
            return -1;
    return 0;
}

static int read_node(struct kube_yaml *y, yaml_event_t *event, unsigned depth,
                     struct json_node **ret, struct err *e)
{
    size_t anchor;
    int status;

    if (depth > YAML_DEPTH_MAX)
        return err_set(e, ERR_LIMIT, "yaml: nested deeper than %d", YAML_DEPTH_MAX);
    switch (event->type) {
    case YAML_ALIAS_EVENT:
        return read_alias(y, event->data.alias.anchor, ret, e);
    case YAML_SCALAR_EVENT:
        if (begin_anchor(y, event->data.scalar.anchor, &anchor, e) < 0)
            return -1;
        status = read_scalar(y, event, ret, e);
        break;
    case YAML_SEQUENCE_START_EVENT:
        if (begin_anchor(y, event->data.sequence_start.anchor, &anchor, e) < 0)
            return -1;
        *ret = json_edit_array(y->ed);
        status = read_sequence(y, depth + 1, *ret, e);
        break;
    case YAML_MAPPING_START_EVENT:
        if (begin_anchor(y, event->data.mapping_start.anchor, &anchor, e) < 0)
            return -1;
        *ret = json_edit_object(y->ed);
        status = read_mapping(y, depth + 1, *ret, e);
        break;
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_STREAM_END_EVENT:
    case YAML_DOCUMENT_START_EVENT:
    case YAML_DOCUMENT_END_EVENT:
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
    default:
        return err_set(e, ERR_INVALID, "yaml: unexpected end of a document");
    }
    if (status == 0)
        end_anchor(y, anchor, *ret);
    return status;
}

/* Reads up to the start of the next document: 1, or 0 at the end of the stream. */
static int find_document(struct kube_yaml *y, struct err *e)
{
    for (;;) {
        yaml_event_t event;
        yaml_event_type_t type;

        if (next_event(y, &event, e) < 0)
            return -1;
        type = event.type;
        yaml_event_delete(&event);
        if (type == YAML_DOCUMENT_START_EVENT)
            return 1;
        if (type == YAML_STREAM_END_EVENT || type == YAML_NO_EVENT) {
            y->is_over = true;
            return 0;
        }
    }
}

int kube_yaml_next(struct kube_yaml *y, struct json_edit *ed, struct json_node **ret, struct err *e)
{
    struct json_node *node = NULL;
    int got;

    if (y->is_over)
        return 0;
    y->ed = ed;
    y->anchor_count = 0;
    buf_clear(&y->repeats);
    got = find_document(y, e);
    if (got <= 0)
        return got;
    if (read_next(y, 0, &node, e) < 0) {
        y->is_over = true;
        return -1;
    }
    *ret = node;
    return 1;
}

int kube_yaml_to_doc(struct span text, struct buf *repeats, struct json_doc **ret, struct err *e)
{
    OWN(kube_yaml_done) struct kube_yaml *y = kube_yaml_new(text);
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(YAML_VALUE_MAX_BYTES);
    struct json_node *node = json_edit_null(ed);

    if (kube_yaml_next(y, ed, &node, e) < 0)
        return -1;
    if (repeats && kube_yaml_repeats(y) && buf_addf(repeats, e, "%s", kube_yaml_repeats(y)) < 0)
        return -1;
    return json_node_freeze(node, ret, e);
}
