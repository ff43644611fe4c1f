/* install: `silica-runtime --install FILE`: puts this program into a volume that a container shares.
 *
 * An init container of our image runs it, as that image has no cp; the container beside it, of an image that nobody changed, then
 * starts FILE. Used by main.c before anything is served.
 */
#ifndef SILICA_RUNTIME_INSTALL_H
#define SILICA_RUNTIME_INSTALL_H

#include "base/err.h"

/* FILE is there whole or not at all, executable by everybody; what was there is replaced, also while it runs. */
int install_program(const char *file, struct err *e);

#endif
