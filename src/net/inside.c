#include "net/inside.h"

#include "base/json.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

static int parse(struct span text, size_t max, struct json_doc **ret, struct err *e)
{
    const struct json_limits limits = {
        .max_bytes = max, .max_nodes = 16, .max_depth = 2, .flags = JSON_REFUSE_DUPLICATES
    };

    if (json_parse(text, &limits, ret, e) < 0)
        return -1;
    if (json_type(json_doc_root(*ret)) == JSON_OBJECT)
        return 0;
    json_doc_unref(take_ptr(ret));
    return err_set(e, ERR_INVALID, "it is not an object");
}

/* A uid goes into names of files nowhere, and is still held to what a uid looks like. */
static bool is_uid(const char *text)
{
    static const char usual[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.";
    size_t n = text ? strspn(text, usual) : 0;

    return n && n < INSIDE_POD_BYTES && !text[n];
}

int inside_ask_read(struct span text, struct inside_ask *ret, struct err *e)
{
    OWN(json_doc_done) struct json_doc *doc = NULL;
    const struct json *root;
    uint64_t id, family, count;
    const char *pod;

    if (parse(text, INSIDE_ASK_MAX_BYTES, &doc, e) < 0)
        return err_wrap(e, "cannot read who wants a socket");
    root = json_doc_root(doc);
    pod = json_cstr(json_get(root, "pod"));
    if (!json_u64(json_get(root, "id"), &id) || !is_uid(pod) ||
        !json_u64(json_get(root, "family"), &family) || (family != 4 && family != 6) ||
        !json_u64(json_get(root, "count"), &count) || !count || count > INSIDE_COUNT_MAX)
        return err_set(e, ERR_INVALID,
                       "cannot read who wants a socket: id, pod, family (4, 6) and count (1 to %d)",
                       INSIDE_COUNT_MAX);
    *ret = (struct inside_ask){ .id = id,
                                .family = family == 4 ? AF_INET : AF_INET6,
                                .count = (unsigned)count };
    (void)snprintf(ret->pod, sizeof ret->pod, "%s", pod);
    return 0;
}

int inside_ask_write(const struct inside_ask *ask, struct buf *out, struct err *e)
{
    struct json_out j;

    json_out_init(&j, out, 0);
    json_out_object_begin(&j);
    json_out_key(&j, "id"), json_out_u64(&j, ask->id);
    json_out_key(&j, "pod"), json_out_cstr(&j, ask->pod);
    json_out_key(&j, "family"), json_out_u64(&j, ask->family == AF_INET ? 4 : 6);
    json_out_key(&j, "count"), json_out_u64(&j, ask->count);
    json_out_object_end(&j);
    return json_out_end(&j, e);
}

int inside_answer_read(struct span text, struct inside_answer *ret, struct err *e)
{
    OWN(json_doc_done) struct json_doc *doc = NULL;
    const struct json *root;
    const char *error;
    bool is_unknown = false;
    uint64_t id;

    if (parse(text, INSIDE_ANSWER_MAX_BYTES, &doc, e) < 0)
        return err_wrap(e, "cannot read the answer to who wanted a socket");
    root = json_doc_root(doc);
    error = json_cstr(json_get(root, "error"));
    (void)json_bool(json_get(root, "unknown"), &is_unknown);
    if (!json_u64(json_get(root, "id"), &id) || (json_get(root, "error") && (!error || !*error)) ||
        (is_unknown && !error))
        return err_set(e, ERR_INVALID,
                       "cannot read the answer to who wanted a socket: no id, or "
                       "not a text as error");
    *ret = (struct inside_answer){ .id = id, .is_unknown = is_unknown };
    (void)snprintf(ret->error, sizeof ret->error, "%s", error ? error : "");
    return 0;
}

int inside_answer_write(const struct inside_answer *answer, struct buf *out, struct err *e)
{
    struct json_out j;

    json_out_init(&j, out, 0);
    json_out_object_begin(&j);
    json_out_key(&j, "id"), json_out_u64(&j, answer->id);
    if (*answer->error)
        json_out_key(&j, "error"), json_out_cstr(&j, answer->error);
    if (answer->is_unknown)
        json_out_key(&j, "unknown"), json_out_bool(&j, true);
    json_out_object_end(&j);
    return json_out_end(&j, e);
}
