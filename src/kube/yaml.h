/* yaml: YAML 1.1 as Kubernetes reads it, into JSON values.
 *
 *     OWN(kube_yaml_done) struct kube_yaml *y = kube_yaml_new(text);
 *     while ((got = kube_yaml_next(y, ed, &node, e)) > 0)
 *         ...
 *
 * Owns:     the parser (libyaml) and the anchors of the current document. Values live in the caller's
 *           edit, whose ceiling bounds what aliases can grow to.
 * Scalars:  plain ones are resolved by the rules of the public clients' library: yes, no, on, off, y, n
 *           are booleans, 010 is 8, 1_000 a number, dates are strings. Quoted ones are strings.
 * Used by:  bodies with Content-Type application/yaml, kubeconfig files, apply -f.
 * Threads:  a reader belongs to one.
 */
#ifndef SILICA_KUBE_YAML_H
#define SILICA_KUBE_YAML_H

#include "base/json_edit.h"

#define YAML_DEPTH_MAX   200  /* below JSON_DEPTH_MAX, as the value is put into an object */
#define YAML_ANCHORS_MAX 1024 /* more is ERR_LIMIT */
/* What one text may become. Thirty times a real manifest; aliases that multiply end here. */
#define YAML_VALUE_MAX_BYTES   (32u * 1024 * 1024)
#define YAML_REPEATS_MAX_BYTES 4096

struct kube_yaml;

/* The text is borrowed until kube_yaml_free. */
struct kube_yaml *kube_yaml_new(struct span text);
void kube_yaml_free(struct kube_yaml *y);
/* For OWN(): frees *y. */
void kube_yaml_done(struct kube_yaml **y);

/* The next document: 1 and *ret; 0 at the end; -1: ERR_INVALID ("yaml: line 3: ...") or ERR_LIMIT. An
 * empty document is null. */
int kube_yaml_next(struct kube_yaml *y, struct json_edit *ed, struct json_node **ret,
                   struct err *e);
/* Keys of the last document that were there twice, as the public server words it; NULL: none. The
 * last one won. */
const char *kube_yaml_repeats(const struct kube_yaml *y);

/* The first document as an immutable one; null when there is none. repeats, unless NULL, gets
 * kube_yaml_repeats' text. The caller unrefs *ret. */
int kube_yaml_to_doc(struct span text, struct buf *repeats, struct json_doc **ret, struct err *e);

/* yaml_line.c. In which line of the first document a value stands, by names of members and numbers of items: { "pools", "1",
 * "replicas", NULL }. Of a path that leads through an alias, or too far: the last part that is there; 0: none is. */
size_t kube_yaml_line(struct span text, const char *const *path);

#endif
