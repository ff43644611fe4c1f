/* json_num: numbers between text and machine form, exactly and whatever the locale says. Private to
 * base. */
#ifndef SILICA_BASE_JSON_NUM_H
#define SILICA_BASE_JSON_NUM_H

#include "base/buf.h"

#define JSON_NUM_TEXT_BYTES 32 /* the longest text below, with room */

/* The double nearest to a number in JSON's grammar (the caller checked that). False when it is not
 * finite. */
bool json_num_read(struct span s, double *ret);
/* The shortest text that reads back equal, always with '.' or 'e'. v is finite. Returns the length;
 * no NUL. */
size_t json_num_write(double v, char text[JSON_NUM_TEXT_BYTES]);
size_t json_num_write_u64(uint64_t v, char text[JSON_NUM_TEXT_BYTES]);
size_t json_num_write_i64(int64_t v, char text[JSON_NUM_TEXT_BYTES]);

#endif
