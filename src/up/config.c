#include "up/config.h"

#include "base/fd.h"
#include "base/near.h"
#include "kube/names.h"
#include "kube/yaml.h"

#include <stdio.h>
#include <string.h>

static const char *const lists[] = { "images", "templates", "pools", NULL };

/* Where we are: names of members and numbers of items, as kube_yaml_line has it. */
struct spot {
    const char *path[4];
    char number[24];
};

void config_done(struct config *c)
{
    for (size_t i = 0; i < c->value_count; i++)
        free(c->values[i].text);
    free(c->values);
    json_doc_unref(c->doc);
    buf_done(&c->text);
    *c = (struct config)CONFIG_INIT;
}

int config_blame(const struct config *c, const char *const *path, struct err *e)
{
    size_t line = kube_yaml_line(buf_span(&c->text), path);

    return line ? err_wrap(e, "line %zu", line) : -1;
}

static bool is_among(const char *name, const char *const *known)
{
    for (; *known; known++)
        if (strcmp(name, *known) == 0)
            return true;
    return false;
}

static int unknown_key(const struct config *c, const struct spot *at, struct span name,
                       const char *const *known[2], struct err *e)
{
    char text[NEAR_NAME_MAX_BYTES];
    struct near near = { .name = text };

    (void)snprintf(text, sizeof text, "%.*s", SPAN_ARG(name));
    for (size_t i = 0; i < 2; i++)
        for (const char *const *k = known[i]; k && *k; k++)
            near_try(&near, *k);
    (void)err_set(e, ERR_INVALID, "'%s' is nothing that is known here", text);
    if (!near_hint(&near, e))
        err_hint(e, "silica up --print-config shows what there is");
    return config_blame(c, at->path, e);
}

/* ---- options ---- */

static int add_value(struct config *c, const char *option, const struct json *v, bool is_item,
                     struct err *e)
{
    const char *const path[] = { option, NULL };
    const char *text = json_cstr(v);
    struct config_value *to;
    bool is_true;

    if (c->value_count == CONFIG_VALUES_MAX)
        return err_set(e, ERR_LIMIT, "more than %d values", CONFIG_VALUES_MAX);
    if (!text && json_type(v) != JSON_NUMBER && json_type(v) != JSON_BOOL) {
        (void)err_set(e, ERR_INVALID, "'%s' is %s, not a text", option, json_type_name(v));
        return config_blame(c, path, e);
    }
    c->values = own_resize(c->values, c->value_count + 1, sizeof *c->values);
    to = &c->values[c->value_count++];
    *to = (struct config_value){ .option = option,
                                 .line = kube_yaml_line(buf_span(&c->text), path),
                                 .is_item = is_item };
    if (json_bool(v, &is_true))
        to->text = own_strdup(is_true ? "true" : "false");
    else
        to->text = text ? own_strdup(text) : span_dup(json_number(v));
    return 0;
}

static int add_option(struct config *c, const char *option, const struct json *v, struct err *e)
{
    if (json_is_null(v)) /* "listen:" and nothing behind it */
        return 0;
    if (json_type(v) != JSON_ARRAY)
        return add_value(c, option, v, false, e);
    JSON_EACH(item, v)
    {
        if (add_value(c, option, item, true, e) < 0)
            return -1;
    }
    return 0;
}

/* ---- templates and pools ---- */

static int check_keys(const struct config *c, struct spot *at, const struct json *row,
                      const char *const *known, struct err *e)
{
    const char *const *both[2] = { known, NULL };

    if (json_type(row) != JSON_OBJECT) {
        (void)err_set(e, ERR_INVALID, "%s has a %s, not a map", at->path[0], json_type_name(row));
        return config_blame(c, at->path, e);
    }
    JSON_MEMBERS(name, value, row)
    {
        at->path[2] = json_cstr(name) ? json_cstr(name) : "";
        if (!is_among(at->path[2], known))
            return unknown_key(c, at, json_str(name), both, e);
    }
    at->path[2] = NULL;
    return 0;
}

static int check_name(const struct config *c, struct spot *at, const struct json *row,
                      const char *key, struct err *e)
{
    const struct json *v = json_get(row, key);
    struct names_faults faults;
    char why[NAMES_FAULT_MAX_BYTES];

    at->path[2] = v ? key : NULL;
    if (!json_cstr(v)) {
        (void)err_set(e, ERR_INVALID, "there is no %s", key);
        return config_blame(c, at->path, e);
    }
    if (names_check(NAMES_DNS_SUBDOMAIN, json_str(v), &faults))
        return 0;
    (void)err_set(e, ERR_INVALID, "%s '%.100s': %s", key, json_cstr(v),
                  names_join(&faults, why, sizeof why));
    return config_blame(c, at->path, e);
}

