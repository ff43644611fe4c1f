/* volumes: a Pod's volumes on this machine's disk, and what of them its containers see.
 *
 *     DATA/pods/UID/volumes/NAME/        emptyDir, configMap, secret, projected, downwardAPI: gone with the Pod
 *     (medium Memory: in the engine, volume_memory.h)
 *     DATA/claims/NAMESPACE/NAME.UID/    persistentVolumeClaim: outlives Pods, a plain directory, readable offline
 *
 *     volumes_prepare -> volumes_binds of each container -> (running: volumes_prepare again when an object changed,
 *     volumes_measure now and then) -> volumes_remove
 *
 * Owns:     nothing between calls but what is on disk. Everything is made where it is missing and left where it is there, so
 *           any call may be killed and made again.
 * Used by:  the lifecycle, on a worker: all of it blocks on the disk.
 * Refused:  hostPath and kinds that are not served: ERR_UNSUPPORTED, with the reason in words. What is served in part is a
 *           note.
 * Ids:      for root what belongs to an id on disk belongs to the same id inside (isolate/idmap.h), so owners are set. An
 *           account with a range (isolate/userns.h) sets and removes what is another id's by a process that may
 *           (isolate/ranged.h). Another account's files are the sandbox's anyway, and `owner` must be empty.
 */
#ifndef SILICA_NODE_VOLUMES_H
#define SILICA_NODE_VOLUMES_H

#include "isolate/box.h"
#include "kube/quantity.h"
#include "node/dirtree.h"
#include "node/env.h"
#include "node/volume_write.h"

#define VOLUMES_PODS   "pods"
#define VOLUMES_CLAIMS "claims"

struct engine;

struct volumes_spec {
    int dir_fd;      /* the node's data directory */
    const char *dir; /* its absolute path */
    struct downward downward;
    const struct needs *needs;
    struct volume_owner owner;
    bool is_ranged;        /* we are an account that gives sandboxes its range of ids */
    struct engine *engine; /* has volumes of medium Memory; NULL: those are on disk */
};

/* Makes the directories and writes or updates the files. -1: `MountVolume.SetUp failed for volume "x" : ...`, for an Event
 * FailedMount; it may work later (ERR_NOT_FOUND, ERR_UNAVAILABLE). *ret_changed (or NULL): files changed. */
int volumes_prepare(const struct volumes_spec *s, bool *ret_changed, struct notes *notes,
                    struct err *e);

/* The mounts of one container: what a box_spec takes. */
struct volume_binds {
    struct box_bind *v;
    size_t n;
    char **texts; /* that they point to */
    size_t text_count;
};

#define VOLUME_MOUNTS_MAX                                                                          \
    96 /* of one container; then ERR_LIMIT: a sandbox's plan has room for so many (PLAN_ROWS_MAX) */

/* In the order they are to be made: what is above another comes first. subPath and subPathExpr are made where they are
 * missing and the volume can be written. -1: for CreateContainerConfigError. */
int volumes_binds(const struct volumes_spec *s, const struct json *container, const struct env *env,
                  struct volume_binds *ret, struct notes *notes, struct err *e);
void volume_binds_done(struct volume_binds *b);

struct volumes_use {
    uint64_t bytes; /* of all but claims: what counts as ephemeral storage */
    bool is_over;   /* an emptyDir is larger than its sizeLimit, or nobody can say that it is not */
    char message[320];
};

/* What is on the disk now. */
int volumes_measure(const struct volumes_spec *s, struct volumes_use *ret, struct err *e);

/* How much a volume may hold: a quantity in bytes, and as people write it. False: it says nothing, or nothing that is a limit. */
bool volume_size_read(const struct json *v, uint64_t *ret, char text[QUANTITY_TEXT_BYTES]);

/* One volume by its place, until the time is up. ERR_NOT_FOUND. */
int volumes_count(int dir_fd, const char *place, uint64_t until_ms, struct dirtree_count *ret,
                  struct err *e);

/* What the claims of a Pod hold before it runs, those that are counted quickly. */
struct volumes_held {
    struct volume_held {
        char *place;
        uint64_t bytes;
    } * v;
    size_t n;
};
void volumes_held_read(const struct volumes_spec *s, struct volumes_held *ret);
void volumes_held_done(struct volumes_held *h);

/* All volumes of a Pod but claims. They may be gone already. en: for those in memory, may be NULL. */
int volumes_remove(int dir_fd, const char *pod_uid, struct engine *en, struct err *e);
/* A claim's directory, when the claim is deleted. */
int volumes_remove_claim(int dir_fd, const struct object *claim, struct err *e);

/* One entry of a directory below the data directory, with all in it. It may be gone already. */
int volumes_remove_at(int dir_fd, const char *place, struct err *e);

/* A claim's directory, relative to the data directory; false: its name cannot be one. */
bool volume_claim_place(const struct object *claim, char *ret, size_t size);
/* For volume_binds.c: where a volume of the Pod is, relative to the data directory; false: the claim is not there. */
bool volume_place(const struct volumes_spec *s, const struct json *volume, char *ret, size_t size);

#endif
