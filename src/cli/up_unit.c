/* silica up --install: the unit of systemd that starts it with the machine, or with the account's session. */
#include "cli/up.h"

#include "base/fd.h"
#include "cli/command.h"
#include "isolate/dir.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define UNIT_NAME      "silica.service"
#define UNIT_MAX_BYTES (64 * 1024)

static bool is_root(void)
{
    return geteuid() == 0;
}

/* As sd_booted(3) has it. */
static bool has_systemd(void)
{
    return access("/run/systemd/system", F_OK) == 0;
}

/* What was typed, found as the shell found it: the program that runs now may be one that it carries. */
static int find_program(char path[PATH_MAX], struct err *e)
{
    const char *name = program_invocation_name, *search = getenv("PATH");
    struct span rest = span_cstr(search ? search : ""), at;
    char tried[PATH_MAX];

    if (strchr(name, '/'))
        return realpath(name, path) ? 0 : err_sys(e, "cannot find '%s'", name);
    while (span_cut(&rest, ':', &at)) {
        (void)snprintf(tried, sizeof tried, "%.*s/%s", (int)at.n, (const char *)at.p, name);
        if (access(tried, X_OK) == 0 && realpath(tried, path))
            return 0;
    }
    return err_set(e, ERR_NOT_FOUND, "cannot find '%s' in PATH", name);
}

/* ---- the text ---- */

/* A word of ExecStart: quoted, and nothing in it is a specifier or a variable. */
static int add_word(struct buf *out, const char *word, struct err *e)
{
    if (buf_addf(out, e, " \"") < 0)
        return -1;
    for (; *word; word++) {
        if ((uint8_t)*word < ' ')
            return err_set(e, ERR_INVALID, "a unit cannot have a control character in '%s'", word);
        if ((strchr("\\\"", *word) && buf_addc(out, '\\', e) < 0) ||
            (strchr("%$", *word) && buf_addc(out, *word, e) < 0) || buf_addc(out, *word, e) < 0)
            return -1;
    }
    return buf_addc(out, '"', e);
}

static bool is_of_this_start(const char *word)
{
    static const char *const words[] = { "--install", "--uninstall", "-d", "--detach" };

    EACH(w, words) {
        if (strcmp(word, *w) == 0)
            return true;
    }
    return false;
}

/* The same options, with paths that do not depend on where it is started. */
static int add_command(const struct up_options *o, int argc, char **argv, struct buf *out,
                       struct err *e)
{
    OWN_MEM char *config = o->config ? realpath(o->config, NULL) : NULL, *data = NULL;
    OWN_MEM char *full = NULL;
    char program[PATH_MAX];

    if (find_program(program, e) < 0 || dir_default(o->data, &data, e) < 0)
        return -1;
    full = realpath(data, NULL); /* it may not be there yet */
    if (!full && data[0] != '/')
        return err_set(e, ERR_INVALID, "--data: '%s' is not there; say the whole path", data);
    if (buf_addf(out, e, "ExecStart=") < 0 || add_word(out, program, e) < 0 ||
        add_word(out, "up", e) < 0)
        return -1;
    for (int i = 1; i < argc; i++)
        if (!is_of_this_start(argv[i]) && add_word(out, argv[i], e) < 0)
            return -1;
    if (add_word(out, "--data", e) < 0 || add_word(out, full ? full : data, e) < 0)
        return -1;
    if (config && (add_word(out, "--config", e) < 0 || add_word(out, config, e) < 0))
        return -1;
    return buf_addc(out, '\n', e);
}

