#include "kube/object.h"

#include "base/json_num.h"
#include "base/str.h"
#include "kube/kind.h"

struct object {
    uint32_t refs; /* atomic */
    uint32_t n;
    size_t bytes; /* of this struct, with the members and their names */
    const struct kind *kind;
    uint64_t version;
    int64_t generation;
    const char *name, *name_space,
        *uid; /* in the metadata document; of a packed one behind the members' names */
    bool is_deleting, has_owners;
    uint32_t finalizers;
    const char *view;               /* the version it shows, of an `other`; a constant */
    struct object *other;           /* atomic: itself in another version, made on demand */
    struct object_member members[]; /* metadata first; the names' texts follow the array */
};

static const char *text_or_empty(const struct json *v)
{
    const char *text = json_cstr(v);

    return text ? text : "";
}

static struct json_doc *empty_meta(void)
{
    struct json_doc *doc = NULL;
    struct err e;

    if (json_parse(SPAN("{}"), NULL, &doc, &e) < 0)
        abort(); /* two bytes of JSON, out of our own hand */
    return doc;
}

/* Reads what is asked for all the time, in one walk; of members of one name the last counts. */
static void note_meta(struct object *o)
{
    o->name = o->name_space = o->uid = "";
    JSON_MEMBERS(key, value, json_doc_root(o->members[0].doc))
    {
        struct span name = json_str(key);

        if (span_is(name, "name"))
            o->name = text_or_empty(value);
        else if (span_is(name, "namespace"))
            o->name_space = text_or_empty(value);
        else if (span_is(name, "uid"))
            o->uid = text_or_empty(value);
        else if (span_is(name, "deletionTimestamp"))
            o->is_deleting = json_type(value) == JSON_STRING;
        else if (span_is(name, "generation"))
            o->generation = json_i64(value, &o->generation) ? o->generation : 0;
        else if (span_is(name, "ownerReferences"))
            o->has_owners = json_count(value) > 0;
        else if (span_is(name, "finalizers"))
            o->finalizers = json_type(value) == JSON_ARRAY ? (uint32_t)json_count(value) : 0;
    }
}

/* Takes no references: the documents' become the object's. members[0] is metadata. */
static struct object *assemble(const struct kind *kind, uint64_t version,
                               const struct object_member *members, size_t n)
{
    size_t total = sizeof(struct object) + n * sizeof *members, at = 0;
    struct object *o;
    char *text;

    for (size_t i = 0; i < n; i++)
        total += strlen(members[i].name) + 1;
    o = own_new(total);
    o->refs = 1;
    o->n = (uint32_t)n;
    o->bytes = total;
    o->kind = kind;
    o->version = version;
    text = (char *)(o->members + n);
    for (size_t i = 0; i < n; i++) {
        size_t bytes = strlen(members[i].name) + 1;

        memcpy(text + at, members[i].name, bytes);
        o->members[i] = (struct object_member){ text + at, members[i].doc };
        at += bytes;
    }
    note_meta(o);
    return o;
}

/* Members on their way into an object, each with a reference. Metadata has place 0 from the start. */
struct gather {
    struct object_member members[OBJECT_MEMBERS_MAX];
    size_t n;
};

static void gather_done(struct gather *g)
{
    for (size_t i = 0; i < g->n; i++)
        json_doc_unref(g->members[i].doc);
    g->n = 0;
}

/* Takes the reference, also on failure. */
static int gather(struct gather *g, const char *name, struct json_doc *doc, struct err *e)
{
    bool is_meta = strcmp(name, "metadata") == 0;

    if (g->n == 0)
        g->members[g->n++] = (struct object_member){ "metadata", NULL };
    if (is_meta && json_type(json_doc_root(doc)) != JSON_OBJECT) {
        (void)err_set(e, ERR_INVALID, "metadata is a JSON %s, not an object",
                      json_type_name(json_doc_root(doc)));
        json_doc_unref(doc);
        return -1;
    }
    if (!is_meta && g->n == LEN(g->members)) {
        json_doc_unref(doc);
        return err_set(e, ERR_LIMIT, "an object with more than %d members", OBJECT_MEMBERS_MAX);
    }
    if (is_meta) {
        json_doc_unref(g->members[0].doc);
        g->members[0].doc = doc;
    } else {
        g->members[g->n++] = (struct object_member){ name, doc };
    }
    return 0;
}

