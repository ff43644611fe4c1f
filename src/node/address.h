/* address: a Pod's own address: one of 127.64.0.0/10, which every host has, and nobody else uses.
 *
 * Owns:     the set of addresses that are taken.
 * Used by:  record.c; who wants to know whether an address is a Pod's (cli/in_cluster_hosts.c). After a restart those that Pods have are taken again first, as their status says them.
 * Choice:   by the Pod's name, so a sandbox that was suspended mostly comes back with the address it had.
 */
#ifndef SILICA_NODE_ADDRESS_H
#define SILICA_NODE_ADDRESS_H

#include "base/buf.h"

#define ADDRESS_TEXT_BYTES 16

struct addresses {
    uint32_t *v; /* sorted */
    size_t n, room;
};

/* Can a node have given it? False too for what is no IPv4 address as inet_ntop(3) writes it. */
bool address_is_given(const char *text);

void addresses_done(struct addresses *a);
/* A free one, as a text. */
void addresses_take(struct addresses *a, const char *namespace, const char *name,
                    char text[ADDRESS_TEXT_BYTES]);
/* This one. False: it is none of ours, or taken. */
bool addresses_claim(struct addresses *a, const char *text);
void addresses_give(struct addresses *a, const char *text);

#endif
