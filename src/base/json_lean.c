/* Documents for those who keep many: each text once, without the punctuation between them, and in one block; what many of
 * them say stands in no document but with the common words, and those that say nothing else are one. */
#include "base/json_doc.h"

#include "base/hash.h"

#include <pthread.h>

/* ---- common words ---- */

/* Names of members, types and reasons of conditions, namespaces, the uid of a pool: few texts make up most of what similar
 * objects say. A text that was met often is kept for good, once, and later documents point to it. Bounded: where it is full, or
 * texts are long or seldom, documents hold their own. */
#define WORDS_MAX      1024
#define WORD_MAX_BYTES 96
#define WORD_MET_OFTEN 24 /* more than an object's own name or uid is met in its versions */
#define WORDS_FADE                                                                                 \
    8192 /* searches in vain after which all counts are halved: chance never adds up to often */
#define SAME_MAX                                                                                   \
    64 /* documents of common words alone that others may be the same as, the latest of each place */
#define SAME_NODES 128 /* so that these few never hold much */

static struct {
    pthread_mutex_t lock;
    struct span words[2 * WORDS_MAX]; /* open addressing */
    size_t count, searches;
    uint8_t met[4096];               /* by hash: how often a text was looked for in vain of late */
    struct json_doc *same[SAME_MAX]; /* by hash; a reference each */
} common = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* The text where it is for good, or NULL. Under the lock. */
static const uint8_t *common_word(struct span text, uint64_t hash)
{
    size_t at = hash % LEN(common.words);
    uint8_t *copy, *met;

    if (text.n == 0 || text.n > WORD_MAX_BYTES)
        return NULL;
    for (; common.words[at].p; at = (at + 1) % LEN(common.words))
        if (span_eq(common.words[at], text))
            return common.words[at].p;
    if (++common.searches % WORDS_FADE == 0)
        EACH(m, common.met)
            *m /= 2;
    met = &common.met[hash / LEN(common.words) % LEN(common.met)];
    if (common.count == WORDS_MAX || ++*met < WORD_MET_OFTEN)
        return NULL;
    *met = 0;
    copy = own_new(text.n + JSON_PAD_BYTES); /* as behind any text */
    memcpy(copy, text.p, text.n);
    common.words[at] = span_of(copy, text.n);
    common.count++;
    return copy;
}

/* Takes a document that has no text of its own; gives it, or the one that is the same. Equal texts are at one place there, so
 * the nodes say all: a status that all Pods have, the spec of all claims to a pool. */
static struct json_doc *same_as(struct json_doc *made)
{
    struct span nodes = span_of(made->nodes, made->node_count * sizeof *made->nodes);
    struct json_doc **place = &common.same[hash_add(0, nodes) % SAME_MAX], *other;

    if (made->node_count > SAME_NODES)
        return made;
    (void)pthread_mutex_lock(&common.lock);
    other = *place;
    if (other && other->node_count == made->node_count &&
        memcmp(other->nodes, nodes.p, nodes.n) == 0) {
        (void)json_doc_ref(other);
    } else {
        *place = json_doc_ref(made);
        json_doc_unref(other);
        other = NULL;
    }
    (void)pthread_mutex_unlock(&common.lock);
    if (!other)
        return made;
    json_doc_unref(made);
    return other;
}

/* ---- a document ---- */

/* Where each text goes, and which were met before: open addressing, a slot is a node's number plus one. */
struct lean {
    const struct json *nodes;
    struct place {
        const uint8_t *common; /* NULL: the document's own, */
        size_t offset;         /* which stands here in it */
    } * places;                /* by node */
    uint32_t *slots;
    uint32_t mask;
    size_t bytes;
};

static bool has_text(const struct json *v)
{
    return v->type == JSON_STRING || v->type == JSON_NUMBER;
}

/* The slot of the same text, or an empty one. */
static uint32_t *find(struct lean *l, const struct json *v, uint64_t hash)
{
    uint32_t at = (uint32_t)hash & l->mask;

    while (l->slots[at]) {
        const struct json *other = &l->nodes[l->slots[at] - 1];

        if (other->n == v->n && memcmp(other->u.text, v->u.text, v->n) == 0)
            break;
        at = (at + 1) & l->mask;
    }
    return &l->slots[at];
}

static void place(struct lean *l, uint32_t i)
{
    const struct json *v = &l->nodes[i];
    struct span text = span_of(v->u.text, v->n);
    uint64_t hash = hash_add(0, text);
    uint32_t *slot = find(l, v, hash);

    if (*slot) {
        l->places[i] = l->places[*slot - 1];
        return;
    }
    *slot = i + 1;
    l->places[i].common = common_word(text, hash);
    if (l->places[i].common)
        return;
    l->places[i].offset = l->bytes;
    l->bytes += v->n + 1; /* a NUL behind each */
}

static void place_all(struct lean *l, uint32_t count)
{
    (void)pthread_mutex_lock(&common.lock);
    for (uint32_t i = 0; i < count; i++)
        if (has_text(&l->nodes[i]))
            place(l, i);
    (void)pthread_mutex_unlock(&common.lock);
}

struct json_doc *json_doc_lean(const struct json_doc *doc)
{
    struct lean l = { .mask = 15 };
    struct json_doc *made;
    size_t nodes_at;

    if (doc->is_packed)
        doc = json_unpack(doc);
    l.nodes = doc->nodes;
    while (l.mask < 2 * (uint64_t)doc->node_count && l.mask < UINT32_MAX / 2)
        l.mask = l.mask * 2 + 1;
    l.slots = own_array((size_t)l.mask + 1, sizeof *l.slots);
    l.places = own_array(doc->node_count, sizeof *l.places);
    place_all(&l, doc->node_count);
    /* No padding: a plain text is copied in steps of 16 bytes, and behind the last one stands a node, which is as long. */
    nodes_at = (sizeof *made + l.bytes + 7) & ~(size_t)7;
    made = own_new(nodes_at + doc->node_count * sizeof *made->nodes);
    made->refs = 1;
    made->node_count = doc->node_count;
    made->text_n = (uint32_t)l.bytes;
    made->is_lean = true;
    made->nodes = (struct json *)(void *)((uint8_t *)made + nodes_at);
    memcpy(made->nodes, doc->nodes, doc->node_count * sizeof *made->nodes);
    for (uint32_t i = 0; i < doc->node_count; i++) {
        const struct place *p = &l.places[i];

        if (!has_text(&doc->nodes[i]))
            continue;
        made->nodes[i].u.text = p->common ? p->common : made->text + p->offset;
        if (!p->common)
            memcpy(made->text + p->offset, doc->nodes[i].u.text, doc->nodes[i].n);
    }
    free(l.slots);
    free(l.places);
    return l.bytes == 0 ? same_as(made) : made;
}
