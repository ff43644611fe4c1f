/* silica stats: what long-lived sandboxes use of this machine. */
#include "cli/command.h"

#include "base/fd.h"
#include "base/json.h"
#include "base/time.h"
#include "cli/target.h"

#include <time.h>

#define OUTPUT_MAX_BYTES (64 << 20) /* a line for each of many thousands */
#define WATCH_MS         1000

struct stats_options {
    const char *data, *output;
    bool is_watched, is_help;
    bool is_json; /* of output */
};

#define AT(field) offsetof(struct stats_options, field)

/* clang-format off */
static const struct opt opts[] = {
    { "--output", NULL, OPT_STR, AT(output), "text", 0, 0, "FORMAT", "text, or json for programs", NULL, 'o' },
    { "--watch", NULL, OPT_BOOL, AT(is_watched), NULL, 0, 0, NULL, "again every second, with the share of a processor used since", NULL, 'w' },
    TARGET_DATA_OPT(AT(data)),
    COMMAND_HELP(AT(is_help), NULL),
};
/* clang-format on */

const struct opt_program stats_program = {
    .name = "silica stats",
    .usage = "[options] [NAME...]",
    .example = "silica stats -w",
    .opts = opts,
    .opt_count = LEN(opts),
    .epilog =
        "Without names: all that run or are paused. What this machine cannot tell is -, in JSON null: where an\n"
        "account has no cgroups of its own only processes are counted.",
};

/* One sandbox, now and a second ago. */
struct sample {
    struct engine_info info;
    struct box_stats stats;
    uint64_t at_us;
    bool has_before;
    uint64_t cpu_before_us, at_before_us;
};

struct samples {
    struct sample *v;
    size_t n;
};

static void samples_done(struct samples *s)
{
    free(s->v);
    *s = (struct samples){ 0 };
}

/* ---- taking them ---- */

static bool is_alive(const struct engine_info *i)
{
    return i->status == ENGINE_RUNNING || i->status == ENGINE_PAUSED;
}

static void compare(struct sample *now, const struct samples *before)
{
    for (size_t i = 0; i < before->n; i++) {
        const struct sample *b = &before->v[i];

        if (strcmp(b->info.name, now->info.name) != 0 || b->info.pid != now->info.pid)
            continue;
        now->has_before = b->stats.has_cpu;
        now->cpu_before_us = b->stats.cpu_us;
        now->at_before_us = b->at_us;
        return;
    }
}

static int take(struct engine *en, const struct engine_info *info, const struct samples *before,
                struct samples *into, struct err *e)
{
    struct sample *s = &into->v[into->n];

    *s = (struct sample){ .info = *info };
    if (engine_stats(en, info->name, &s->stats, e) < 0)
        return -1;
    s->at_us = time_mono_us();
    compare(s, before);
    into->n++;
    return 0;
}

static int take_all(struct engine *en, const struct samples *before, struct samples *into,
                    struct err *e)
{
    OWN_MEM struct engine_info *v = NULL;
    size_t n = 0;

    if (engine_list(en, &v, &n, e) < 0)
        return -1;
    into->v = own_array(n + 1, sizeof *into->v);
    for (size_t i = 0; i < n; i++)
        if (is_alive(&v[i]) && take(en, &v[i], before, into, e) < 0 && e->code != ERR_NOT_FOUND &&
            e->code != ERR_CLOSED)
            return -1; /* one that ends meanwhile is not there */
    return 0;
}

static int take_named(struct engine *en, char **names, size_t n, const struct samples *before,
                      struct samples *into, struct err *e)
{
    struct engine_info info;

    into->v = own_array(n + 1, sizeof *into->v);
    for (size_t i = 0; i < n; i++) {
        if (target_get(en, names[i], &info, e) < 0)
            return -1;
        if (!is_alive(&info))
            return err_set(e, ERR_CLOSED, "sandbox '%s' is %s", info.name,
                           engine_status_name(info.status));
        if (take(en, &info, before, into, e) < 0)
            return -1;
    }
    return 0;
}

/* ---- showing them ---- */

static double percent(const struct sample *s)
{
    uint64_t wall_us = s->at_us - s->at_before_us;

    return wall_us && s->stats.cpu_us >= s->cpu_before_us
               ? 100.0 * (double)(s->stats.cpu_us - s->cpu_before_us) / (double)wall_us
               : 0;
}

static void bytes_text(uint64_t bytes, char text[32])
{
    if (bytes >= 10ull << 30)
        (void)snprintf(text, 32, "%.1fGiB", (double)bytes / (1 << 30));
    else if (bytes >= 10 << 20)
        (void)snprintf(text, 32, "%.0fMiB", (double)bytes / (1 << 20));
    else
        (void)snprintf(text, 32, "%.0fKiB", (double)bytes / 1024);
}

