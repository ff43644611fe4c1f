/* Documents for those who keep many: each text once, without the punctuation between them. */
#include "base/json_doc.h"

#include "base/hash.h"

/* Where each text goes, and which were met before: open addressing, a slot is a node's number plus one. */
struct lean {
    const struct json *nodes;
    uint32_t *offsets; /* of each node's text in the new one */
    uint32_t *slots;
    uint32_t mask;
    size_t bytes;
};

static bool has_text(const struct json *v)
{
    return v->type == JSON_STRING || v->type == JSON_NUMBER;
}

/* The slot of the same text, or an empty one. */
static uint32_t *find(struct lean *l, const struct json *v)
{
    uint32_t at = (uint32_t)hash_add(0, span_of(v->u.text, v->n)) & l->mask;

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
    uint32_t *slot = find(l, v);

    if (*slot) {
        l->offsets[i] = l->offsets[*slot - 1];
        return;
    }
    *slot = i + 1;
    l->offsets[i] = (uint32_t)l->bytes;
    l->bytes += v->n + 1; /* a NUL behind each */
}

struct json_doc *json_doc_lean(const struct json_doc *doc)
{
    struct lean l = { .nodes = doc->nodes, .mask = 15 };
    struct json_doc *made;

    while (l.mask < 2 * (uint64_t)doc->node_count && l.mask < UINT32_MAX / 2)
        l.mask = l.mask * 2 + 1;
    l.slots = own_array((size_t)l.mask + 1, sizeof *l.slots);
    l.offsets = own_array(doc->node_count, sizeof *l.offsets);
    for (uint32_t i = 0; i < doc->node_count; i++)
        if (has_text(&doc->nodes[i]))
            place(&l, i);
    made = own_new(sizeof *made + l.bytes + JSON_PAD_BYTES);
    made->refs = 1;
    made->node_count = doc->node_count;
    made->text_n = (uint32_t)l.bytes;
    made->is_lean = true;
    made->nodes = own_array(doc->node_count, sizeof *made->nodes);
    memcpy(made->nodes, doc->nodes, doc->node_count * sizeof *made->nodes);
    for (uint32_t i = 0; i < doc->node_count; i++) {
        if (!has_text(&doc->nodes[i]))
            continue;
        memcpy(made->text + l.offsets[i], doc->nodes[i].u.text, doc->nodes[i].n);
        made->nodes[i].u.text = made->text + l.offsets[i];
    }
    free(l.slots);
    free(l.offsets);
    return made;
}
