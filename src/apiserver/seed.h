/* seed: the objects that are there from the start: namespaces, the default accounts, the built-in roles. What a user
 * changed stays changed; what is missing comes back at the next start. A role that is as an older release gave it, and gave
 * too much, gets the rules of this one. */
#ifndef SILICA_APISERVER_SEED_H
#define SILICA_APISERVER_SEED_H

#include "apiserver/apiserver.h"

int seed(struct apiserver *s, struct err *e);

#endif