static int make_unit(const struct up_options *o, int argc, char **argv, struct buf *out,
                     struct err *e)
{
    if (buf_addf(out, e,
                 "# Written by `silica up --install`; `silica up --uninstall` removes it.\n"
                 "[Unit]\n"
                 "Description=Silica, sandboxes and their Kubernetes API\n"
                 "Documentation=man:silica(1)\n\n"
                 "[Service]\n"
                 "Type=exec\n") < 0 ||
        add_command(o, argc, argv, out, e) < 0)
        return -1;
    return buf_addf(out, e,
                    "# Sandboxes outlive it, and the next start takes them over.\n"
                    "KillMode=process\n"
                    "TimeoutStopSec=60\n"
                    "# `silica down` ends it for good; a process that dies comes back.\n"
                    "Restart=on-failure\n"
                    "RestartSec=1\n"
                    "# Limits of sandboxes are cgroups below its own.\n"
                    "Delegate=yes\n"
                    "TasksMax=infinity\n"
                    "# One that runs out of memory is not the end of the others.\n"
                    "OOMPolicy=continue\n\n"
                    "[Install]\n"
                    "WantedBy=%s\n",
                    is_root() ? "multi-user.target" : "default.target");
}

/* ---- where it is ---- */

static int unit_path(char *path, size_t n, struct err *e)
{
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");

    if (is_root())
        (void)snprintf(path, n, "/etc/systemd/system");
    else if (config && *config == '/')
        (void)snprintf(path, n, "%s/systemd/user", config);
    else if (home && *home == '/')
        (void)snprintf(path, n, "%s/.config/systemd/user", home);
    else
        return err_set(e, ERR_INVALID, "HOME is not set");
    return 0;
}

/* Readable to all, as units are. */
static int write_unit(const char *path, struct span text, struct err *e)
{
    OWN_FD int dir_fd = -1;
    OWN_FD int fd = -1;

    if (dir_make_path(path, e) < 0)
        return -1;
    dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir_fd < 0)
        return err_sys(e, "cannot open '%s'", path);
    if (unlinkat(dir_fd, UNIT_NAME, 0) < 0 && errno != ENOENT)
        return err_sys(e, "cannot replace '%s/" UNIT_NAME "'", path);
    /* mode: units are for all to read, and hold no secret */
    fd = openat(dir_fd, UNIT_NAME, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0)
        return err_sys(e, "cannot make '%s/" UNIT_NAME "'", path);
    return fd_write_all(fd, text, e);
}

static const char *of_user(void)
{
    return is_root() ? "" : " --user";
}

int up_unit_install(const struct up_options *o, int argc, char **argv, struct err *e)
{
    OWN(buf_done) struct buf text = BUF_INIT(UNIT_MAX_BYTES);
    char path[PATH_MAX];

    if (make_unit(o, argc, argv, &text, e) < 0)
        return -1;
    if (!has_systemd()) {
        fprintf(stderr, "systemd does not run here: this is the unit that it would have\n");
        return fd_write_all(1, buf_span(&text), e);
    }
    if (unit_path(path, sizeof path, e) < 0 || write_unit(path, buf_span(&text), e) < 0)
        return -1;
    printf("'%s/" UNIT_NAME "' is written; it starts with\n"
           "  systemctl%s daemon-reload && systemctl%s enable --now " UNIT_NAME "\n",
           path, of_user(), of_user());
    if (!is_root())
        printf("and without a session of yours when you say: loginctl enable-linger\n");
    return 0;
}

int up_unit_remove(struct err *e)
{
    char dir[PATH_MAX], path[PATH_MAX + sizeof UNIT_NAME];

    if (unit_path(dir, sizeof dir, e) < 0)
        return -1;
    (void)snprintf(path, sizeof path, "%s/" UNIT_NAME, dir);
    if (unlink(path) < 0) {
        if (errno != ENOENT)
            return err_sys(e, "cannot remove '%s'", path);
        return err_set(e, ERR_NOT_FOUND, "there is no '%s'", path);
    }
    printf("'%s' is removed; what runs goes on until\n"
           "  systemctl%s disable --now " UNIT_NAME "; systemctl%s daemon-reload\n",
           path, of_user(), of_user());
    return 0;
}
