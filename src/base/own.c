#include "base/own.h"

#include <errno.h>

void own_fd_close(int *fd)
{
    int saved = errno;

    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
    errno = saved;
}

void own_mem_free(void *pointer_to_pointer)
{
    void **pp = pointer_to_pointer;

    free(*pp);
    *pp = NULL;
}

static void *or_abort(void *p)
{
    if (!p)
        abort(); /* the policy of the whole project: see own.h */
    return p;
}

void *own_new(size_t size)
{
    return or_abort(calloc(1, size ? size : 1));
}

void *own_array(size_t count, size_t size)
{
    return or_abort(calloc(count ? count : 1, size ? size : 1));
}

void *own_resize(void *old, size_t count, size_t size)
{
    return or_abort(reallocarray(old, count ? count : 1, size ? size : 1));
}

char *own_strdup(const char *s)
{
    size_t n = strlen(s) + 1;

    return memcpy(own_new(n), s, n);
}
