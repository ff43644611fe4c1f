#include "cli/in_cluster.h"

#include "base/buf.h"
#include "base/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#define ACCOUNT "/run/secrets/kubernetes.io/serviceaccount" /* /var/run leads to /run */

static int write_file(const char *path, const char *text, struct err *e)
{
    OWN_FD int fd = open(path, O_WRONLY | O_CLOEXEC);

    if (fd < 0)
        return err_sys(e, "cannot open '%s'", path);
    return fd_write_all(fd, span_cstr(text), e) < 0 ? err_wrap(e, "'%s'", path) : 0;
}

/* Whoever we are outside, we are inside. */
static int keep_ids(uid_t uid, gid_t gid, struct err *e)
{
    char text[64];

    if (write_file("/proc/self/setgroups", "deny", e) < 0)
        return -1;
    (void)snprintf(text, sizeof text, "%u %u 1", uid, uid);
    if (write_file("/proc/self/uid_map", text, e) < 0)
        return -1;
    (void)snprintf(text, sizeof text, "%u %u 1", gid, gid);
    return write_file("/proc/self/gid_map", text, e);
}

static int bind_on(const char *from, const char *to, struct err *e)
{
    return mount(from, to, NULL, MS_BIND | MS_REC, NULL) < 0
               ? err_sys(e, "cannot show '%s' as '%s'", from, to)
               : 0;
}

/* One entry of /run in its copy: links as they are, the rest bound. What cannot be seen there is left out. */
static void show_entry(const char *name, const char *over)
{
    char from[PATH_MAX], to[PATH_MAX + NAME_MAX + 2], target[PATH_MAX];
    struct stat st;
    struct err e;
    ssize_t n;

    (void)snprintf(from, sizeof from, "/run/%s", name);
    (void)snprintf(to, sizeof to, "%s/%s", over, name);
    if (lstat(from, &st) < 0)
        return;
    if (S_ISLNK(st.st_mode)) {
        n = readlink(from, target, sizeof target - 1);
        target[MAX(n, 0)] = '\0';
        n = symlink(target, to);
        return;
    }
    if (S_ISDIR(st.st_mode)) /* mode: of what is mounted over it, in the session's own /run */
        (void)mkdir(to, 0755);
    else
        (void)close(open(to, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    (void)bind_on(from, to, &e);
}

/* Nothing may be made in the machine's own /run, so another one stands over it, with the same things in it. */
static int cover_run(const char *dir, struct err *e)
{
    char over[PATH_MAX];
    struct dirent *entry;
    DIR *run;

    /* mode: it is in a directory of mkdtemp, and becomes /run of the session alone */
    (void)snprintf(over, sizeof over, "%s/run", dir);
    if (mkdir(over, 0755) < 0 && errno != EEXIST)
        return err_sys(e, "cannot make '%s'", over);
    if (mount("run", over, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755") < 0)
        return err_sys(e, "cannot make another /run");
    run = opendir("/run");
    while (run && (entry = readdir(run)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
            strcmp(entry->d_name, "secrets") != 0)
            show_entry(entry->d_name, over);
    if (run)
        (void)closedir(run);
    return bind_on(over, "/run", e);
}

static int make_account_dir(struct err *e)
{
    char path[] = ACCOUNT;

    for (char *slash = strchr(path + 5, '/');; slash = strchr(slash + 1, '/')) {
        if (slash)
            *slash = '\0';
        /* mode: in the session's own /run, where a command may have another id */
        if (mkdir(path, 0755) < 0 && errno != EEXIST)
            return err_sys(e, "cannot make '%s'", path);
        if (!slash)
            return 0;
        *slash = '/';
    }
}

int in_cluster_enter(const char *dir, struct err *e)
{
    uid_t uid = geteuid();
    gid_t gid = getegid();
    char path[PATH_MAX];

    if (unshare(CLONE_NEWNS | (uid ? CLONE_NEWUSER : 0)) < 0) {
        (void)err_sys(e, "cannot have a view of files of our own");
        err_hint(e, "this host restricts user namespaces; silica doctor says more");
        return -1;
    }
    if ((uid && keep_ids(uid, gid, e) < 0))
        return -1;
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return err_sys(e, "cannot keep mounts to ourselves");
    (void)snprintf(path, sizeof path, "%s/hosts", dir);
    if (bind_on(path, "/etc/hosts", e) < 0 || cover_run(dir, e) < 0 || make_account_dir(e) < 0)
        return -1;
    (void)snprintf(path, sizeof path, "%s/account", dir);
    return bind_on(path, ACCOUNT, e);
}
