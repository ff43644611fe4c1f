/* config: the file of `silica up --config`, in YAML: options by their names, and what a new system has.
 *
 *     listen: 127.0.0.1:6443        # any option that the caller names; a list where it may be repeated
 *     images:                       # rows as in DIR/images.yaml; the caller judges them
 *     - {names: ["team/tool:*"], root: host, server: true}
 *     templates:                    # what a new directory is given, instead of ours
 *     - name: tool
 *       spec: {podTemplate: ...}    # of a SandboxTemplate
 *     pools:
 *     - {name: tool-pool, template: tool, replicas: 4}
 *
 * Owns:     the document, and the texts of the values.
 * Strict:   what is not known is an error that names its line and, where one is near, what was meant.
 * Used by:  cli/up_config.c.
 */
#ifndef SILICA_UP_CONFIG_H
#define SILICA_UP_CONFIG_H

#include "base/json.h"

/* One value of an option; a list is several of them. */
struct config_value {
    const char *option; /* as the caller named it */
    char *text;
    size_t line;
    bool is_item; /* of a list */
};

struct config {
    struct buf text;
    struct json_doc *doc;
    struct config_value *values;
    size_t value_count;
    const struct json *images, *templates, *pools; /* NULL: nothing is said of them */
};

/* clang-format off */
#define CONFIG_INIT { .text = BUF_INIT(CONFIG_FILE_MAX_BYTES) }
/* clang-format on */

#define CONFIG_FILE_MAX_BYTES (1024 * 1024)
#define CONFIG_VALUES_MAX     1024
#define CONFIG_ROWS_MAX       256 /* templates, and pools */
#define CONFIG_REPLICAS_MAX   100000

/* options: NULL-terminated; borrowed as long as the config lives. ERR_INVALID: what is wrong, and where. */
int config_read(struct config *c, const char *file, const char *const *options, struct err *e);
/* The same of c->text. */
int config_parse(struct config *c, const char *const *options, struct err *e);
void config_done(struct config *c);

/* Adds the line of what is wrong: { "images", "0", NULL }. -1 */
int config_blame(const struct config *c, const char *const *path, struct err *e);

#endif
