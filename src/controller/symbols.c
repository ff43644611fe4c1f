#include "controller/symbols.h"

#include "base/fd.h"
#include "base/str.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define MAPS_MAX_BYTES (1u << 20)

struct symbols {
    const uint8_t *image; /* the file, or NULL */
    size_t image_bytes;
    const char *names;
    size_t names_bytes;
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

/* Our own file, as the kernel took it: still every offset is checked. */
static void read_table(struct symbols *s)
{
    const Elf64_Ehdr *head = part(s, 0, sizeof *head);
    const Elf64_Shdr *sections =
        head ? part(s, head->e_shoff, (uint64_t)head->e_shnum * sizeof *sections) : NULL;

    for (unsigned i = 0; sections && i < head->e_shnum; i++) {
        const Elf64_Shdr *table = &sections[i], *names;
        const Elf64_Sym *syms;

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
