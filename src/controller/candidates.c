#include "controller/candidates.h"

#include "base/hash.h"
#include "controller/condition.h"
#include "controller/keys.h"
#include "controller/names.h"
#include "kube/keymap.h"

#include <string.h>

#define POOL_SLOTS   256
#define FIRST_SLOTS  256
#define ENTRIES_LOAD 2 /* entries for each slot before the table doubles */

enum level { LEVEL_READY, LEVEL_NETWORKED, LEVEL_PENDING };

/* Those of one pool, node and level, in the order they came. */
struct line {
    struct line *next; /* of the pool */
    char *node;
    enum level level;
    struct entry *first, **last;
    size_t count;
};

struct pool {
    struct pool *next; /* of its slot */
    char *namespace, *name;
    struct line *lines;
    size_t count; /* entries in all, taken ones too */
    struct waiter *first, **last;
};

/* A claim that waits for a member to get its address. */
struct waiter {
    struct keymap_node node;
    struct waiter *next, **link; /* of its pool */
    struct pool *pool;
    char texts[]; /* namespace, name */
};

struct entry {
    struct entry *slot_next;
    struct entry *next, **link; /* of its line */
    struct pool *pool;
    struct line *line; /* NULL: it is taken */
    char *name;
};

struct candidates {
    struct pool *pools[POOL_SLOTS];
    struct entry **slots;
    size_t slot_count, count;
    struct keymap waiters;
    candidates_wake_fn wake;
    void *ctx;
};

static uint64_t hash_of(const char *namespace, const char *name)
{
    return hash_add(hash_add(0, span_cstr(namespace)), span_cstr(name));
}

/* ---- pools and their lines ---- */

static struct pool **pool_slot(const struct candidates *c, const char *namespace, const char *name)
{
    struct pool **at = (struct pool **)&c->pools[hash_of(namespace, name) % POOL_SLOTS];

    while (*at && (strcmp((*at)->name, name) != 0 || strcmp((*at)->namespace, namespace) != 0))
        at = &(*at)->next;
    return at;
}

static struct pool *pool_of(struct candidates *c, const char *namespace, const char *name)
{
    struct pool **at = pool_slot(c, namespace, name);

    if (!*at) {
        *at = NEW(struct pool);
        (*at)->namespace = own_strdup(namespace);
        (*at)->name = own_strdup(name);
        (*at)->last = &(*at)->first;
    }
    return *at;
}

/* ---- claims that wait ---- */

static void drop_waiter(struct candidates *c, struct waiter *w)
{
    *w->link = w->next;
    if (w->next)
        w->next->link = w->link;
    else
        w->pool->last = w->link;
    keymap_remove(&c->waiters, &w->node);
    free(w);
}

/* In a later turn the claim looks for itself. */
static void wake_first(struct candidates *c, struct pool *pool)
{
    struct waiter *w = pool->first;

    if (!w)
        return;
    c->wake(c->ctx, w->node.namespace, w->node.name);
    drop_waiter(c, w);
}

static struct waiter *find_waiter(const struct candidates *c, const char *namespace,
                                  const char *claim)
{
    struct keymap_node *found = c->waiters.count ? keymap_get(&c->waiters, namespace, claim) : NULL;

    return found ? CONTAINER(found, struct waiter, node) : NULL;
}

void candidates_unwait(struct candidates *c, const char *namespace, const char *claim)
{
    struct waiter *w = find_waiter(c, namespace, claim);

    if (w)
        drop_waiter(c, w);
}

void candidates_wait(struct candidates *c, const char *namespace, const char *pool,
                     const char *claim)
{
    struct pool *p = *pool_slot(c, namespace, pool);
    size_t ns_bytes = strlen(namespace) + 1, name_bytes = strlen(claim) + 1;
    struct waiter *w;

    if (!p || find_waiter(c, namespace, claim))
        return;
    w = own_new(sizeof *w + ns_bytes + name_bytes);
    memcpy(w->texts, namespace, ns_bytes);
    memcpy(w->texts + ns_bytes, claim, name_bytes);
    keymap_add(&c->waiters, &w->node, w->texts, w->texts + ns_bytes);
    w->pool = p;
    w->link = p->last;
    *p->last = w;
    p->last = &w->next;
}

static void drop_pool(struct candidates *c, struct pool *pool)
{
    struct pool **at = pool_slot(c, pool->namespace, pool->name);
    struct line *line;

    while (pool->first)
        wake_first(c, pool);
    *at = pool->next;
    while ((line = pool->lines)) {
        pool->lines = line->next;
        free(line->node);
        free(line);
    }
    free(pool->namespace);
    free(pool->name);
    free(pool);
}

static struct line *line_of(struct pool *pool, const char *node, enum level level)
{
    struct line *line = pool->lines;

    while (line && (line->level != level || strcmp(line->node, node) != 0))
        line = line->next;
    if (line)
        return line;
    line = NEW(struct line);
    *line = (struct line){ .next = pool->lines, .node = own_strdup(node), .level = level };
    line->last = &line->first;
    pool->lines = line;
    return line;
}

static void leave_line(struct entry *e)
{
    struct line *line = e->line;

    if (!line)
        return;
    *e->link = e->next;
    if (e->next)
        e->next->link = e->link;
    else
        line->last = e->link;
    line->count--;
    e->line = NULL;
}

static void join_line(struct entry *e, struct line *line)
{
    e->line = line;
    e->next = NULL;
    e->link = line->last;
    *line->last = e;
    line->last = &e->next;
    line->count++;
}

/* ---- entries by name ---- */

