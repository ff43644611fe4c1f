/* POST /upload: one file of a multipart form, written while it arrives. The last part named "file" wins, and nothing is
 * in place before the whole form was read and proved well-formed. */
#include "runtime/python/routes.h"

#include "http/multipart.h"
#include "runtime/limits.h"
#include "runtime/exec/pyrepr.h"
#include "runtime/python/answer.h"
#include "runtime/store.h"

#define FIELD_MAX_BYTES (1024 * 1024) /* of a plain field, as the contract has it */

enum form_part { PART_NONE, PART_FILE, PART_TEXT, PART_OTHER };

struct upload {
    struct runtime *rt;
    struct http_exchange *x;
    struct multipart form;
    struct store *store;
    enum form_part part;
    struct buf name; /* the filename as sent */
    struct buf text; /* a field "file" that is no file: part of the complaint */
    bool has_file, has_text, is_body_over, is_store_done;
    uint64_t field_bytes, sunk;
    const char *complaint; /* a 400 from the form itself */
    char store_path[4096];
    struct err store_err;
};

static void upload_free(void *obj)
{
    struct upload *u = obj;

    multipart_done(&u->form);
    buf_done(&u->name);
    buf_done(&u->text);
    free(u);
}

static void close_upload(struct upload *u)
{
    store_close(u->store);
    ev_free_later(u->rt->loop, u, upload_free);
}

static void on_gone(void *ctx)
{
    struct upload *u = ctx;

    close_upload(u);
}

static void answer_not_a_file(struct upload *u)
{
    OWN(buf_done) struct buf input = BUF_INIT(6 * FIELD_MAX_BYTES + 16);
    struct json_out o;
    struct err e;

    json_out_init(&o, &input, 0);
    json_out_str(&o, buf_span(&u->text));
    (void)json_out_end(&o, &e);
    python_invalid(u->x, &(struct python_invalid){
                             .type = "value_error",
                             .loc = "file",
                             .msg = "Value error, Expected UploadFile, received: <class 'str'>",
                             .input = buf_span(&input),
                             .ctx_error = "{}" });
}

static void answer_missing(struct http_exchange *x)
{
    python_invalid(
        x, &(struct python_invalid){
               .type = "missing", .loc = "file", .msg = "Field required", .input = SPAN("null") });
}

static void answer_store(struct upload *u)
{
    OWN(buf_done) struct buf text = BUF_INIT(64 * 1024);
    struct err e;

    if (!u->store_err.code) {
        python_message(u->x, 200, "File '%s' uploaded successfully.", buf_cstr(&u->name));
    } else if (path_is_escape(&u->store_err)) {
        python_denied(u->x);
    } else if (u->store_err.sys) {
        (void)pyrepr_oserror(u->store_err.sys, span_cstr(u->store_path), &text, &e);
        python_message(u->x, 500, "File upload failed: %s", buf_cstr(&text));
    } else {
        python_message(u->x, 500, "File upload failed: %s", u->store_err.msg);
    }
}

/* Everything is known: say it. */
static void answer(struct upload *u)
{
    if (u->complaint)
        python_detail(u->x, 400, u->complaint);
    else if (u->has_file)
        answer_store(u);
    else if (u->has_text)
        answer_not_a_file(u);
    else
        answer_missing(u->x);
    close_upload(u);
}

static const char *fault_text(enum multipart_fault fault)
{
    switch (fault) {
    case MULTIPART_NO_BOUNDARY:
        return "Missing boundary in multipart.";
    case MULTIPART_NO_NAME:
        return "The Content-Disposition header field \"name\" must be provided.";
    case MULTIPART_TOO_MANY_FILES:
        return "Too many files. Maximum number of files is 1000.";
    case MULTIPART_TOO_MANY_FIELDS:
        return "Too many fields. Maximum number of fields is 1000.";
    case MULTIPART_FINE:
    case MULTIPART_NOT_FORM:
    case MULTIPART_HEAD_TOO_LARGE:
    case MULTIPART_MALFORMED:
        break;
    }
    return "There was an error parsing the body";
}

