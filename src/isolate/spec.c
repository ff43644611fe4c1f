#include "isolate/spec.h"

#include "base/str.h"
#include "isolate/dir.h"
#include "isolate/limits.h"

/* ---- writing ---- */

/* The first text that JSON cannot carry makes the whole spec one that cannot be. */
struct writer {
    struct json_out out;
    const char *bad;
};

static void put_text(struct writer *w, const char *text)
{
    if (!w->bad && !str_utf8_valid(span_cstr(text)))
        w->bad = text;
    json_out_cstr(&w->out, text);
}

static void put_str(struct writer *w, const char *key, const char *text)
{
    if (!text)
        return;
    json_out_key(&w->out, key);
    put_text(w, text);
}

static void put_u64(struct writer *w, const char *key, uint64_t number)
{
    if (number)
        json_out_key(&w->out, key), json_out_u64(&w->out, number);
}

static void put_bool(struct writer *w, const char *key, bool is_true)
{
    if (is_true)
        json_out_key(&w->out, key), json_out_bool(&w->out, true);
}

static void put_list(struct writer *w, const char *key, const char *const *texts)
{
    if (!texts)
        return;
    json_out_key(&w->out, key);
    json_out_array_begin(&w->out);
    for (; *texts; texts++)
        put_text(w, *texts);
    json_out_array_end(&w->out);
}

static void put_binds(struct writer *w, const struct box_spec *box)
{
    if (!box->bind_count)
        return;
    json_out_key(&w->out, "volumes");
    json_out_array_begin(&w->out);
    for (size_t i = 0; i < box->bind_count; i++) {
        json_out_object_begin(&w->out);
        put_str(w, "source", box->binds[i].source);
        put_str(w, "target", box->binds[i].target);
        put_bool(w, "writable", box->binds[i].is_writable);
        put_str(w, "sub", box->binds[i].sub);
        put_str(w, "memory", box->binds[i].memory);
        put_bool(w, "private", box->binds[i].is_private);
        json_out_object_end(&w->out);
    }
    json_out_array_end(&w->out);
}

static void put_groups(struct writer *w, const struct box_spec *box)
{
    if (!box->group_count)
        return;
    json_out_key(&w->out, "groups");
    json_out_array_begin(&w->out);
    for (size_t i = 0; i < box->group_count; i++)
        json_out_u64(&w->out, box->groups[i]);
    json_out_array_end(&w->out);
}

int spec_write(const struct spec *s, struct buf *out, struct err *e)
{
    const struct box_spec *box = &s->box;
    struct writer w = { .bad = NULL };
    size_t before = out->n;

    json_out_init(&w.out, out, 0);
    json_out_object_begin(&w.out);
    put_str(&w, "name", box->name);
    put_str(&w, "host_name", box->host_name);
    put_bool(&w, "kept", s->is_kept);
    put_bool(&w, "ends_with_command", s->ends_with_command);
    put_u64(&w, "timeout_ms", s->timeout_ms);
    put_str(&w, "join", s->join);
    put_list(&w, "command", box->command);
    put_list(&w, "layers", box->layers);
    put_list(&w, "host_paths", box->host_paths);
    put_binds(&w, box);
    put_list(&w, "env", box->env);
    put_str(&w, "cwd", box->cwd);
    put_str(&w, "message_path", box->message_path);
    put_bool(&w, "makes_cwd", box->makes_cwd);
    put_str(&w, "home_alias", box->home_alias);
    put_u64(&w, "uid", box->uid);
    put_u64(&w, "gid", box->gid);
    put_groups(&w, box);
    put_bool(&w, "range", box->wants_range);
    put_u64(&w, "root_bytes", box->root_bytes);
    put_bool(&w, "read_only", box->is_read_only);
    put_u64(&w, "memory_bytes", box->limits.memory_bytes);
    put_u64(&w, "pids", box->limits.pids);
    put_u64(&w, "cpu_milli", box->limits.cpu_milli);
    put_u64(&w, "default_memory_bytes", box->defaults.memory_bytes);
    put_u64(&w, "default_pids", box->defaults.pids);
    put_u64(&w, "default_cpu_shares", box->defaults.cpu_shares);
    put_u64(&w, "cpu_shares", box->limits.cpu_shares);
    put_bool(&w, "best_effort", box->is_best_effort);
    put_list(&w, "runtime_args", box->runtime_args);
    json_out_object_end(&w.out);
    if (json_out_end(&w.out, e) < 0)
        return err_wrap(e, "what the sandbox is to be");
    if (!w.bad)
        return 0;
    buf_truncate(out, before);
    return err_set(e, ERR_INVALID, "'%.200s' is not UTF-8, as paths, variables and words are here",
                   w.bad);
}

/* ---- reading ---- */

struct reader {
    const struct json *object;
    const char **texts; /* where the next list goes */
    struct err *e;
    bool is_bad;
};

static void refuse(struct reader *r, const char *key)
{
    if (!r->is_bad)
        (void)err_set(r->e, ERR_INVALID, "a sandbox cannot have such a '%s'", key);
    r->is_bad = true;
}

static const char *get_str(struct reader *r, const struct json *object, const char *key)
{
    const struct json *v = json_get(object, key);
    const char *text = json_cstr(v);

    if (v && !text)
        refuse(r, key);
    return text;
}

static uint64_t get_u64(struct reader *r, const char *key, uint64_t max)
{
    const struct json *v = json_get(r->object, key);
    uint64_t number = 0;

    if (v && (!json_u64(v, &number) || number > max))
        refuse(r, key);
    return number;
}

