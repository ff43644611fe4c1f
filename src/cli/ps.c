/* silica ps: the long-lived sandboxes of a data directory. */
#include "cli/command.h"

#include "base/fd.h"
#include "base/json.h"
#include "base/time.h"
#include "isolate/engine.h"
#include "sandbox/line.h"

#include <string.h>
#include <time.h>

#define OUTPUT_MAX_BYTES (64 << 20) /* a line for each of many thousands */
#define COMMAND_SHOWN    40         /* of its text, for people */
#define NAME_WIDTH       24         /* at least */

struct ps_options {
    const char *data, *output;
    bool is_all, is_help;
    bool is_json; /* of output */
};

#define AT(field) offsetof(struct ps_options, field)

/* clang-format off */
static const struct opt opts[] = {
    { "--all", NULL, OPT_BOOL, AT(is_all), NULL, 0, 0, NULL, "those that have ended, too", NULL, 'a' },
    { "--output", NULL, OPT_STR, AT(output), "text", 0, 0, "FORMAT", "text, or json for programs", NULL, 'o' },
    { "--data", "SILICA_DATA", OPT_STR, AT(data), NULL, 0, 0, "DIR", "where long-lived sandboxes are kept" },
    COMMAND_HELP(AT(is_help), NULL),
};
/* clang-format on */

const struct opt_program ps_program = {
    .name = "silica ps",
    .usage = "[options]",
    .example = "silica ps -a      the sandboxes of `silica run -d` and `--keep`, ended ones too",
    .opts = opts,
    .opt_count = LEN(opts),
};

static bool is_shown(const struct engine_info *i, bool is_all)
{
    return is_all || (i->status != ENGINE_EXITED && i->status != ENGINE_LOST);
}

/* "5s", "12m", "3h", "9d". */
static void age_text(uint64_t created_ms, char text[32])
{
    uint64_t now = (uint64_t)time(NULL), then = created_ms / 1000;
    unsigned long long s = now > then ? now - then : 0;

    if (!created_ms)
        (void)snprintf(text, 32, "-");
    else if (s < 120)
        (void)snprintf(text, 32, "%llus", s);
    else if (s < 7200)
        (void)snprintf(text, 32, "%llum", s / 60);
    else if (s < 172800)
        (void)snprintf(text, 32, "%lluh", s / 3600);
    else
        (void)snprintf(text, 32, "%llud", s / 86400);
}

static int add_text(const struct engine_info *i, int width, struct buf *out, struct err *e)
{
    OWN(buf_done) struct buf command = BUF_INIT(COMMAND_SHOWN);
    char age[32], status[48];

    line_clean_text(span_cstr(i->command),
                    &command); /* one line each, and no escapes for terminals */
    age_text(i->created_ms, age);
    if (i->has_exit)
        (void)snprintf(status, sizeof status, "%s (%d)", engine_status_name(i->status),
                       i->exit_code);
    else
        (void)snprintf(status, sizeof status, "%s", engine_status_name(i->status));
    return buf_addf(out, e, "%-*s %-14s %-8d %-6s %s\n", width, i->name, status, (int)i->pid, age,
                    buf_cstr(&command));
}

static void add_json(const struct engine_info *i, struct json_out *o)
{
    char text[TIME_TEXT_BYTES];
    struct timespec t = { .tv_sec = (time_t)(i->created_ms / 1000),
                          .tv_nsec = (long)(i->created_ms % 1000) * 1000000 };

    json_out_object_begin(o);
    json_out_key(o, "name"), json_out_cstr(o, i->name);
    json_out_key(o, "status"), json_out_cstr(o, engine_status_name(i->status));
    json_out_key(o, "pid"), json_out_i64(o, i->pid);
    json_out_key(o, "kept"), json_out_bool(o, i->is_kept);
    json_out_key(o, "created"),
        json_out_cstr(o, i->created_ms ? time_rfc3339(text, t, true) : NULL);
    if (i->has_exit) {
        json_out_key(o, "exit_code"), json_out_i64(o, i->exit_code);
        json_out_key(o, "timed_out"), json_out_bool(o, i->is_timed_out);
    }
    json_out_key(o, "command"), json_out_cstr(o, i->command);
    if (*i->unenforced)
        json_out_key(o, "unenforced"), json_out_cstr(o, i->unenforced);
    json_out_object_end(o);
}

/* Names of Pods' sandboxes are long; columns stand below their headings all the same. */
static int width_of(const struct engine_info *v, size_t n, bool is_all)
{
    size_t width = NAME_WIDTH;

    for (size_t i = 0; i < n; i++)
        if (is_shown(&v[i], is_all))
            width = MAX(width, strlen(v[i].name));
    return (int)width;
}

static int show(const struct engine_info *v, size_t n, const struct ps_options *o, struct err *e)
{
    OWN(buf_done) struct buf text = BUF_INIT(OUTPUT_MAX_BYTES);
    struct json_out json;

    if (o->is_json) {
        json_out_init(&json, &text, 0);
        json_out_array_begin(&json);
        for (size_t i = 0; i < n; i++)
            if (is_shown(&v[i], o->is_all))
                add_json(&v[i], &json);
        json_out_array_end(&json);
        if (json_out_end(&json, e) < 0 || buf_addc(&text, '\n', e) < 0)
            return -1;
    } else {
        int width = width_of(v, n, o->is_all);

        if (buf_addf(&text, e, "%-*s %-14s %-8s %-6s %s\n", width, "NAME", "STATUS", "PID", "AGE",
                     "COMMAND") < 0)
            return -1;
        for (size_t i = 0; i < n; i++)
            if (is_shown(&v[i], o->is_all) && add_text(&v[i], width, &text, e) < 0)
                return -1;
    }
    return fd_write_all(1, buf_span(&text), e);
}

int ps_command(int argc, char **argv)
{
    struct ps_options o = { 0 };
    struct engine *en = NULL;
    OWN_MEM struct engine_info *v = NULL;
    size_t n = 0;
    struct err e;
    int code = command_parse(&ps_program, argc, argv, &o, NULL);

    if (code != COMMAND_GOES_ON)
        return code;
    if (command_choice("--output", o.output, "text", "json", &o.is_json, &e) < 0)
        return command_fail(&e, EXIT_USAGE);
    /* No directory yet: no sandboxes. */
    if (engine_open(&(struct engine_spec){ .dir = o.data }, &en, &e) < 0 && e.code != ERR_NOT_FOUND)
        return command_fail(&e, EXIT_FAILED);
    if ((en && engine_list(en, &v, &n, &e) < 0) || show(v, n, &o, &e) < 0) {
        engine_close(en);
        return command_fail(&e, EXIT_FAILED);
    }
    engine_close(en);
    return 0;
}
