/* table_cells: the hand-made columns and cells of core kinds. Private to kube/table*.c. */
#ifndef SILICA_KUBE_TABLE_CELLS_H
#define SILICA_KUBE_TABLE_CELLS_H

#include "kube/object.h"

#include <time.h>

struct table_column {
    const char *name;
    const char *type;   /* "string", "integer", "boolean", "date" */
    const char *format; /* "name" for the object's name, else "" */
    int priority;       /* 1: only in wide output */
};

struct cells {
    struct json_out *o; /* inside the array of cells */
    const struct object *obj;
    time_t now;
};

struct table_maker {
    const char *group, *plural;
    const struct table_column *columns;
    size_t column_count;
    void (*write)(const struct cells *c); /* one cell per column */
};

/* The maker for a kind, or NULL: its columns are the default ones. */
const struct table_maker *table_maker(const char *group, const char *plural);

/* One cell each. */
void cell_text(const struct cells *c, const char *text);                       /* NULL: "" */
void cell_text_or(const struct cells *c, const char *text, const char *empty); /* when NULL or "" */
void cell_i64(const struct cells *c, const struct json *v); /* 0 when v is no number */
/* "5m" since a time; "<unknown>" when v is none. */
void cell_age(const struct cells *c, const struct json *v);
void cell_created(const struct cells *c);
const char *cells_age(const struct cells *c, const struct json *v, char text[32]);

/* table_pod.c */
void table_pod_cells(const struct cells *c);
/* {"type":"Completed",...} of a pod that has ended, as the member "conditions" of its row; or nothing. */
void table_pod_conditions(const struct object *pod, struct json_out *o);

#endif
