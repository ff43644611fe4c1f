/* Replays a corpus directory through LLVMFuzzerTestOneInput: `name_replay DIR`. The corpus is part of the
 * code: an empty or missing directory is a failure, not a pass. */
#include "base/fd.h"

#include <dirent.h>
#include <fcntl.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define INPUT_MAX_BYTES (4 * 1024 * 1024)

static int replay(int dir_fd, const char *name, struct err *e)
{
    OWN(buf_done) struct buf input = BUF_INIT(INPUT_MAX_BYTES);
    OWN_FD int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);
    uint8_t *exact;

    if (fd < 0)
        return err_sys(e, "cannot open '%s'", name);
    if (fd_read_all(fd, &input, e) < 0)
        return -1;
    exact = own_new(
        input.n); /* a block of the exact size, so that a sanitizer sees one byte too many */
    if (input.n)
        memcpy(exact, input.p, input.n);
    (void)LLVMFuzzerTestOneInput(exact, input.n);
    free(exact);
    return 0;
}

int main(int argc, char **argv)
{
    DIR *dir = argc == 2 ? opendir(argv[1]) : NULL;
    struct err e = { 0 };
    unsigned count = 0;

    if (!dir) {
        fprintf(stderr, "cannot open the corpus '%s'\n", argc == 2 ? argv[1] : "");
        return 1;
    }
    for (struct dirent *d = readdir(dir); d; d = readdir(dir)) {
        if (d->d_name[0] == '.')
            continue;
        if (replay(dirfd(dir), d->d_name, &e) < 0) {
            fprintf(stderr, "%s\n", e.msg);
            return 1;
        }
        count++;
    }
    closedir(dir);
    printf("%u inputs\n", count);
    return count == 0;
}
