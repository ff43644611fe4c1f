/* silica cp: files and trees between here and a sandbox. */
#include "cli/command.h"

#include "cli/session.h"
#include "cli/signals.h"
#include "cli/target.h"
#include "ev/timer.h"
#include "sandbox/copy.h"

#define PROGRESS_FIRST_MS 1000 /* what is over sooner needs none */
#define PROGRESS_NEXT_MS  250

struct cp_options {
    const char *data;
    uint64_t max_bytes, max_entries;
    bool is_quiet, is_help;
};

#define AT(field) offsetof(struct cp_options, field)

/* clang-format off */
static const struct opt opts[] = {
    { "--max-size", NULL, OPT_BYTES, AT(max_bytes), "64GiB", 1, 0, "SIZE", "fail when more than this comes out of the sandbox" },
    { "--max-files", NULL, OPT_U64, AT(max_entries), "1000000", 1, 0, "N", "the same for files, directories and links" },
    { "--quiet", NULL, OPT_BOOL, AT(is_quiet), NULL, 0, 0, NULL, "say nothing of how far it is", NULL, 'q' },
    TARGET_DATA_OPT(AT(data)),
    COMMAND_HELP(AT(is_help), NULL),
};
/* clang-format on */

const struct opt_program cp_program = {
    .name = "silica cp",
    .usage = "[options] SRC NAME:PATH\nsilica cp [options] NAME:PATH DST",
    .example = "silica cp data.csv demo:/workspace/\n"
               "silica cp demo:/workspace/out ./out\n"
               "silica cp demo:/workspace - | tar tvf -",
    .opts = opts,
    .opt_count = LEN(opts),
    .epilog =
        "Directories are copied with all that is in them, into DST if that is a directory, else under its name;\n"
        "SRC/. is the content alone. Modes and symbolic links are kept, links are not followed, owners are not\n"
        "kept. A path inside is relative to the home there. - is a tar archive on standard output or input. A\n"
        "file here whose name has a colon is ./NAME. The exit code is 0, or 125 when not all was copied.",
};

struct cp {
    const struct cp_options *options;
    bool is_out;
    char *name;          /* of the sandbox */
    const char *inside;  /* path there */
    const char *outside; /* path here, or "-" */
    struct ev_loop *loop;
    struct sandbox *sandbox;
    struct sandbox_copy *copy; /* NULL once it is over */
    struct signals signals;
    struct ev_timer progress;
    bool has_shown;
    int signal; /* that called it off */
    struct err why;
};

/* ---- SRC and DST ---- */

/* NAME:PATH, with the colon before any slash; *ret_name is the caller's to free. */
static bool is_inside(const char *text, char **ret_name, const char **ret_path)
{
    size_t n = strcspn(text, ":/");

    if (text[n] != ':' || n == 0 || text[0] == '.')
        return false;
    *ret_name = span_dup(span_of(text, n));
    *ret_path = text[n + 1] ? text + n + 1 : "."; /* nothing: the home */
    return true;
}

static int read_sides(struct cp *c, int argc, char **argv, int rest, struct err *e)
{
    const char *source, *target;

    if (argc - rest != 2) {
        (void)err_set(e, ERR_USAGE, "two paths are needed, not %d", argc - rest);
        err_hint(e, "silica cp FILE NAME:PATH, or silica cp NAME:PATH FILE");
        return -1;
    }
    source = argv[rest];
    target = argv[rest + 1];
    c->is_out = is_inside(source, &c->name, &c->inside);
    c->outside = c->is_out ? target : source;
    if (c->is_out && strchr(target, ':')) {
        OWN_MEM char *other = NULL;
        const char *path;

        if (is_inside(target, &other, &path))
            return err_set(e, ERR_USAGE, "'%s' and '%s' are both in sandboxes: copy it here first",
                           source, target);
    }
    if (!c->is_out && !is_inside(target, &c->name, &c->inside)) {
        (void)err_set(e, ERR_USAGE, "neither '%s' nor '%s' is in a sandbox", source, target);
        err_hint(e, "a path in a sandbox is NAME:PATH");
        return -1;
    }
    if (!*c->outside)
        return err_set(e, ERR_USAGE, "a path is empty");
    return 0;
}

/* ---- progress ---- */

static void show_progress(void *ctx)
{
    const struct archive_counts *counts;
    struct cp *c = ctx;

    if (!c->copy)
        return;
    counts = sandbox_copy_counts(c->copy);
    fprintf(stderr, "\r\033[Kcopied %.1f MiB, %llu %s", (double)counts->bytes / (1 << 20),
            (unsigned long long)counts->entries, counts->entries == 1 ? "entry" : "entries");
    c->has_shown = true;
    ev_timer_start(c->loop, &c->progress, PROGRESS_NEXT_MS, show_progress, c);
}

