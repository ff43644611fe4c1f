/* fields: the API server's notes of who wrote which field of an object (metadata.managedFields), and that it need not take them.
 *
 * They serve server-side apply: whoever applies an object owns what it says, and nobody else does. Of an object that nobody applies
 * they are a diary, and the dearest thing about it: on kube-apiserver 1.36 they are two fifths of what a patch of a claim or Sandbox
 * costs, and half of the bytes that go to etcd and to everybody who watches. Cleared once, they stay away: the server takes none for
 * an object that has none.
 *
 * Owns:     nothing.
 * Used by:  claim_bind.c, whose two writes clear them; shared.c for copies that still know who must keep theirs.
 */
#ifndef SILICA_CONTROLLER_FIELDS_H
#define SILICA_CONTROLLER_FIELDS_H

#include "controller/step.h"

/* Somebody applies it: without the notes its next apply would meet a conflict, and could take no field away. */
bool fields_are_applied(const struct object *o);
/* Clears them with a patch that is locked to this version of o, so that nobody has begun to apply it since. Does nothing if somebody
 * applies it. */
void fields_forget(struct step *patch, const struct object *o);
/* For informers: as informer_trim_managed, but what is applied keeps its notes. */
struct object *fields_trim(struct object *o);

#endif
