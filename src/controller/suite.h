/* suite: what the controllers must do, as tests that need nothing but a client of some API server: the embedded store, or
 * a server behind HTTPS. Named after the public project's tests where one proves the same (docs/controller-conformance.md).
 *
 * Tests only: needs cmocka.
 */
#ifndef SILICA_CONTROLLER_SUITE_H
#define SILICA_CONTROLLER_SUITE_H

#include "kube/client_suite.h"

/* The number of tests that failed, as cmocka counts. */
int controller_suite_run(const struct client_suite *s);

#endif
