#include "runtime/install.h"

#include "base/buf.h"
#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIECE_BYTES (1u << 20) /* of one call; the program has about one of them */

static int copy_all(int from, int to, const char *file, struct err *e)
{
    ssize_t n;

    do {
        n = sendfile(to, from, NULL, PIECE_BYTES);
        if (n < 0 && errno != EINTR)
            return err_sys(e, "cannot write '%s'", file);
    } while (n != 0);
    /* The umask of an init container is not the reader's business: another user runs this. */
    return fchmod(to, 0755) < 0 || fsync(to) < 0 ? err_sys(e, "cannot write '%s'", file) : 0;
}

int install_program(const char *file, struct err *e)
{
    char fresh[PATH_MAX]; /* beside it: a rename replaces a program that runs, a write does not */
    OWN_FD int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    OWN_FD int to = -1;
    int n = snprintf(fresh, sizeof fresh, "%s.new", file);

    if (from < 0)
        return err_sys(e, "cannot open this program as '/proc/self/exe'");
    if (n < 0 || (size_t)n >= sizeof fresh)
        return err_set(e, ERR_USAGE, "--install: a path of %zu bytes at most", sizeof fresh - 5);
    to = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0700);
    if (to < 0)
        return err_sys(e, "cannot create '%s'", fresh);
    if (copy_all(from, to, fresh, e) == 0) {
        /* by path: where the operator says, before any command runs. */
        if (rename(fresh, file) == 0)
            return 0;
        (void)err_sys(e, "cannot rename '%s' to '%s'", fresh, file);
    }
    /* by path: as above. */
    (void)unlink(fresh);
    return -1;
}
