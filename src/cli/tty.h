/* tty: the caller's terminal while a command inside has one of its own: raw, so that every key goes inside, and back
 * as it was on every way out: tty_restore, exit(), abort(), a crash.
 *
 * Owns:     the terminal's settings as they were. One per process, as the terminal is.
 */
#ifndef SILICA_CLI_TTY_H
#define SILICA_CLI_TTY_H

#include "base/err.h"

/* Does nothing when fd is no terminal. */
int tty_raw(int fd, struct err *e);
void tty_restore(void);
/* The size of the first of our standard streams that is a terminal; false: none is. */
bool tty_size(uint16_t *ret_cols, uint16_t *ret_rows);

#endif
