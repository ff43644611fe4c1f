/* payload: silica-runtime and the full program, which `silica` carries inside itself, so that one file is all there is to
 * install.
 *
 * Owns:     nothing; the descriptor is the caller's.
 */
#ifndef SILICA_CLI_PAYLOAD_H
#define SILICA_CLI_PAYLOAD_H

#include "base/buf.h"

struct span payload_bytes(void);
/* Where the same program is installed on its own, if it is: beside this one. "" when that cannot be told. */
const char *payload_path(void);
/* A sealed file in memory that holds the program, open for reading and for exec: nobody can change what runs as PID 1,
 * whoever else reaches the file. */
int payload_open(int *ret_fd, struct err *e);

/* The full program, in the same way; only in `silica`, not in the full program itself. */
int payload_open_full(int *ret_fd, struct err *e);
/* Bytes as such a file. */
int payload_seal(const char *name, struct span bytes, int *ret_fd, struct err *e);

#endif
