/* symbols: names of functions by address, from the program that runs: its symbol table, or where that was stripped what
 * tools/names.py put in its place.
 *
 * Owns:     the table as it was read. A program with neither has no names: then every answer is NULL, and whoever has them
 *           elsewhere finds them by address and mapping.
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
