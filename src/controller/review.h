/* review: a ConversionReview of apiextensions.k8s.io, and the answer to it: the objects in it, each in the version that is
 * wanted.
 *
 *     review_answer(body, &(struct review_config){ .has_extensions = true }, &answer, e)
 *
 * Owns:     nothing. Does no I/O, reads no clock.
 * Used by:  webhook, which gets them from API servers.
 * Refused:  one object that cannot be converted fails the whole review, as the API has it: the answer is then a Failure whose
 *           message names the object and says why. What is no review at all gets no answer.
 * Threads:  any; a review belongs to one.
 */
#ifndef SILICA_CONTROLLER_REVIEW_H
#define SILICA_CONTROLLER_REVIEW_H

#include "base/buf.h"

struct review_config {
    bool has_extensions; /* templates, claims and pools too */
};

struct review_verdict {
    size_t objects; /* in the answer */
    bool is_failure;
    char why[512]; /* of a failure; the answer's message */
};

/* Appends the answer. ERR_INVALID: it is no ConversionReview with a request, and out is as it was. ERR_LIMIT: the objects
 * are too large for out, or too many. */
int review_answer(struct span body, const struct review_config *config, struct buf *out,
                  struct review_verdict *ret, struct err *e);

#endif
