/* ending: what a Namespace that ends says of itself: what is still in it, and who holds that.
 *
 *     ending_add for everything that is left  ->  ending_write: the five conditions, as the public controller has them
 *
 * Owns:     its list of finalizers; a few names, beyond which they are not counted.
 * Used by:  collect.c.
 */
#ifndef SILICA_APISERVER_ENDING_H
#define SILICA_APISERVER_ENDING_H

#include "kube/kind.h"
#include "kube/object.h"

#define ENDING_KINDS_MAX      64
#define ENDING_FINALIZERS_MAX 16
#define ENDING_TEXT_MAX_BYTES 4096 /* of one message; names beyond it are left out */

struct ending {
    struct {
        const struct kind *kind;
        size_t count;
    } kinds[ENDING_KINDS_MAX];
    struct {
        char *name;
        size_t count;
    } finalizers[ENDING_FINALIZERS_MAX];
    size_t kind_count, finalizer_count;
};

void ending_done(struct ending *e);
/* One object that is left. */
void ending_add(struct ending *e, const struct kind *kind, const struct object *o);
/* Into the status of the Namespace. False: it says so already. now: RFC 3339. */
bool ending_write(const struct ending *e, struct json_node *namespace, const char *now);

#endif
