/* silica doctor: which protections a sandbox of this caller has on this host. Nothing is guessed from versions: sandboxes
 * are made, one for each thing that may fail, and the kernel is asked what holds for their PID 1. */
#include "cli/command.h"

#include "base/fd.h"
#include "base/time.h"
#include "cli/facts.h"
#include "cli/payload.h"
#include "isolate/box.h"
#include "isolate/engine.h"
#include "isolate/host_check.h"
#include "sandbox/sandbox.h"

#define PROBE_MEMORY    (64ull << 20)
#define PROBE_PIDS      64
#define PROBE_CPU_MILLI 500

struct doctor {
    struct facts facts;
    int runtime_fd;
};

struct doctor_options {
    const char *output, *data;
    bool is_clean, is_help;
};

/* clang-format off */
static const struct opt opts[] = {
    { "--clean", NULL, OPT_BOOL, offsetof(struct doctor_options, is_clean), NULL, 0, 0, NULL, "first remove what sandboxes left whose silica or keeper was killed" },
    { "--data", "SILICA_DATA", OPT_STR, offsetof(struct doctor_options, data), NULL, 0, 0, "DIR", "where long-lived sandboxes are kept; for --clean" },
    { "--output", NULL, OPT_STR, offsetof(struct doctor_options, output), "text", 0, 0, "FORMAT", "text, or json for programs", NULL, 'o' },
    COMMAND_HELP(offsetof(struct doctor_options, is_help), NULL),
};
/* clang-format on */

const struct opt_program doctor_program = {
    .name = "silica doctor",
    .usage = "[options]",
    .example =
        "silica doctor      what a sandbox that you make here is protected by, and what it lacks",
    .opts = opts,
    .opt_count = LEN(opts),
    .epilog =
        "It makes a few sandboxes and looks at them. The exit code is 0 when sandboxes work here, 1 when not.",
};

static int start(struct doctor *d, const struct box_limits *limits, struct box **ret, struct err *e)
{
    static const char *const env[] = { "PATH=" BOX_PATH, "HOME=" BOX_HOME, NULL };
    char name[32];
    struct box_spec spec = {
        .name = name,
        .env = env,
        .uid = 1000,
        .gid = 1000,
        .limits = *limits,
        .runtime_args = sandbox_runtime_args,
        .runtime_fd = d->runtime_fd,
    };

    (void)snprintf(name, sizeof name, "doctor-%x", (unsigned)getpid());
    return box_start(&spec, ret, e);
}

/* ---- what a sandbox has ---- */

static void try_pause(struct doctor *d, struct box *box)
{
    uint64_t began_us = time_mono_us(), paused_us;
    struct err e;

    if (box_pause(box, &e) < 0) {
        (void)facts_add_err(&d->facts, "pause", LACKS, &e);
        return;
    }
    paused_us = time_mono_us();
    if (box_resume(box, &e) < 0)
        (void)facts_add_err(&d->facts, "pause", BROKEN, &e);
    else
        (void)facts_add(&d->facts, "pause", HOLDS, "stopped in %.2f ms, going on after %.2f ms",
                        (double)(paused_us - began_us) / 1000,
                        (double)(time_mono_us() - paused_us) / 1000);
}

static void try_limits(struct doctor *d)
{
    static const struct {
        const char *name;
        struct box_limits limits;
    } rows[] = {
        { "--memory", { .memory_bytes = PROBE_MEMORY } },
        { "--pids", { .pids = PROBE_PIDS } },
        { "--cpus", { .cpu_milli = PROBE_CPU_MILLI } },
    };

    EACH(row, rows) {
        struct box *box = NULL;
        struct err e;

        if (start(d, &row->limits, &box, &e) == 0)
            (void)facts_add(&d->facts, row->name, HOLDS, "is enforced");
        else
            (void)facts_add_err(&d->facts, row->name, LACKS, &e);
        box_free(box);
    }
}

static void examine(struct doctor *d)
{
    const struct box_limits none = { 0 };
    uint64_t began_us = time_mono_us();
    struct box *box = NULL;
    struct err e;

    if (start(d, &none, &box, &e) < 0) {
        (void)host_check_explain(&e);
        (void)facts_add_err(&d->facts, "sandbox", BROKEN, &e);
        return;
    }
    (void)facts_add(&d->facts, "sandbox", HOLDS, "made in %.1f ms, as %s",
                    (double)(time_mono_us() - began_us) / 1000,
                    geteuid() == 0 ? "root" : "an account without rights");
    facts_of_host(&d->facts);
    facts_of_process(&d->facts, box_pid(box));
    try_pause(d, box);
    box_free(box);
    try_limits(d);
}

/* First the sandboxes of a killed keeper, then the groups of whoever was killed while it made or ended one. */
static void clean(struct doctor *d, const char *data)
{
    struct engine_swept swept = { 0 };
    struct engine *en = NULL;
    struct err e;

    if (engine_open(&(struct engine_spec){ .dir = data }, &en, &e) < 0 ||
        engine_sweep(en, &swept, &e) < 0) {
        if (e.code != ERR_NOT_FOUND) /* no directory: none that could be lost */
            (void)facts_add_err(&d->facts, "clean", BROKEN, &e);
    }
    engine_close(en);
    (void)facts_add(
        &d->facts, "clean", HOLDS,
        "%zu cgroups removed whose silica was killed, %zu sandboxes whose keeper was, %zu "
        "kept as lost",
        box_sweep(), swept.removed, swept.lost);
}

/* ---- what is said ---- */

static void say_text(const struct facts *facts)
{
    for (size_t i = 0; i < facts->n; i++) {
        const struct fact *f = &facts->v[i];

        printf("%-7s %-13s %s\n", verdict_name(f->verdict), f->name, f->text);
        if (f->hint[0] && f->verdict != HOLDS)
            printf("%22sto do: %s\n", "", f->hint);
    }
}

static void say_json(const struct facts *facts)
{
    OWN(buf_done) struct buf line = BUF_INIT(64 * 1024);
    struct json_out o;
    struct err e;

    json_out_init(&o, &line, 0);
    json_out_object_begin(&o);
    json_out_key(&o, "works"), json_out_bool(&o, !facts_are_broken(facts));
    json_out_key(&o, "facts"), facts_write(facts, &o);
    json_out_object_end(&o);
    if (json_out_end(&o, &e) == 0)
        printf("%s\n", buf_cstr(&line));
}

int doctor_command(int argc, char **argv)
{
    OWN_FD int runtime_fd = -1;
    struct doctor_options o = { 0 };
    struct doctor d = { 0 };
    struct err e;
    bool is_json;
    int code = command_parse(&doctor_program, argc, argv, &o, NULL);

    if (code != COMMAND_GOES_ON)
        return code;
    if (command_choice("--output", o.output, "text", "json", &is_json, &e) < 0)
        return command_fail(&e, EXIT_USAGE);
    if (payload_open(&runtime_fd, &e) < 0)
        return command_fail(&e, EXIT_FAILED);
    d.runtime_fd = runtime_fd;
    if (o.is_clean)
        clean(&d, o.data);
    examine(&d);
    if (is_json)
        say_json(&d.facts);
    else
        say_text(&d.facts);
    return fflush(stdout) != 0 ? EXIT_FAILED : facts_are_broken(&d.facts) ? EXIT_NO : 0;
}
