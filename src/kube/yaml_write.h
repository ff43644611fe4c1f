/* yaml_write: a JSON value as YAML in block style, as the public server and kubectl write it.
 *
 *     metadata:
 *       name: a
 *     items:
 *     - x
 *
 * Owns:     nothing; what is written is bounded by the buf.
 * Order:    members stand sorted by name: one object has one text.
 * Scalars:  a text that any reader of YAML 1.1 could take for something else (no, 010, 12:30, 2026-01-02, ~) is quoted, one
 *           of several lines is a literal block where it can be; lines are not folded. Numbers with an exponent get a
 *           fraction and a sign, without which some readers see a text.
 * Used by:  answers to `Accept: application/yaml`.
 */
#ifndef SILICA_KUBE_YAML_WRITE_H
#define SILICA_KUBE_YAML_WRITE_H

#include "base/json.h"

/* Appends the value with its line end. ERR_LIMIT: the buf's ceiling; out is then as it was. */
int kube_yaml_write(const struct json *v, struct buf *out, struct err *e);
/* The same as an element of a list whose dash is at the begin of a line. */
int kube_yaml_write_item(const struct json *v, struct buf *out, struct err *e);

#endif
