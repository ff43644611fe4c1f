#include "apiserver/wal.h"

#include <string.h>

/* https://www.sqlite.org/fileformat2.html#walformat: numbers are big-endian, whatever the checksums are made of. */
#define HEAD_BYTES    32
#define FRAME_BYTES   24          /* before each page */
#define MAGIC         0x377f0682u /* the lowest bit: checksums are of big-endian words */
#define PAGE_MIN      512u
#define PAGE_MAX      65536u
#define DEFAULT_BYTES 4096u /* of our pages, where a damaged head does not say */

struct walk {
    bool is_big;
    size_t page;
    const uint8_t *salt; /* 8 bytes; NULL: that of the frame before */
    uint32_t sum[2];     /* what the next frame's checksum goes on from */
};

static uint32_t be32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static uint32_t le32(const uint8_t *p)
{
    return (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
}

/* n is a multiple of 8. */
static void add(bool is_big, const uint8_t *p, size_t n, uint32_t sum[2])
{
    for (const uint8_t *end = p + n; p < end; p += 8) {
        sum[0] += (is_big ? be32(p) : le32(p)) + sum[1];
        sum[1] += (is_big ? be32(p + 4) : le32(p + 4)) + sum[0];
    }
}

static bool is_sum(const uint8_t *stored, const uint32_t sum[2])
{
    return be32(stored) == sum[0] && be32(stored + 4) == sum[1];
}

static bool read_head(struct span log, struct walk *w)
{
    uint32_t magic = be32(log.p), page = be32(log.p + 8);

    if ((magic & ~1u) != MAGIC || page < PAGE_MIN || page > PAGE_MAX || (page & (page - 1)))
        return false;
    *w = (struct walk){ .is_big = magic & 1, .page = page, .salt = log.p + 16 };
    add(w->is_big, log.p, 24, w->sum);
    return is_sum(log.p + 24, w->sum);
}

/* The frame follows from the one before it, whether that one is whole or not. */
static bool is_whole(const struct walk *w, const uint8_t *frame)
{
    uint32_t sum[2] = { w->sum[0], w->sum[1] };

    add(w->is_big, frame, 8, sum);
    add(w->is_big, frame + FRAME_BYTES, w->page, sum);
    return is_sum(frame + 16, sum);
}

/* Up to the end of a sector the last frame may be repeated, and a repetition may reach behind what was synced. Each of our
 * transactions begins with a lower page than the last one ended with. */
static bool is_transaction_end(const uint8_t *frame, const uint8_t *before)
{
    return be32(frame + 4) != 0 && !(before && memcmp(before, frame, 8) == 0);
}

static bool is_zero(struct span bytes)
{
    for (size_t i = 0; i < bytes.n; i++)
        if (bytes.p[i])
            return false;
    return true;
}

static int damaged(size_t frame, struct err *e)
{
    return err_set(e, ERR_INVALID, "the log is damaged at frame %zu, and writes stand behind it",
                   frame);
}

int wal_check(struct span log, struct err *e)
{
    struct walk w;
    bool is_broken = false;
    size_t broken_at = 0, ends = 0, number = 0;

    if (log.n < HEAD_BYTES)
        return 0; /* nothing was ever committed in it */
    if (!read_head(log, &w)) {
        if (!is_zero(span_slice(log, 0, HEAD_BYTES)))
            return err_set(e, ERR_INVALID, "the head of the log is damaged");
        /* A head that never arrived, before the first sync: there can be one transaction. */
        w = (struct walk){ .page = DEFAULT_BYTES };
        is_broken = true;
    }
    for (size_t at = HEAD_BYTES; log.n - at >= FRAME_BYTES + w.page; at += FRAME_BYTES + w.page) {
        const uint8_t *frame = log.p + at;
        bool is_of_this_log = !w.salt || memcmp(frame + 8, w.salt, 8) == 0;
        bool is_end = is_transaction_end(frame, number ? frame - FRAME_BYTES - w.page : NULL);

        number++;
        if (is_of_this_log && is_whole(&w, frame)) {
            ends += is_broken && is_end;
        } else if (!is_broken) {
            is_broken = true;
            broken_at = number;
            ends = is_of_this_log && is_end;
        }
        if (ends > 1)
            return damaged(broken_at, e);
        w.sum[0] = be32(frame + 16);
        w.sum[1] = be32(frame + 20);
    }
    return 0;
}
