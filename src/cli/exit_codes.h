/* exit_codes: what the numbers mean that every command of `silica` returns: one table for the help, the manual and the tests.
 *
 * Owns:     the table; the names of its rows are in command.h.
 */
#ifndef SILICA_CLI_EXIT_CODES_H
#define SILICA_CLI_EXIT_CODES_H

#include "base/buf.h"

void exit_codes_text(struct buf *out);
/* As roff list items, for the manual. */
void exit_codes_roff(struct buf *out);

#endif
