/* images: which root a Pod's image name stands for here, by a table that the operator can edit; nothing is pulled.
 *
 *     DATA/images.yaml (or images.json), which may be missing:
 *       defaults: true            # the rows below ours; false: only these
 *       images:
 *       - names: ["team-*:v1", "tool:*"]
 *         root: host              # the only root there is today
 *         server: true            # silica-runtime is what such an image starts
 *         serverCommands: [sandboxd]   # first words of a Pod's command that mean that server too
 *         substitute: true        # the name promises something else: an Event ImageSubstituted says what there is
 *         serverOptions: true     # a Pod's args without a command are options for it; else they are a command
 *         command: [sleep, infinity]   # what it starts where it is no server and the Pod gives neither command nor args
 *         env: {NAME: value}
 *         ports: [8888]
 *         workingDir: /app
 *
 * Names:    a '*' stands for any bytes. A name without tag has the tag latest; library/ with its host before it and a digest
 *           behind it do not count. A pattern that begins with a star and a slash also fits a name with nothing before it. The first row
 *           that fits is it, the operator's before ours.
 * Owns:     the table and all that an image points to, until images_free.
 * Used by:  the lifecycle. Reading the file blocks on the disk; finding does no I/O.
 */
#ifndef SILICA_NODE_IMAGES_H
#define SILICA_NODE_IMAGES_H

#include "node/env.h"

#define IMAGES_FILE_MAX_BYTES (256 * 1024) /* of the table; then ERR_LIMIT */
#define IMAGES_ROWS_MAX       1024
#define IMAGE_NAME_MAX_BYTES  512
#define IMAGE_PORTS_MAX       16
#define IMAGES_FILE           "images.yaml"
#define IMAGES_FILE_JSON      "images.json"

struct image {
    const char *root; /* "host" */
    const char *id;   /* as status.containerStatuses.imageID shows it */
    bool is_server;
    bool has_options;
    bool is_substitute;                         /* the name is another system's */
    const char *root_name;                      /* what the root is, for people */
    const struct json *names, *server_commands; /* lists of patterns */
    const struct json *command;                 /* list of words, or NULL */
    const char *const *env;                     /* NULL-terminated NAME=value */
    uint16_t ports[IMAGE_PORTS_MAX];
    size_t port_count;
    const char *cwd; /* or NULL */
};

struct images;

/* dir_fd: the data directory. dir: its name, for messages. ERR_INVALID says what is wrong with the file. */
int images_load(int dir_fd, const char *dir, struct images **ret, struct err *e);
void images_free(struct images *t);
/* The same table unless the file changed since. On failure the old table stays as it is. */
int images_reload(struct images **t, struct err *e);
/* From a text; NULL: only our rows. For images_load, tests and fuzzers. */
int images_parse(struct span text, const char *dir, struct images **ret, struct err *e);

/* The image of that name, the table's. -1: the message for people, and *ret_reason a container's waiting reason:
 * ErrImagePull, ErrImageNeverPull, InvalidImageName. policy may be NULL. */
int images_find(const struct images *t, const char *name, const char *policy,
                const struct image **ret, const char **ret_reason, struct err *e);
/* Does the pattern, or one of a list of them, fit? */
bool image_name_fits(struct span pattern, struct span name);
bool image_any_fits(const struct json *patterns, struct span name);

/* What one container runs. */
struct image_start {
    bool is_server; /* silica-runtime with `options`; no command */
    char **options; /* NULL-terminated, never NULL */
    char **command; /* NULL-terminated; NULL: none, of a server */
};

/* The Pod's command and args over the image's, expanded, as Kubernetes joins them. ERR_INVALID: there is nothing to run. */
int image_start_make(const struct image *im, const struct json *container, const struct env *env,
                     struct image_start *ret, struct notes *notes, struct err *e);
void image_start_done(struct image_start *s);

#endif