static struct object *finish(struct gather *g, const struct kind *kind, uint64_t version)
{
    struct object *o;

    if (g->n == 0)
        g->members[g->n++] = (struct object_member){ "metadata", NULL };
    if (!g->members[0].doc)
        g->members[0].doc = empty_meta();
    o = assemble(kind, version, g->members, g->n);
    g->n = 0;
    return o;
}

int object_new(const struct kind *kind, const struct object_member *members, size_t n,
               struct object **ret, struct err *e)
{
    OWN(gather_done) struct gather g = { .n = 0 };

    for (size_t i = 0; i < n; i++)
        if (gather(&g, members[i].name, json_doc_ref(members[i].doc), e) < 0)
            return -1;
    *ret = finish(&g, kind, 0);
    return 0;
}

static bool is_type_meta(struct span name)
{
    return span_is(name, "apiVersion") || span_is(name, "kind");
}

/* Metadata that is null is none; other nulls are values: a Role without rules says so. */
static bool is_no_meta(struct span name, enum json_type type)
{
    return type == JSON_NULL && span_is(name, "metadata");
}

static int version_of(const struct json *text, uint64_t *ret, struct err *e)
{
    struct span s = json_str(text);

    *ret = 0;
    if (!text || json_is_null(text) || (s.p && s.n == 0))
        return 0;
    if (!s.p || !str_u64(s, UINT64_MAX, ret))
        return err_set(e, ERR_INVALID,
                       "metadata.resourceVersion: Invalid value: \"%.*s\": "
                       "must be a decimal number",
                       SPAN_ARG(span_slice(s, 0, 64)));
    return 0;
}

/* Metadata as a document without its resourceVersion. */
static int meta_doc(const struct json *meta, struct json_doc **ret, struct err *e)
{
    OWN(json_edit_done) struct json_edit *ed = NULL;
    struct json_node *node;

    if (!json_get(meta, "resourceVersion"))
        return json_doc_of(meta, ret, e);
    ed = json_edit_new(0);
    node = json_edit_view(ed, meta);
    (void)json_node_remove(node, "resourceVersion");
    return json_node_freeze(node, ret, e);
}

int object_parse(const struct kind *kind, const struct json *body, struct object **ret,
                 struct err *e)
{
    OWN(gather_done) struct gather g = { .n = 0 };
    uint64_t version;

    if (json_type(body) != JSON_OBJECT)
        return err_set(e, ERR_INVALID, "the body is a JSON %s, not an object",
                       json_type_name(body));
    if (json_count(body) > 4 * OBJECT_MEMBERS_MAX) /* each is looked up below */
        return err_set(e, ERR_LIMIT, "the body has %zu members", json_count(body));
    if (version_of(json_get(json_get(body, "metadata"), "resourceVersion"), &version, e) < 0)
        return -1;
    JSON_MEMBERS(name, value, body)
    {
        const char *text = json_cstr(name);
        struct json_doc *doc = NULL;

        if (is_type_meta(json_str(name)) || is_no_meta(json_str(name), json_type(value)) ||
            json_get_span(body, json_str(name)) != value)
            continue;
        if (!text)
            return err_set(e, ERR_INVALID, "a member's name holds a NUL");
        if ((strcmp(text, "metadata") == 0 ? meta_doc(value, &doc, e)
                                           : json_doc_of(value, &doc, e)) < 0 ||
            gather(&g, text, doc, e) < 0)
            return -1;
    }
    *ret = finish(&g, kind, version);
    return 0;
}

struct object *object_ref(struct object *o)
{
    if (o)
        (void)__atomic_fetch_add(&o->refs, 1, __ATOMIC_RELAXED);
    return o;
}

void object_unref(struct object *o)
{
    if (!o || __atomic_fetch_sub(&o->refs, 1, __ATOMIC_ACQ_REL) != 1)
        return;
    object_unref(o->other);
    for (uint32_t i = 0; i < o->n; i++)
        json_doc_unref(o->members[i].doc);
    free(o);
}

