/* addresses: which cluster addresses Services have, so that a new one gets a free one without a walk of them all.
 *
 * Owns:     a count for each address of 10.96.0.0/16. It follows the head of the store when it is asked, by the history of
 *           the Services; after a failed commit, or when the history has moved on too far, it counts anew.
 * Used by:  admit_kinds.c; the store keeps it.
 * Threads:  the loop's.
 */
#ifndef SILICA_APISERVER_ADDRESSES_H
#define SILICA_APISERVER_ADDRESSES_H

#include "apiserver/store.h"

struct addresses;

#define ADDRESSES_TEXT_BYTES 16

struct addresses *addresses_new(struct store *st);
void addresses_free(struct addresses *a);
/* Any that no Service has, looked for from a place by chance: addresses are not soon given again. False: none is left. */
bool addresses_pick(struct addresses *a, char text[ADDRESSES_TEXT_BYTES]);

#endif
