/* row: a file as this contract lists it: name, path, is_dir, size, modified_at. */
#ifndef SILICA_RUNTIME_PYDANTIC_ROW_H
#define SILICA_RUNTIME_PYDANTIC_ROW_H

#include "base/json.h"
#include "runtime/file_list.h"

/* entry->name may be NULL: the name is then the path's last part. */
void pydantic_row(struct json_out *o, struct span path, const struct file_entry *entry);

#endif
