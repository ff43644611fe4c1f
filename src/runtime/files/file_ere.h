/* file_ere: does a line match a regular expression, in time proportional to the line.
 *
 * Owns:     its program, FILE_ERE_MAX_STEPS instructions at most. Does no I/O.
 * Used by:  /grep. Not regcomp(): glibc's can eat gigabytes on a pattern of 30 bytes (nested repetitions), takes
 *           exponential time on back references, and cannot be interrupted; patterns come from the network.
 *
 * POSIX extended syntax: `. [set] ( ) | * + ? {m,n} ^ $`, character classes such as `[[:alpha:]]`, backslash
 * before any of these; and of what Python and grep add: `\d \w \s \D \W \S`, `\b \B`, `\t \n \r`, `(?:...)`, lazy
 * repetition (the same, since only whether it matches is asked). Back references and look-around are
 * ERR_UNSUPPORTED. Characters are UTF-8; a byte that is none is a character of its own.
 */
#ifndef SILICA_RUNTIME_FILE_ERE_H
#define SILICA_RUNTIME_FILE_ERE_H

#include "base/buf.h"

#define FILE_ERE_MAX_BYTES 1024 /* of a pattern; then ERR_LIMIT */
/* Instructions, repetitions written out; then ERR_LIMIT. Time per character */
#define FILE_ERE_MAX_STEPS  1000
#define FILE_ERE_MAX_NEST   50  /* parentheses */
#define FILE_ERE_MAX_REPEAT 255 /* in {m,n}: POSIX's least */

struct file_ere;

/* ERR_INVALID says what is wrong and at which byte. */
int file_ere_new(struct span pattern, bool ignore_case, struct file_ere **ret, struct err *e);
void file_ere_free(struct file_ere *r);
/* Anywhere in the line (without its newline). Not for two threads at once. */
bool file_ere_matches(struct file_ere *r, struct span line);

#endif
