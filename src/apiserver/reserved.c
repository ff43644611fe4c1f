#include "apiserver/reserved.h"

#include "apiserver/authz.h"

static bool is_operator(const struct op *op)
{
    static const struct authz_ask all = {
        .verb = "*", .group = "*", .resource = "*", .subresource = "", .name = "", .namespace = ""
    };

    return !op->is_deputy && (!op->user || authz_allows(op->store, op->user, &all));
}

bool reserved_refuses(const struct op *op, const char *namespace, const char *name)
{
    return op->is_reserved && op->is_reserved(op->kind, namespace, name) && !is_operator(op);
}

int reserved_check(const struct op *op, const char *namespace, const char *name, struct status *st)
{
    if (!reserved_refuses(op, namespace, name))
        return 0;
    return status_forbidden(st, op->kind, name,
                            "it stands for a part of the system, which only an administrator of "
                            "the whole system may write");
}
