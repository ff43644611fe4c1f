/* silica doctor: which protections a sandbox of this caller has on this host. Nothing is guessed from versions: sandboxes
 * are made, one for each thing that may fail, and the kernel is asked what holds for their PID 1. */
#include "cli/command.h"

#include "base/fd.h"
#include "base/json.h"
#include "base/str.h"
#include "base/time.h"
#include "cli/payload.h"
#include "isolate/box.h"
#include "isolate/confine.h"
#include "isolate/engine.h"
#include "isolate/userns.h"
#include "sandbox/sandbox.h"

#define FACTS_MAX        16
#define STATUS_MAX_BYTES 8192 /* /proc/PID/status has about 1,500 */
#define PROBE_MEMORY     (64ull << 20)
#define PROBE_PIDS       64
#define PROBE_CPU_MILLI  500

enum verdict { HOLDS, LACKS, BROKEN };

struct fact {
    const char *name;
    enum verdict verdict;
    char text[200];
    char hint[200]; /* what to do about it, or "" */
};

struct doctor {
    struct fact facts[FACTS_MAX];
    size_t n;
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

static struct fact *add(struct doctor *d, const char *name, enum verdict verdict, const char *fmt,
                        ...) PRINTF(4, 5);

static struct fact *add(struct doctor *d, const char *name, enum verdict verdict, const char *fmt,
                        ...)
{
    struct fact *f = &d->facts[d->n++];
    va_list ap;

    assert(d->n <= FACTS_MAX);
    *f = (struct fact){ .name = name, .verdict = verdict };
    va_start(ap, fmt);
    (void)vsnprintf(f->text, sizeof f->text, fmt, ap);
    va_end(ap);
    return f;
}

static void advise(struct fact *f, const char *hint)
{
    (void)snprintf(f->hint, sizeof f->hint, "%s", hint);
}

static struct fact *add_err(struct doctor *d, const char *name, enum verdict verdict,
                            const struct err *e)
{
    struct fact *f = add(d, name, verdict, "%.190s", e->msg);

    advise(f, e->hint);
    return f;
}

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

/* ---- what holds for PID 1 of a sandbox, as the kernel tells it ---- */

static bool status_has(struct span status, const char *want)
{
    struct span line;

    while (span_cut(&status, '\n', &line))
        if (span_is(line, want))
            return true;
    return false;
}

static void look_at(struct doctor *d, struct box *box)
{
    static const struct {
        const char *name, *line, *yes, *no;
    } rows[] = {
        { "seccomp", "Seccomp:\t2", "an allow-list of system calls is on",
          "no filter of system calls" },
        { "no_new_privs", "NoNewPrivs:\t1", "nothing inside gains rights by exec",
          "exec may give rights" },
        { "capabilities", "CapBnd:\t0000000000000000", "none, and none to be had",
          "the bounding set is not empty" },
    };
    OWN(buf_done) struct buf status = BUF_INIT(STATUS_MAX_BYTES);
    char path[64];
    struct err e;

    (void)snprintf(path, sizeof path, "/proc/%d/status", (int)box_pid(box));
    if (fd_read_file(path, &status, &e) < 0) {
        (void)add_err(d, "PID 1", BROKEN, &e);
        return;
    }
    EACH(row, rows) {
        bool holds = status_has(buf_span(&status), row->line);

        (void)add(d, row->name, holds ? HOLDS : BROKEN, "%s", holds ? row->yes : row->no);
    }
}

/* ---- what the host has ---- */

static void look_at_ids(struct doctor *d)
{
    struct ids ids;
    struct err e;

    if (ids_choose("doctor", 1000, 1000, false, &ids, &e) < 0) {
        (void)add_err(d, "ids", BROKEN, &e);
    } else if (ids.kind == IDS_ONE) {
        (void)add(d, "ids", HOLDS, "one: who the command is inside is you outside");
    } else {
        (void)add(d, "ids", HOLDS, "%u of its own for each sandbox", (unsigned)ids.count);
    }
}

static void look_at_landlock(struct doctor *d)
{
    int abi = confine_landlock_abi();

    if (abi >= CONFINE_LANDLOCK_FLOOR) {
        (void)add(d, "landlock", HOLDS, "ABI %d: paths are fenced a second time", abi);
        return;
    }
    advise(add(d, "landlock", LACKS, "ABI %d, at least %d is wanted: the mounts alone fence paths",
               abi, CONFINE_LANDLOCK_FLOOR),
           "Linux 5.19 or later with landlock among the lsm= of its command line");
}

/* A sysctl of the ways systems switch user namespaces off, or "". */
static const char *why_no_user_namespaces(void)
{
    static const struct {
        const char *file, *bad, *hint;
    } rows[] = {
        { "/proc/sys/user/max_user_namespaces", "0", "sysctl -w user.max_user_namespaces=10000" },
        { "/proc/sys/kernel/unprivileged_userns_clone", "0",
          "sysctl -w kernel.unprivileged_userns_clone=1" },
        { "/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1",
          "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or an AppArmor profile" },
    };

    EACH(row, rows) {
        OWN(buf_done) struct buf text = BUF_INIT(64);
        struct err e;

        if (fd_read_file(row->file, &text, &e) == 0 && text.n && text.p[text.n - 1] == '\n' &&
            span_is(span_slice(buf_span(&text), 0, text.n - 1), row->bad))
            return row->hint;
    }
    return "";
}

static void try_pause(struct doctor *d, struct box *box)
{
    uint64_t began_us = time_mono_us(), paused_us;
    struct err e;

    if (box_pause(box, &e) < 0) {
        (void)add_err(d, "pause", LACKS, &e);
        return;
    }
    paused_us = time_mono_us();
    if (box_resume(box, &e) < 0)
        (void)add_err(d, "pause", BROKEN, &e);
    else
        (void)add(d, "pause", HOLDS, "stopped in %.2f ms, going on after %.2f ms",
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
            (void)add(d, row->name, HOLDS, "is enforced");
        else
            (void)add_err(d, row->name, LACKS, &e);
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
        struct fact *f = add_err(d, "sandbox", BROKEN, &e);

        if (*why_no_user_namespaces())
            advise(f, why_no_user_namespaces());
        return;
    }
    (void)add(d, "sandbox", HOLDS, "made in %.1f ms, as %s",
              (double)(time_mono_us() - began_us) / 1000,
              geteuid() == 0 ? "root" : "an account without rights");
    look_at_ids(d);
    look_at(d, box);
    look_at_landlock(d);
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
            (void)add_err(d, "clean", BROKEN, &e);
    }
    engine_close(en);
    (void)add(d, "clean", HOLDS,
              "%zu cgroups removed whose silica was killed, %zu sandboxes whose keeper was, %zu "
              "kept as lost",
              box_sweep(), swept.removed, swept.lost);
}

