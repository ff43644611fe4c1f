/* The file of `silica up --config`: which options it may say, and what becomes of the rest. */
#include "base/fd.h"
#include "base/near.h"
#include "cli/command.h"
#include "cli/up.h"
#include "kube/yaml_write.h"
#include "node/images.h"
#include "up/welcome.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

/* Those that are about one start, not about the system, are flags alone. */
static const char *const keys[] = { "data",
                                    "listen",
                                    "router-listen",
                                    "router-workers",
                                    "allow-host",
                                    "tls-san",
                                    "log-level",
                                    "disk-floor",
                                    "verbose",
                                    "pod-addresses",
                                    "pod-port-min",
                                    "max-pods",
                                    "namespace-max-objects",
                                    "namespace-max-bytes",
                                    "pids",
                                    "memory",
                                    "total-pids",
                                    "total-memory",
                                    NULL };

static const struct opt *row_of(const char *key)
{
    for (size_t i = 0; i < up_program.opt_count; i++)
        if (strcmp(up_program.opts[i].flag + 2, key) == 0)
            return &up_program.opts[i];
    abort(); /* keys are flags of the table */
}

/* ---- reading ---- */

static int take(struct up_options *o, const struct config_value *v, int argc, char **argv,
                struct err *e)
{
    const struct opt *row = row_of(v->option);

    if (opt_was_given(&up_program, argc, argv, row->flag))
        return 0;
    if (v->is_item && row->kind != OPT_LIST)
        (void)err_set(e, ERR_INVALID, "'%s' is one value, not a list", v->option);
    else if (opt_set(row, v->option, v->text, o, e) == 0)
        return 0;
    return err_wrap(e, "'%s': line %zu", o->config, v->line);
}

/* "image 1: why" of a table of one: the line says which. */
static void drop_number(struct err *e)
{
    const char *why = strncmp(e->msg, "image 1: ", 9) == 0 ? e->msg + 9 : e->msg;

    memmove(e->msg, why, strlen(why) + 1);
}

/* Each row alone, so that the line of a wrong one is known. */
static int check_images(const struct up_options *o, struct err *e)
{
    char number[24];
    size_t i = 0;

    JSON_EACH(row, o->file.images)
    {
        const char *const path[] = { "images", number, NULL };
        OWN(buf_done) struct buf text = BUF_INIT(IMAGES_FILE_MAX_BYTES);
        struct images *table;

        (void)snprintf(number, sizeof number, "%zu", i++);
        if (buf_addf(&text, e, "{\"defaults\":false,\"images\":[") == 0 &&
            json_write(row, &text, e) == 0 && buf_addf(&text, e, "]}") == 0 &&
            images_parse(buf_span(&text), "", &table, e) == 0) {
            images_free(table);
            continue;
        }
        drop_number(e);
        (void)config_blame(&o->file, path, e);
        return err_wrap(e, "'%s'", o->config);
    }
    return 0;
}

int up_config_read(struct up_options *o, int argc, char **argv, struct err *e)
{
    if (!o->config)
        return 0;
    if (config_read(&o->file, o->config, keys, e) < 0)
        return -1;
    for (size_t i = 0; i < o->file.value_count; i++)
        if (take(o, &o->file.values[i], argc, argv, e) < 0)
            return -1;
    return check_images(o, e);
}

/* ---- printing ---- */

static void put_value(struct json_out *out, const struct opt *row, const char *field)
{
    const struct opt_list *list = (const struct opt_list *)(const void *)field;

    switch (row->kind) {
    case OPT_BOOL:
        json_out_bool(out, *(const bool *)field);
        return;
    case OPT_STR:
        json_out_cstr(out, *(const char *const *)(const void *)field);
        return;
    case OPT_LIST:
        json_out_array_begin(out);
        for (size_t i = 0; i < list->n; i++)
            json_out_cstr(out, list->v[i]);
        json_out_array_end(out);
        return;
    case OPT_U64:
    case OPT_FD:
    case OPT_MS:
    case OPT_BYTES:
        break;
    }
    json_out_u64(out, *(const uint64_t *)(const void *)field);
}

