/* schema: what each type of the API is made of, as rows of one table.
 *
 * Owns:     nothing at run time: the rows are constants, made at build time from tables/<name>.types by
 *           tools/schema_c.py. One row is one JSON member: its type, shape, protobuf number, list type,
 *           merge key, default and rules. Field checks, defaults, protobuf, strategic merge,
 *           server-side apply, OpenAPI and validation of custom kinds all read these rows.
 * Used by:  every file of src/kube that walks an object.
 * Threads:  constants.
 */
#ifndef SILICA_KUBE_SCHEMA_H
#define SILICA_KUBE_SCHEMA_H

#include "base/buf.h"

/* What one value (an element, where the shape is a list or a map) is. */
enum schema_value {
    SCHEMA_STRING,
    SCHEMA_INT32,
    SCHEMA_INT64,
    SCHEMA_BOOL,
    SCHEMA_DOUBLE,
    SCHEMA_BYTES,         /* base64 in JSON */
    SCHEMA_TIME,          /* RFC 3339, whole seconds */
    SCHEMA_MICROTIME,     /* RFC 3339 with six digits */
    SCHEMA_DURATION,      /* "1h0m0s" */
    SCHEMA_QUANTITY,      /* "100m"; JSON numbers are accepted */
    SCHEMA_INT_OR_STRING, /* 80 or "http" */
    SCHEMA_RAW,           /* any JSON; in protobuf a message whose field 1 is JSON text */
    SCHEMA_STRINGS,       /* a list of strings as the value of a map */
    SCHEMA_OBJECT,        /* the members of `ref` */
};

enum schema_shape {
    SCHEMA_SINGLE,
    SCHEMA_LIST,
    SCHEMA_MAP, /* keys are strings */
};

/* How server-side apply and validation see a list; a list that says nothing is atomic. */
enum schema_list {
    SCHEMA_LIST_UNSAID,
    SCHEMA_LIST_ATOMIC,
    SCHEMA_LIST_SET,
    SCHEMA_LIST_MAP, /* elements are told apart by `keys` */
};

enum schema_flags {
    SCHEMA_REQUIRED = 1,      /* OpenAPI says required; custom kinds are held to it */
    SCHEMA_ALWAYS = 2,        /* core kinds: written even when empty */
    SCHEMA_POINTER = 4,       /* core kinds: a zero that was given is not the same as nothing */
    SCHEMA_ATOMIC = 8,        /* a map or object that is owned and replaced as a whole */
    SCHEMA_PATCH_MERGE = 16,  /* strategic merge: merged, by merge_key where that is given */
    SCHEMA_RETAIN_KEYS = 32,  /* strategic merge: $retainKeys allowed */
    SCHEMA_PATCH_REPLACE = 64 /* strategic merge: replaced although it is an object */
};

/* Rules beyond the type. A number that is not given is INT64_MIN (min) or INT64_MAX (the others). */
struct schema_rules {
    const char *const *values; /* enum, NULL-ended; or NULL */
    bool is_enum;     /* values are enforced for custom kinds; else OpenAPI only says them */
    int64_t min, max; /* of the number */
    int64_t min_len, max_len; /* of each string, in code points */
    int64_t min_items, max_items, max_props;
    const char *pattern; /* of each string, RE2 as ECMA; or NULL */
};

struct schema_type;

struct schema_field {
    const char *name; /* in JSON */
    size_t name_n;    /* its length: names are looked up all the time */
    enum schema_value value;
    enum schema_shape shape;
    enum schema_list list;
    unsigned flags;                /* schema_flags */
    unsigned pb;                   /* number in protobuf; 0: the type has none */
    const struct schema_type *ref; /* of SCHEMA_OBJECT; else NULL */
    const char *const *keys;       /* of SCHEMA_LIST_MAP, NULL-ended; else NULL */
    const char *merge_key;         /* strategic merge of lists of objects; or NULL */
    const char *preset;            /* the declared default as JSON text; or NULL */
    const char *fill;              /* what core kinds put there besides; or NULL */
    const char
        *go_name; /* "v1.RestartPolicy": how the public server's texts call the type; or NULL */
    const struct schema_rules *rules; /* or NULL */
    const char *doc;                  /* for `kubectl explain`; or NULL */
};

/* In protobuf a message of its own, in JSON members of the outer object. Its fields are in the outer type's
 * rows too, with pb 0; this row is for decoding. */
struct schema_inline {
    unsigned pb;
    const struct schema_type *ref;
};

struct schema_type {
    const char *name;    /* "PodSpec" */
    const char *package; /* "core/v1" */
    const char *openapi; /* "io.k8s.api.core.v1.PodSpec" */
    const struct schema_field *fields;
    size_t field_count;
    const struct schema_inline *inlines;
    size_t inline_count;
    bool has_type_meta; /* apiVersion and kind are members, not listed in fields */
    bool is_atomic;     /* replaced as a whole wherever it is used */
    bool
        is_custom; /* a kind that a CustomResourceDefinition defines: rules are enforced from here on */
};

/* The field of that JSON name, or NULL. apiVersion and kind of has_type_meta are not fields. */
const struct schema_field *schema_field(const struct schema_type *t, struct span name);
/* All types, in the order of the tables. */
const struct schema_type *const *schema_types(size_t *ret_count);
/* By package and name, as the tables write them: "core/v1", "PodSpec". NULL: no such type. */
const struct schema_type *schema_type(const char *package, const char *name);

#endif
