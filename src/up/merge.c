#include "up/merge.h"

#include "base/fd.h"
#include "base/json_edit.h"
#include "base/str.h"
#include "isolate/dir.h"
#include "kube/yaml.h"
#include "kube/yaml_write.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define FILE_MAX_BYTES (8 << 20)

static const char *const lists[] = { "clusters", "users", "contexts" };

static bool is_ours(struct json_node *entry)
{
    struct span name = json_node_str(json_node_get(entry, "name"));

    return span_is(name, "silica") || span_is(name, "silica-admin");
}

/* ---- texts ---- */

static int read_yaml(struct span text, struct json_edit *ed, struct json_node **ret, struct err *e)
{
    OWN(json_doc_done) struct json_doc *doc = NULL;

    if (kube_yaml_to_doc(text, NULL, &doc, e) < 0)
        return -1;
    if (json_is_null(json_doc_root(doc))) {
        *ret = json_edit_object(ed);
        return 0;
    }
    if (json_type(json_doc_root(doc)) != JSON_OBJECT)
        return err_set(e, ERR_INVALID, "it is no kubeconfig");
    *ret = json_edit_doc(ed, json_edit_hold(ed, doc));
    return 0;
}

static void take_out(struct json_node *list)
{
    for (size_t i = json_node_count(list); i-- > 0;)
        if (is_ours(json_node_at(list, i)))
            json_node_remove_at(list, i);
}

static void put_in(struct json_edit *ed, struct json_node *theirs, struct json_node *ours,
                   const char *name)
{
    struct json_node *to = json_node_get(theirs, name), *from = json_node_get(ours, name);

    if (!to || json_node_count(to) == 0) /* kubectl writes null where there are none */
        to = json_node_set(theirs, name, json_edit_array(ed));
    for (size_t i = 0; i < json_node_count(from); i++)
        json_node_append(to, json_node_copy(ed, json_node_at(from, i)));
}

static void set_text(struct json_edit *ed, struct json_node *root, const char *name,
                     const char *text)
{
    (void)json_node_set(root, name, json_edit_cstr(ed, text));
}

int merge_text(struct span theirs, struct span ours, struct buf *out, struct err *e)
{
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(YAML_VALUE_MAX_BYTES);
    OWN(json_doc_done) struct json_doc *doc = NULL;
    struct json_node *root, *given = NULL;

    if (read_yaml(theirs, ed, &root, e) < 0 || (ours.p && read_yaml(ours, ed, &given, e) < 0))
        return -1;
    EACH(name, lists) {
        take_out(json_node_get(root, *name));
        if (given)
            put_in(ed, root, given, *name);
    }
    set_text(ed, root, "apiVersion", "v1");
    set_text(ed, root, "kind", "Config");
    if (given)
        set_text(ed, root, "current-context", "silica");
    else if (span_is(json_node_str(json_node_get(root, "current-context")), "silica"))
        set_text(ed, root, "current-context", "");
    if (json_node_freeze(root, &doc, e) < 0)
        return -1;
    return kube_yaml_write(json_doc_root(doc), out, e);
}

/* ---- files ---- */

int merge_file(const char *given, char **ret, struct err *e)
{
    const char *list = getenv("KUBECONFIG"), *home = getenv("HOME");
    struct span first, rest = span_cstr(list ? list : "");

    if (given) {
        *ret = own_strdup(given);
        return 0;
    }
    while (span_cut(&rest, ':', &first)) {
        if (!first.n)
            continue;
        *ret = span_dup(first);
        return 0;
    }
    if (!home || !*home)
        return err_set(e, ERR_INVALID,
                       "no kubeconfig: neither --file nor KUBECONFIG nor HOME is given");
    if (asprintf(ret, "%s/.kube/config", home) < 0)
        abort();
    return 0;
}

/* A link is followed to the file that it means: somebody put it there. */
static char *find_file(const char *file)
{
    char *full = realpath(file, NULL);

    return full ? full : own_strdup(file);
}

static int open_parent(const char *file, bool makes_it, struct err *e)
{
    OWN_MEM char *copy = own_strdup(file);
    const char *dir = dirname(copy);
    int fd;

    if (makes_it && mkdir(dir, 0700) < 0 && errno != EEXIST)
        return err_sys(e, "cannot make '%s'", dir);
    fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? err_sys(e, "cannot open '%s'", dir) : fd;
}

static int change(const char *file, struct span ours, struct err *e)
{
    OWN(buf_done) struct buf theirs = BUF_INIT(FILE_MAX_BYTES), text = BUF_INIT(FILE_MAX_BYTES);
    OWN_MEM char *full = find_file(file);
    OWN_MEM char *copy = own_strdup(full);
    OWN_FD int dir_fd = open_parent(full, ours.p != NULL, e);

    if (dir_fd < 0 || (access(full, F_OK) == 0 && fd_read_file(full, &theirs, e) < 0) ||
        merge_text(buf_span(&theirs), ours, &text, e) < 0)
        return -1;
    return dir_write(dir_fd, basename(copy), buf_span(&text),
                     e); /* mode 0600: it has a key in it */
}

int merge_in(const char *file, struct span ours, struct err *e)
{
    return change(file, ours, e);
}

int merge_out(const char *file, struct err *e)
{
    if (access(file, F_OK) < 0 && errno == ENOENT)
        return 0;
    return change(file, SPAN_NONE, e);
}
