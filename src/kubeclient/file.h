/* file: small files that say who we are: kubeconfigs, tokens, certificates.
 *
 * Only regular files are read, so that a fifo or a terminal in a place that others write cannot stop the loop. Links are
 * followed: volumes of Kubernetes consist of them.
 *
 * Owns:     nothing.
 */
#ifndef SILICA_KUBECLIENT_FILE_H
#define SILICA_KUBECLIENT_FILE_H

#include "base/buf.h"

#include <sys/types.h>
#include <time.h>

/* Adds all of it; out's ceiling holds. */
int file_read(const char *path, struct buf *out, struct err *e);

/* Overwrites it and frees it: what is read here is secret, or stands beside what is. For OWN() too. */
void file_wipe(struct buf *b);

/* What tells one content of a path from the next. */
struct file_stamp {
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec changed;
};
/* False: it is as it was. A file that is not there has a stamp of zeroes. */
bool file_has_changed(const char *path, struct file_stamp *stamp);

#endif