static struct entry **entry_slot(const struct candidates *c, const char *namespace,
                                 const char *name)
{
    struct entry **at = &c->slots[hash_of(namespace, name) % c->slot_count];

    while (*at &&
           (strcmp((*at)->name, name) != 0 || strcmp((*at)->pool->namespace, namespace) != 0))
        at = &(*at)->slot_next;
    return at;
}

static void grow(struct candidates *c)
{
    struct entry **old = c->slots, *e;
    size_t n = c->slot_count;

    if (c->count < ENTRIES_LOAD * n)
        return;
    c->slot_count = 2 * n;
    c->slots = own_array(c->slot_count, sizeof(struct entry *));
    for (size_t i = 0; i < n; i++) {
        while ((e = old[i])) {
            struct entry **at;

            old[i] = e->slot_next;
            e->slot_next = NULL;
            at = entry_slot(c, e->pool->namespace, e->name);
            *at = e;
        }
    }
    free(old);
}

static void remove_entry(struct candidates *c, struct entry **at)
{
    struct entry *e = *at;
    struct pool *pool = e->pool;

    leave_line(e);
    *at = e->slot_next;
    free(e->name);
    free(e);
    c->count--;
    if (--pool->count == 0)
        drop_pool(c, pool);
}

static struct entry *add_entry(struct candidates *c, const char *namespace, const char *name,
                               const char *pool)
{
    struct entry *e = NEW(struct entry), **at;

    grow(c);
    e->name = own_strdup(name);
    e->pool = pool_of(c, namespace, pool);
    e->pool->count++;
    at = entry_slot(c, namespace, name);
    *at = e;
    c->count++;
    return e;
}

/* ---- what is seen ---- */

bool candidate_is_adoptable(const struct object *sandbox)
{
    const char *pool = object_label(sandbox, LABEL_POOL);
    const char *template = object_label(sandbox, LABEL_TEMPLATE_REF);

    return !object_is_deleting(sandbox) && pool && *pool && template && *template &&
           owner_is(sandbox, GROUP_EXTENSIONS, "SandboxWarmPool");
}

static enum level level_of(const struct object *sandbox)
{
    if (!json_count(object_at(sandbox, "status.podIPs")))
        return LEVEL_PENDING;
    return condition_is(object_at(sandbox, "status.conditions"), COND_READY, "True")
               ? LEVEL_READY
               : LEVEL_NETWORKED;
}

static void place(struct candidates *c, struct entry *e, const struct object *sandbox)
{
    const char *node = object_text(sandbox, "status.nodeName");
    struct line *line = line_of(e->pool, node ? node : "", level_of(sandbox));

    if (e->line == line) /* it keeps its place */
        return;
    leave_line(e);
    join_line(e, line);
    if (line->level != LEVEL_PENDING)
        wake_first(c, e->pool);
}

static void see(struct candidates *c, const struct object *sandbox, bool is_release)
{
    const char *namespace = object_namespace(sandbox), *name = object_name(sandbox);
    struct entry **at = entry_slot(c, namespace, name), *e = *at;
    struct object_owner owner;

    if (!candidate_is_adoptable(sandbox)) {
        if (e)
            remove_entry(c, at);
        return;
    }
    (void)object_owner_controller(sandbox, &owner);
    if (e && strcmp(e->pool->name, owner.name) != 0) {
        remove_entry(c, at);
        e = NULL;
    }
    if (e && !e->line && !is_release)
        return; /* taken: whoever has it says when not */
    if (!e)
        e = add_entry(c, namespace, name, owner.name);
    place(c, e, sandbox);
}

void candidates_see(struct candidates *c, const struct object *sandbox)
{
    see(c, sandbox, false);
}

void candidates_forget(struct candidates *c, const char *namespace, const char *name)
{
    struct entry **at = entry_slot(c, namespace, name);

    if (*at)
        remove_entry(c, at);
}

void candidates_release(struct candidates *c, const char *namespace, const char *name,
                        const struct object *sandbox)
{
    if (sandbox)
        see(c, sandbox, true);
    else
        candidates_forget(c, namespace, name);
}

/* ---- taking ---- */

/* Of one level, the line of the node with most; those without a node come last. */
static struct line *best_line(const struct pool *pool, enum level level)
{
    struct line *best = NULL;

    for (struct line *line = pool->lines; line; line = line->next) {
        if (line->level != level || !line->count)
            continue;
        if (!best || (*line->node && (!*best->node || line->count > best->count)))
            best = line;
    }
    return best;
}

const char *candidates_take(struct candidates *c, const char *namespace, const char *pool)
{
    struct pool *p = *pool_slot(c, namespace, pool);
    struct line *line = p ? best_line(p, LEVEL_READY) : NULL;
    struct entry *e;

    if (p && !line)
        line = best_line(p, LEVEL_NETWORKED);
    if (!line)
        return NULL;
    e = line->first;
    leave_line(e);
    return e->name;
}

size_t candidates_pending(const struct candidates *c, const char *namespace, const char *pool)
{
    struct pool *p = *pool_slot(c, namespace, pool);
    size_t n = 0;

    for (struct line *line = p ? p->lines : NULL; line; line = line->next)
        if (line->level == LEVEL_PENDING)
            n += line->count;
    return n;
}

/* ---- life ---- */

struct candidates *candidates_new(candidates_wake_fn wake, void *ctx)
{
    struct candidates *c = NEW(struct candidates);

    c->wake = wake;
    c->ctx = ctx;
    c->slot_count = FIRST_SLOTS;
    c->slots = own_array(c->slot_count, sizeof(struct entry *));
    return c;
}

void candidates_free(struct candidates *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->slot_count; i++)
        while (c->slots[i])
            remove_entry(c, &c->slots[i]);
    free(c->slots);
    keymap_done(&c->waiters);
    free(c);
}
