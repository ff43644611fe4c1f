/* spec: what a long-lived sandbox was asked to be, as JSON: in the request to the keeper, in spec.json, and on its way to
 * the spawner.
 *
 * Owns:     a read spec owns the parsed text and the arrays that box points to.
 * Used by:  engine.c writes, keeper.c and spawner.c read. No I/O.
 * Texts:    are UTF-8, as JSON wants them: a path or variable that is not is refused, never altered.
 */
#ifndef SILICA_ISOLATE_SPEC_H
#define SILICA_ISOLATE_SPEC_H

#include "base/json.h"
#include "isolate/box.h"

struct spec {
    struct box_spec box;    /* without descriptors */
    bool is_kept;           /* stays when it has ended, until it is removed; outlives its command */
    bool ends_with_command; /* is_kept, but its processes end with its command */
    uint64_t timeout_ms;    /* then the keeper kills it; 0: none */
    const char
        *join; /* the sandbox whose user, network, IPC and UTS namespaces it shares, or NULL */
    struct json_doc *doc;
    struct box_bind *binds;
    const char **texts; /* all the lists, one behind the other */
};

/* One JSON object. ERR_INVALID: a text that is not UTF-8. ERR_LIMIT. */
int spec_write(const struct spec *s, struct buf *out, struct err *e);
/* Unknown members are ignored: a newer writer's. *ret is to be done with after success. */
int spec_read(struct span json, struct spec *ret, struct err *e);
void spec_done(struct spec *s);

#endif
