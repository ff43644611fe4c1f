/* yaml_scalar: what a plain scalar is. Private to kube/yaml*.c. */
#ifndef SILICA_KUBE_YAML_SCALAR_H
#define SILICA_KUBE_YAML_SCALAR_H

#include "base/json.h"

#define YAML_NUMBER_BYTES 40

struct yaml_scalar {
    enum json_type type;            /* JSON_NULL, JSON_BOOL, JSON_NUMBER or JSON_STRING */
    bool is_true;                   /* of JSON_BOOL */
    char number[YAML_NUMBER_BYTES]; /* of JSON_NUMBER, in JSON's grammar */
    bool is_infinite;               /* a number that JSON has no form for */
};

void yaml_scalar_resolve(struct span text, struct yaml_scalar *ret);

#endif
