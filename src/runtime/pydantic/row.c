#include "runtime/pydantic/row.h"

#include "base/time.h"

void pydantic_row(struct json_out *o, const char *root, const char *rel,
                  const struct file_entry *entry)
{
    OWN(buf_done) struct buf path = BUF_INIT(2 * PATH_REAL_MAX_BYTES);
    char text[TIME_TEXT_BYTES];
    struct err e;

    /* Fits: sized for two paths. */
    (void)buf_addf(&path, &e, "%s/%s", root, rel);
    json_out_object_begin(o);
    json_out_key(o, "name"), json_out_cstr(o, entry->name);
    json_out_key(o, "path"), json_out_str(o, buf_span(&path));
    json_out_key(o, "is_dir"), json_out_bool(o, entry->is_dir);
    json_out_key(o, "size"), json_out_u64(o, entry->size);
    json_out_key(o, "modified_at"), json_out_cstr(o, time_rfc3339(text, entry->modified, true));
    json_out_object_end(o);
}
