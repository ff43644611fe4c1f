/* page: what there is on this machine as a page for people: pools, claims, sandboxes, and what is wrong with them.
 *
 * Owns:     nothing; does no I/O. Objects are made by tenants, and sandboxes have a say in their statuses: every text is
 *           escaped, and page_policy() lets a browser take nothing but our style.
 * Used by:  overview.c.
 */
#ifndef SILICA_ROUTER_PAGE_H
#define SILICA_ROUTER_PAGE_H

#include "kube/object.h"

struct page_list {
    struct object *const *items;
    size_t n;
    bool is_cut; /* there are more */
};

struct page {
    struct page_list pools, claims, sandboxes, events;
    const char *disk; /* how full it is, where that has to be known; else NULL */
};

/* Appends the document. ERR_LIMIT: it does not fit. */
int page_write(const struct page *p, struct buf *out, struct err *e);
/* The value of content-security-policy for it: no scripts, no frames, nothing from elsewhere. */
int page_policy(struct buf *out, struct err *e);

#endif
