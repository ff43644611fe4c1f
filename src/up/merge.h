/* merge: our kubeconfig in somebody's own file, and out of it again.
 *
 * Owns:     nothing. Of their file everything else stays, in other words perhaps: it is written anew, as kubectl does, so
 *           comments go. Ours are the cluster and context `silica` and the user `silica-admin`.
 * Whole:    a file is replaced by another one that is the owner's alone (0600), or left as it was.
 * Used by:  cli/env.c.
 */
#ifndef SILICA_UP_MERGE_H
#define SILICA_UP_MERGE_H

#include "base/buf.h"

/* Which file: given, else the first of $KUBECONFIG, else ~/.kube/config. The caller frees it. */
int merge_file(const char *given, char **ret, struct err *e);
/* ours: our kubeconfig; its context becomes the current one. The file and its directory are made where they are missing. */
int merge_in(const char *file, struct span ours, struct err *e);
/* A current context that is ours becomes none. It is no error when nothing of ours is there. */
int merge_out(const char *file, struct err *e);

/* The texts alone. ours SPAN_NONE: out. */
int merge_text(struct span theirs, struct span ours, struct buf *out, struct err *e);

#endif
