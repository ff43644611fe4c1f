/* str: reading and writing small texts: numbers, percent and base64 coding, UTF-8, constant-time compare.
 *
 * Owns:     nothing. Does no I/O. Input spans are borrowed for the call.
 * Used by:  every parser of ours; these are the only places where text becomes a number or bytes.
 */
#ifndef SILICA_BASE_STR_H
#define SILICA_BASE_STR_H

#include "base/buf.h"

/* Decimal digits only, no sign, no blanks. False when empty, malformed or above max. */
bool str_u64(struct span s, uint64_t max, uint64_t *ret);
bool str_i64(struct span s, int64_t min, int64_t max, int64_t *ret);
/* A finite decimal number with optional fraction and exponent, whatever the locale: "5", "+.5", "1.e3". */
bool str_double(struct span s, double *ret);
/* "500ms", "2m", "1h30m", "1.5s" as Go writes durations, or a bare number of seconds with fraction.
 * Rounded to whole milliseconds. */
bool str_duration_ms(struct span s, uint64_t max_ms, uint64_t *ret_ms);
/* "64KiB", "10M", "1g", "4096": binary units, the i and the B optional. */
bool str_bytes(struct span s, uint64_t max, uint64_t *ret);
/* "1 t T TRUE true True" and their opposites, as Go reads booleans; also yes/no/on/off. */
bool str_bool(struct span s, bool *ret);

/* Percent-decodes once. A bad escape passes through as it stands; '+' is literal. */
int str_percent_decode(struct span s, struct buf *out, struct err *e);
/* Encodes every byte outside A-Za-z0-9-_.~ and `safe`. */
int str_percent_encode(struct span s, const char *safe, struct buf *out, struct err *e);
/* Standard base64 with padding, nothing else in between; ERR_INVALID says at which byte, and out is as it was. */
int str_base64_decode(struct span s, struct buf *out, struct err *e);
int str_base64_encode(struct span s, struct buf *out, struct err *e);

/* The same with '-' and '_', without padding, as tokens have it (RFC 7515). */
int str_base64url_decode(struct span s, struct buf *out, struct err *e);
int str_base64url_encode(struct span s, struct buf *out, struct err *e);

/* Length of the valid UTF-8 sequence at s.p (1-4), or 0 when the bytes there are not one; *ret_need is
 * then the number of bytes of the ill-formed run to replace by one U+FFFD (at least 1). A sequence cut by
 * the end of s counts as ill-formed. */
size_t str_utf8_len(struct span s, size_t *ret_need);
bool str_utf8_valid(struct span s);
/* Bytes at the end of s that may be the start of a sequence the next bytes complete (0-3). */
size_t str_utf8_partial_tail(struct span s);
/* Copies s, each ill-formed run replaced by U+FFFD, as Unicode's recommended practice says. */
int str_utf8_lossy(struct span s, struct buf *out, struct err *e);

/* True when equal; takes the same time wherever they differ. Lengths are not hidden. */
bool str_eq_secret(struct span a, struct span b);

#endif
