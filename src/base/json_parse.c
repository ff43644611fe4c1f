/* The parser works in the document's own copy of the text: strings are unescaped in place and end
 * in a NUL where their quote was, so that a name or value is a C string without a copy. A NUL
 * behind the text stops every scan, hence no bounds checks; faults are located in the caller's
 * text, which stays as it was.
 *
 * The texts of faults and their places are those of Python's decoder: see json_error. */
#include "base/json_doc.h"
#include "base/str.h"

struct parser {
    struct json_doc *doc;
    struct json *nodes;
    uint32_t n, cap;
    uint32_t max_nodes, max_depth;
    uint32_t depth;
    uint32_t open; /* index of the innermost open container; its u.skip holds the next outer one */
    bool is_unique_only;
    uint8_t *end;
    struct json_fault fault;
};

/* Both return NULL, for the caller to return. */
static uint8_t *fault(struct parser *ps, const char *what, const uint8_t *where)
{
    return json_fault(&ps->fault, what, where);
}

static uint8_t *too_much(struct parser *ps, const char *what)
{
    ps->fault = (struct json_fault){ ERR_LIMIT, what, NULL };
    return NULL;
}

static __attribute__((noinline)) struct json *grow(struct parser *ps)
{
    if (ps->cap >= ps->max_nodes) {
        (void)too_much(ps, "values");
        return NULL;
    }
    ps->cap = ps->cap > ps->max_nodes / 2 ? ps->max_nodes : ps->cap * 2;
    ps->nodes = own_resize(ps->nodes, ps->cap, sizeof *ps->nodes);
    return &ps->nodes[ps->n++];
}

static inline struct json *push(struct parser *ps)
{
    return ps->n < ps->cap ? &ps->nodes[ps->n++] : grow(ps);
}

/* `p` is at the opening quote. Returns the place behind the string, or NULL. */
static inline uint8_t *string(struct parser *ps, uint8_t *p)
{
    struct json *node = push(ps);
    uint8_t *start = p + 1, *stop;

    if (!node)
        return NULL;
    stop = json_scan_padded(start);
    if (*stop != '"')
        return json_string_rest(start, stop, ps->end, node, &ps->fault);
    *stop = '\0';
    *node = (struct json){ .type = JSON_STRING,
                           .flags = JSON_FLAG_PLAIN,
                           .n = (uint32_t)(stop - start),
                           .u.text = start };
    return stop + 1;
}

static inline bool is_digit(uint8_t c)
{
    return (uint8_t)(c - '0') <= 9;
}

/* Takes the longest number at p; what follows it is judged by whoever comes next, as Python does.
 * */
static uint8_t *number(struct parser *ps, uint8_t *p)
{
    uint8_t *start = p, flags = JSON_FLAG_INT;
    struct json *node;

    p += *p == '-';
    if (!is_digit(*p))
        return fault(ps, "Expecting value", start);
    if (*p++ != '0')
        while (is_digit(*p))
            p++;
    if (*p == '.' && is_digit(p[1])) {
        flags = 0;
        for (p += 2; is_digit(*p); p++)
            ;
    }
    if ((*p | 0x20) == 'e') {
        uint8_t *x = p + 1 + (p[1] == '+' || p[1] == '-');

        if (is_digit(*x)) {
            flags = 0;
            for (p = x; is_digit(*p); p++)
                ;
        }
    }
    node = push(ps);
    if (!node)
        return NULL;
    *node = (struct json){
        .type = JSON_NUMBER, .flags = flags, .n = (uint32_t)(p - start), .u.text = start
    };
    return p;
}

static uint8_t *literal(struct parser *ps, uint8_t *p, const char *word, size_t n,
                        enum json_type type, uint32_t value)
{
    struct json *node;

    if (memcmp(p, word, n) != 0) /* cannot run past the padding */
        return fault(ps, "Expecting value", p);
    node = push(ps);
    if (!node)
        return NULL;
    *node = (struct json){ .type = (uint8_t)type, .n = value };
    return p + n;
}

/* A value that is no container. Returns the place behind it, or NULL. */
static inline uint8_t *scalar(struct parser *ps, uint8_t *p)
{
    switch (*p) {
    case '"':
        return string(ps, p);
    case 't':
        return literal(ps, p, "true", 4, JSON_BOOL, true);
    case 'f':
        return literal(ps, p, "false", 5, JSON_BOOL, false);
    case 'n':
        return literal(ps, p, "null", 4, JSON_NULL, 0);
    default:
        return number(ps, p);
    }
}

/* A member's name and colon. Returns the place of the value, or NULL. */
static inline uint8_t *name(struct parser *ps, uint8_t *p)
{
    if (*p != '"')
        return fault(ps, "Expecting property name enclosed in double quotes", p);
    p = string(ps, p);
    if (!p)
        return NULL;
    p = json_skip_blanks(p);
    if (*p != ':')
        return fault(ps, "Expecting ':' delimiter", p);
    return json_skip_blanks(p + 1);
}

