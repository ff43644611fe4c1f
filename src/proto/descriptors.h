/* descriptors: the FileDescriptorSet of our services and their imports, serialised by protoc at
 * build time. */
#ifndef SILICA_PROTO_DESCRIPTORS_H
#define SILICA_PROTO_DESCRIPTORS_H

#include <stddef.h>
#include <stdint.h>

extern const uint8_t proto_descriptors[];
extern const size_t proto_descriptors_bytes;

#endif
