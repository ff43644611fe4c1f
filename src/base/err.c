#include "base/err.h"

#include <errno.h>
#include <stdarg.h>

/* clang-format off */
static const struct err_map maps[ERR_CODE_COUNT] = {
    [ERR_NONE]         = { "ok",            200, 0,  "",                   0 },
    [ERR_INTERNAL]     = { "internal",      500, 13, "InternalError",      125 },
    [ERR_USAGE]        = { "usage",         400, 3,  "BadRequest",         2 },
    [ERR_INVALID]      = { "invalid",       400, 3,  "Invalid",            125 },
    [ERR_PROTOCOL]     = { "protocol",      400, 13, "BadRequest",         125 },
    [ERR_LIMIT]        = { "limit",         413, 8,  "RequestEntityTooLarge", 125 },
    [ERR_NOT_FOUND]    = { "not-found",     404, 5,  "NotFound",           125 },
    [ERR_EXISTS]       = { "exists",        409, 6,  "AlreadyExists",      125 },
    [ERR_CONFLICT]     = { "conflict",      409, 9,  "Conflict",           125 },
    [ERR_DENIED]       = { "denied",        403, 7,  "Forbidden",          125 },
    [ERR_UNAUTHORIZED] = { "unauthorized",  401, 16, "Unauthorized",       125 },
    [ERR_TIMEOUT]      = { "timeout",       504, 4,  "Timeout",            124 },
    [ERR_CANCELED]     = { "canceled",      499, 1,  "ServerTimeout",      125 },
    [ERR_CLOSED]       = { "closed",        502, 14, "ServiceUnavailable", 125 },
    [ERR_UNAVAILABLE]  = { "unavailable",   503, 14, "ServiceUnavailable", 125 },
    [ERR_UNSUPPORTED]  = { "unsupported",   501, 12, "MethodNotAllowed",   125 },
    [ERR_BUSY]         = { "busy",          429, 8,  "TooManyRequests",    125 },
    [ERR_NO_SPACE]     = { "no-space",      507, 8,  "InternalError",      125 },
    [ERR_GONE]         = { "gone",          410, 11, "Expired",            125 },
};
/* clang-format on */

const struct err_map *err_map(enum err_code code)
{
    return &maps[(unsigned)code < ERR_CODE_COUNT ? code : ERR_INTERNAL];
}

enum err_code err_code_of_errno(int sys)
{
    switch (sys) {
    case ENOENT:
    case ESRCH:
    case ENODEV:
        return ERR_NOT_FOUND;
    case EACCES:
    case EPERM:
    case EROFS:
        return ERR_DENIED;
    case EEXIST:
        return ERR_EXISTS;
    case ENOTEMPTY:
    case EBUSY:
    case EISDIR:
    case ENOTDIR:
        return ERR_CONFLICT;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return ERR_NO_SPACE;
    case EMFILE:
    case ENFILE:
    case EAGAIN:
        return ERR_BUSY;
    case ETIMEDOUT:
        return ERR_TIMEOUT;
    case ECONNREFUSED:
    case EHOSTUNREACH:
    case ENETUNREACH:
        return ERR_UNAVAILABLE;
    case EPIPE:
    case ECONNRESET:
        return ERR_CLOSED;
    case EINVAL:
    case ENAMETOOLONG:
    case ELOOP:
        return ERR_INVALID;
    case ENOSYS:
    case EOPNOTSUPP:
        return ERR_UNSUPPORTED;
    case ECANCELED:
        return ERR_CANCELED;
    default:
        return ERR_INTERNAL;
    }
}

/* A message that does not fit says so instead of ending in the middle of a word unnoticed. */
static void mark_cut(char *text, size_t size, int wanted)
{
    if (wanted >= 0 && (size_t)wanted >= size)
        memcpy(text + size - 4, "...", 4);
}

static void put(struct err *e, enum err_code code, int sys, const char *fmt, va_list ap)
{
    const char *cause =
        sys ? strerrordesc_np(sys) : NULL; /* not strerror: that one follows the locale */
    int n;

    e->code = code;
    e->sys = sys;
    e->hint[0] = '\0';
    n = vsnprintf(e->msg, sizeof e->msg, fmt, ap);
    if (sys && n >= 0 && (size_t)n < sizeof e->msg)
        n += cause ? snprintf(e->msg + n, sizeof e->msg - (size_t)n, ": %s", cause)
                   : snprintf(e->msg + n, sizeof e->msg - (size_t)n, ": error %d", sys);
    mark_cut(e->msg, sizeof e->msg, n);
}

int err_set(struct err *e, enum err_code code, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    put(e, code, 0, fmt, ap);
    va_end(ap);
    return -1;
}

int err_sys(struct err *e, const char *fmt, ...)
{
    int sys = errno;
    va_list ap;

    va_start(ap, fmt);
    put(e, err_code_of_errno(sys), sys, fmt, ap);
    va_end(ap);
    return -1;
}

int err_errno(struct err *e, int sys, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    put(e, err_code_of_errno(sys), sys, fmt, ap);
    va_end(ap);
    return -1;
}

int err_wrap(struct err *e, const char *fmt, ...)
{
    char inner[sizeof e->msg];
    va_list ap;
    int n;

    memcpy(inner, e->msg, sizeof inner);
    va_start(ap, fmt);
    n = vsnprintf(e->msg, sizeof e->msg, fmt, ap);
    va_end(ap);
    if (n >= 0 && (size_t)n < sizeof e->msg)
        n += snprintf(e->msg + n, sizeof e->msg - (size_t)n, ": %s", inner);
    mark_cut(e->msg, sizeof e->msg, n);
    return -1;
}

void err_hint(struct err *e, const char *fmt, ...)
{
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(e->hint, sizeof e->hint, fmt, ap);
    va_end(ap);
    mark_cut(e->hint, sizeof e->hint, n);
}
