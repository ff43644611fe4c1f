/* request: what a client wants of a pod, read from the target of its HTTP request.
 *
 * Owns:     one block of decoded text, which the pointers point into.
 * Used by:  serve; the backend. Does no I/O.
 */
#ifndef SILICA_PODSTREAM_REQUEST_H
#define SILICA_PODSTREAM_REQUEST_H

#include "base/buf.h"
#include "podstream/limits.h"

enum pod_verb { POD_EXEC, POD_ATTACH, POD_FORWARD, POD_LOG };
enum pod_streams { POD_STREAMS_ALL, POD_STREAMS_STDOUT, POD_STREAMS_STDERR };

/* What of a log is wanted, and how. */
struct pod_log_wish {
    bool is_followed, is_previous, has_times;
    enum pod_streams streams;
    uint64_t tail;  /* lines; UINT64_MAX: all */
    uint64_t limit; /* bytes; UINT64_MAX: all */
    const char
        *since; /* a time in UTC as logs have it, "2026-11-16T09:30:00.5Z"; "": from the start */
};

struct pod_request {
    enum pod_verb verb;
    const char *ns, *pod;
    const char *container; /* "" when none is named; the last one that is named */
    const char *uid; /* of the Pod that was meant: another one may have its name by now; "": any */
    const char *
        caller; /* POD_FORWARD: who asks, in the words of who sent it (router/caller.h); "" when it said nothing */
    char **argv; /* POD_EXEC: NULL-terminated, at least the program */
    size_t argc;
    bool has_stdin, has_stdout, has_stderr;
    bool has_tty; /* then there is no stderr */
    uint16_t ports[POD_PORTS_MAX];
    size_t port_count;
    struct pod_log_wish log; /* POD_LOG */
    struct buf text;         /* the block */
};

/* Is this one of ours: /api/v1/namespaces/NS/pods/POD/{exec,attach,portforward,log}? */
bool pod_request_is(struct span path);
/* Of such a path and its query. -1: ERR_INVALID, ERR_LIMIT. */
int pod_request_parse(struct span path, struct span query, struct pod_request **ret, struct err *e);
void pod_request_free(struct pod_request *r);

/* A terminal's size as it comes on the resize channel: JSON objects, one behind the other, in any pieces. */
struct pod_resize {
    struct buf text; /* POD_RESIZE_MAX_BYTES */
};
void pod_resize_init(struct pod_resize *z);
void pod_resize_done(struct pod_resize *z);
/* True: a size was read; call again with the rest. What is not a size is dropped without a word, as servers do. */
bool pod_resize_feed(struct pod_resize *z, struct span in, size_t *ret_used, uint16_t *ret_cols,
                     uint16_t *ret_rows);

#endif