static bool has_value(const struct opt *row, const char *field)
{
    if (row->kind == OPT_STR)
        return *(const char *const *)(const void *)field;
    if (row->kind == OPT_U64 || row->kind == OPT_BYTES)
        return *(const uint64_t *)(const void *)field;
    return row->kind != OPT_LIST || ((const struct opt_list *)(const void *)field)->n;
}

static int print_option(const struct up_options *o, const char *key, struct buf *out, struct err *e)
{
    const struct opt *row = row_of(key);
    const char *field = (const char *)o + row->offset;
    OWN(buf_done) struct buf text = BUF_INIT(CONFIG_FILE_MAX_BYTES);
    OWN(json_doc_done) struct json_doc *doc = NULL;
    struct json_out json;

    if (buf_addf(out, e, "# %s\n", row->help) < 0)
        return -1;
    if (!has_value(row, field))
        return buf_addf(out, e, row->kind == OPT_LIST ? "#%s: [%s]\n" : "#%s: %s\n", key, row->arg);
    json_out_init(&json, &text, 0);
    json_out_object_begin(&json);
    json_out_key(&json, key), put_value(&json, row, field);
    json_out_object_end(&json);
    return json_out_end(&json, e) < 0 || json_parse(buf_span(&text), NULL, &doc, e) < 0
               ? -1
               : kube_yaml_write(json_doc_root(doc), out, e);
}

static int print_list(const char *key, const char *help, const struct json *list, struct buf *out,
                      struct err *e)
{
    OWN(buf_done) struct buf text = BUF_INIT(2 * CONFIG_FILE_MAX_BYTES);
    OWN(json_doc_done) struct json_doc *doc = NULL;

    if (buf_addf(out, e, "# %s\n", help) < 0)
        return -1;
    if (!list)
        return buf_addf(out, e, "#%s: []\n", key);
    return buf_addf(&text, e, "{\"%s\":", key) < 0 || json_write(list, &text, e) < 0 ||
                   buf_addc(&text, '}', e) < 0 || json_parse(buf_span(&text), NULL, &doc, e) < 0
               ? -1
               : kube_yaml_write(json_doc_root(doc), out, e);
}

int up_config_print(const struct up_options *o, struct buf *out, struct err *e)
{
    OWN(json_doc_done) struct json_doc *ours = welcome_ours();
    const struct json *root = json_doc_root(ours);

    for (const char *const *key = keys; *key; key++)
        if (print_option(o, *key, out, e) < 0)
            return -1;
    return print_list("images",
                      "image names and what they stand for, before the usual ones: rows as in "
                      "DIR/images.yaml",
                      o->file.images, out, e) < 0 ||
                   print_list("templates", "SandboxTemplates that a new directory is given, once",
                              o->file.templates ? o->file.templates : json_get(root, "templates"),
                              out, e) < 0 ||
                   print_list("pools", "SandboxWarmPools, likewise; replicas: 1 where none is said",
                              o->file.pools ? o->file.pools : json_get(root, "pools"), out, e) < 0
               ? -1
               : 0;
}

/* ---- what it names ---- */

static bool has_template(const struct json *templates, const char *name, struct near *near)
{
    JSON_EACH(row, templates)
    {
        const char *known = json_cstr(json_get(row, "name"));

        if (known && strcmp(known, name) == 0)
            return true;
        if (known)
            near_try(near, known);
    }
    return false;
}

