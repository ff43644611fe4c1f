/* time: clocks and their texts.
 *
 * Owns:     nothing. Monotonic for deadlines, wall clock only for people and protocols.
 */
#ifndef SILICA_BASE_TIME_H
#define SILICA_BASE_TIME_H

#include "base/own.h"

#define TIME_TEXT_BYTES 40 /* the longest text below with its terminator */

uint64_t time_mono_ms(void);
uint64_t time_mono_us(void);
uint64_t time_wall_ms(void); /* since 1970 */
/* The same clock as of the last tick of the kernel, some milliseconds ago at most, for a fraction of the price. */
uint64_t time_coarse_ms(void);
/* "2026-11-16T09:30:00.123Z"; with_ms false leaves the fraction out. */
const char *time_rfc3339(char text[TIME_TEXT_BYTES], struct timespec t, bool with_ms);
/* "Mon, 16 Nov 2026 09:30:00 GMT", as HTTP dates are written. */
const char *time_http(char text[TIME_TEXT_BYTES], time_t t);
/* Reads what time_http writes, nothing looser; the day of the week is not checked against the date. */
bool time_http_parse(const char *text, time_t *ret);

#endif
