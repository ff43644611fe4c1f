/* Volumes of pods, and claims. */
#include "kube/validate_parts.h"

#include "kube/quantity.h"

#include <string.h>

static void check_mode(struct causes *c, const struct field_path *at, const struct json *mode)
{
    int64_t n;

    if (json_i64(mode, &n) && (n < 0 || n > 0777))
        causes_add(c, CAUSE_INVALID, at, mode,
                   "must be a number between 0 and 0777 (octal), both inclusive");
}

/* Keys that become files. */
static void check_items(struct causes *c, const struct field_path *at, const struct json *source)
{
    size_t i = 0;

    check_mode(c, AT(at, "defaultMode"), json_get(source, "defaultMode"));
    JSON_EACH(item, json_get(source, "items"))
    {
        const struct field_path *here = AT_INDEX(AT(at, "items"), i);

        (void)valid_need_text(c, AT(here, "key"), json_get(item, "key"));
        if (valid_need_text(c, AT(here, "path"), json_get(item, "path")))
            valid_relative_path(c, AT(here, "path"), json_get(item, "path"));
        check_mode(c, AT(here, "mode"), json_get(item, "mode"));
        i++;
    }
}

static void check_secret(struct causes *c, const struct field_path *at, const struct json *source)
{
    (void)valid_need_text(c, AT(at, "secretName"), json_get(source, "secretName"));
    check_items(c, at, source);
}

static void check_config_map(struct causes *c, const struct field_path *at,
                             const struct json *source)
{
    (void)valid_need_text(c, AT(at, "name"), json_get(source, "name"));
    check_items(c, at, source);
}

static void check_host_path(struct causes *c, const struct field_path *at,
                            const struct json *source)
{
    static const char *const types[] = {
        "",     "BlockDevice",  "CharDevice", "Directory", "DirectoryOrCreate",
        "File", "FileOrCreate", "Socket",     NULL
    };

    if (valid_need_text(c, AT(at, "path"), json_get(source, "path")))
        valid_no_dots(c, AT(at, "path"), json_get(source, "path"));
    valid_one_of(c, AT(at, "type"), json_get(source, "type"), types);
}

static void check_empty_dir(struct causes *c, const struct field_path *at,
                            const struct json *source)
{
    struct quantity q;

    if (quantity_parse(json_str(json_get(source, "sizeLimit")), &q) && q.nano < 0)
        causes_add(c, CAUSE_FORBIDDEN, AT(at, "sizeLimit"), NULL,
                   "SizeLimit field must be a valid resource quantity");
}

static void check_claim(struct causes *c, const struct field_path *at, const struct json *source)
{
    (void)valid_need_text(c, AT(at, "claimName"), json_get(source, "claimName"));
}

static void check_downward(struct causes *c, const struct field_path *at, const struct json *source)
{
    check_mode(c, AT(at, "defaultMode"), json_get(source, "defaultMode"));
    JSON_EACH(item, json_get(source, "items"))
    {
        bool has_field = json_get(item, "fieldRef"),
             has_resource = json_get(item, "resourceFieldRef");

        if (valid_need_text(c, AT(at, "path"), json_get(item, "path")))
            valid_relative_path(c, AT(at, "path"), json_get(item, "path"));
        if (has_field && has_resource)
            causes_add(c, CAUSE_INVALID, at, json_get(item, "resourceFieldRef"),
                       "fieldRef and resourceFieldRef can not be specified simultaneously");
        else if (!has_field && !has_resource)
            causes_add(c, CAUSE_REQUIRED, at, NULL,
                       "one of fieldRef and resourceFieldRef is required");
    }
}

static void check_projected(struct causes *c, const struct field_path *at,
                            const struct json *source)
{
    size_t i = 0;

    check_mode(c, AT(at, "defaultMode"), json_get(source, "defaultMode"));
    JSON_EACH(part, json_get(source, "sources"))
    {
        const struct field_path *here = AT_INDEX(AT(at, "sources"), i);
        const struct json *token = json_get(part, "serviceAccountToken");
        const struct json *age = json_get(token, "expirationSeconds");
        int64_t n;

        if (json_get(part, "secret"))
            check_items(c, AT(here, "secret"), json_get(part, "secret"));
        if (json_get(part, "configMap"))
            check_items(c, AT(here, "configMap"), json_get(part, "configMap"));
        if (json_i64(age, &n) && n < 600)
            causes_add(c, CAUSE_INVALID, AT(AT(here, "serviceAccountToken"), "expirationSeconds"),
                       age, "may not specify a duration less than 10 minutes");
        if (token)
            (void)valid_need_text(c, AT(at, "path"), json_get(token, "path"));
        i++;
    }
}

static void check_nfs(struct causes *c, const struct field_path *at, const struct json *source)
{
    (void)valid_need_text(c, AT(at, "server"), json_get(source, "server"));
    (void)valid_need_text(c, AT(at, "path"), json_get(source, "path"));
    if (!span_starts(json_str(json_get(source, "path")), "/"))
        causes_add_text(c, CAUSE_INVALID, AT(at, "path"), json_str(json_get(source, "path")),
                        "must be an absolute path");
}

