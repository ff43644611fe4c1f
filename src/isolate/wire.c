#include "isolate/wire.h"

#include "isolate/dir.h"
#include "isolate/limits.h"

static const char *const op_names[] = { "create", "wait", "remove", "cellar", "retire" };
static const struct json_limits limits = { .max_bytes = WIRE_MAX_BYTES,
                                           .max_nodes = SPEC_NODES_MAX };

static void begin(struct json_out *o, struct buf *out)
{
    json_out_init(o, out, 0);
    json_out_object_begin(o);
    json_out_key(o, "v"), json_out_u64(o, WIRE_VERSION);
}

static int end(struct json_out *o, struct err *e)
{
    json_out_object_end(o);
    return json_out_end(o, e);
}

static int read_packet(struct span packet, struct json_doc **ret, struct err *e)
{
    OWN(json_doc_done) struct json_doc *doc = NULL;
    uint64_t version;

    if (json_parse(packet, &limits, &doc, e) < 0)
        return -1;
    if (!json_u64(json_get(json_doc_root(doc), "v"), &version))
        return err_set(e, ERR_PROTOCOL, "not a packet of the keeper's protocol");
    if (version != WIRE_VERSION) {
        (void)err_set(e, ERR_UNSUPPORTED, "the keeper's protocol is version %llu there, %d here",
                      (unsigned long long)version, WIRE_VERSION);
        err_hint(e,
                 "another version of silica runs these sandboxes: use that one, or end them first");
        return -1;
    }
    *ret = take_ptr(&doc);
    return 0;
}

int wire_write_create(const struct spec *spec, struct buf *out, struct err *e)
{
    OWN(buf_done) struct buf text = BUF_INIT(SPEC_MAX_BYTES);
    struct json_out o;

    if (spec_write(spec, &text, e) < 0)
        return -1;
    begin(&o, out);
    json_out_key(&o, "op"), json_out_cstr(&o, op_names[WIRE_CREATE]);
    json_out_key(&o, "spec"), json_out_raw(&o, buf_span(&text));
    return end(&o, e);
}

int wire_write_ask(enum wire_op op, const char *name, struct buf *out, struct err *e)
{
    struct json_out o;

    begin(&o, out);
    json_out_key(&o, "op"), json_out_cstr(&o, op_names[op]);
    json_out_key(&o, "name"), json_out_cstr(&o, name);
    return end(&o, e);
}

static int read_spec(const struct json *v, struct wire_ask *ask, struct err *e)
{
    ask->spec_text = (struct buf)BUF_INIT(SPEC_MAX_BYTES);
    if (json_type(v) != JSON_OBJECT)
        return err_set(e, ERR_PROTOCOL, "a request without a spec");
    if (json_write(v, &ask->spec_text, e) < 0 ||
        spec_read(buf_span(&ask->spec_text), &ask->spec, e) < 0) {
        buf_done(&ask->spec_text);
        return -1;
    }
    (void)snprintf(ask->name, sizeof ask->name, "%s", ask->spec.box.name);
    return 0;
}

int wire_read_ask(struct span packet, struct wire_ask *ret, struct err *e)
{
    OWN(json_doc_done) struct json_doc *doc = NULL;
    struct wire_ask ask = { 0 };
    const struct json *root;
    const char *name;
    size_t op;

    if (read_packet(packet, &doc, e) < 0)
        return -1;
    root = json_doc_root(doc);
    for (op = 0; op < LEN(op_names); op++)
        if (span_is(json_str(json_get(root, "op")), op_names[op]))
            break;
    if (op == LEN(op_names))
        return err_set(e, ERR_PROTOCOL, "a request for nothing that the keeper does");
    ask.op = (enum wire_op)op;
    if (ask.op == WIRE_CREATE) {
        if (read_spec(json_get(root, "spec"), &ask, e) < 0)
            return -1;
    } else {
        name = json_cstr(json_get(root, "name"));
        if (dir_check_name(name, e) < 0)
            return -1;
        (void)snprintf(ask.name, sizeof ask.name, "%s", name);
    }
    *ret = ask;
    return 0;
}

void wire_ask_done(struct wire_ask *ask)
{
    spec_done(&ask->spec);
    buf_done(&ask->spec_text);
}

int wire_write_answer(const struct wire_answer *a, struct buf *out, struct err *e)
{
    struct json_out o;

    begin(&o, out);
    if (a->is_hello)
        json_out_key(&o, "keeper"), json_out_i64(&o, getpid());
    if (*a->name)
        json_out_key(&o, "name"), json_out_cstr(&o, a->name);
    if (*a->unenforced)
        json_out_key(&o, "unenforced"), json_out_cstr(&o, a->unenforced);
    if (a->has_exit) {
        json_out_key(&o, "end"), json_out_cstr(&o, state_end_name(a->exit.end));
        json_out_key(&o, "code"), json_out_i64(&o, a->exit.code);
        json_out_key(&o, "ended_ms"), json_out_u64(&o, a->exit.ended_ms);
    }
    if (a->is_error) {
        json_out_key(&o, "error");
        json_out_object_begin(&o);
        json_out_key(&o, "code"), json_out_cstr(&o, err_map(a->e.code)->name);
        json_out_key(&o, "message"), json_out_cstr(&o, a->e.msg);
        json_out_key(&o, "hint"), json_out_cstr(&o, a->e.hint);
        json_out_object_end(&o);
    }
    return end(&o, e);
}

static void read_error(const struct json *v, struct err *ret)
{
    struct span name = json_str(json_get(v, "code")), msg = json_str(json_get(v, "message"));
    struct span hint = json_str(json_get(v, "hint"));
    int code;

    for (code = ERR_CODE_COUNT - 1; code > ERR_INTERNAL; code--)
        if (span_is(name, err_map((enum err_code)code)->name))
            break;
    (void)err_set(ret, (enum err_code)code, "%.*s", SPAN_ARG(msg));
    if (hint.n)
        err_hint(ret, "%.*s", SPAN_ARG(hint));
}

int wire_read_answer(struct span packet, struct wire_answer *ret, struct err *e)
{
    OWN(json_doc_done) struct json_doc *doc = NULL;
    struct wire_answer a = { 0 };
    const struct json *root, *error;

    if (read_packet(packet, &doc, e) < 0)
        return -1;
    root = json_doc_root(doc);
    error = json_get(root, "error");
    a.is_hello = json_get(root, "keeper") != NULL;
    (void)state_copy_text(json_get(root, "name"), a.name, sizeof a.name);
    (void)state_copy_text(json_get(root, "unenforced"), a.unenforced, sizeof a.unenforced);
    a.is_error = error != NULL;
    if (a.is_error)
        read_error(error, &a.e);
    if (json_get(root, "end")) {
        if (state_read_exit(root, &a.exit, e) < 0)
            return -1;
        a.has_exit = true;
    }
    *ret = a;
    return 0;
}
