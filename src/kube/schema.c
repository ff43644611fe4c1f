#include "kube/schema.h"

#include "kube/schema_tables.h"

#include <string.h>

const struct schema_field *schema_field(const struct schema_type *t, struct span name)
{
    for (size_t i = 0; i < t->field_count; i++)
        if (t->fields[i].name_n == name.n && memcmp(t->fields[i].name, name.p, name.n) == 0)
            return &t->fields[i];
    return NULL;
}

const struct schema_type *const *schema_types(size_t *ret_count)
{
    *ret_count = schema_all_count;
    return schema_all;
}

const struct schema_type *schema_type(const char *package, const char *name)
{
    for (size_t i = 0; i < schema_all_count; i++)
        if (strcmp(schema_all[i]->name, name) == 0 && strcmp(schema_all[i]->package, package) == 0)
            return schema_all[i];
    return NULL;
}
