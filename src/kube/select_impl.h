/* select_impl: the inside of a label selector, shared by its parser and the rest. */
#ifndef SILICA_KUBE_SELECT_IMPL_H
#define SILICA_KUBE_SELECT_IMPL_H

#include "kube/names.h"
#include "kube/select.h"

enum selector_op {
    OP_IN,
    OP_NOT_IN,
    OP_EQUALS,
    OP_DOUBLE_EQUALS,
    OP_NOT_EQUALS,
    OP_GREATER,
    OP_LESS,
    OP_EXISTS,
    OP_NOT_EXISTS,
};

struct selector_req {
    struct span key;
    struct span *values; /* sorted, no duplicates */
    uint32_t n;
    enum selector_op op;
    int64_t number; /* of > and < */
};

struct selector {
    bool is_nothing;
    uint32_t n, cap;
    struct selector_req *reqs;
    char *text; /* what keys and values point into */
};

/* One more requirement of `s`, which owns it; the next call may move it. */
struct selector_req *selector_add(struct selector *s);
void selector_add_value(struct selector_req *r, struct span value);
/* Sorts the values and checks them; the key was judged where it was read. */
int selector_judge(struct selector_req *r, struct err *e);
/* "path: Invalid value: ..." with all that is wrong. Returns -1. */
int selector_invalid(const char *path, struct span value, const struct names_faults *f,
                     struct err *e);

#endif