static int check_template(const struct config *c, struct spot *at, const struct json *row,
                          struct err *e)
{
    static const char *const known[] = { "name", "spec", NULL };
    const struct json *spec = json_get(row, "spec");

    if (check_keys(c, at, row, known, e) < 0 || check_name(c, at, row, "name", e) < 0)
        return -1;
    if (json_type(spec) == JSON_OBJECT)
        return 0;
    at->path[2] = spec ? "spec" : NULL;
    (void)err_set(e, ERR_INVALID, "there is no spec, which is that of a SandboxTemplate");
    return config_blame(c, at->path, e);
}

static int check_pool(const struct config *c, struct spot *at, const struct json *row,
                      struct err *e)
{
    static const char *const known[] = { "name", "template", "replicas", NULL };
    const struct json *replicas = json_get(row, "replicas");
    uint64_t n;

    if (check_keys(c, at, row, known, e) < 0 || check_name(c, at, row, "name", e) < 0 ||
        check_name(c, at, row, "template", e) < 0)
        return -1;
    if (!replicas || (json_u64(replicas, &n) && n <= CONFIG_REPLICAS_MAX))
        return 0;
    at->path[2] = "replicas";
    (void)err_set(e, ERR_INVALID, "replicas is no number from 0 to %d", CONFIG_REPLICAS_MAX);
    return config_blame(c, at->path, e);
}

static int take_list(struct config *c, const char *name, const struct json *v, struct err *e)
{
    struct spot at = { .path = { name } };
    size_t i = 0;

    if (json_type(v) != JSON_ARRAY) {
        (void)err_set(e, ERR_INVALID, "'%s' is %s, not a list", name, json_type_name(v));
        return config_blame(c, at.path, e);
    }
    if (strcmp(name, "images") == 0) {
        c->images = v;
        return 0;
    }
    *(strcmp(name, "pools") == 0 ? &c->pools : &c->templates) = v;
    if (json_count(v) > CONFIG_ROWS_MAX)
        return err_set(e, ERR_LIMIT, "%s: more than %d", name, CONFIG_ROWS_MAX);
    JSON_EACH(row, v)
    {
        (void)snprintf(at.number, sizeof at.number, "%zu", i++);
        at.path[1] = at.number;
        if ((v == c->pools ? check_pool : check_template)(c, &at, row, e) < 0)
            return -1;
    }
    return 0;
}

/* ---- the file ---- */

static int take_member(struct config *c, const struct json *name, const struct json *v,
                       const char *const *options, struct err *e)
{
    const char *const *both[2] = { options, lists };
    const char *key = json_cstr(name) ? json_cstr(name) : "";
    const struct spot at = { .path = { key } };

    for (const char *const *o = options; *o; o++)
        if (strcmp(key, *o) == 0)
            return add_option(c, *o, v, e);
    for (const char *const *l = lists; *l; l++)
        if (strcmp(key, *l) == 0)
            return json_is_null(v) ? 0 : take_list(c, *l, v, e);
    return unknown_key(c, &at, json_str(name), both, e);
}

int config_parse(struct config *c, const char *const *options, struct err *e)
{
    OWN(buf_done) struct buf repeats = BUF_INIT(YAML_REPEATS_MAX_BYTES);
    const struct json *root;

    if (kube_yaml_to_doc(buf_span(&c->text), &repeats, &c->doc, e) < 0)
        return -1;
    if (repeats.n) { /* "yaml: unmarshal errors:\n  line 3: ..." */
        struct span lines = buf_span(&repeats), first;

        (void)span_cut(&lines, '\n', &first);
        (void)span_cut(&lines, '\n', &first);
        first = span_trim(first);
        return err_set(e, ERR_INVALID, "%.*s", SPAN_ARG(first));
    }
    root = json_doc_root(c->doc);
    if (json_is_null(root)) /* an empty file */
        return 0;
    if (json_type(root) != JSON_OBJECT)
        return err_set(e, ERR_INVALID, "it is a %s, not a map of options", json_type_name(root));
    JSON_MEMBERS(name, value, root)
    {
        if (take_member(c, name, value, options, e) < 0)
            return -1;
    }
    return 0;
}

int config_read(struct config *c, const char *file, const char *const *options, struct err *e)
{
    if (fd_read_file(file, &c->text, e) < 0)
        return -1;
    return config_parse(c, options, e) < 0 ? err_wrap(e, "'%s'", file) : 0;
}