static const struct source {
    const char *name;
    void (*check)(struct causes *c, const struct field_path *at, const struct json *source);
} sources[] = {
    { "emptyDir", check_empty_dir },
    { "hostPath", check_host_path },
    { "secret", check_secret },
    { "nfs", check_nfs },
    { "persistentVolumeClaim", check_claim },
    { "downwardAPI", check_downward },
    { "configMap", check_config_map },
    { "projected", check_projected },
};

static void check_source(struct causes *c, const struct field_path *at, const struct json *volume)
{
    size_t count = 0;

    JSON_MEMBERS(name, value, volume)
    {
        struct span text = json_str(name);

        if (span_is(text, "name") || json_is_null(value))
            continue;
        if (count++) {
            causes_add(c, CAUSE_FORBIDDEN, AT_SPAN(at, text), NULL,
                       "may not specify more than 1 volume type");
            continue;
        }
        EACH(s, sources) {
            if (span_is(text, s->name))
                s->check(c, AT(at, s->name), value);
        }
    }
    if (!count)
        causes_add(c, CAUSE_REQUIRED, at, NULL, "must specify a volume type");
}

void validate_volumes(struct causes *c, const struct field_path *at, const struct json *spec)
{
    const struct json *volumes = json_get(spec, "volumes");
    size_t i = 0;

    if (!valid_count(c, AT(at, "volumes"), volumes))
        return;
    JSON_EACH(volume, volumes)
    {
        const struct field_path *here = AT_INDEX(AT(at, "volumes"), i);
        const struct json *name = json_get(volume, "name");
        size_t j = 0;

        check_source(c, here, volume);
        if (valid_need_text(c, AT(here, "name"), name) &&
            valid_name(c, AT(here, "name"), name, NAMES_DNS_LABEL)) {
            JSON_EACH(other, volumes)
            {
                if (j++ == i)
                    break;
                if (span_eq(json_str(json_get(other, "name")), json_str(name))) {
                    causes_add(c, CAUSE_DUPLICATE, AT(here, "name"), name, NULL);
                    break;
                }
            }
        }
        i++;
    }
}

static void check_access_modes(struct causes *c, const struct json *spec)
{
    static const char *const modes[] = { "ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce",
                                         "ReadWriteOncePod", NULL };
    const struct field_path *at = AT(AT(NULL, "spec"), "accessModes");
    const struct json *list = json_get(spec, "accessModes");
    bool has_single = false;

    if (!json_count(list))
        causes_add(c, CAUSE_REQUIRED, at, NULL, "at least 1 access mode is required");
    JSON_EACH(mode, list)
    {
        valid_one_of(c, at, mode, modes);
        has_single = has_single || span_is(json_str(mode), "ReadWriteOncePod");
    }
    if (has_single && json_count(list) > 1)
        causes_add(c, CAUSE_FORBIDDEN, at, NULL,
                   "may not use ReadWriteOncePod with other access modes");
}

/* What a bound claim may change is how much it asks for. */
static bool is_same_claim(const struct validation *v)
{
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
    struct json_node *now = json_edit_view(ed, object_member(v->object, "spec"));
    struct json_node *was = json_edit_view(ed, object_member(v->old, "spec"));
    struct json_node *sides[] = { now, was };

    EACH(side, sides) {
        json_node_remove(json_node_get(*side, "resources"), "requests");
        json_node_remove(*side, "volumeAttributesClassName");
        json_node_remove(*side, "volumeName"); /* the binder's */
    }
    return json_node_equal(now, was);
}

void validate_volume_claim(const struct validation *v, struct causes *c)
{
    static const char *const modes[] = { "Block", "Filesystem", NULL };
    const struct json *spec = object_member(v->object, "spec");
    const struct field_path *at = AT(NULL, "spec");
    const struct json *storage =
        json_get(json_get(json_get(spec, "resources"), "requests"), "storage");
    const struct field_path *storage_at = AT_KEY(AT(at, "resources"), SPAN("storage"));
    struct quantity q;

    valid_label_selector(c, AT(at, "selector"), json_get(spec, "selector"));
    check_access_modes(c, spec);
    if (!storage)
        causes_add(c, CAUSE_REQUIRED, storage_at, NULL, NULL);
    else if (quantity_parse(json_str(storage), &q) && q.nano <= 0)
        causes_add(c, CAUSE_INVALID, storage_at, storage, "must be greater than zero");
    valid_name_if(c, AT(at, "storageClassName"), json_get(spec, "storageClassName"),
                  NAMES_DNS_SUBDOMAIN);
    valid_one_of(c, AT(at, "volumeMode"), json_get(spec, "volumeMode"), modes);
    if (v->old && !v->sub && !is_same_claim(v))
        causes_add(
            c, CAUSE_FORBIDDEN, at, NULL,
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for "
            "bound claims");
}
