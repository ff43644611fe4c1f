/* Numbers of trees on their way, with their reasons. The stream comes from the other side of a sandbox's wall. */
#ifndef SILICA_ARCHIVE_LIMITS_H
#define SILICA_ARCHIVE_LIMITS_H

/* clang-format off */
#define ARCHIVE_PATH_MAX_BYTES  4095        /* of a name in the stream and of a link's target; the kernel's own limit */
#define ARCHIVE_EXTRA_MAX_BYTES (64 * 1024) /* of one pax header: two paths, and attributes we do not read */
#define ARCHIVE_DEPTH_MAX       256         /* directories in each other: each is a descriptor while it is filled */
#define ARCHIVE_PIECE_BYTES     (64 * 1024) /* read from a file at a time */
/* clang-format on */

#endif