/* ---- what is said ---- */

static const char *const words[] = { "ok", "lacks", "broken" };

static bool is_broken(const struct doctor *d)
{
    for (size_t i = 0; i < d->n; i++)
        if (d->facts[i].verdict == BROKEN)
            return true;
    return false;
}

static void say_text(const struct doctor *d)
{
    for (size_t i = 0; i < d->n; i++) {
        const struct fact *f = &d->facts[i];

        printf("%-7s %-13s %s\n", words[f->verdict], f->name, f->text);
        if (f->hint[0] && f->verdict != HOLDS)
            printf("%22sto do: %s\n", "", f->hint);
    }
}

static void say_json(const struct doctor *d)
{
    OWN(buf_done) struct buf line = BUF_INIT(64 * 1024);
    struct json_out o;
    struct err e;

    json_out_init(&o, &line, 0);
    json_out_object_begin(&o);
    json_out_key(&o, "works"), json_out_bool(&o, !is_broken(d));
    json_out_key(&o, "facts");
    json_out_array_begin(&o);
    for (size_t i = 0; i < d->n; i++) {
        const struct fact *f = &d->facts[i];

        json_out_object_begin(&o);
        json_out_key(&o, "name"), json_out_cstr(&o, f->name);
        json_out_key(&o, "verdict"), json_out_cstr(&o, words[f->verdict]);
        json_out_key(&o, "text"), json_out_cstr(&o, f->text);
        json_out_key(&o, "hint"), json_out_cstr(&o, f->hint);
        json_out_object_end(&o);
    }
    json_out_array_end(&o);
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
        say_json(&d);
    else
        say_text(&d);
    return fflush(stdout) != 0 ? EXIT_FAILED : is_broken(&d) ? 1 : 0;
}
