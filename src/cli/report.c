#include "cli/report.h"

#include "base/fd.h"
#include "base/json.h"
#include "cli/command.h"

static void say_json(const struct report *r)
{
    OWN(buf_done) struct buf line = BUF_INIT(8192);
    const struct session_result *result = &r->result;
    struct json_out o;
    struct err e;

    json_out_init(&o, &line, 0);
    json_out_object_begin(&o);
    if (r->name)
        json_out_key(&o, "name"), json_out_cstr(&o, r->name);
    json_out_key(&o, "exit_code"), json_out_u64(&o, (uint64_t)result->exit_code);
    json_out_key(&o, "timed_out"), json_out_bool(&o, result->is_timed_out);
    json_out_key(&o, "start_ms"), json_out_u64(&o, r->start_ms);
    json_out_key(&o, "ran_ms"), json_out_u64(&o, result->ran_ms);
    if (*r->unenforced)
        json_out_key(&o, "unenforced"), json_out_cstr(&o, r->unenforced);
    if (result->has_error) {
        json_out_key(&o, "error"), json_out_cstr(&o, result->e.msg);
        json_out_key(&o, "code"), json_out_cstr(&o, err_map(result->e.code)->name);
    }
    json_out_object_end(&o);
    if (json_out_end(&o, &e) == 0 && buf_addc(&line, '\n', &e) == 0)
        (void)fd_write_all(2, buf_span(&line), &e);
}

void report_unenforced(const struct report *r, bool is_json)
{
    if (*r->unenforced && !is_json)
        fprintf(stderr, "silica: not limited, as this host cannot: %s\n", r->unenforced);
}

void report_say(const struct report *r, bool is_json)
{
    if (is_json)
        say_json(r);
    else if (r->result.has_error)
        (void)command_fail(&r->result.e, 0);
}
