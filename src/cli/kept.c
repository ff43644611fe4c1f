#include "cli/kept.h"

#include "base/json.h"
#include "base/time.h"
#include "cli/command.h"
#include "cli/report.h"
#include "isolate/engine.h"
#include "isolate/host_check.h"

/* What a shell would say of a command that could not be run. */
static int fail_command(const char *program, int code)
{
    struct err e;

    if (code == EXIT_NOT_FOUND) {
        (void)err_set(&e, ERR_NOT_FOUND, "cannot run '%s': not found in the sandbox", program);
        err_hint(&e, "the sandbox has the host's /usr, and what -v and --host-path add");
    } else {
        (void)err_set(&e, ERR_DENIED, "cannot run '%s': permission denied", program);
    }
    return command_fail(&e, code);
}

static int say_name(const struct report *r, bool is_json)
{
    OWN(buf_done) struct buf line = BUF_INIT(8192);
    struct json_out o;
    struct err e;

    if (!is_json) {
        printf("%s\n", r->name);
        return fflush(stdout) == 0 ? 0 : EXIT_FAILED;
    }
    json_out_init(&o, &line, 0);
    json_out_object_begin(&o);
    json_out_key(&o, "name"), json_out_cstr(&o, r->name);
    json_out_key(&o, "start_ms"), json_out_u64(&o, r->start_ms);
    if (*r->unenforced)
        json_out_key(&o, "unenforced"), json_out_cstr(&o, r->unenforced);
    json_out_object_end(&o);
    if (json_out_end(&o, &e) < 0)
        return command_fail(&e, EXIT_FAILED);
    printf("%s\n", buf_cstr(&line));
    return fflush(stdout) == 0 ? 0 : EXIT_FAILED;
}

/* In the background: the command is PID 1's own, and ends the sandbox unless that is kept. */
static int run_detached(struct engine *en, const struct kept_run *r)
{
    uint64_t began_ms = time_mono_ms();
    struct engine_create create = {
        .box = r->spec, .is_kept = r->is_kept, .join = r->join, .timeout_ms = r->session->timeout_ms
    };
    struct engine_created made;
    struct report report = { .name = r->spec->name, .unenforced = made.unenforced };
    struct err e;

    r->spec->command = (const char *const *)r->session->argv;
    if (engine_create(en, &create, &made, &e) < 0) {
        if (made.exit_code)
            return fail_command(r->session->argv[0], made.exit_code);
        (void)host_check_explain(&e);
        (void)err_wrap(&e, "cannot make the sandbox");
        return command_fail(&e, EXIT_FAILED);
    }
    report.start_ms = time_mono_ms() - began_ms;
    report_unenforced(&report, r->is_json);
    return say_name(&report, r->is_json);
}

/* Attached: the sandbox has no command of its own; ours is one that runs in it. */
static int run_attached(struct engine *en, const struct kept_run *r)
{
    uint64_t began_ms = time_mono_ms();
    struct engine_create create = { .box = r->spec, .is_kept = true, .join = r->join };
    struct engine_created made = { .unenforced = "" };
    struct report report = { .result = { .exit_code = EXIT_FAILED, .has_error = true },
                             .unenforced = made.unenforced };
    struct err *e = &report.result.e;

    session_block_signals();
    if (engine_create(en, &create, &made, e) < 0) {
        (void)host_check_explain(e);
        (void)err_wrap(e, "cannot make the sandbox");
    } else if (engine_control(en, r->spec->name, &r->session->control_fd, e) == 0) {
        report.name = r->spec->name;
        report.start_ms = time_mono_ms() - began_ms;
        report_unenforced(&report, r->is_json);
        session_run(r->session, &report.result);
    }
    report_say(&report, r->is_json);
    if (report.name && !r->is_json)
        fprintf(stderr, "silica: sandbox '%s' stays; `silica rm -f %s` removes it\n", report.name,
                report.name);
    return report.result.exit_code;
}

int kept_run(const struct kept_run *r)
{
    struct engine *en = NULL;
    struct err e;
    int code;

    if (engine_open(&(struct engine_spec){ .dir = r->data, .starts_keeper = true }, &en, &e) < 0) {
        (void)err_wrap(&e, "cannot make the sandbox");
        return command_fail(&e, EXIT_FAILED);
    }
    code = r->is_detached ? run_detached(en, r) : run_attached(en, r);
    engine_close(en);
    return code;
}
