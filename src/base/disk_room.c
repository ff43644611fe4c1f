#include "base/disk_room.h"

#include "base/own.h"

#include <stdio.h>
#include <sys/vfs.h>

int disk_room_read(int fd, uint64_t floor_bytes, struct disk_room *ret, struct err *e)
{
    struct statfs fs;

    if (fstatfs(fd, &fs) < 0)
        return err_sys(e, "cannot learn how full the disk is");
    ret->free_bytes = (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize;
    ret->floor_bytes = floor_bytes
                           ? floor_bytes
                           : MAX((uint64_t)DISK_FLOOR_BYTES,
                                 (uint64_t)fs.f_blocks * (uint64_t)fs.f_bsize / DISK_FLOOR_PART);
    return 0;
}

bool disk_room_is_short(const struct disk_room *r)
{
    return r->free_bytes < r->floor_bytes;
}

const char *disk_room_text(const struct disk_room *r, char *text, size_t n)
{
    (void)snprintf(
        text, n, "only %llu MiB are free, and sandboxes leave %llu MiB: those that write most %s",
        (unsigned long long)(r->free_bytes >> 20), (unsigned long long)(r->floor_bytes >> 20),
        r->free_bytes ? "stand still" : "stand still, and nothing new is stored");
    return text;
}
