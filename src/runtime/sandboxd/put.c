/* PUT of /v1/files: the body, or the part "file" of a form, becomes the file. It is written while it arrives, beside
 * the target, and is in place only once it is whole; a client that goes away leaves nothing.
 *
 * The order of checks is the contract's: mode, confinement, target is a directory, form, writing. So a form's path is
 * looked at before the form is; a plain body's is by the store, before its first byte is written. An answer that is
 * known early waits until the client has sent its body (or a good part of it): one that still sends may never look. */
#include "runtime/sandboxd/rest.h"

#include "http/multipart.h"
#include "runtime/limits.h"
#include "runtime/sandboxd/answer.h"
#include "runtime/sandboxd/limits.h"
#include "runtime/sandboxd/root.h"
#include "runtime/store.h"

#include <errno.h>

#define DEFAULT_MODE 0644

enum put_form { PUT_PLAIN, PUT_FORM, PUT_FORM_FILE, PUT_FORM_OVER };

struct put {
    struct runtime *rt;
    struct http_exchange *x; /* NULL once the client is gone */
    char *path;
    size_t path_n;
    mode_t mode;
    enum put_form form; /* where in the form we are: before its file, in it, behind it */
    struct multipart parts;
    struct store *store;
    bool is_body_over, is_store_done, has_complaint;
    uint64_t sunk;
    struct buf complaint; /* a 400 */
    enum sandboxd_stage stage;
    struct err err; /* of the path or the store */
    struct ev_work check;
};

static void put_free(void *obj)
{
    struct put *p = obj;

    multipart_done(&p->parts);
    buf_done(&p->complaint);
    free(p->path);
    free(p);
}

static void close_put(struct put *p)
{
    store_close(p->store);
    ev_free_later(p->rt->loop, p, put_free);
}

static void answer(struct put *p)
{
    if (p->err.code && p->err.sys == EISDIR)
        sandboxd_error(p->x, SANDBOXD_INVALID_ARGUMENT, "target path is a directory");
    else if (p->err.code &&
             p->err.sys == ENOENT) /* the root itself, or a parent removed meanwhile */
        sandboxd_error(p->x, SANDBOXD_INTERNAL, p->err.msg);
    else if (p->err.code)
        sandboxd_file_error(p->x, p->stage, &p->err);
    else if (p->has_complaint)
        sandboxd_error(p->x, SANDBOXD_INVALID_ARGUMENT, buf_cstr(&p->complaint));
    else
        http_answer(p->x, 204, NULL, SPAN_NONE);
    close_put(p);
}

static void complain(struct put *p, const char *fmt, const char *what)
{
    p->has_complaint = true;
    buf_addf_capped(&p->complaint, fmt, what);
}

static bool is_decided(const struct put *p)
{
    return p->has_complaint || p->err.code || p->is_store_done;
}

/* ---- the body ---- */

static void write_piece(struct put *p, struct span bytes)
{
    if (!store_add(p->store, bytes))
        http_body_pause(p->x, true);
}

static void begin_file(struct put *p)
{
    const struct file_write_how how = file_write_put(p->mode);

    store_begin(p->store, span_of(p->path, p->path_n), &how);
}

static void form_event(struct put *p, enum multipart_event event, struct span data,
                       const struct err *e)
{
    switch (event) {
    case MULTIPART_PART_HEAD:
        if (p->form == PUT_FORM && span_is(p->parts.name, "file")) {
            p->form = PUT_FORM_FILE;
            begin_file(p);
        }
        break;
    case MULTIPART_PART_DATA:
        if (p->form == PUT_FORM_FILE)
            write_piece(p, data);
        break;
    case MULTIPART_PART_END:
        if (p->form == PUT_FORM_FILE) {
            p->form = PUT_FORM_OVER; /* what follows is not looked at */
            store_commit(p->store);
        }
        break;
    case MULTIPART_BAD:
        complain(p, "invalid multipart body: %s", e->msg);
        break;
    case MULTIPART_MORE:
    case MULTIPART_END:
        break;
    }
}

static void feed_form(struct put *p, struct span bytes)
{
    enum multipart_event event;

    do {
        struct span data = SPAN_NONE;
        size_t used = 0;
        struct err e;

        event = multipart_feed(&p->parts, bytes, &used, &data, &e);
        bytes = span_skip(bytes, used);
        form_event(p, event, data, &e);
    } while (event != MULTIPART_MORE && event != MULTIPART_BAD && p->form != PUT_FORM_OVER);
}

static void on_data(void *ctx, struct span bytes)
{
    struct put *p = ctx;

    if (is_decided(p)) {
        p->sunk += bytes.n;
        if (p->sunk > STORE_SINK_MAX_BYTES)
            answer(p);
    } else if (p->form == PUT_PLAIN) {
        write_piece(p, bytes);
    } else if (p->form != PUT_FORM_OVER) {
        feed_form(p, bytes);
    }
}

