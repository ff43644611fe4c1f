/* kind: what is known of a kind of object; one row per served group and kind. */
#ifndef SILICA_KUBE_KIND_H
#define SILICA_KUBE_KIND_H

struct kind {
    const char *group; /* "" is the core group */
    const char *name;  /* "Pod" */
};

#endif
