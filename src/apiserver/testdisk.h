/* testdisk: a disk for tests, as a file system of SQLite ("testdisk"). Files are real; what was written and not synced is kept
 * apart, so that a power cut can take it away: all of it, nothing, or any sectors. It can also be full, fail, or be slow.
 *
 * Owns:     what each file held at its last sync, and which sectors changed since.
 * Used by:  tests, one disk at a time. Random choices follow from the seed alone and from the order of calls.
 * Threads:  any; one lock.
 */
#ifndef SILICA_APISERVER_TESTDISK_H
#define SILICA_APISERVER_TESTDISK_H

#include "base/own.h"

#define TESTDISK "testdisk"

/* Registers the file system. All files are forgotten; nothing fails. */
void testdisk_init(unsigned seed);
void testdisk_done(void);
/* A file that was there before: all of it is synced. */
void testdisk_know(const char *path);

/* The power goes after so many more writes and syncs (0: never). From then on every call fails. */
void testdisk_cut_after(unsigned calls);
bool testdisk_is_cut(void);
/* All files are closed: they become what a disk may hold after the cut, and the power is back. */
void testdisk_restore(void);

enum testdisk_fault { TESTDISK_WELL, TESTDISK_FULL, TESTDISK_BROKEN };
/* One of `odds` calls that write fails: with "no space left", or an I/O error of writes and syncs. odds 1: all of them. On a
 * full disk only those fail that make a file longer. */
void testdisk_fail(enum testdisk_fault fault, unsigned odds);
/* Syncs return success and do nothing. */
void testdisk_lie(bool is_lying);
/* A sync waits until this is called with false. */
void testdisk_hold_syncs(bool is_held);
unsigned testdisk_syncs(void); /* that have begun */

#endif