void object_done(struct object **o)
{
    object_unref(*o);
    *o = NULL;
}

const struct kind *object_kind(const struct object *o)
{
    return o->kind;
}

const char *object_name(const struct object *o)
{
    return o->name;
}

const char *object_namespace(const struct object *o)
{
    return o->name_space;
}

const char *object_uid(const struct object *o)
{
    return o->uid;
}

uint64_t object_version(const struct object *o)
{
    return o->version;
}

int64_t object_generation(const struct object *o)
{
    return o->generation;
}

bool object_is_deleting(const struct object *o)
{
    return o->is_deleting;
}

bool object_has_owners(const struct object *o)
{
    return o->has_owners;
}

size_t object_finalizer_count(const struct object *o)
{
    return o->finalizers;
}

static const struct object_member *find(const struct object *o, const char *name)
{
    for (uint32_t i = 0; i < o->n; i++)
        if (strcmp(o->members[i].name, name) == 0)
            return &o->members[i];
    return NULL;
}

struct json_doc *object_member_doc(const struct object *o, const char *name)
{
    const struct object_member *m = find(o, name);

    return m ? m->doc : NULL;
}

struct json_doc *object_member_at(const struct object *o, size_t i, const char **ret_name)
{
    if (i >= o->n)
        return NULL;
    *ret_name = o->members[i].name;
    return o->members[i].doc;
}

const struct json *object_member(const struct object *o, const char *name)
{
    return json_doc_root(object_member_doc(o, name));
}

const struct json *object_meta(const struct object *o)
{
    return json_doc_root(o->members[0].doc);
}

int object_with(const struct object *o, const char *name, struct json_doc *doc, struct object **ret,
                struct err *e)
{
    OWN(gather_done) struct gather g = { .n = 0 };

    for (uint32_t i = 0; i < o->n; i++)
        if (strcmp(o->members[i].name, name) != 0)
            (void)gather(&g, o->members[i].name, json_doc_ref(o->members[i].doc), e);
        else if (doc && gather(&g, name, json_doc_ref(doc), e) < 0)
            return -1;
    if (doc && !find(o, name) && gather(&g, name, json_doc_ref(doc), e) < 0)
        return -1;
    *ret = finish(&g, o->kind, o->version);
    return 0;
}

struct object *object_lean(const struct object *o)
{
    struct object_member members[OBJECT_MEMBERS_MAX];

    for (uint32_t i = 0; i < o->n; i++)
        members[i] = (struct object_member){ o->members[i].name, json_doc_lean(o->members[i].doc) };
    return assemble(o->kind, o->version, members, o->n);
}

bool object_is_packed(const struct object *o)
{
    for (uint32_t i = 0; i < o->n; i++)
        if (!json_doc_is_packed(o->members[i].doc))
            return false;
    return !__atomic_load_n(&o->other, __ATOMIC_ACQUIRE);
}

static bool is_inside(const struct object *o, const char *text)
{
    return (uintptr_t)text - (uintptr_t)o < o->bytes;
}

/* Where a text of `o` is in its copy: in the same place of the block, or in a document that both hold. */
static const char *text_in(const struct object *made, const struct object *o, const char *text)
{
    return is_inside(o, text) ? (const char *)made + (text - (const char *)o) : text;
}

/* The block again, with `more` bytes behind it; without references. */
static struct object *copy_block(const struct object *o, size_t more)
{
    struct object *made = malloc(o->bytes + more);

    if (!made)
        abort(); /* the policy of own.h; not zeroed as own_new would */
    memcpy(made, o, o->bytes);
    made->refs = 1;
    made->bytes = o->bytes + more;
    made->view = NULL;
    made->other = NULL;
    made->name = text_in(made, o, o->name);
    made->name_space = text_in(made, o, o->name_space);
    made->uid = text_in(made, o, o->uid);
    for (uint32_t i = 0; i < o->n; i++)
        made->members[i].name = text_in(made, o, o->members[i].name);
    return made;
}

