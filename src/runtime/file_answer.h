/* file_answer: a regular file as the body of an answer, with ranges and conditions (RFC 9110 13 and 14).
 *
 * Used by:  /download and GET /v1/files. The caller has added its own fields; this adds content-type,
 *           last-modified, accept-ranges and content-range, and ends the exchange.
 */
#ifndef SILICA_RUNTIME_FILE_ANSWER_H
#define SILICA_RUNTIME_FILE_ANSWER_H

#include "http/serve.h"
#include "runtime/files/file_read.h"

/* Takes the file's descriptor. */
void file_answer(struct http_exchange *x, struct file_read *file);

#endif
