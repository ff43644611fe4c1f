#include "runtime/sandboxd/registry.h"

/* Ids count up, so they spread evenly; a thousand processes are four to a bucket */
#define BUCKETS 256

static struct process *table[BUCKETS];
static int32_t last_id;

static struct process **bucket(int32_t id)
{
    return &table[(uint32_t)id % BUCKETS];
}

int32_t registry_next_id(void)
{
    do
        last_id = last_id == INT32_MAX ? 1 : last_id + 1;
    while (registry_find(last_id));
    return last_id;
}

void registry_add(struct process *p, int32_t id, struct exec *exec)
{
    struct process **head = bucket(id);

    assert(!p->id && id > 0);
    p->id = id;
    p->exec = exec;
    p->next = *head;
    *head = p;
}

void registry_remove(struct process *p)
{
    if (!p->id)
        return;
    for (struct process **at = bucket(p->id); *at; at = &(*at)->next) {
        if (*at != p)
            continue;
        *at = p->next;
        p->id = 0;
        return;
    }
}

struct process *registry_find(int32_t id)
{
    for (struct process *p = *bucket(id); p; p = p->next)
        if (p->id == id)
            return p;
    return NULL;
}
