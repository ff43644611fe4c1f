#include "kube/informer_copy.h"

#include "base/log.h"

#include <string.h>

#define KEY_TEXTS_MAX_BYTES (64 * 1024) /* of one object; labels have 63 bytes, names 253 */

void copy_init(struct copy *c, const struct informer_index *indexes, size_t index_count)
{
    *c = (struct copy){ .indexes = indexes,
                        .index_count = index_count,
                        .scratch = { .texts = BUF_INIT(KEY_TEXTS_MAX_BYTES) } };
    c->keys = own_array(MAX(index_count, (size_t)1), sizeof *c->keys);
}

struct copy_entry *copy_find(const struct copy *c, const char *namespace, const char *name)
{
    struct keymap_node *found = keymap_get(&c->names, namespace, name);

    return found ? CONTAINER(found, struct copy_entry, node) : NULL;
}

/* ---- places ---- */

static struct informer_place **first_of(struct copy *c, const struct informer_place *p)
{
    return p->key ? &p->key->first : &c->first;
}

/* At the front: a walk under way does not come by again. */
static void link_place(struct copy *c, struct informer_place *p)
{
    struct informer_place **first = first_of(c, p);

    p->prev = NULL;
    p->next = *first;
    if (p->next)
        p->next->prev = p;
    *first = p;
    if (p->key)
        p->key->count++;
}

static void unlink_place(struct copy *c, struct informer_place *p)
{
    for (struct informer_walk *w = c->walks; w; w = w->next)
        if (w->at == p)
            w->at = p->next;
    if (p->next)
        p->next->prev = p->prev;
    if (p->prev)
        p->prev->next = p->next;
    else
        *first_of(c, p) = p->next;
    if (p->key && --p->key->count == 0) {
        keymap_remove(&c->keys[p->key->index], &p->key->node);
        free(p->key);
    }
}

/* `to` stands where `from` stood, so that no walk meets it twice or not at all. */
static void move_place(struct copy *c, struct informer_place *from, struct informer_place *to)
{
    *to = *from;
    for (struct informer_walk *w = c->walks; w; w = w->next)
        if (w->at == from)
            w->at = to;
    if (to->next)
        to->next->prev = to;
    if (to->prev)
        to->prev->next = to;
    else
        *first_of(c, to) = to;
}

/* ---- keys ---- */

void informer_key(struct informer_keys *out, const char *text)
{
    struct span bytes = span_of(text, strlen(text) + 1);
    struct err e;

    for (size_t i = 0; i < out->n; i++)
        if (out->rows[i].index == out->index &&
            strcmp((const char *)out->texts.p + out->rows[i].at, text) == 0)
            return;
    if (out->n == LEN(out->rows) || buf_add(&out->texts, bytes, &e) < 0) {
        out->is_over = true;
        return;
    }
    out->rows[out->n++] = (struct copy_row){ out->index, out->texts.n - bytes.n };
}

void informer_keys_namespace(struct informer_keys *out, const struct object *o, const void *arg)
{
    (void)o;
    (void)arg;
    informer_key(out, "");
}

void informer_keys_owner(struct informer_keys *out, const struct object *o, const void *arg)
{
    struct object_owner owner;

    (void)arg;
    if (object_owner_controller(o, &owner))
        informer_key(out, owner.uid);
}

void informer_keys_label(struct informer_keys *out, const struct object *o, const void *arg)
{
    const char *value = object_label(o, arg);

    if (value)
        informer_key(out, value);
}

void informer_keys_path(struct informer_keys *out, const struct object *o, const void *arg)
{
    const char *value = object_text(o, arg);

    if (value)
        informer_key(out, value);
}

static const char *key_namespace(const struct copy *c, size_t index, const char *namespace)
{
    return c->indexes[index].is_global ? "" : namespace;
}

struct copy_key *copy_key(const struct copy *c, size_t index, const char *namespace,
                          const char *key)
{
    struct keymap_node *found;

    assert(index < c->index_count);
    found = keymap_get(&c->keys[index], key_namespace(c, index, namespace), key);
    return found ? CONTAINER(found, struct copy_key, node) : NULL;
}

