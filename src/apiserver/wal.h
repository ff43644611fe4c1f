/* wal: looks at SQLite's write-ahead log before SQLite does.
 *
 * Why:      SQLite takes a log up to its first broken frame and forgets the rest without a word. That is right after a power
 *           cut, where only the last transaction can be broken; it is a loss of acknowledged writes when a byte in the
 *           middle went bad. The two are told apart here, so that the second is refused with nothing changed.
 * Used by:  disk.c, before the file is opened. Does no I/O; the bytes are borrowed for the call.
 * Assumes:  the log was begun anew when the last process started and after each failed commit (disk.c does so): then every
 *           transaction in it but the last was synced before the next one began.
 * Cannot:   tell damage of the very last transaction from a power cut in it.
 */
#ifndef SILICA_APISERVER_WAL_H
#define SILICA_APISERVER_WAL_H

#include "base/buf.h"

/* -1, ERR_INVALID: transactions stand behind a broken one, or the log's own head is damaged. */
int wal_check(struct span log, struct err *e);

#endif
