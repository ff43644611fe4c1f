/* Prints a document of kube/openapi.h: openapi_probe [GROUP VERSION]; without arguments version 2. For tests that compare
 * it with a public server's. */
#include "kube/openapi.h"

#include "base/fd.h"

#include <stdio.h>

int main(int argc, char **argv)
{
    static const struct openapi_info info = { "v1.36.3" };
    OWN(buf_done) struct buf out = BUF_INIT(OPENAPI_MAX_BYTES);
    struct err e;
    int status =
        argc == 3 ? openapi_v3(&info, argv[1], argv[2], &out, &e) : openapi_v2(&info, &out, &e);

    if (status == 0)
        status = fd_write_all(STDOUT_FILENO, buf_span(&out), &e);
    if (status < 0)
        fprintf(stderr, "openapi_probe: %s\n", e.msg);
    return status < 0;
}
