/* pyrepr: texts as the first server of the /execute contract writes them: lists of arguments, seconds and
 * system errors in the notation of its language. Clients match on them.
 *
 * Owns:     nothing; adds to the caller's buf, whose ceiling holds.
 * Limits:   a code point that is in no Unicode version is shown as it is rather than escaped: that would take a
 *           table that changes every year. Bytes that are not UTF-8 are shown as the lone surrogates they are
 *           there: "\udcff".
 */
#ifndef SILICA_RUNTIME_PYREPR_H
#define SILICA_RUNTIME_PYREPR_H

#include "base/buf.h"

/* 'it' or "it's", with escapes. */
int pyrepr_str(struct span s, struct buf *out, struct err *e);
/* ['sleep', '30'] */
int pyrepr_argv(char *const *argv, struct buf *out, struct err *e);
/* The shortest digits that read back as the same number, always with a fraction or exponent: 5.0, 1e+16. */
int pyrepr_float(double d, struct buf *out, struct err *e);
/* [Errno 2] No such file or directory: 'nope' */
int pyrepr_oserror(int sys, struct span subject, struct buf *out, struct err *e);
/* Command '['sleep', '30']' timed out after 5.0 seconds */
int pyrepr_timeout(char *const *argv, double seconds, struct buf *out, struct err *e);

#endif