/* ---- one copy ---- */

static void on_done(void *ctx, const char *note, const struct err *e)
{
    struct cp *c = ctx;

    c->copy = NULL;
    if (c->has_shown)
        fprintf(stderr, "\r\033[K");
    if (e)
        c->why = *e;
    else if (*note)
        fprintf(stderr, "silica: %s\n", note);
    ev_loop_stop(c->loop);
}

static void on_signal(void *ctx, int number)
{
    struct cp *c = ctx;

    c->signal = number;
    if (c->copy)
        sandbox_copy_cancel(c->copy);
}

static int begin(struct cp *c, int control_fd, struct err *e)
{
    struct sandbox_copy_spec spec = { .is_out = c->is_out,
                                      .inside = c->inside,
                                      .cwd = BOX_HOME,
                                      .outside = c->outside,
                                      .max_bytes = c->options->max_bytes,
                                      .max_entries = c->options->max_entries,
                                      .on_done = on_done,
                                      .ctx = c };

    if (sandbox_open(c->loop, control_fd, &c->sandbox, e) < 0 ||
        signals_open(&c->signals, c->loop, signals_that_end, on_signal, c, e) < 0 ||
        sandbox_copy(c->sandbox, &spec, &c->copy, e) < 0)
        return -1;
    if (!c->options->is_quiet && isatty(STDERR_FILENO))
        ev_timer_start(c->loop, &c->progress, PROGRESS_FIRST_MS, show_progress, c);
    return 0;
}

static int copy(struct engine *en, struct cp *c)
{
    int control_fd;

    signals_block(signals_that_end);
    if (target_control(en, c->name, &control_fd, &c->why) < 0)
        return command_fail(&c->why, EXIT_FAILED);
    if (ev_loop_new(&c->loop, &c->why) < 0) {
        (void)close(control_fd);
        return command_fail(&c->why, EXIT_FAILED);
    }
    if (begin(c, control_fd, &c->why) == 0)
        ev_loop_run(c->loop);
    ev_timer_stop(c->loop, &c->progress);
    signals_close(&c->signals);
    sandbox_close(c->sandbox);
    ev_loop_turn(c->loop); /* what was posted: the sandbox closes its connection */
    ev_loop_turn(c->loop);
    ev_loop_free(c->loop);
    if (c->signal)
        return 128 + c->signal;
    if (!c->why.code)
        return 0;
    target_explain(en, c->name, &c->why);
    return command_fail(&c->why, EXIT_FAILED);
}

/* An archive on our own streams: the other side's command as `exec` would run it. */
static int stream(struct engine *en, struct cp *c)
{
    const char *argv[5];
    struct session_spec spec = { .argv = (char **)(uintptr_t)argv, .cwd = BOX_HOME };
    struct session_result result;

    sandbox_copy_command(c->is_out, c->inside, NULL, argv);
    session_block_signals();
    if (target_control(en, c->name, &spec.control_fd, &c->why) < 0)
        return command_fail(&c->why, EXIT_FAILED);
    session_run(&spec, &result);
    if (result.has_error)
        return command_fail(&result.e, EXIT_FAILED);
    return result.exit_code && result.exit_code < 128 ? EXIT_FAILED : result.exit_code;
}

static int check_stream(const struct cp *c, struct err *e)
{
    if (isatty(c->is_out ? STDOUT_FILENO : STDIN_FILENO))
        return err_set(e, ERR_USAGE, "an archive is not for a terminal: %s it",
                       c->is_out ? "redirect" : "pipe");
    return 0;
}

static void cp_done(struct cp *c)
{
    free(c->name);
}

int cp_command(int argc, char **argv)
{
    struct cp_options o = { 0 };
    OWN(cp_done) struct cp c = { .options = &o };
    struct engine *en = NULL;
    struct err e;
    bool is_stream;
    int rest, code = command_parse(&cp_program, argc, argv, &o, &rest);

    if (code != COMMAND_GOES_ON)
        return code;
    if (read_sides(&c, argc, argv, rest, &e) < 0)
        return command_fail(&e, EXIT_USAGE);
    is_stream = strcmp(c.outside, "-") == 0;
    if (is_stream && check_stream(&c, &e) < 0)
        return command_fail(&e, EXIT_USAGE);
    if (target_open(o.data, &en, &e) < 0)
        return command_fail(&e, EXIT_FAILED);
    code = is_stream ? stream(en, &c) : copy(en, &c);
    engine_close(en);
    return code;
}
