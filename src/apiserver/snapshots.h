/* snapshots: states of the store that a list in parts goes on in. A snapshot is one reference, so keeping some is cheap.
 *
 * Owns:     the last SNAPSHOTS_MAX states that a continue token names, each for SNAPSHOT_KEEP_MS.
 * Used by:  read.c.
 */
#ifndef SILICA_APISERVER_SNAPSHOTS_H
#define SILICA_APISERVER_SNAPSHOTS_H

#include "apiserver/shelf.h"

#define SNAPSHOTS_MAX    64
#define SNAPSHOT_KEEP_MS (5 * 60 * 1000) /* as long as the public server keeps old versions */

struct snapshots {
    struct {
        struct shelf *shelf;
        uint64_t version, until_ms;
    } v[SNAPSHOTS_MAX];
};

void snapshots_done(struct snapshots *s);
/* Keeps it from now on; takes a reference of its own. */
void snapshots_keep(struct snapshots *s, struct shelf *shelf, uint64_t version, uint64_t now_ms);
/* The caller's reference, in *ret; false when it is gone. */
bool snapshots_find(struct snapshots *s, uint64_t version, uint64_t now_ms, struct shelf **ret);

#endif
