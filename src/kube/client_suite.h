/* client_suite: what every implementation of the client interface (client.h) must do, as one suite of tests.
 *
 *     return client_suite_run(&(struct client_suite){ .loop = loop, .open = open_client, .ctx = server });
 *
 * Runs on:  a server that has nothing but what is there from the start, and stays as clean as the suite found it but for
 *           namespaces that begin with "suite-". Whoever runs it brings server and loop; the suite drives the loop.
 * Tests only: needs cmocka.
 */
#ifndef SILICA_KUBE_CLIENT_SUITE_H
#define SILICA_KUBE_CLIENT_SUITE_H

#include "kube/client.h"

#include <sys/types.h>

struct client_suite {
    struct ev_loop *loop;
    /* A new client that may do everything; the suite frees it. */
    struct kube_client *(*open)(void *ctx);
    /* One that may do nothing but what everybody may; NULL: there are no users here. */
    struct kube_client *(*open_stranger)(void *ctx);
    void *ctx;
    /* Serves the stored version of each kind only, as a cluster without our webhook does: rows about others are left out. */
    bool has_one_version;
    /* Objects are no store's of this process: whoever keeps copies may keep less of them. */
    bool is_remote;
    /* The process that makes the server's Pods run, as KWOK does; 0: there is none, and tests that want them to run see to it
     * themselves. */
    pid_t nodes_pid;
};

/* The number of tests that failed, as cmocka counts. */
int client_suite_run(const struct client_suite *s);

#endif
