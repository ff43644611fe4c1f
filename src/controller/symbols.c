#include "controller/symbols.h"

#include "base/fd.h"
#include "base/str.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <zlib.h>

#define MAPS_MAX_BYTES (1u << 20)

struct symbols {
    const uint8_t *image; /* the file, or NULL */
    size_t image_bytes;
    const char *names;
    size_t names_bytes;
    char *unpacked; /* ours: what `names` points into, unless it is the image */
    struct {
        uint64_t at, bytes;
        uint32_t name;
    } * rows; /* by address */
    size_t n;
    uint64_t base; /* what is added to addresses in the file */
};

static int on_object(struct dl_phdr_info *info, size_t size, void *ctx)
{
    *(uint64_t *)ctx = info->dlpi_addr;
    return 1; /* the first is the program */
}

static int by_address(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

static const void *part(const struct symbols *s, uint64_t at, uint64_t bytes)
{
    return at <= s->image_bytes && bytes <= s->image_bytes - at ? s->image + at : NULL;
}

static void take_rows(struct symbols *s, const Elf64_Sym *syms, size_t count)
{
    s->rows = own_array(count ? count : 1, sizeof *s->rows);
    for (size_t i = 0; i < count; i++) {
        if (ELF64_ST_TYPE(syms[i].st_info) != STT_FUNC || !syms[i].st_value ||
            syms[i].st_name >= s->names_bytes)
            continue;
        s->rows[s->n].at = syms[i].st_value;
        s->rows[s->n].bytes = syms[i].st_size;
        s->rows[s->n++].name = syms[i].st_name;
    }
    qsort(s->rows, s->n, sizeof *s->rows, by_address);
}

/* ---- names that were packed by tools/names.py ---- */

#define PACKED_SECTION   ".silica.names"
#define PACKED_MAX_BYTES (16u << 20) /* ten times what there are */

static bool take_leb(struct span *in, uint64_t *ret)
{
    *ret = 0;
    for (unsigned shift = 0; in->n && shift < 64; shift += 7) {
        uint8_t byte = in->p[0];

        *in = span_skip(*in, 1);
        *ret |= (uint64_t)(byte & 127) << shift;
        if (!(byte & 128))
            return true;
    }
    return false;
}

/* One row; false: there is none, or it is not as we write them. */
static bool take_packed(struct symbols *s, struct span *in, uint64_t *at)
{
    uint64_t distance, bytes;
    const uint8_t *end;

    if (!take_leb(in, &distance) || !take_leb(in, &bytes))
        return false;
    end = memchr(in->p, 0, in->n);
    if (!end)
        return false;
    *at += distance;
    s->rows[s->n].at = *at;
    s->rows[s->n].bytes = bytes;
    s->rows[s->n++].name = (uint32_t)(in->p - (const uint8_t *)s->names);
    *in = span_skip(*in, (size_t)(end - in->p) + 1);
    return true;
}

static void read_packed(struct symbols *s, const uint8_t *packed, size_t n)
{
    uint32_t count, bytes;
    uLongf got;
    struct span in;
    uint64_t at = 0;

    if (!packed || n < 8)
        return;
    memcpy(&count, packed, 4);
    memcpy(&bytes, packed + 4, 4);
    if (!bytes || bytes > PACKED_MAX_BYTES || count > bytes)
        return;
    s->unpacked = own_new(bytes);
    got = bytes;
    if (uncompress((Bytef *)s->unpacked, &got, packed + 8, n - 8) != Z_OK || got != bytes)
        return;
    s->names = s->unpacked;
    s->names_bytes = bytes;
    s->rows = own_array(count ? count : 1, sizeof *s->rows);
    in = span_of(s->unpacked, bytes);
    while (s->n < count && take_packed(s, &in, &at))
        ;
}

static bool is_packed(const struct symbols *s, const Elf64_Shdr *sections, const Elf64_Ehdr *head,
                      unsigned i)
{
    const Elf64_Shdr *names = head->e_shstrndx < head->e_shnum ? &sections[head->e_shstrndx] : NULL;
    const char *name =
        names ? part(s, names->sh_offset + sections[i].sh_name, sizeof PACKED_SECTION) : NULL;

    return name && memcmp(name, PACKED_SECTION, sizeof PACKED_SECTION) == 0;
}

/* Our own file, as the kernel took it: still every offset is checked. */
static void read_table(struct symbols *s)
{
    const Elf64_Ehdr *head = part(s, 0, sizeof *head);
    const Elf64_Shdr *sections =
        head ? part(s, head->e_shoff, (uint64_t)head->e_shnum * sizeof *sections) : NULL;

    for (unsigned i = 0; sections && i < head->e_shnum; i++) {
        const Elf64_Shdr *table = &sections[i], *names;
        const Elf64_Sym *syms;

        if (is_packed(s, sections, head, i)) {
            read_packed(s, part(s, table->sh_offset, table->sh_size), table->sh_size);
            return;
        }
        if (table->sh_type != SHT_SYMTAB || table->sh_link >= head->e_shnum)
            continue;
        names = &sections[table->sh_link];
        syms = part(s, table->sh_offset, table->sh_size);
        s->names = part(s, names->sh_offset, names->sh_size);
        s->names_bytes = names->sh_size;
        if (syms && s->names && s->names_bytes && !s->names[s->names_bytes - 1])
            take_rows(s, syms, table->sh_size / sizeof *syms);
        return;
    }
}

struct symbols *symbols_open(void)
{
    struct symbols *s = NEW(struct symbols);
    OWN_FD int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    struct stat st;
    void *image;

    (void)dl_iterate_phdr(on_object, &s->base);
    if (fd < 0 || fstat(fd, &st) < 0 || st.st_size <= 0)
        return s;
    image = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (image == MAP_FAILED)
        return s;
    s->image = image;
    s->image_bytes = (size_t)st.st_size;
    read_table(s);
    return s;
}

void symbols_close(struct symbols *s)
{
    if (s->image)
        (void)munmap((void *)(uintptr_t)s->image, s->image_bytes);
    free(s->rows);
    free(s->unpacked);
    free(s);
}

size_t symbols_count(const struct symbols *s)
{
    return s->n;
}

const char *symbols_name(const struct symbols *s, uintptr_t address)
{
    uint64_t at = address - s->base;
    size_t low = 0, high = s->n;

    while (low < high) {
        size_t mid = (low + high) / 2;

        if (s->rows[mid].at <= at)
            low = mid + 1;
        else
            high = mid;
    }
    if (!low || at - s->rows[low - 1].at >= (s->rows[low - 1].bytes ? s->rows[low - 1].bytes : 1))
        return NULL;
    return s->names + s->rows[low - 1].name;
}

/* "start-limit r-xp offset ...": the first that can be run. */
static bool read_line(struct span line, struct symbols_mapping *m)
{
    unsigned long long start, limit, offset;
    char rights[5], text[128];

    (void)snprintf(text, sizeof text, "%.*s", SPAN_ARG(line));
    if (sscanf(text, "%llx-%llx %4s %llx", &start, &limit, rights, &offset) != 4 ||
        rights[2] != 'x')
        return false;
    m->start = start;
    m->limit = limit;
    m->offset = offset;
    return true;
}

struct symbols_mapping symbols_mapping(void)
{
    OWN(buf_done) struct buf maps = BUF_INIT(MAPS_MAX_BYTES);
    struct symbols_mapping m = { 0 };
    struct span rest, line;
    ssize_t n = readlink("/proc/self/exe", m.file, sizeof m.file - 1);
    struct err e;

    m.file[n > 0 ? n : 0] = '\0';
    if (fd_read_file("/proc/self/maps", &maps, &e) < 0)
        return m;
    rest = buf_span(&maps);
    while (span_cut(&rest, '\n', &line) && !read_line(line, &m))
        ;
    return m;
}