static struct copy_key *make_key(struct copy *c, size_t index, const char *namespace,
                                 const char *text)
{
    struct copy_key *key = copy_key(c, index, namespace, text);
    size_t ns_bytes, bytes = strlen(text) + 1;

    if (key)
        return key;
    namespace = key_namespace(c, index, namespace);
    ns_bytes = strlen(namespace) + 1;
    key = own_new(sizeof *key + ns_bytes + bytes);
    key->index = index;
    memcpy(key->texts, namespace, ns_bytes);
    memcpy(key->texts + ns_bytes, text, bytes);
    keymap_add(&c->keys[index], &key->node, key->texts, key->texts + ns_bytes);
    return key;
}

static const char *row_text(const struct informer_keys *k, size_t i)
{
    return (const char *)k->texts.p + k->rows[i].at;
}

static struct informer_keys *keys_of(struct copy *c, const struct object *o)
{
    struct informer_keys *k = &c->scratch;

    k->n = 0;
    k->is_over = false;
    buf_clear(&k->texts);
    for (k->index = 0; k->index < c->index_count; k->index++)
        c->indexes[k->index].keys(k, o, c->indexes[k->index].arg);
    if (k->is_over)
        log_warn("informer.keys", KV("kind", object_kind(o)->name),
                 KV("namespace", object_namespace(o)), KV("name", object_name(o)),
                 KV("kept", k->n));
    return k;
}

static bool is_place_of(const struct informer_place *p, const struct informer_keys *k, size_t i)
{
    return p->key && p->key->index == k->rows[i].index &&
           strcmp(p->key->node.name, row_text(k, i)) == 0;
}

static bool are_places_of(const struct copy_entry *entry, const struct informer_keys *k)
{
    if (entry->place_count != k->n)
        return false;
    for (size_t i = 0; i < k->n; i++)
        if (!is_place_of(&entry->places[i], k, i))
            return false;
    return true;
}

/* Keys that stay keep their places; most changes change none. */
static void place(struct copy *c, struct copy_entry *entry)
{
    const struct informer_keys *k = keys_of(c, entry->object);
    struct informer_place *old = entry->places;

    if (are_places_of(entry, k))
        return;
    entry->places = k->n ? own_array(k->n, sizeof *old) : NULL;
    for (size_t i = 0; i < k->n; i++) {
        struct informer_place *to = &entry->places[i];
        size_t at = 0;

        while (at < entry->place_count && !is_place_of(&old[at], k, i))
            at++;
        if (at < entry->place_count) {
            move_place(c, &old[at], to);
            old[at].key = NULL;
            continue;
        }
        to->entry = entry;
        to->key = make_key(c, k->rows[i].index, entry->node.namespace, row_text(k, i));
        link_place(c, to);
    }
    for (size_t i = 0; i < entry->place_count; i++)
        if (old[i].key)
            unlink_place(c, &old[i]);
    free(old);
    entry->place_count = (uint32_t)k->n;
}

/* ---- objects ---- */

struct copy_entry *copy_add(struct copy *c, struct object *o)
{
    struct copy_entry *entry = NEW(struct copy_entry);

    entry->object = o;
    entry->all.entry = entry;
    keymap_add(&c->names, &entry->node, object_namespace(o), object_name(o));
    link_place(c, &entry->all);
    place(c, entry);
    return entry;
}

struct object *copy_replace(struct copy *c, struct copy_entry *entry, struct object *o)
{
    struct object *old = entry->object;

    entry->object = o;
    keymap_texts(&entry->node, object_namespace(o), object_name(o));
    place(c, entry);
    return old;
}

struct object *copy_remove(struct copy *c, struct copy_entry *entry)
{
    struct object *o = entry->object;

    for (size_t i = 0; i < entry->place_count; i++)
        unlink_place(c, &entry->places[i]);
    unlink_place(c, &entry->all);
    keymap_remove(&c->names, &entry->node);
    free(entry->places);
    free(entry);
    return o;
}

void copy_done(struct copy *c)
{
    while (c->first)
        object_unref(copy_remove(c, c->first->entry));
    keymap_done(&c->names);
    for (size_t i = 0; i < c->index_count; i++)
        keymap_done(&c->keys[i]);
    free(c->keys);
    buf_done(&c->scratch.texts);
}
