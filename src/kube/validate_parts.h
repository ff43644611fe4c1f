/* validate_parts: what the rules of many kinds are made of. Private to kube/validate*.c.
 *
 * Values may be absent (NULL) or null: a check that needs one says so in its name.
 */
#ifndef SILICA_KUBE_VALIDATE_PARTS_H
#define SILICA_KUBE_VALIDATE_PARTS_H

#include "kube/names.h"
#include "kube/validate.h"

/* Lists whose elements are compared with each other: no pod has a tenth of it, and a hostile one must not
 * cost a second. */
#define VALID_LIST_MAX 2000

/* CAUSE_TOO_MANY and false when the list is longer than VALID_LIST_MAX. */
bool valid_count(struct causes *c, const struct field_path *at, const struct json *list);
/* Text is there and not empty. */
bool valid_has_text(const struct json *v);
/* CAUSE_REQUIRED unless there is text. */
bool valid_need_text(struct causes *c, const struct field_path *at, const struct json *v);
/* One cause per fault. An absent value counts as "". */
bool valid_name(struct causes *c, const struct field_path *at, const struct json *v,
                enum names_rule rule);
/* The same, only where there is text. */
void valid_name_if(struct causes *c, const struct field_path *at, const struct json *v,
                   enum names_rule rule);
/* Text must be one of the NULL-ended list; absent and "" pass. */
void valid_one_of(struct causes *c, const struct field_path *at, const struct json *v,
                  const char *const *values);
bool valid_is_one_of(struct span text, const char *const *values);
/* "must be between 1 and 65535, inclusive"; absent passes. */
void valid_range(struct causes *c, const struct field_path *at, const struct json *v, int64_t min,
                 int64_t max);
/* "must be greater than or equal to 0"; absent passes. */
void valid_not_negative(struct causes *c, const struct field_path *at, const struct json *v);
/* A port: a number in range, or a name. */
void valid_port(struct causes *c, const struct field_path *at, const struct json *v);
/* Keys and values of labels, all told at the map itself. */
void valid_labels(struct causes *c, const struct field_path *at, const struct json *labels);
void valid_label_selector(struct causes *c, const struct field_path *at,
                          const struct json *selector);
/* "must be a valid IP address, ..." */
bool valid_ip(struct causes *c, const struct field_path *at, const struct json *v);
bool valid_cidr(struct causes *c, const struct field_path *at, const struct json *v);
/* A path without "..", and relative or absolute as asked. */
void valid_relative_path(struct causes *c, const struct field_path *at, const struct json *v);
void valid_no_dots(struct causes *c, const struct field_path *at, const struct json *v);
/* "field is immutable" when the values differ. */
void valid_unchanged(struct causes *c, const struct field_path *at, const struct json *now,
                     const struct json *was);
/* Same value; absent, null and nothing are the same. */
bool valid_same(const struct json *a, const struct json *b);

/* The rules of the kinds; old is NULL on create. */
void validate_rules(const struct validation *v, struct causes *c); /* custom kinds */
void validate_pod_spec(struct causes *c, const struct field_path *at, const struct json *spec);
void validate_container(struct causes *c, const struct field_path *at, const struct json *container,
                        const struct json *spec);
/* Users and groups, and the seccomp profile, of a pod's or container's securityContext. */
void validate_ids(struct causes *c, const struct field_path *at, const struct json *context);
void validate_profile(struct causes *c, const struct field_path *at, const struct json *context);
void validate_volumes(struct causes *c, const struct field_path *at, const struct json *spec);
void validate_pod(const struct validation *v, struct causes *c);
void validate_service(const struct validation *v, struct causes *c);
void validate_config_map(const struct validation *v, struct causes *c);
void validate_secret(const struct validation *v, struct causes *c);
void validate_volume_claim(const struct validation *v, struct causes *c);
void validate_quota(const struct validation *v, struct causes *c);
void validate_node(const struct validation *v, struct causes *c);
void validate_event(const struct validation *v, struct causes *c);
void validate_lease(const struct validation *v, struct causes *c);
void validate_storage_class(const struct validation *v, struct causes *c);
void validate_runtime_class(const struct validation *v, struct causes *c);
void validate_endpoint_slice(const struct validation *v, struct causes *c);
void validate_network_policy(const struct validation *v, struct causes *c);
void validate_deployment(const struct validation *v, struct causes *c);
void validate_replica_set(const struct validation *v, struct causes *c);
void validate_budget(const struct validation *v, struct causes *c);
void validate_role(const struct validation *v, struct causes *c);
void validate_binding(const struct validation *v, struct causes *c);
void validate_definition(const struct validation *v, struct causes *c);
void validate_access_review(const struct validation *v, struct causes *c);

#endif