/* `p` is at a bracket. Returns the place of its first element, name or closing bracket, or NULL. */
static inline uint8_t *open_container(struct parser *ps, uint8_t *p)
{
    struct json *node;

    if (ps->depth == ps->max_depth)
        return too_much(ps, "levels");
    node = push(ps);
    if (!node)
        return NULL;
    *node = (struct json){ .type = *p == '{' ? JSON_OBJECT : JSON_ARRAY, .u.skip = ps->open };
    ps->open = (uint32_t)(node - ps->nodes);
    ps->depth++;
    return json_skip_blanks(p + 1);
}

static int by_name(const void *a, const void *b)
{
    const struct json *x = *(const struct json *const *)a, *y = *(const struct json *const *)b;
    int order;

    if (x->n != y->n)
        return x->n < y->n ? -1 : 1;
    order = memcmp(x->u.text, y->u.text, x->n);
    return order   ? order
           : x < y ? -1
                   : 1; /* equal names keep their order: the fault is at a later one */
}

/* Sorted rather than hashed: a hostile text can make hashes collide. */
static bool check_names(struct parser *ps, struct json *object)
{
    OWN_MEM const struct json **names = own_array(object->n, sizeof *names);
    size_t n = 0;

    JSON_MEMBERS(key, value, object)
    {
        names[n++] = key;
    }
    qsort(names, n, sizeof(const struct json *), by_name);
    for (size_t i = 1; i < n; i++)
        if (names[i]->n == names[i - 1]->n &&
            memcmp(names[i]->u.text, names[i - 1]->u.text, names[i]->n) == 0) {
            (void)fault(ps, "Duplicate property name", names[i]->u.text - 1);
            return false;
        }
    object->flags |= JSON_FLAG_UNIQUE;
    return true;
}

/* Wider objects are not looked at: nobody but a stranger makes many of them. */
#define NOTED_MEMBERS_MAX 64

/* Length and both ends of a name, as one of 64 bits: names of one object seldom meet in it. */
static inline uint64_t name_bit(const struct json *name)
{
    uint32_t n = name->n;

    return n ? 1ull << ((n * 5u + name->u.text[0] + name->u.text[n - 1] * 9u) & 63) : 1;
}

/* Says so of an object whose names all differ: nearly every one, and then look-ups end at the first hit, and trees need not
 * be opened to find what is there twice. */
static void note_unique(struct json *object)
{
    const struct json *names[NOTED_MEMBERS_MAX];
    uint64_t seen = 0;
    size_t n = 0;

    if (object->n > NOTED_MEMBERS_MAX)
        return;
    JSON_MEMBERS(key, value, object)
    {
        uint64_t bit = name_bit(key);

        for (size_t i = 0; seen & bit && i < n; i++)
            if (names[i]->n == key->n && memcmp(names[i]->u.text, key->u.text, key->n) == 0)
                return;
        seen |= bit;
        names[n++] = key;
    }
    object->flags |= JSON_FLAG_UNIQUE;
}

/* Ends the innermost container; false after a fault. */
static inline bool close_container(struct parser *ps)
{
    struct json *node = &ps->nodes[ps->open];
    uint32_t outer = (uint32_t)node->u.skip;

    node->u.skip = ps->n - ps->open;
    ps->open = outer;
    ps->depth--;
    if (node->type != JSON_OBJECT)
        return true;
    if (ps->is_unique_only)
        return check_names(ps, node);
    note_unique(node);
    return true;
}

/* Behind a value: closes what ends here and takes the comma. Returns the place of the next value;
 * or NULL, and then ps->depth is 0 and *ret_end is set when the whole text was read, else there was
 * a fault. */
static inline uint8_t *after_value(struct parser *ps, uint8_t *p, uint8_t **ret_end)
{
    for (;;) {
        uint8_t *comma;
        bool is_object;

        p = json_skip_blanks(p);
        if (ps->depth == 0) {
            *ret_end = p;
            return p == ps->end ? NULL : fault(ps, "Extra data", p);
        }
        is_object = ps->nodes[ps->open].type == JSON_OBJECT;
        ps->nodes[ps->open].n++;
        if (*p == ',') {
            comma = p;
            p = json_skip_blanks(p + 1);
            if (*p == (is_object ? '}' : ']'))
                return fault(ps,
                             is_object ? "Illegal trailing comma before end of object"
                                       : "Illegal trailing comma before end of array",
                             comma);
            return is_object ? name(ps, p) : p;
        }
        if (*p != (is_object ? '}' : ']'))
            return fault(ps, "Expecting ',' delimiter", p);
        if (!close_container(ps))
            return NULL;
        p++;
    }
}