static int add_text(const struct sample *s, bool is_watched, struct buf *out, struct err *e)
{
    char cpu[32] = "-", memory[32] = "-", limit[32] = "-", pids[32] = "-";

    if (s->stats.has_cpu && !is_watched)
        (void)snprintf(cpu, sizeof cpu, "%.2fs", (double)s->stats.cpu_us / 1e6);
    else if (s->stats.has_cpu && s->has_before)
        (void)snprintf(cpu, sizeof cpu, "%.1f%%", percent(s));
    if (s->stats.has_memory)
        bytes_text(s->stats.memory_bytes, memory);
    if (s->info.limits.memory_bytes)
        bytes_text(s->info.limits.memory_bytes, limit);
    if (s->stats.has_pids)
        (void)snprintf(pids, sizeof pids, "%llu", (unsigned long long)s->stats.pids);
    return buf_addf(out, e, "%-24s %-10s %-10s %-10s %-10s %s\n", s->info.name,
                    engine_status_name(s->info.status), cpu, memory, limit, pids);
}

static void add_number(struct json_out *o, const char *key, bool has, uint64_t value)
{
    json_out_key(o, key);
    if (has)
        json_out_u64(o, value);
    else
        json_out_null(o);
}

static void add_json(const struct sample *s, struct json_out *o)
{
    const struct box_limits *limits = &s->info.limits;

    json_out_object_begin(o);
    json_out_key(o, "name"), json_out_cstr(o, s->info.name);
    json_out_key(o, "status"), json_out_cstr(o, engine_status_name(s->info.status));
    add_number(o, "cpu_us", s->stats.has_cpu, s->stats.cpu_us);
    if (s->has_before)
        json_out_key(o, "cpu_percent"), json_out_double(o, percent(s));
    add_number(o, "memory_bytes", s->stats.has_memory, s->stats.memory_bytes);
    add_number(o, "memory_limit_bytes", limits->memory_bytes != 0, limits->memory_bytes);
    add_number(o, "pids", s->stats.has_pids, s->stats.pids);
    add_number(o, "pids_limit", limits->pids != 0, limits->pids);
    json_out_object_end(o);
}

static int show(const struct samples *all, const struct stats_options *o, struct err *e)
{
    OWN(buf_done) struct buf text = BUF_INIT(OUTPUT_MAX_BYTES);
    struct json_out json;

    if (o->is_json) {
        json_out_init(&json, &text, 0);
        json_out_array_begin(&json);
        for (size_t i = 0; i < all->n; i++)
            add_json(&all->v[i], &json);
        json_out_array_end(&json);
        if (json_out_end(&json, e) < 0 || buf_addc(&text, '\n', e) < 0)
            return -1;
        return fd_write_all(1, buf_span(&text), e);
    }
    if (o->is_watched && isatty(STDOUT_FILENO) && buf_add(&text, SPAN("\033[H\033[2J"), e) < 0)
        return -1;
    if (buf_addf(&text, e, "%-24s %-10s %-10s %-10s %-10s %s\n", "NAME", "STATUS",
                 o->is_watched ? "CPU" : "CPU TIME", "MEMORY", "LIMIT", "PIDS") < 0)
        return -1;
    for (size_t i = 0; i < all->n; i++)
        if (add_text(&all->v[i], o->is_watched, &text, e) < 0)
            return -1;
    return fd_write_all(1, buf_span(&text), e);
}

/* ---- the command ---- */

static int run(struct engine *en, const struct stats_options *o, char **names, size_t n,
               struct err *e)
{
    const struct timespec wait = { .tv_sec = WATCH_MS / 1000 };
    OWN(samples_done) struct samples before = { 0 };
    int done;

    do {
        struct samples now = { 0 };

        done = n ? take_named(en, names, n, &before, &now, e) : take_all(en, &before, &now, e);
        if (done == 0)
            done = show(&now, o, e);
        samples_done(&before);
        before = now;
        if (done == 0 && o->is_watched)
            (void)nanosleep(&wait, NULL);
    } while (done == 0 && o->is_watched);
    return done;
}

int stats_command(int argc, char **argv)
{
    const struct samples none = { 0 };
    struct stats_options o = { 0 };
    struct engine *en = NULL;
    struct err e;
    int rest, done, code = command_parse(&stats_program, argc, argv, &o, &rest);

    if (code != COMMAND_GOES_ON)
        return code;
    if (command_choice("--output", o.output, "text", "json", &o.is_json, &e) < 0)
        return command_fail(&e, EXIT_USAGE);
    if (target_open(o.data, &en, &e) < 0) {
        if (rest < argc || e.code != ERR_NOT_FOUND || show(&none, &o, &e) < 0)
            return command_fail(&e, EXIT_FAILED);
        return 0; /* no sandboxes, as in `ps` */
    }
    done = run(en, &o, argv + rest, (size_t)(argc - rest), &e);
    engine_close(en);
    return done < 0 ? command_fail(&e, EXIT_FAILED) : 0;
}
