/* testpod: objects of tests as short JSON with single quotes.
 *
 * Owns:     what these return, until testpod_free.
 * Used by:  the unit tests of this room.
 */
#ifndef SILICA_NODE_TESTPOD_H
#define SILICA_NODE_TESTPOD_H

#include "kube/kind.h"
#include "node/needs.h"

/* resource: "pods". Fails the test when the text is no object. */
struct object *testpod_object(const char *resource, const char *text);
/* A JSON value. */
const struct json *testpod_value(const char *text);
/* The Pod's needs, given what is in the lists: "resource {...}" each, ended by NULL. Tokens become "token-AUDIENCE". */
struct needs *testpod_needs(struct object *pod, const char *const *objects);
void testpod_free(void);

#endif
