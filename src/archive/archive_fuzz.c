/* Any bytes as an archive. First byte: where the stream is cut. Whole and cut must say the same; what is unpacked is below
 * the destination, and nothing temporary stays. */
#include "archive/tar.h"
#include "archive/unpack.h"
#include "base/scratch.h"

#include <dirent.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define LOG_MAX_BYTES   (16 * 1024 * 1024)
#define INPUT_MAX_BYTES (256 * 1024)
#define FILES_MAX       64
#define FILES_MAX_BYTES (1024 * 1024)

static void add(struct buf *log, struct span s)
{
    struct err e;

    if (buf_add(log, s, &e) < 0)
        abort();
}

/* One line per entry, then its content; the verdict last. */
static void read_part(struct tar_in *t, struct span in, struct buf *log)
{
    struct span data = SPAN_NONE;
    struct err e;
    size_t used;

    while (in.n) {
        enum tar_step step = tar_in_feed(t, in, &used, &data, &e);

        if (step == TAR_BAD)
            return;
        assert(used > 0);
        if (step == TAR_ENTRY) {
            assert(t->entry.path[0] && (t->entry.kind == TAR_FILE || !t->entry.size));
            assert((t->entry.kind == TAR_LINK) == (t->entry.target[0] != '\0'));
            assert(buf_addf(log, &e, "\n%d %o %llu %lld %s %s\n", t->entry.kind, t->entry.mode,
                            (unsigned long long)t->entry.size, (long long)t->entry.mtime,
                            t->entry.path, t->entry.target) == 0);
        }
        if (step == TAR_DATA)
            add(log, data);
        in = span_skip(in, used);
    }
}

static void read_all(struct span in, size_t cut, struct buf *log)
{
    struct tar_in t;

    tar_in_init(&t);
    read_part(&t, span_slice(in, 0, cut), log);
    read_part(&t, span_skip(in, cut), log);
    assert(t.state <= TAR_AT_FAULT);
    add(log, span_of(&t.state, sizeof t.state));
    tar_in_done(&t);
}

static void check_no_temp(const struct scratch *s)
{
    DIR *dir = opendir(scratch_path(s, "out"));

    assert(dir);
    for (struct dirent *d = readdir(dir); d; d = readdir(dir))
        assert(!span_starts(span_cstr(d->d_name), ".silica-cp-"));
    (void)closedir(dir);
}

static void unpack_all(struct span in)
{
    struct scratch s;
    struct unpack_spec spec = { .max_bytes = FILES_MAX_BYTES, .max_entries = FILES_MAX };
    struct unpack *u;
    struct err e;

    scratch_make(&s);
    scratch_dir(&s, "out");
    spec.destination = scratch_path(&s, "out");
    assert(unpack_open(&spec, &u, &e) == 0);
    if (unpack_feed(u, in, &e) == 0)
        (void)unpack_finish(u, &e);
    assert(unpack_counts(u)->bytes <= FILES_MAX_BYTES);
    unpack_free(u);
    check_no_temp(&s);
    assert(scratch_count(&s, "") == 1); /* nothing beside the destination */
    scratch_remove(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    OWN(buf_done) struct buf whole = BUF_INIT(LOG_MAX_BYTES), cut = BUF_INIT(LOG_MAX_BYTES);
    struct span in;

    if (size < 1 || size > INPUT_MAX_BYTES)
        return 0;
    in = span_of(data + 1, size - 1);
    read_all(in, in.n, &whole);
    read_all(in, in.n * data[0] / 256, &cut);
    assert(span_eq(buf_span(&whole), buf_span(&cut)));
    unpack_all(in);
    return 0;
}
