/* openapi: the API's schema documents, written from the tables of kinds and types.
 *
 * Version 3 has one document per group and version and an index of them; version 2 is one document of
 * everything. kubectl reads them for explain, for apply (what a server can validate, how lists are
 * merged); other clients to make types.
 *
 * Owns:     nothing. What is written depends on the tables alone, so a caller writes each once and keeps it;
 *           the hash in the index is of the document, for clients that cache by it.
 */
#ifndef SILICA_KUBE_OPENAPI_H
#define SILICA_KUBE_OPENAPI_H

#include "kube/kind.h"

#define OPENAPI_MAX_BYTES (8 * 1024 * 1024) /* the whole of version 2 is a tenth of it */

/* What is told in info.version, and what the document is called. */
struct openapi_info {
    const char *version; /* "v1.36.3" */
};

/* {"paths":{"apis/apps/v1":{"serverRelativeURL":"/openapi/v3/apis/apps/v1?hash=..."}}} */
int openapi_v3_index(const struct openapi_info *info, struct buf *out, struct err *e);
/* ERR_NOT_FOUND: nothing of that group and version is served. */
int openapi_v3(const struct openapi_info *info, const char *group, const char *version,
               struct buf *out, struct err *e);
int openapi_v2(const struct openapi_info *info, struct buf *out, struct err *e);
/* The types of version 2 as protobuf: kubectl 1.20 takes nothing else. It asks for
 * application/com.github.proto-openapi.spec.v2@v1.0+protobuf and must be told
 * application/com.github.proto-openapi.spec.v2.v1.0+protobuf, as '@' is no part of a media type. */
int openapi_v2_proto(const struct openapi_info *info, struct buf *out, struct err *e);

#endif
