/* symbols: names of functions by address, from the symbol table of the program that runs, where it has one.
 *
 * Owns:     the table as it was read. Programs that were stripped have none: then every answer is NULL, and whoever has the
 *           symbols elsewhere finds them by address and mapping.
 */
#ifndef SILICA_CONTROLLER_SYMBOLS_H
#define SILICA_CONTROLLER_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>

struct symbols;

/* Where the program's code lies, and how it is called. */
struct symbols_mapping {
    uint64_t start, limit, offset;
    char file[512];
};

struct symbols *symbols_open(void); /* never NULL */
void symbols_close(struct symbols *s);
size_t symbols_count(const struct symbols *s);
/* Lives as long as it; NULL: unknown. */
const char *symbols_name(const struct symbols *s, uintptr_t address);
struct symbols_mapping symbols_mapping(void);

#endif
