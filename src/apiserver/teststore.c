#include "apiserver/teststore.h"

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

void teststore_close(struct teststore *t)
{
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
