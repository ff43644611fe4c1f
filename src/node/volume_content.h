/* volume_content: the files of a volume that objects make: configMap, secret, downwardAPI, projected.
 *
 * Owns:     copies of all texts, VOLUME_CONTENT_MAX_BYTES at most. Does no I/O: what it needs was fetched before (needs.h).
 * Used by:  volumes.c, which writes them (volume_write.h).
 * Missing:  is an error in the kubelet's words, unless optional.
 */
#ifndef SILICA_NODE_VOLUME_CONTENT_H
#define SILICA_NODE_VOLUME_CONTENT_H

#include "node/downward.h"
#include "node/needs.h"

#include <sys/types.h>

#define VOLUME_CONTENT_MAX_BYTES                                                                   \
    (8 * 1024 * 1024) /* of one volume: eight ConfigMaps of the largest size */
#define VOLUME_FILES_MAX      4096
#define VOLUME_MODE_DEFAULT   0644
#define VOLUME_PATH_MAX_BYTES 1024 /* of a file in it */

struct volume_file {
    char *
        path; /* relative, plain: no empty part, no "..", the first part does not begin with ".." */
    struct buf bytes;
    mode_t mode;
    bool is_token; /* its owner may be the Pod's user, and then nobody else reads it */
};

struct volume_content {
    struct volume_file *v; /* a path once; the last who named it has it */
    size_t n;
    size_t bytes;
};

struct volume_source {
    const struct downward *downward;
    const struct needs *needs;
};

/* Is it a volume of this sort? */
bool volume_content_is(const struct json *volume);
/* *ret is to be done with after success. */
int volume_content_make(const struct volume_source *from, const struct json *volume,
                        struct volume_content *ret, struct err *e);
void volume_content_done(struct volume_content *c);
/* Is the path one that a file may have? */
bool volume_path_is_plain(struct span path);

#endif
