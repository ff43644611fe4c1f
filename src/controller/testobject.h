/* testobject: objects of tests written as short JSON with single quotes, and what was decided as the same.
 *
 * Owns:     what these return, until test_objects_free.
 * Used by:  the unit tests of this room.
 */
#ifndef SILICA_CONTROLLER_TESTOBJECT_H
#define SILICA_CONTROLLER_TESTOBJECT_H

#include "controller/step.h"

/* {'metadata':{...},...}; fails the test when it is no object. fmt and what follows as printf. */
struct object *test_object(const struct kind *kind, const char *fmt, ...) PRINTF(2, 3);
/* Kept as long as those; returns it. */
struct object *test_keep(struct object *o);
/* The text with double quotes for single ones. */
const char *test_quoted(const char *text);
/* The tree with single quotes; "" for NULL. */
const char *test_text(struct json_node *node);
/* "patch Pod ns/name {'metadata':...}", "delete Pod ns/name uid=u"; "" for STEP_NONE. */
const char *test_step(const struct step *step);
/* Fails the test with the row's name and both texts. NULL is none. */
void test_same(const char *row, const char *what, const char *got, const char *want);
/* An edit that lives as long. */
struct json_edit *test_edit(void);
void test_objects_free(void);

#endif
