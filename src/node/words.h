/* words: the last words of a container, for its status: what it wrote to its terminationMessagePath, else what its log
 * ends with, where terminationMessagePolicy is FallbackToLogsOnError.
 *
 * Owns:     nothing.
 * Used by:  work.c, on a thread of the crew: it reads files.
 * Hostile:  all of it is the sandbox's own text; what is not UTF-8 is replaced.
 */
#ifndef SILICA_NODE_WORDS_H
#define SILICA_NODE_WORDS_H

#include "base/json.h"
#include "isolate/engine.h"
#include "node/life.h"

/* The kubelet's numbers. */
#define WORDS_LAST_BYTES (LIFE_MESSAGE_BYTES - 1)
#define WORDS_LOG_BYTES  2048 /* of a log */
#define WORDS_LAST_LINES 80

/* Does this container want those of its log, if it has no others? */
bool words_are_wanted(const struct json *container);
/* "" where there are none, or they cannot be read. */
void words_read(struct engine *en, const char *box, bool wants_log, char ret[WORDS_LAST_BYTES + 1]);
/* The same of its directory. */
void words_of_box(int box_fd, bool wants_log, char ret[WORDS_LAST_BYTES + 1]);

/* The last lines of a log, which may begin in the middle of one; for tests. */
void words_of_log(struct span log, char ret[WORDS_LAST_BYTES + 1]);

#endif
