/* Documents at rest: the compact form in one block, and a tree only when it is asked for. Most of what a store holds is written
 * out many times and looked into seldom, and a tree takes three times the bytes that it says. */
#include "base/json_doc.h"

static uint64_t unpack_count; /* atomic */

struct json_doc *json_pack(struct span compact)
{
    struct json_doc *made = malloc(sizeof *made + compact.n + 1);

    if (!made)
        abort(); /* the policy of own.h; not zeroed as own_new would */
    *made = (struct json_doc){ .refs = 1, .text_n = (uint32_t)compact.n, .is_packed = true };
    memcpy(made->text, compact.p, compact.n);
    made->text[compact.n] = '\0';
    return made;
}

/* What was parsed or built within the limits of depth is read back within them; no other document is there. */
const struct json_doc *json_unpack(const struct json_doc *packed)
{
    const struct json_limits limits = { .max_bytes = JSON_COMPACT_MAX_BYTES,
                                        .max_nodes = UINT32_MAX };
    struct json_doc *there = __atomic_load_n(&packed->other, __ATOMIC_ACQUIRE), *made = NULL;
    struct err e;

    if (there)
        return there;
    if (json_parse(span_of(packed->text, packed->text_n), &limits, &made, &e) < 0)
        abort();
    (void)__atomic_fetch_add(&unpack_count, 1, __ATOMIC_RELAXED);
    if (__atomic_compare_exchange_n(&((struct json_doc *)packed)->other, &there, made, false,
                                    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return made;
    json_doc_unref(made); /* another thread was first */
    return there;
}

/* The packed form of a document that is not. */
static struct json_doc *need_packed(struct json_doc *doc)
{
    struct json_doc *made, *there = __atomic_load_n(&doc->other, __ATOMIC_ACQUIRE);
    struct buf text = BUF_INIT(JSON_COMPACT_MAX_BYTES);
    struct err e;

    if (there)
        return there;
    if (buf_reserve(&text, doc->text_n, &e) < 0 || json_write(doc->nodes, &text, &e) < 0)
        abort(); /* it was parsed once, and no escape is written longer than it was read */
    made = json_pack(buf_span(&text));
    buf_done(&text);
    if (__atomic_compare_exchange_n(&doc->other, &there, made, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE))
        return made;
    json_doc_unref(made); /* another thread was first */
    return there;
}

struct span json_doc_bytes(struct json_doc *doc)
{
    const struct json_doc *packed = doc->is_packed ? doc : need_packed(doc);

    return span_of(packed->text, packed->text_n);
}

bool json_doc_is_packed(const struct json_doc *doc)
{
    return doc->is_packed && !__atomic_load_n(&doc->other, __ATOMIC_ACQUIRE);
}

/* The packed form of the tree of one that was looked into stands for both: whoever asks next shares it. */
struct json_doc *json_doc_packed(struct json_doc *doc)
{
    struct json_doc *packed, *tree = doc;

    do {
        packed = tree->is_packed ? tree : need_packed(tree);
        tree = __atomic_load_n(&packed->other, __ATOMIC_ACQUIRE);
    } while (tree);
    return json_doc_ref(packed);
}

uint64_t json_unpack_count(void)
{
    return __atomic_load_n(&unpack_count, __ATOMIC_RELAXED);
}

size_t json_doc_memory(const struct json_doc *doc)
{
    const struct json_doc *other = __atomic_load_n(&doc->other, __ATOMIC_ACQUIRE);
    size_t pad = doc->is_packed ? 1 : doc->is_lean ? 0 : JSON_PAD_BYTES;

    return sizeof *doc + doc->text_n + pad + doc->node_count * sizeof *doc->nodes +
           (other ? json_doc_memory(other) : 0);
}
