/* file_ere_program: what a pattern is parsed into, between file_ere_parse.c and file_ere.c.
 *
 * A program for many threads that move through the text in step (Thompson's construction). Jumps are relative, so a
 * piece of program can be moved and copied as it stands.
 */
#ifndef SILICA_RUNTIME_FILE_ERE_PROGRAM_H
#define SILICA_RUNTIME_FILE_ERE_PROGRAM_H

#include "runtime/files/file_ere.h"

#define CLASS_MAX_RANGES 64 /* in one set */

enum op {
    OP_CHAR,
    OP_ANY,
    OP_SET,
    OP_SPLIT,
    OP_JUMP,
    OP_START,
    OP_END,
    OP_WORD_EDGE,
    OP_NOT_WORD_EDGE,
    OP_MATCH
};

struct step {
    enum op op;
    uint32_t arg; /* the character, or the index of the set */
    int to;       /* OP_SPLIT: goes on at +1 and at +to. OP_JUMP: at +to */
};

struct set {
    struct {
        uint32_t low, high;
    } ranges[CLASS_MAX_RANGES];
    size_t n;
    bool is_negated;
};

struct threads {
    uint32_t *at; /* the steps, each at most once */
    size_t n;
    uint32_t *mark; /* mark[i] == turn: step i is in */
    uint32_t turn;
};

struct file_ere {
    struct step *steps;
    size_t n;
    struct set *sets;
    size_t set_n, set_cap;
    bool ignore_case;
    struct threads now, next;
    uint32_t *todo; /* steps to be followed while adding one */
};

/* Fills steps (room for FILE_ERE_MAX_STEPS) and sets; OP_MATCH is not added. */
int file_ere_parse(struct file_ere *r, struct span pattern, struct err *e);
/* The first character of s, which is not empty, and its length; a byte that is not UTF-8 is one beyond Unicode. */
uint32_t file_ere_decode(struct span s, size_t *ret_n);
uint32_t file_ere_fold(const struct file_ere *r, uint32_t c);

#endif
