/* split: cuts a command text into arguments by the lexical rules of a POSIX shell, and by nothing else: no
 * variables, globs, pipes or comments (runtime contract A.2.3).
 *
 * Owns:     a split owns its words. Does no I/O.
 * Used by:  the /execute route. The error texts are part of the contract: they go to the client as they are.
 */
#ifndef SILICA_RUNTIME_SPLIT_H
#define SILICA_RUNTIME_SPLIT_H

#include "base/buf.h"

#define SPLIT_MAX_BYTES (4 * 1024 * 1024) /* of all words; twice what exec takes by default */

struct split {
    char **argv; /* NULL-terminated, into text */
    size_t argc; /* at least one */
    char *text;
};

/* ERR_INVALID with the contract's text: "No closing quotation", "No escaped character", "list index out of
 * range" for a blank command, "embedded null byte"; ERR_LIMIT for more than SPLIT_MAX_BYTES. */
int split_command(struct span command, struct split *ret, struct err *e);
void split_done(struct split *s);

#endif
