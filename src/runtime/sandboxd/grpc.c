/* The gRPC door: which handler a "/service/method" goes to. */
#include "runtime/sandboxd/routes.h"

#include "http/grpc_serve.h"
#include "runtime/sandboxd/process.h"

#define NAME_SHOWN_BYTES 256 /* of a service or method that nobody knows, in the message about it */

struct method {
    const char *service, *name;
    void (*handle)(struct runtime *rt, struct http_exchange *x);
};

/* clang-format off */
static const struct method methods[] = {
    { "process.v1.ProcessService",                "Execute",              process_execute },
    { "process.v1.ProcessService",                "Start",                process_start },
    { "process.v1.ProcessService",                "WriteStdin",           process_write_stdin },
    { "process.v1.ProcessService",                "SendSignal",           process_send_signal },
    { "process.v1.ProcessService",                "ResizeTTY",            process_resize_tty },
    { "grpc.reflection.v1.ServerReflection",      "ServerReflectionInfo", process_reflect },
    { "grpc.reflection.v1alpha.ServerReflection", "ServerReflectionInfo", process_reflect },
};
/* clang-format on */

void sandboxd_grpc(struct runtime *rt, struct http_exchange *x)
{
    struct span path = http_path(x), service, method;
    char text[3 * NAME_SHOWN_BYTES];
    bool has_service = false;

    if (!grpc_path_split(path, &service, &method)) {
        (void)snprintf(text, sizeof text, "malformed method name: \"%.*s\"",
                       SPAN_ARG(span_slice(path, 0, NAME_SHOWN_BYTES)));
        grpc_refuse(x, GRPC_UNIMPLEMENTED, text);
        return;
    }
    EACH(m, methods) {
        if (!span_is(service, m->service))
            continue;
        has_service = true;
        if (span_is(method, m->name)) {
            m->handle(rt, x);
            return;
        }
    }
    service = span_slice(service, 0, NAME_SHOWN_BYTES);
    method = span_slice(method, 0, NAME_SHOWN_BYTES);
    if (has_service)
        (void)snprintf(text, sizeof text, "unknown method %.*s for service %.*s", SPAN_ARG(method),
                       SPAN_ARG(service));
    else
        (void)snprintf(text, sizeof text, "unknown service %.*s", SPAN_ARG(service));
    grpc_refuse(x, GRPC_UNIMPLEMENTED, text);
}
