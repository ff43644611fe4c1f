/* copy: `silica-runtime pack PATH` and `silica-runtime unpack PATH [TOP]`: this side of `silica cp`.
 *
 * Who copies runs them as commands of the sandbox (/proc/self/exe is this program in any root), so a copy is bounded,
 * signalled, fed and ended as every command is, and PID 1 itself touches no file for it.
 * Streams:  an archive on standard output or input; standard error says what went wrong, or what was passed over.
 */
#ifndef SILICA_RUNTIME_COPY_H
#define SILICA_RUNTIME_COPY_H

#include "base/err.h"

/* Is argv[1] one of the two? Then *ret_code is what main() returns. */
bool copy_main(int argc, char **argv, int *ret_code);

#endif