static void on_end(void *ctx, const struct err *e)
{
    struct put *p = ctx;
    struct err cut;

    p->is_body_over = true;
    if (!is_decided(p) && p->form != PUT_FORM_OVER) {
        if (e)
            complain(p, "the body is not complete: %s", e->msg);
        else if (p->form == PUT_PLAIN)
            store_commit(p->store);
        else if (multipart_finish(&p->parts, &cut) < 0)
            complain(p, "invalid multipart body: %s", cut.msg);
        else
            complain(p, "%s", "multipart body is missing the required \"file\" part");
    }
    if (is_decided(p))
        answer(p);
}

static void on_room(void *ctx)
{
    struct put *p = ctx;

    http_body_pause(p->x, false);
}

static void on_stored(void *ctx, const char *path, const struct err *e)
{
    struct put *p = ctx;

    p->is_store_done = true;
    if (e) {
        p->err = *e;
        p->stage = *path ? SANDBOXD_WORKING : SANDBOXD_RESOLVING;
        if (!*path && e->sys == ENOENT)
            root_set_known(false); /* it was deleted; the next one makes it again */
    }
    if (p->is_body_over)
        answer(p);
    else
        http_body_pause(p->x, false);
}

static void on_gone(void *ctx)
{
    struct put *p = ctx;

    p->x = NULL;
    if (!p->check.run) /* else a worker has it, and its end closes it */
        close_put(p);
}

static void read_body(struct put *p)
{
    static const struct http_body_events events = { on_data, on_end };

    /* A client that waits for leave to send has sent nothing: it hears the verdict at once. */
    if (is_decided(p) && (http_body_length(p->x) == 0 || http_field(p->x, "expect").p)) {
        answer(p);
        return;
    }
    if (!is_decided(p) && p->form == PUT_PLAIN)
        begin_file(p);
    http_body_read(p->x, &events, p);
}

/* ---- before the body ---- */

static void check_run(void *ctx)
{
    OWN(path_root_close) struct path_root root = PATH_ROOT_NONE;
    OWN(path_at_done) struct path_at at = PATH_AT_NONE;
    struct put *p = ctx;
    struct span path = span_of(p->path, p->path_n);

    if (root_open(&root, p->rt, &p->err) < 0 ||
        path_resolve(&root, PATH_SANDBOXD, path, 0, &at, &p->err) < 0)
        return;
    if (at.is_root || (at.exists && S_ISDIR(at.st.st_mode)))
        (void)err_errno(&p->err, EISDIR, "cannot write '%s'", at.abs);
}

static void check_done(void *ctx)
{
    struct put *p = ctx;

    if (!p->err.code)
        root_set_known(true);
    if (p->x && p->check.is_canceled)
        http_answer_abort(p->x);
    if (!p->x || p->check.is_canceled) {
        close_put(p);
        return;
    }
    p->check.run = NULL;
    read_body(p);
}

static bool is_octal(struct span mode)
{
    if (mode.n != 4 || mode.p[0] != '0')
        return false;
    for (size_t i = 1; i < mode.n; i++)
        if (mode.p[i] < '0' || mode.p[i] > '7')
            return false;
    return true;
}

static void read_mode(struct put *p)
{
    OWN(buf_done) struct buf text = BUF_INIT(SANDBOXD_QUERY_MAX_BYTES);
    struct err e;

    p->mode = DEFAULT_MODE;
    if (rest_query(p->x, "mode", &text, &e) == 0 && text.n == 0)
        return;
    if (is_octal(buf_span(&text)))
        p->mode = (mode_t)((text.p[1] - '0') << 6 | (text.p[2] - '0') << 3 | (text.p[3] - '0'));
    else
        complain(p, "mode \"%s\" must match ^0[0-7]{3}$", buf_cstr(&text));
}

/* A content type that is no form's is a plain body's, whatever it says. What is wrong with a form's own is said after
 * the path was judged. */
static void read_type(struct put *p)
{
    struct err e;

    if (multipart_init(&p->parts, http_field(p->x, "content-type"), NULL, &e) == 0) {
        p->form = PUT_FORM;
    } else if (p->parts.fault != MULTIPART_NOT_FORM) {
        p->form = PUT_FORM;
        complain(p, "invalid multipart body: %s", e.msg);
    }
}

void sandboxd_put(struct runtime *rt, struct http_exchange *x, struct span path)
{
    static const struct store_events events = { on_room, on_stored };
    struct put *p = NEW(struct put);

    p->rt = rt;
    p->x = x;
    p->path = span_dup(path);
    p->path_n = path.n;
    p->complaint.max = SANDBOXD_QUERY_MAX_BYTES + 1024;
    p->store = store_new(rt, runtime_root(&rt->opt, CONTRACT_SANDBOXD), &events, p);
    http_on_gone(x, on_gone, p);
    read_mode(p);
    if (p->has_complaint) {
        read_body(p);
        return;
    }
    read_type(p);
    if (p->form == PUT_PLAIN && root_is_known(rt))
        read_body(p);
    else
        ev_pool_submit(rt->files, &p->check, check_run, check_done, p);
}
