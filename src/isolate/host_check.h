/* host_check: why this host makes no sandbox, by the name of what forbids it: a sysctl, the filter of a container, ...
 *
 *     if (box_start(&spec, &box, e) < 0)
 *         host_check_explain(e);
 *
 * Nothing is concluded from versions or from the distribution: a process of its own does what a sandbox needs, step by step,
 * and the first step that the kernel refuses is looked up.
 *
 * Owns:     the process, until the call returns.
 * Threads:  it forks: call it from a process with one thread.
 * Cost:     about 2 ms, and only after a failure.
 */
#ifndef SILICA_ISOLATE_HOST_CHECK_H
#define SILICA_ISOLATE_HOST_CHECK_H

#include "base/err.h"

/* e: why a sandbox could not be made. The cause comes before its message, and what to change is its hint. It stays as it is
 * where the host allows all that a sandbox needs: then the cause is another. Returns -1. */
int host_check_explain(struct err *e);

#endif
