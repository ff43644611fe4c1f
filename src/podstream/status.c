#include "podstream/status.h"

#include "base/json.h"

#include <stdio.h>

#define NOT_FOUND 127 /* as shells have it: no such program */
#define NOT_RUN   126 /* there is one, but it may not be run */
#define OTHERWISE 1

static void begin(struct json_out *o, struct buf *out, const char *status)
{
    json_out_init(o, out, 0);
    json_out_object_begin(o);
    json_out_key(o, "metadata");
    json_out_object_begin(o);
    json_out_object_end(o);
    json_out_key(o, "status");
    json_out_cstr(o, status);
}

static void end(struct json_out *o)
{
    struct err e;

    json_out_object_end(o);
    (void)json_out_end(o, &e); /* STATUS_MAX_BYTES is room enough */
}

static void text(struct json_out *o, const char *name, const char *value)
{
    json_out_key(o, name);
    json_out_cstr(o, value);
}

static void add_exit_code(struct json_out *o, int code)
{
    char digits[16];

    (void)snprintf(digits, sizeof digits, "%d", code);
    json_out_key(o, "details");
    json_out_object_begin(o);
    json_out_key(o, "causes");
    json_out_array_begin(o);
    json_out_object_begin(o);
    text(o, "reason", "ExitCode");
    text(o, "message", digits);
    json_out_object_end(o);
    json_out_array_end(o);
    json_out_object_end(o);
}

void status_of_exit(struct buf *out, int code)
{
    struct json_out o;
    char message[96];

    begin(&o, out, code ? "Failure" : "Success");
    if (code) {
        (void)snprintf(message, sizeof message,
                       "command terminated with non-zero exit code: exit status %d", code);
        text(&o, "message", message);
        text(&o, "reason", "NonZeroExitCode");
        add_exit_code(&o, code);
    }
    end(&o);
}

int status_exit_code(const struct err *why)
{
    return why->code == ERR_NOT_FOUND ? NOT_FOUND : why->code == ERR_DENIED ? NOT_RUN : OTHERWISE;
}

/* A program that cannot be run is the command's failure, anything else the server's: clients print the message of the
 * second, and of the first only the code. */
void status_of_error(struct buf *out, const struct err *why)
{
    int code = status_exit_code(why);
    struct json_out o;

    begin(&o, out, "Failure");
    text(&o, "message", why->msg);
    text(&o, "reason", code == OTHERWISE ? err_map(why->code)->kube_reason : "NonZeroExitCode");
    add_exit_code(&o, code);
    if (code == OTHERWISE) {
        json_out_key(&o, "code");
        json_out_i64(&o, err_map(why->code)->http);
    }
    end(&o);
}

void status_of_refusal(struct buf *out, int http_status, const char *reason, const char *message)
{
    struct json_out o;

    begin(&o, out, "Failure");
    text(&o, "kind", "Status");
    text(&o, "apiVersion", "v1");
    text(&o, "message", message);
    text(&o, "reason", reason);
    json_out_key(&o, "code");
    json_out_i64(&o, http_status);
    end(&o);
}