static int parse(struct parser *ps)
{
    uint8_t *p = json_skip_blanks(ps->doc->text), *end = NULL;

    while (p) {
        if (*p == '{' || *p == '[') {
            bool is_object = *p == '{';

            p = open_container(ps, p);
            if (!p)
                break;
            if (*p != (is_object ? '}' : ']')) {
                p = is_object ? name(ps, p) : p;
                continue;
            }
            (void)close_container(ps);
            p++;
        } else {
            p = scalar(ps, p);
            if (!p)
                break;
        }
        p = after_value(ps, p, &end);
    }
    return ps->fault.code == ERR_NONE ? 0 : -1;
}

static size_t bad_utf8_at(struct span text)
{
    size_t at = 0, need, len;

    while (at < text.n) {
        len = str_utf8_len(span_skip(text, at), &need);
        if (len == 0)
            break;
        at += len;
    }
    return at;
}

/* Encoding comes first whatever else is wrong, as a decoder that turns bytes into characters first
 * would say. */
static int report(const struct parser *ps, struct span text, struct json_error *where,
                  struct err *e)
{
    struct json_error at = { .what = ps->fault.what,
                             .byte_at = (size_t)(ps->fault.where - ps->doc->text),
                             .line = 1,
                             .column = 1 };
    size_t bad = bad_utf8_at(text);

    if (bad < text.n)
        at.what = "Invalid UTF-8", at.byte_at = bad, at.is_encoding = true;
    else if (at.byte_at == 0 && span_starts(text, "\xef\xbb\xbf"))
        at.what = "Unexpected UTF-8 BOM";
    for (size_t i = 0; i < at.byte_at; i++) {
        if ((text.p[i] & 0xc0) == 0x80)
            continue;
        at.char_at++;
        at.column = text.p[i] == '\n' ? 1 : at.column + 1;
        at.line += text.p[i] == '\n';
    }
    if (where)
        *where = at;
    return err_set(e, ERR_INVALID, "not JSON: %s: line %zu column %zu (char %zu)", at.what, at.line,
                   at.column, at.char_at);
}

static struct parser parser_of(struct span text, const struct json_limits *limits)
{
    struct parser ps = { .max_nodes = JSON_NODES_MAX, .max_depth = JSON_DEPTH_MAX };

    if (limits && limits->max_nodes)
        ps.max_nodes = limits->max_nodes;
    if (limits && limits->max_depth)
        ps.max_depth = MIN(limits->max_depth, (uint32_t)JSON_DEPTH_MAX);
    ps.is_unique_only = limits && limits->flags & JSON_REFUSE_DUPLICATES;
    ps.doc = malloc(sizeof *ps.doc + text.n + JSON_PAD_BYTES);
    if (!ps.doc)
        abort(); /* the policy of own.h; not zeroed as own_new would */
    *ps.doc = (struct json_doc){ .refs = 1, .text_n = (uint32_t)text.n };
    if (text.n)
        memcpy(ps.doc->text, text.p, text.n);
    memset(ps.doc->text + text.n, 0, JSON_PAD_BYTES);
    ps.end = ps.doc->text + text.n;
    ps.cap = (uint32_t)MIN(text.n / 8 + 8,
                           (size_t)ps.max_nodes); /* objects have a node per 10 to 15 bytes */
    ps.nodes = own_resize(NULL, ps.cap, sizeof *ps.nodes);
    return ps;
}

int json_parse_at(struct span text, const struct json_limits *limits, struct json_error *where,
                  struct json_doc **ret, struct err *e)
{
    size_t max_bytes = limits && limits->max_bytes ? MIN(limits->max_bytes, (size_t)INT32_MAX)
                                                   : JSON_TEXT_MAX_BYTES;
    struct parser ps;
    int r;

    if (text.n > max_bytes)
        return err_set(e, ERR_LIMIT, "JSON text of %zu bytes; at most %zu", text.n, max_bytes);
    ps = parser_of(text, limits);
    r = parse(&ps);
    if (r < 0 && ps.fault.code == ERR_LIMIT)
        (void)err_set(e, ERR_LIMIT, "JSON text with more than %u %s",
                      *ps.fault.what == 'l' ? ps.max_depth : ps.max_nodes, ps.fault.what);
    else if (r < 0)
        (void)report(&ps, text, where, e);
    if (r == 0 && ps.n < ps.cap - ps.cap / 4)
        ps.nodes = own_resize(ps.nodes, ps.n, sizeof *ps.nodes);
    ps.doc->nodes = ps.nodes;
    ps.doc->node_count = ps.n;
    if (r == 0)
        *ret = ps.doc;
    else
        json_doc_unref(ps.doc);
    return r;
}

int json_parse(struct span text, const struct json_limits *limits, struct json_doc **ret,
               struct err *e)
{
    return json_parse_at(text, limits, NULL, ret, e);
}
