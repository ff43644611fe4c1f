/* teststore: a store in a directory of its own, for tests.
 *
 * Owns:     the directory, which goes at the end with all that is in it; the loop, which lives as long as the store is open.
 */
#ifndef SILICA_APISERVER_TESTSTORE_H
#define SILICA_APISERVER_TESTSTORE_H

#include "apiserver/store.h"
#include "kube/kind.h"

struct teststore {
    char dir[64];
    struct ev_loop *loop;
    struct store *store;     /* NULL while it is closed */
    const struct kind *kind; /* config maps, and their number on the shelf */
    unsigned number;
};

void teststore_begin(struct teststore *t); /* makes the directory; nothing is open */
/* The directory is added to the config. False: refused, and nothing is open. */
bool teststore_open(struct teststore *t, struct store_config config, struct err *e);
void teststore_close(struct teststore *t);
void teststore_end(struct teststore *t);

#endif
