#include "archive/tar.h"

#include "archive/limits.h"

#define NAME_BYTES  100                      /* of a name in the head itself */
#define SMALL_BYTES ((uint64_t)077777777777) /* the largest size of 11 octal digits */
#define EXTRA_HEAD  "././@PaxHeader"         /* the name others give it; nobody reads it */

/* As POSIX lays it out: texts without a terminator when they fill their field. */
struct head {
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type, target[100];
    char magic[6], version[2], user[32], group[32], major[8], minor[8], prefix[155], unused[12];
};
_Static_assert(sizeof(struct head) == TAR_BLOCK_BYTES, "a head is one block");

static void put_octal(char *field, size_t n, uint64_t value)
{
    field[n - 1] = '\0';
    for (size_t i = n - 1; i-- > 0; value >>= 3)
        field[i] = (char)('0' + (value & 7));
}

static void put_text(char *field, size_t n, const char *text)
{
    memcpy(field, text, strnlen(text, n));
}

static int add_head(struct buf *out, char type, const struct tar_entry *entry, struct err *e)
{
    struct head h = { .type = type, .magic = "ustar", .version = { '0', '0' } };
    uint64_t sum = 0;

    put_text(h.name, sizeof h.name, entry->path);
    put_text(h.target, sizeof h.target, entry->target);
    put_octal(h.mode, sizeof h.mode, entry->mode & 07777);
    put_octal(h.uid, sizeof h.uid, 0);
    put_octal(h.gid, sizeof h.gid, 0);
    put_octal(h.size, sizeof h.size, MIN(entry->size, SMALL_BYTES));
    put_octal(h.mtime, sizeof h.mtime, (uint64_t)MAX(entry->mtime, (int64_t)0) & SMALL_BYTES);
    memset(h.sum, ' ', sizeof h.sum);
    for (size_t i = 0; i < sizeof h; i++)
        sum += ((const uint8_t *)&h)[i];
    put_octal(h.sum, 7, sum);
    return buf_add(out, span_of(&h, sizeof h), e);
}

/* "LEN key=value\n", where LEN counts its own digits. */
static int add_record(struct buf *extra, const char *key, const char *value, struct err *e)
{
    size_t n = strlen(key) + strlen(value) + 3, digits = 1;

    for (size_t limit = 10; n + digits >= limit; limit *= 10)
        digits++;
    return buf_addf(extra, e, "%zu %s=%s\n", n + digits, key, value);
}

/* What does not fit the head. Times before 1970 are left out: nobody has one. */
static int add_extra(struct buf *out, const struct tar_entry *entry, struct err *e)
{
    OWN(buf_done) struct buf extra = BUF_INIT(ARCHIVE_EXTRA_MAX_BYTES);
    struct tar_entry head = { .path = EXTRA_HEAD, .target = "", .mode = 0644 };
    char size[24];

    (void)snprintf(size, sizeof size, "%llu", (unsigned long long)entry->size);
    if ((strlen(entry->path) > NAME_BYTES && add_record(&extra, "path", entry->path, e) < 0) ||
        (strlen(entry->target) > NAME_BYTES &&
         add_record(&extra, "linkpath", entry->target, e) < 0) ||
        (entry->size > SMALL_BYTES && add_record(&extra, "size", size, e) < 0))
        return -1;
    if (!extra.n)
        return 0;
    head.size = extra.n;
    if (add_head(out, 'x', &head, e) < 0 || buf_add(out, buf_span(&extra), e) < 0)
        return -1;
    return tar_add_pad(out, extra.n, e);
}

int tar_add_head(struct buf *out, const struct tar_entry *entry, struct err *e)
{
    static const char types[] = { [TAR_FILE] = '0', [TAR_DIR] = '5', [TAR_LINK] = '2' };

    assert(entry->kind != TAR_OTHER);
    if (add_extra(out, entry, e) < 0)
        return -1;
    return add_head(out, types[entry->kind], entry, e);
}

size_t tar_pad(uint64_t size)
{
    return (TAR_BLOCK_BYTES - size % TAR_BLOCK_BYTES) % TAR_BLOCK_BYTES;
}

int tar_add_pad(struct buf *out, uint64_t size, struct err *e)
{
    static const uint8_t zeroes[TAR_BLOCK_BYTES];

    return buf_add(out, span_of(zeroes, tar_pad(size)), e);
}

int tar_add_end(struct buf *out, struct err *e)
{
    static const uint8_t zeroes[2 * TAR_BLOCK_BYTES];

    return buf_add(out, span_of(zeroes, sizeof zeroes), e);
}
