#include "node/run.h"

#include "base/str.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Letters, digits and dashes, as UUIDs and DNS labels have them. */
static bool is_plain(struct span text, size_t max)
{
    for (size_t i = 0; i < text.n; i++) {
        uint8_t c = text.p[i];

        if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
            c != '-')
            return false;
    }
    return text.n && text.n <= max && text.p[0] != '-';
}

/* As an API server gives them. "my_app_1", which a person may call a sandbox, is no Pod's: a node removes those of Pods that are gone. */
static bool is_uuid(struct span text)
{
    for (size_t i = 0; i < text.n; i++) {
        uint8_t c = text.p[i];
        bool is_dash = i == 8 || i == 13 || i == 18 || i == 23;
        bool is_hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');

        if (is_dash ? c != '-' : !is_hex)
            return false;
    }
    return text.n == RUN_UID_BYTES;
}

int run_name(char name[RUN_NAME_BYTES], const char *uid, const char *container, uint32_t attempt,
             struct err *e)
{
    if (!is_uuid(span_cstr(uid)))
        return err_set(e, ERR_INVALID, "'%.100s' is no uid of a Pod", uid);
    if (!is_plain(span_cstr(container), RUN_CONTAINER_MAX_BYTES))
        return err_set(e, ERR_INVALID, "'%.100s' is no name of a container", container);
    (void)snprintf(name, RUN_NAME_BYTES, "%s_%s_%" PRIu32, uid, container, attempt);
    return 0;
}

static void copy(char *to, struct span from)
{
    memcpy(to, from.p, from.n);
    to[from.n] = '\0';
}

bool run_read(const char *name, struct run_id *ret)
{
    struct span rest = span_cstr(name), uid, container;
    char again[RUN_NAME_BYTES];
    uint64_t attempt;
    struct err e;

    if (!span_cut(&rest, '_', &uid) || !is_uuid(uid) || !span_cut(&rest, '_', &container) ||
        !is_plain(container, RUN_CONTAINER_MAX_BYTES) || !str_u64(rest, UINT32_MAX, &attempt))
        return false;
    copy(ret->uid, uid);
    copy(ret->container, container);
    ret->attempt = (uint32_t)attempt;
    /* One name is one attempt: 01 is not 1. */
    return run_name(again, ret->uid, ret->container, ret->attempt, &e) == 0 &&
           strcmp(again, name) == 0;
}