static bool get_bool(struct reader *r, const struct json *object, const char *key)
{
    const struct json *v = json_get(object, key);
    bool is_true = false;

    if (v && !json_bool(v, &is_true))
        refuse(r, key);
    return is_true;
}

static const char *const *get_list(struct reader *r, const char *key)
{
    const struct json *v = json_get(r->object, key);
    const char **list = r->texts;

    if (!v)
        return NULL;
    if (json_type(v) != JSON_ARRAY) {
        refuse(r, key);
        return NULL;
    }
    JSON_EACH(item, v)
    {
        *r->texts = json_cstr(item);
        if (!*r->texts++)
            refuse(r, key);
    }
    *r->texts++ = NULL;
    return list;
}

static void get_binds(struct reader *r, struct spec *s)
{
    const struct json *v = json_get(r->object, "volumes");

    if (v && json_type(v) != JSON_ARRAY)
        refuse(r, "volumes");
    s->binds = own_array(json_type(v) == JSON_ARRAY ? json_count(v) : 0, sizeof *s->binds);
    s->box.binds = s->binds;
    JSON_EACH(item, v)
    {
        struct box_bind *b = &s->binds[s->box.bind_count++];

        b->source = get_str(r, item, "source");
        b->target = get_str(r, item, "target");
        b->is_writable = get_bool(r, item, "writable");
        b->sub = get_str(r, item, "sub");
        b->memory = get_str(r, item, "memory");
        b->is_private = get_bool(r, item, "private");
        if (!b->source || !b->target)
            refuse(r, "volumes");
    }
}

static void get_groups(struct reader *r, struct box_spec *box)
{
    const struct json *v = json_get(r->object, "groups");
    uint64_t id;

    if (!v)
        return;
    if (json_type(v) != JSON_ARRAY || json_count(v) > BOX_GROUPS_MAX) {
        refuse(r, "groups");
        return;
    }
    JSON_EACH(item, v)
    {
        if (!json_u64(item, &id) || id > UINT32_MAX - 1)
            refuse(r, "groups");
        else
            box->groups[box->group_count++] = (gid_t)id;
    }
}

/* Every list together: its texts and one NULL each. */
static size_t texts_of(const struct json *object)
{
    size_t n = 0;

    JSON_MEMBERS(name, value, object)
    n += json_type(value) == JSON_ARRAY ? json_count(value) + 1 : 0;
    return n;
}

static void read_box(struct reader *r, struct box_spec *box)
{
    box->name = get_str(r, r->object, "name");
    box->host_name = get_str(r, r->object, "host_name");
    box->command = get_list(r, "command");
    box->layers = get_list(r, "layers");
    box->host_paths = get_list(r, "host_paths");
    box->env = get_list(r, "env");
    box->cwd = get_str(r, r->object, "cwd");
    box->message_path = get_str(r, r->object, "message_path");
    box->makes_cwd = get_bool(r, r->object, "makes_cwd");
    box->home_alias = get_str(r, r->object, "home_alias");
    box->uid = (uid_t)get_u64(r, "uid", UINT32_MAX - 1);
    box->gid = (gid_t)get_u64(r, "gid", UINT32_MAX - 1);
    get_groups(r, box);
    box->wants_range = get_bool(r, r->object, "range");
    box->root_bytes = get_u64(r, "root_bytes", UINT64_MAX);
    box->is_read_only = get_bool(r, r->object, "read_only");
    box->limits.memory_bytes = get_u64(r, "memory_bytes", UINT64_MAX);
    box->limits.pids = get_u64(r, "pids", UINT64_MAX);
    box->limits.cpu_milli = get_u64(r, "cpu_milli", UINT32_MAX);
    box->defaults.memory_bytes = get_u64(r, "default_memory_bytes", UINT64_MAX);
    box->defaults.pids = get_u64(r, "default_pids", UINT64_MAX);
    box->defaults.cpu_shares = get_u64(r, "default_cpu_shares", UINT32_MAX);
    box->limits.cpu_shares = get_u64(r, "cpu_shares", UINT32_MAX);
    box->is_best_effort = get_bool(r, r->object, "best_effort");
    box->runtime_args = get_list(r, "runtime_args");
}

int spec_read(struct span json, struct spec *ret, struct err *e)
{
    const struct json_limits limits = { .max_bytes = SPEC_MAX_BYTES,
                                        .max_nodes = SPEC_NODES_MAX,
                                        .flags = JSON_REFUSE_DUPLICATES };
    struct spec s = { 0 };
    struct reader r = { .e = e };

    if (json_parse(json, &limits, &s.doc, e) < 0)
        return err_wrap(e, "what the sandbox is to be");
    r.object = json_doc_root(s.doc);
    s.texts = own_array(texts_of(r.object), sizeof *s.texts);
    r.texts = s.texts;
    if (json_type(r.object) != JSON_OBJECT)
        refuse(&r, "spec");
    read_box(&r, &s.box);
    get_binds(&r, &s);
    s.is_kept = get_bool(&r, r.object, "kept");
    s.ends_with_command = get_bool(&r, r.object, "ends_with_command");
    s.timeout_ms = get_u64(&r, "timeout_ms", SPEC_TIMEOUT_MAX_MS);
    s.join = get_str(&r, r.object, "join");
    if (s.box.command && !s.box.command[0])
        refuse(&r, "command");
    if (r.is_bad || dir_check_name(s.box.name, e) < 0 ||
        (s.join && dir_check_name(s.join, e) < 0)) {
        spec_done(&s);
        return -1;
    }
    *ret = s;
    return 0;
}

void spec_done(struct spec *s)
{
    json_doc_done(&s->doc);
    free(s->binds);
    free(s->texts);
    s->binds = NULL;
    s->texts = NULL;
}