/* Of a new directory: in an old one a template may be there that no file says. */
static int check_pools(const struct up_options *o, const struct place *place, struct err *e)
{
    OWN(json_doc_done) struct json_doc *ours = welcome_ours();
    const struct json *templates =
        o->file.templates ? o->file.templates : json_get(json_doc_root(ours), "templates");
    char number[24];
    size_t i = 0;

    if (faccessat(place->dir.fd, "store.db", F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return 0;
    JSON_EACH(pool, o->file.pools)
    {
        const char *const path[] = { "pools", number, NULL };
        const char *name = json_cstr(json_get(pool, "template"));
        struct near near = { .name = name };

        (void)snprintf(number, sizeof number, "%zu", i++);
        if (!name || has_template(templates, name, &near))
            continue;
        (void)err_set(e, ERR_INVALID, "the template '%s' of the pool '%s' does not exist", name,
                      json_cstr(json_get(pool, "name")));
        if (!near_hint(&near, e))
            err_hint(e, "add it to templates:");
        (void)config_blame(&o->file, path, e);
        return err_wrap(e, "'%s'", o->config);
    }
    return 0;
}

/* ---- for the parts ---- */

static int write_welcome(const struct up_options *o, const struct place *place, struct err *e)
{
    OWN(buf_done) struct buf text = BUF_INIT(2 * CONFIG_FILE_MAX_BYTES);
    struct json_out out;

    if (!o->file.templates && !o->file.pools)
        return 0;
    json_out_init(&out, &text, 0);
    json_out_object_begin(&out);
    if (o->file.templates)
        json_out_key(&out, "templates"), json_out_value(&out, o->file.templates);
    if (o->file.pools)
        json_out_key(&out, "pools"), json_out_value(&out, o->file.pools);
    json_out_object_end(&out);
    return json_out_end(&out, e) < 0
               ? -1
               : dir_write(place->dir.fd, UP_WELCOME_FILE, buf_span(&text), e);
}

/* The node reads this file where the operator keeps no images.yaml; YAML has comments, so it can say whose it is. */
#define IMAGES_MARK "# written by `silica up` from its --config\n"

static int write_images(const struct up_options *o, const struct place *place, struct err *e)
{
    OWN(buf_done)
    struct buf old = BUF_INIT(IMAGES_FILE_MAX_BYTES), text = BUF_INIT(IMAGES_FILE_MAX_BYTES);
    bool is_ours = dir_read(place->dir.fd, IMAGES_FILE_JSON, &old, e) == 0 &&
                   span_starts(buf_span(&old), IMAGES_MARK);
    bool is_theirs = (old.n && !is_ours) || faccessat(place->dir.fd, IMAGES_FILE, F_OK, 0) == 0;

    if (!o->file.images) {
        if (is_ours && unlinkat(place->dir.fd, IMAGES_FILE_JSON, 0) < 0)
            return err_sys(e, "cannot remove '%s/" IMAGES_FILE_JSON "'", place->path);
        return 0;
    }
    if (is_theirs) {
        (void)err_set(e, ERR_EXISTS, "'%s' says images, and so does a file in '%s'", o->config,
                      place->path);
        err_hint(e, "keep them in one of the two: " IMAGES_FILE " there, or --config");
        return -1;
    }
    if (buf_addf(&text, e, IMAGES_MARK "{\"images\":") < 0 ||
        json_write(o->file.images, &text, e) < 0 || buf_addf(&text, e, "}\n") < 0)
        return err_wrap(e, "images");
    return dir_write(place->dir.fd, IMAGES_FILE_JSON, buf_span(&text), e);
}

/* The node would say the same, and be started again and again. */
static int check_table(const struct place *place, struct err *e)
{
    struct images *table;

    if (images_load(place->dir.fd, place->path, &table, e) < 0)
        return -1;
    images_free(table);
    return 0;
}

int up_config_write(const struct up_options *o, const struct place *place, struct err *e)
{
    return check_pools(o, place, e) < 0 || write_welcome(o, place, e) < 0 ||
                   write_images(o, place, e) < 0 || check_table(place, e) < 0
               ? -1
               : 0;
}