struct object *object_with_version(const struct object *o, uint64_t version)
{
    struct object *made = copy_block(o, 0);

    made->version = version;
    for (uint32_t i = 0; i < o->n; i++)
        (void)json_doc_ref(made->members[i].doc);
    return made;
}

/* Bytes of a text that is not in the block. */
static size_t bytes_outside(const struct object *o, const char *text)
{
    return is_inside(o, text) ? 0 : strlen(text) + 1;
}

/* Puts such a text at *at. */
static void bring_in(struct object *made, size_t *at, const char **text)
{
    size_t bytes = bytes_outside(made, *text);

    if (bytes)
        *text = memcpy((char *)made + *at, *text, bytes);
    *at += bytes;
}

struct object *object_packed(const struct object *o)
{
    struct object *made = copy_block(o, bytes_outside(o, o->name) + bytes_outside(o, o->uid) +
                                            bytes_outside(o, o->name_space));
    size_t at = o->bytes;

    bring_in(made, &at, &made->name); /* packed metadata has no texts */
    bring_in(made, &at, &made->uid);
    bring_in(made, &at, &made->name_space);
    for (uint32_t i = 0; i < o->n; i++)
        made->members[i].doc = json_doc_packed(o->members[i].doc);
    return made;
}

struct json_node *object_thaw(const struct object *o, const char *api_version, struct json_edit *ed)
{
    struct json_node *root = json_edit_object(ed);
    char version[JSON_NUM_TEXT_BYTES];

    if (api_version) {
        json_node_set(root, "apiVersion", json_edit_cstr(ed, api_version));
        json_node_set(root, "kind", json_edit_cstr(ed, o->kind->name));
    }
    for (uint32_t i = 0; i < o->n; i++)
        json_node_set(root, o->members[i].name, json_edit_doc(ed, o->members[i].doc));
    if (o->version) {
        json_node_set(json_node_get(root, "metadata"), "resourceVersion",
                      json_edit_str(ed, span_of(version, json_num_write_u64(o->version, version))));
    }
    return root;
}

static int freeze_member(const struct object *base, const char *name, struct json_node *node,
                         struct json_doc **ret, struct err *e)
{
    struct json_doc *was = base ? object_member_doc(base, name) : NULL;

    if (was && json_node_view(node) != json_doc_root(was) &&
        json_node_equal_value(node, json_doc_root(was))) {
        *ret = json_doc_ref(was);
        return 0;
    }
    return json_node_freeze(node, ret, e);
}

int object_freeze(const struct kind *kind, const struct object *base, struct json_node *root,
                  struct object **ret, struct err *e)
{
    OWN(gather_done) struct gather g = { .n = 0 };
    struct json_node *meta = json_node_get(root, "metadata"),
                     *version_node = json_node_get(meta, "resourceVersion");
    struct json version_value = { .type = JSON_STRING };
    uint64_t version = 0;

    if (version_node) {
        struct span s = json_node_str(version_node);

        version_value.n = (uint32_t)s.n;
        version_value.u.text = s.p;
        if (!s.p)
            version_value.type = (uint8_t)json_node_type(version_node);
        if (version_of(&version_value, &version, e) < 0)
            return -1;
        (void)json_node_remove(meta, "resourceVersion");
    }
    for (size_t i = 0; i < json_node_count(root); i++) {
        struct span name = json_node_name_at(root, i);
        struct json_node *node = json_node_value_at(root, i);
        struct json_doc *doc = NULL;

        if (is_type_meta(name) || is_no_meta(name, json_node_type(node)))
            continue;
        if (memchr(name.p, '\0', name.n))
            return err_set(e, ERR_INVALID, "a member's name holds a NUL");
        if (freeze_member(base, (const char *)name.p, node, &doc, e) < 0 ||
            gather(&g, (const char *)name.p, doc, e) < 0)
            return -1;
    }
    *ret = finish(&g, kind, version);
    return 0;
}

