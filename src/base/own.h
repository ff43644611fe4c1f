/* own: cleanup attributes and visible hand-over for local variables.
 *
 * Used by:  everyone. Only for locals, initialised on the line that declares them; objects a loop can
 *           see are never OWNed, their parent closes them (style.md 5).
 */
#ifndef SILICA_BASE_OWN_H
#define SILICA_BASE_OWN_H

#include "base/banned.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#define OWN(done_fn) __attribute__((cleanup(done_fn)))
#define OWN_FD       __attribute__((cleanup(own_fd_close)))
#define OWN_MEM      __attribute__((cleanup(own_mem_free)))
#define PRINTF(f, a) __attribute__((format(printf, f, a)))
#define FALLTHROUGH  __attribute__((fallthrough))

#define MIN(a, b)                                                                                  \
    ({                                                                                             \
        __typeof__(a) min_a_ = (a);                                                                \
        __typeof__(b) min_b_ = (b);                                                                \
        min_a_ < min_b_ ? min_a_ : min_b_;                                                         \
    })
#define MAX(a, b)                                                                                  \
    ({                                                                                             \
        __typeof__(a) max_a_ = (a);                                                                \
        __typeof__(b) max_b_ = (b);                                                                \
        max_a_ > max_b_ ? max_a_ : max_b_;                                                         \
    })
#define LEN(array) (sizeof(array) / sizeof((array)[0]))
/* Walks a table: EACH(r, rows) { use(r->name); } */
#define EACH(r, rows) for (__typeof__(&(rows)[0]) r = (rows); r < (rows) + LEN(rows); r++)
#define CONTAINER(ptr, type, member)                                                               \
    ((type *)(void *)((char *)(__typeof__(&((type *)0)->member))(ptr)-offsetof(type, member)))

/* Closes *fd unless it is negative; keeps errno, so that a cleanup never hides the failure that led to it. */
void own_fd_close(int *fd);
void own_mem_free(void *pointer_to_pointer);

/* Hand over: the variable is emptied, so its cleanup does nothing. */
static inline int take_fd(int *fd)
{
    int taken = *fd;

    *fd = -1;
    return taken;
}
#define take_ptr(pp)                                                                               \
    ({                                                                                             \
        __typeof__(*(pp)) taken_ = *(pp);                                                          \
        *(pp) = NULL;                                                                              \
        taken_;                                                                                    \
    })

/* Memory of a size that is ours (a struct, a table of known length). Out of memory aborts: sizes that a
 * peer can influence come only through a buf with a ceiling. Zeroed. */
void *own_new(size_t size);
void *own_array(size_t count, size_t size);
/* Grows or shrinks; new bytes are not zeroed. */
void *own_resize(void *old, size_t count, size_t size);
char *own_strdup(const char *s);
#define NEW(type) ((type *)own_new(sizeof(type)))

#endif
