#include "runtime/pydantic/row.h"

#include "base/time.h"

static struct span last_part(struct span path)
{
    size_t n = path.n;

    while (n && path.p[n - 1] != '/')
        n--;
    return span_skip(path, n);
}

void pydantic_row(struct json_out *o, struct span path, const struct file_entry *entry)
{
    char text[TIME_TEXT_BYTES];

    json_out_object_begin(o);
    json_out_key(o, "name"), json_out_str(o, entry->name ? span_cstr(entry->name) : last_part(path));
    json_out_key(o, "path"), json_out_str(o, path);
    json_out_key(o, "is_dir"), json_out_bool(o, entry->is_dir);
    json_out_key(o, "size"), json_out_u64(o, entry->size);
    json_out_key(o, "modified_at"), json_out_cstr(o, time_rfc3339(text, entry->modified, true));
    json_out_object_end(o);
}
