#include "runtime/copy.h"

#include "archive/limits.h"
#include "archive/pack.h"
#include "archive/unpack.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>

#define PIECE_MAX_BYTES (4 * ARCHIVE_PIECE_BYTES)
#define PIPE_BYTES                                                                                 \
    (1                                                                                             \
     << 20) /* between PID 1 and us: on a busy machine each time it is full costs a turn of both */

static int fail(const struct err *e, int code)
{
    fprintf(stderr, "silica-runtime: %s\n", e->msg);
    if (e->hint[0])
        fprintf(stderr, "hint: %s\n", e->hint);
    return code;
}

static void say_passed_over(const struct archive_counts *counts)
{
    if (counts->passed_over)
        fprintf(stderr, "silica-runtime: passed over %llu that %s no file, directory or link\n",
                (unsigned long long)counts->passed_over, counts->passed_over == 1 ? "is" : "are");
}

static int pack(const char *path, struct err *e)
{
    OWN(buf_done) struct buf piece = BUF_INIT(PIECE_MAX_BYTES);
    struct pack *p;
    int more = 1;

    if (pack_open(path, &p, e) < 0)
        return -1;
    (void)fcntl(STDOUT_FILENO, F_SETPIPE_SZ, PIPE_BYTES); /* if it is one, and may be so large */
    while (more > 0) {
        buf_clear(&piece);
        more = pack_read(p, &piece, e);
        if (more >= 0 && fd_write_all(STDOUT_FILENO, buf_span(&piece), e) < 0)
            more = -1;
    }
    if (more == 0)
        say_passed_over(pack_counts(p));
    pack_free(p);
    return more;
}

static int feed_stdin(struct unpack *u, struct err *e)
{
    uint8_t piece[PIECE_MAX_BYTES];
    ssize_t n;

    (void)fcntl(STDIN_FILENO, F_SETPIPE_SZ, PIPE_BYTES);
    for (;;) {
        n = read(STDIN_FILENO, piece, sizeof piece);
        if (n == 0)
            return unpack_finish(u, e);
        if (n < 0 && errno != EINTR)
            return err_sys(e, "cannot read the archive");
        if (n > 0 && unpack_feed(u, span_of(piece, (size_t)n), e) < 0)
            return -1;
    }
}

/* No ceilings: what fills up is the sandbox, and its own limits hold. */
static int unpack(const char *path, const char *top, struct err *e)
{
    struct unpack_spec spec = { path, span_cstr(top), UINT64_MAX, UINT64_MAX };
    struct unpack *u;
    int done;

    if (unpack_open(&spec, &u, e) < 0)
        return -1;
    done = feed_stdin(u, e);
    if (done == 0)
        say_passed_over(unpack_counts(u));
    unpack_free(u);
    return done;
}

bool copy_main(int argc, char **argv, int *ret_code)
{
    bool packs = argc > 1 && strcmp(argv[1], "pack") == 0;
    bool unpacks = argc > 1 && strcmp(argv[1], "unpack") == 0;
    struct err e;
    int done;

    if (!packs && !unpacks)
        return false;
    if (argc != 3 && (packs || argc != 4)) {
        (void)err_set(&e, ERR_USAGE, "it is 'pack PATH' or 'unpack PATH [TOP]'");
        *ret_code = fail(&e, 2);
        return true;
    }
    done = packs ? pack(argv[2], &e) : unpack(argv[2], argc > 3 ? argv[3] : NULL, &e);
    *ret_code = done < 0 ? fail(&e, 1) : 0;
    return true;
}