bool object_differs_only(const struct object *a, const struct object *b, const char *const *names)
{
    const struct object *sides[] = { a, b, a };

    for (int s = 0; s < 2; s++)
        for (uint32_t i = 0; i < sides[s]->n; i++) {
            const struct object_member *m = &sides[s]->members[i];
            const char *const *name = names;

            while (*name && strcmp(*name, m->name) != 0)
                name++;
            if (!*name && object_member_doc(sides[s + 1], m->name) != m->doc)
                return false;
        }
    return true;
}

bool object_is_same(const struct object *a, const struct object *b)
{
    static const char *const none[] = { NULL };

    return object_differs_only(a, b, none);
}

static int add_all(struct buf *out, const struct span *parts, size_t n, struct err *e)
{
    for (size_t i = 0; i < n; i++)
        if (buf_add(out, parts[i], e) < 0)
            return -1;
    return 0;
}

/* {"resourceVersion":"7",<the rest> */
static int write_meta(const struct object *o, struct buf *out, struct err *e)
{
    struct span bytes = json_doc_bytes(o->members[0].doc);
    char version[JSON_NUM_TEXT_BYTES];
    const struct span parts[] = { SPAN("{\"resourceVersion\":\""),
                                  span_of(version, json_num_write_u64(o->version, version)),
                                  bytes.n > 2 ? SPAN("\",") : SPAN("\""), span_skip(bytes, 1) };

    return o->version ? add_all(out, parts, LEN(parts), e) : buf_add(out, bytes, e);
}

static int write_type(const struct object *o, const char *api_version, struct buf *out,
                      struct err *e)
{
    const struct span parts[] = { SPAN("{\"apiVersion\":\""), span_cstr(api_version),
                                  SPAN("\",\"kind\":\""), span_cstr(o->kind->name), SPAN("\",") };

    return api_version ? add_all(out, parts, LEN(parts), e) : buf_addc(out, '{', e);
}

static int write_all(const struct object *o, const char *api_version, struct buf *out,
                     struct err *e)
{
    if (write_type(o, api_version, out, e) < 0)
        return -1;
    for (uint32_t i = 0; i < o->n; i++) {
        struct span name = span_cstr(o->members[i].name);
        struct json_out quoted;

        if (i && buf_addc(out, ',', e) < 0)
            return -1;
        json_out_init(&quoted, out, 0);
        json_out_str(&quoted, name);
        if (json_out_end(&quoted, e) < 0 || buf_addc(out, ':', e) < 0 ||
            (i ? buf_add(out, json_doc_bytes(o->members[i].doc), e) : write_meta(o, out, e)) < 0)
            return -1;
    }
    return buf_addc(out, '}', e);
}

size_t object_text_size(const struct object *o)
{
    size_t n = 0;

    for (uint32_t i = 0; i < o->n; i++)
        n += strlen(o->members[i].name) + json_doc_bytes(o->members[i].doc).n;
    return n;
}

size_t object_size(const struct object *o)
{
    return o->bytes + object_text_size(o); /* quotes, version and kind are less than the block */
}

int object_write(const struct object *o, const char *api_version, struct buf *out, struct err *e)
{
    size_t start = out->n, size = object_size(o);

    if (size < out->max - out->n && buf_reserve(out, size, e) < 0)
        return -1;
    if (write_all(o, api_version, out, e) == 0)
        return 0;
    buf_truncate(out, start);
    return -1;
}

struct object *object_other(const struct object *o, const struct kind *kind, const char *version)
{
    struct object *other = __atomic_load_n(&o->other, __ATOMIC_ACQUIRE);

    return other && other->kind == kind && strcmp(other->view, version) == 0 ? object_ref(other)
                                                                             : NULL;
}

void object_keep_other(struct object *o, const char *version, struct object *other)
{
    struct object *none = NULL;

    other->view = version;
    if (__atomic_compare_exchange_n(&o->other, &none, other, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE))
        (void)object_ref(other);
}

size_t object_memory(const struct object *o)
{
    const struct object *other = __atomic_load_n(&o->other, __ATOMIC_ACQUIRE);
    size_t bytes = o->bytes;

    for (uint32_t i = 0; i < o->n; i++)
        bytes += json_doc_memory(o->members[i].doc);
    return bytes + (other ? object_memory(other) : 0);
}
