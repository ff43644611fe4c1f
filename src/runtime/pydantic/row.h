/* row: a file as this contract lists it: name, path, is_dir, size, modified_at. */
#ifndef SILICA_RUNTIME_PYDANTIC_ROW_H
#define SILICA_RUNTIME_PYDANTIC_ROW_H

#include "base/json.h"
#include "runtime/files/file_list.h"

/* The path is the root as configured, a slash, and `rel`. */
void pydantic_row(struct json_out *o, const char *root, const char *rel,
                  const struct file_entry *entry);

#endif
