/* domains: whose labels claims may put on Pods, as an operator lists them in a file.
 *
 * Owns:     the texts, in one block.
 * Used by:  `silica controller`; controller_config.label_domains.
 */
#ifndef SILICA_CONTROLLER_DOMAINS_H
#define SILICA_CONTROLLER_DOMAINS_H

#include "base/buf.h"

#define DOMAINS_FILE "/etc/sandbox-config/allowed-label-domains"

struct domains {
    const char **names; /* ended by NULL */
    char *texts;
};

/* Commas and line ends part the names; blanks around them go, letters become small. ERR_LIMIT: too many. Names may be
 * none: then names[0] is NULL. */
int domains_parse(struct span text, struct domains *ret, struct err *e);
/* Of a file. One that is not there, or has no names, leaves *ret as it is: the caller's default holds. */
int domains_read(const char *file, struct domains *ret, struct err *e);
void domains_done(struct domains *d);

#endif
