/* volume_memory: emptyDir with medium Memory: a tmpfs of its own, made by the engine (isolate/cellar.h).
 *
 *     DATA/pods/UID/memory/    says that the Pod has some: they are no files that could be found
 *
 * Owns:     nothing. A volume outlives the Pod's containers and this daemon; it goes with the Pod, or with the keeper.
 * Used by:  volumes.c and volume_binds.c, on a worker.
 */
#ifndef SILICA_NODE_VOLUME_MEMORY_H
#define SILICA_NODE_VOLUME_MEMORY_H

#include "node/volumes.h"

bool volume_memory_is(const struct json *volume);
/* Whether this machine has such volumes for the Pod, should it want any: s->engine is set then, else they are on disk.
 * -1: nobody can say now. */
int volume_memory_find(struct volumes_spec *s, struct engine *en, struct err *e);
/* The smallest of its sizeLimit, the memory of all containers where each has a limit, and half of this machine's: what is in
 * there cannot be taken away from its owner, as a process can be killed. */
uint64_t volume_memory_bytes(const struct volumes_spec *s, const struct json *volume);
/* The engine's name of it; false: it is none, or it is on disk. */
bool volume_memory_name(const struct volumes_spec *s, const struct json *volume, char *ret,
                        size_t size);
int volume_memory_make(const struct volumes_spec *s, const struct json *volume, struct err *e);
/* All of a Pod that had some. en NULL: ERR_UNAVAILABLE. */
int volume_memory_remove(int dir_fd, const char *pod_uid, struct engine *en, struct err *e);

#endif