static void part_begins(struct upload *u)
{
    u->field_bytes = 0;
    u->part = PART_OTHER;
    if (!span_is(u->form.name, "file"))
        return;
    u->part = u->form.has_filename ? PART_FILE : PART_TEXT;
    u->has_file = u->part == PART_FILE;
    u->has_text = !u->has_file;
    buf_clear(&u->text);
    buf_clear(&u->name);
    if (u->part == PART_FILE) {
        (void)buf_add_capped(&u->name, u->form.filename);
        store_begin(u->store, u->form.filename, &file_write_upload);
    }
}

static void part_data(struct upload *u, struct span data)
{
    if (u->part == PART_FILE && !store_add(u->store, data))
        http_body_pause(u->x, true);
    if (u->part == PART_TEXT)
        (void)buf_add_capped(&u->text, data);
    if (!u->form.has_filename && (u->field_bytes += data.n) > FIELD_MAX_BYTES)
        u->complaint = "Part exceeded maximum size of 1024KB.";
}

static void on_data(void *ctx, struct span bytes)
{
    struct upload *u = ctx;

    /* The answer is known, but a client that still sends would not see it. */
    if (u->complaint || u->is_store_done) {
        u->sunk += bytes.n;
        if (u->sunk > STORE_SINK_MAX_BYTES)
            answer(u);
        return;
    }
    while (!u->complaint) {
        struct span data = SPAN_NONE;
        size_t used = 0;
        struct err e;

        switch (multipart_feed(&u->form, bytes, &used, &data, &e)) {
        case MULTIPART_MORE:
            return;
        case MULTIPART_PART_HEAD:
            part_begins(u);
            break;
        case MULTIPART_PART_DATA:
            part_data(u, data);
            break;
        case MULTIPART_PART_END:
        case MULTIPART_END:
            break;
        case MULTIPART_BAD:
            u->complaint = fault_text(u->form.fault);
            break;
        }
        bytes = span_skip(bytes, used);
    }
}

static void on_end(void *ctx, const struct err *e)
{
    struct upload *u = ctx;
    struct err cut;

    u->is_body_over = true;
    if (e) {
        python_detail(u->x, e->code == ERR_TIMEOUT ? 408 : 400, e->msg);
        close_upload(u);
        return;
    }
    /* A file that failed early ended the reading of the form: it is not the form's fault. */
    if (!u->complaint && !u->is_store_done && multipart_finish(&u->form, &cut) < 0)
        u->complaint = "There was an error parsing the body";
    if (u->complaint || !u->has_file || u->is_store_done)
        answer(u);
    else
        store_commit(u->store);
}

static void on_room(void *ctx)
{
    struct upload *u = ctx;

    http_body_pause(u->x, false);
}

static void on_done(void *ctx, const char *path, const struct err *e)
{
    struct upload *u = ctx;

    u->is_store_done = true;
    (void)snprintf(u->store_path, sizeof u->store_path, "%s", path);
    if (e)
        u->store_err = *e;
    if (u->is_body_over)
        answer(u);
    else
        http_body_pause(u->x, false);
}

void python_upload(struct runtime *rt, struct http_exchange *x)
{
    static const struct http_body_events body = { on_data, on_end };
    static const struct store_events store = { on_room, on_done };
    struct upload *u = NEW(struct upload);
    struct err e;

    if (multipart_init(&u->form, http_field(x, "content-type"), NULL, &e) < 0) {
        if (u->form.fault == MULTIPART_NOT_FORM)
            answer_missing(x);
        else
            python_detail(x, 400, fault_text(u->form.fault));
        upload_free(u);
        return;
    }
    u->rt = rt;
    u->x = x;
    u->name.max = 64 * 1024;
    u->text.max = FIELD_MAX_BYTES;
    u->store = store_new(rt, runtime_root(&rt->opt, CONTRACT_PYTHON), &store, u);
    http_on_gone(x, on_gone, u);
    http_body_read(x, &body, u);
}
