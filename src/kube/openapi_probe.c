/* Prints a document of kube/openapi.h: openapi_probe [GROUP VERSION | index | proto]; without
 * arguments version 2. For tests that compare
 * it with a public server's. */
#include "kube/openapi.h"

#include "base/fd.h"

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    static const struct openapi_info info = { "v1.36.3" };
    OWN(buf_done) struct buf out = BUF_INIT(OPENAPI_MAX_BYTES);
    struct err e;
    int status;

    if (argc == 3)
        status = openapi_v3(&info, argv[1], argv[2], &out, &e);
    else if (argc == 2 && strcmp(argv[1], "index") == 0)
        status = openapi_v3_index(&info, &out, &e);
    else if (argc == 2 && strcmp(argv[1], "proto") == 0)
        status = openapi_v2_proto(&info, &out, &e);
    else
        status = openapi_v2(&info, &out, &e);
    if (status == 0)
        status = fd_write_all(STDOUT_FILENO, buf_span(&out), &e);
    if (status < 0)
        fprintf(stderr, "openapi_probe: %s\n", e.msg);
    return status < 0;
}
