/* names: which texts are names, labels and keys, and what the public server says of those that are not.
 *
 * Owns:     nothing.
 * Used by:  validation of metadata and specs, and the selectors.
 * Texts:    are part of the contract: kubectl prints them as causes of an Invalid.
 */
#ifndef SILICA_KUBE_NAMES_H
#define SILICA_KUBE_NAMES_H

#include "base/buf.h"

enum names_rule {
    NAMES_DNS_LABEL,     /* "my-name": namespaces, containers */
    NAMES_DNS_SUBDOMAIN, /* "a.b-c": most objects */
    NAMES_DNS_1035,      /* a label that begins with a letter: Services */
    NAMES_PATH_SEGMENT,  /* whatever one part of a path can hold: RBAC */
    NAMES_LABEL_KEY,     /* "example.com/My.Name": labels, annotations, finalizers, resources */
    NAMES_LABEL_VALUE,
    NAMES_CONFIG_KEY, /* keys of ConfigMap and Secret */
    NAMES_ENV_VAR,
    NAMES_C_IDENTIFIER,
    NAMES_PORT, /* of a container or Service */
};

#define NAMES_FAULTS_MAX      5
#define NAMES_FAULT_MAX_BYTES 480

/* What is wrong, each a text that follows "Invalid value: ...: ". */
struct names_faults {
    unsigned n;
    char text[NAMES_FAULTS_MAX][NAMES_FAULT_MAX_BYTES];
};

/* True when the text follows the rule; else *f (or NULL) says why not. */
bool names_check(enum names_rule rule, struct span text, struct names_faults *f);
/* The same of a generateName: what the server adds may not be needed to make it right, so one '-' at
 * the end is let pass. */
bool names_check_prefix(enum names_rule rule, struct span text, struct names_faults *f);
/* All faults in one text, with "; " between; a cut ends in "...". */
const char *names_join(const struct names_faults *f, char *text, size_t size);

#endif
