/* kubeconfig_impl: what the files of kubeconfig share. Not for others. */
#ifndef SILICA_KUBECLIENT_KUBECONFIG_IMPL_H
#define SILICA_KUBECLIENT_KUBECONFIG_IMPL_H

#include "kubeclient/kubeconfig.h"

#include "kubeclient/limits.h"

/* One object of a file, with what a message says of it. */
struct config_part {
    const char *file;
    const char *what; /* "cluster" */
    const char *name;
    const struct json *v;
};

struct config_file {
    char *path;
    struct json_doc *doc;
};
/* In the order in which they count. */
struct config_files {
    struct config_file at[KUBECONFIG_FILES_MAX];
    size_t n;
};

/* Members; null and "" are absent. -1: of another type, and the message says where. */
int part_text(const struct config_part *p, const char *name, char **ret, struct err *e);
int part_path(const struct config_part *p, const char *name, char **ret, struct err *e);
int part_bytes(const struct config_part *p, const char *name, struct buf *out, struct err *e);
int part_bool(const struct config_part *p, const char *name, bool *ret, struct err *e);
/* A member that must be a list of texts; NULL-ended, NULL when it is absent. */
int part_texts(const struct config_part *p, const char *name, char ***ret, struct err *e);
/* The path as it is meant, for the caller to free. */
char *part_resolve(const struct config_part *p, struct span path);
/* ERR_INVALID with the place before it; -1. */
int part_wrong(const struct config_part *p, struct err *e, const char *fmt, ...) PRINTF(3, 4);

/* Frees a NULL-ended list of texts. */
void texts_free(char **texts);

/* Judges the shape of one file and keeps it. Takes nothing. */
int config_files_add(struct config_files *fs, struct span text, const char *path, struct err *e);
void config_files_done(struct config_files *fs);
/* The context's three parts become *ret. */
int config_files_choose(const struct config_files *fs, const char *context, struct kubeconfig *ret,
                        struct err *e);

int plugin_read_config(const struct config_part *user, const struct config_part *cluster,
                       struct kubeconfig_plugin *ret, struct err *e);
void plugin_config_done(struct kubeconfig_plugin *p);

#endif
