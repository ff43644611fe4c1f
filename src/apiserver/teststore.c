#include "apiserver/teststore.h"

#include "apiserver/usage.h"

#include <dirent.h>
#include <stdio.h>

void teststore_begin(struct teststore *t)
{
    size_t n;

    *t = (struct teststore){ .kind = kind_find("", "v1", "configmaps") };
    t->number = (unsigned)(t->kind - kinds_all(&n));
    (void)snprintf(t->dir, sizeof t->dir, "/tmp/silica-store-XXXXXX");
    assert(mkdtemp(t->dir));
}

bool teststore_open(struct teststore *t, struct store_config config, struct err *e)
{
    config.dir = t->dir;
    if (ev_loop_new(&t->loop, e) < 0)
        abort();
    if (store_open(t->loop, &config, &t->store, e) == 0)
        return true;
    ev_loop_free(t->loop);
    t->store = NULL;
    return false;
}

static void check_row(struct usage *kept, struct usage *counted, const char *namespace)
{
    const struct usage_amount a = usage_find(kept, namespace)->now,
                              b = usage_find(counted, namespace)->now;

    if (a.objects == b.objects && a.bytes == b.bytes)
        return;
    fprintf(stderr, "usage of '%s': %llu objects of %llu bytes, counted %llu of %llu\n", namespace,
            (unsigned long long)a.objects, (unsigned long long)a.bytes,
            (unsigned long long)b.objects, (unsigned long long)b.bytes);
    abort();
}

/* What was kept up write by write is what is there, whatever happened to the disk. */
static void check_usage(struct teststore *t)
{
    struct shelf *head = store_snapshot(t->store, STORE_HEAD, NULL);
    struct usage *counted = usage_new();
    struct shelf_key from = { 0, "", "" };
    struct shelf_walk walk;
    struct object *o;
    unsigned kind;

    usage_recount(counted, head);
    check_row(store_usage(t->store), counted, "n");
    shelf_walk_init(&walk, head, &from, false);
    while ((o = shelf_walk_next(&walk, &kind)))
        check_row(store_usage(t->store), counted, object_namespace(o));
    usage_free(counted);
    shelf_unref(head);
}

void teststore_close(struct teststore *t)
{
    check_usage(t);
    store_close(t->store);
    ev_loop_free(t->loop);
    t->store = NULL;
}

void teststore_end(struct teststore *t)
{
    DIR *dir = opendir(t->dir);
    struct dirent *d;

    if (t->store)
        teststore_close(t);
    while ((d = readdir(dir)))
        (void)unlinkat(dirfd(dir), d->d_name, 0);
    (void)closedir(dir);
    if (rmdir(t->dir) < 0)
        abort();
}
