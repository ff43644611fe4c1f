/* Longer than others: it is one list of what a root is made of, and is read as one. */
#include "isolate/plan.h"

#include <ctype.h>
#include <sys/stat.h>

#define HOSTNAME_MAX_BYTES 63 /* what the kernel takes is 64; a label of DNS is 63 */

/* Of the host's /etc: what programs of /usr break without, and nothing that names this host or its people. */
static const char *const etc_shown[] = {
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/alternatives",
    "/etc/localtime",
    "/etc/timezone",
    "/etc/mime.types",
    "/etc/services",
    "/etc/protocols",
    "/etc/terminfo",
    "/etc/fonts",
    "/etc/magic",
    "/etc/perl",
    "/etc/pki/tls/certs",
    "/etc/ca-certificates.conf",
    "/etc/python3",
    "/etc/python3.9",
    "/etc/python3.10",
    "/etc/python3.11",
    "/etc/python3.12",
    "/etc/python3.13",
    "/etc/python3.14",
};

/* Nodes that are the same for everybody; making new ones is not allowed in a user namespace. */
static const char *const dev_nodes[] = { "/dev/null",   "/dev/zero",    "/dev/full",
                                         "/dev/random", "/dev/urandom", "/dev/tty" };

static const struct {
    const char *target, *to;
} dev_links[] = {
    { "dev/fd", "/proc/self/fd" },       { "dev/stdin", "/proc/self/fd/0" },
    { "dev/stdout", "/proc/self/fd/1" }, { "dev/stderr", "/proc/self/fd/2" },
    { "dev/ptmx", "pts/ptmx" },
};

/* What proc tells about the machine rather than the sandbox, and the switches in it. */
static const char *const proc_hidden[] = {
    "proc/kcore",       "proc/keys",          "proc/key-users",   "proc/kmsg",
    "proc/interrupts",  "proc/latency_stats", "proc/sched_debug", "proc/timer_list",
    "proc/timer_stats", "proc/vmallocinfo",
};
static const char *const proc_hidden_dirs[] = { "proc/acpi", "proc/asound", "proc/scsi" };
static const char *const proc_sealed[] = { "proc/bus", "proc/fs", "proc/irq", "proc/sys",
                                           "proc/sysrq-trigger" };

/* Of /etc: what tells one sandbox from another. */
static const struct name {
    const char *target, *framed, *link;
} own_names[] = {
    { "etc/passwd", "run/.names/passwd", "../run/.names/passwd" },
    { "etc/group", "run/.names/group", "../run/.names/group" },
    { "etc/hostname", "run/.names/hostname", "../run/.names/hostname" },
    { "etc/hosts", "run/.names/hosts", "../run/.names/hosts" },
};
enum { NAME_PASSWD, NAME_GROUP, NAME_HOSTNAME, NAME_HOSTS };

/* Where a container's last words are written, by custom; in a frame it is a link to what is the sandbox's own. */
#define MESSAGE_TARGET "dev/termination-log"
#define MESSAGE_FRAMED "run/.names/termination-log"
#define MESSAGE_LINK   "../run/.names/termination-log"

static const char *const merged[] = { "bin", "sbin", "lib", "lib64" };

const char *plan_op_name(enum plan_op op)
{
    static const char *const names[] = { "dir",  "link",      "file",  "bind",  "tmpfs",
                                         "proc", "devpts",    "write", "seal",  "hide",
                                         "keep", "seal-root", "frame", "touch", "alias" };

    return names[op];
}

void plan_host_look(struct plan_host *ret)
{
    struct stat st;

    *ret = (struct plan_host){ 0 };
    for (size_t i = 0; i < LEN(merged); i++) {
        char path[16];

        (void)snprintf(path, sizeof path, "/%s", merged[i]);
        if (lstat(path, &st) < 0)
            continue;
        ret->has_merged[i] = S_ISLNK(st.st_mode);
        ret->has_dir[i] = S_ISDIR(st.st_mode);
    }
    ret->has_python = access("/usr/bin/python", X_OK) == 0;
    ret->has_python3 = access("/usr/bin/python3", X_OK) == 0;
}

static const char *keep(struct plan *p, char *text)
{
    assert(p->text_count < LEN(p->texts)); /* two at most for each row, and rows are counted */
    p->texts[p->text_count++] = text;
    return text;
}

static int add(struct plan *p, struct plan_row row, struct err *e)
{
    if (p->n == PLAN_ROWS_MAX)
        return err_set(e, ERR_LIMIT, "more than %d mounts and files in one sandbox", PLAN_ROWS_MAX);
    p->rows[p->n++] = row;
    return 0;
}

static bool has_target(const struct plan *p, struct span target)
{
    for (size_t i = 0; i < p->n; i++)
        if (span_is(target, p->rows[i].target))
            return true;
    return false;
}

/* The directories above `target` that no row has made yet. Below a bind or a link they may be there already: the child
 * takes what it finds. */
static int add_parents(struct plan *p, const char *target, unsigned flags, struct err *e)
{
    for (const char *slash = strchr(target, '/'); slash; slash = strchr(slash + 1, '/')) {
        struct span above = span_of(target, (size_t)(slash - target));
        struct plan_row row = { .op = PLAN_DIR, .mode = 0755, .flags = flags };

        if (has_target(p, above))
            continue;
        if (p->n == PLAN_ROWS_MAX)
            return add(p, row, e);
        row.target = keep(p, span_dup(above));
        if (add(p, row, e) < 0)
            return -1;
    }
    return 0;
}

/* A path of the caller's without its leading slash, or NULL when it is not absolute and plain. */
static char *inside_path(const char *path)
{
    OWN(buf_done) struct buf clean = BUF_INIT(PLAN_TEXT_MAX_BYTES);
    struct span rest = span_cstr(path), part;
    struct err e;

    if (!path || path[0] != '/')
        return NULL;
    while (span_cut(&rest, '/', &part)) {
        if (part.n == 0 || span_is(part, "."))
            continue;
        if (span_is(part, ".."))
            return NULL;
        if (buf_addf(&clean, &e, "%s%.*s", clean.n ? "/" : "", SPAN_ARG(part)) < 0)
            return NULL;
    }
    return clean.n ? span_dup(buf_span(&clean)) : NULL;
}

static int add_bind(struct plan *p, const struct box_bind *b, struct err *e)
{
    const char *source = b->source, *target = b->target;
    struct plan_row row = { .op = PLAN_BIND, .source = source, .sub = b->sub, .memory = b->memory };
    char *clean = inside_path(target);

    if (!clean) {
        (void)err_set(e, ERR_INVALID, "cannot show '%s' at '%s'", source ? source : "", target);
        err_hint(e, "the place inside is an absolute path without '..', and not '/'");
        return -1;
    }
    if (p->n == PLAN_ROWS_MAX) {
        free(clean);
        return add(p, row, e);
    }
    row.target = keep(p, clean);
    if (!source || source[0] != '/')
        return err_set(e, ERR_INVALID, "'%s' is not an absolute path of this host",
                       source ? source : "");
    if (span_starts(span_cstr(row.target), "proc") &&
        (row.target[4] == '/' || row.target[4] == '\0'))
        return err_set(e, ERR_INVALID, "nothing can be shown at '%s': proc is the kernel's",
                       target);
    row.flags = PLAN_FOREIGN | PLAN_NODEV | (b->is_writable ? 0 : PLAN_RDONLY);
    if (p->ids.kind == IDS_ROOT) /* an account's files are the user's already */
        row.flags |= PLAN_IDMAP;
    p->has_shared |= b->is_writable && !b->is_private && !b->memory;
    return add_parents(p, row.target, PLAN_FOREIGN, e) < 0 ? -1 : add(p, row, e);
}

static int add_dirs(struct plan *p, struct err *e)
{
    static const struct plan_row dirs[] = {
        { .op = PLAN_DIR, .target = "usr", .mode = 0755 },
        { .op = PLAN_DIR, .target = "etc", .mode = 0755 },
        { .op = PLAN_DIR, .target = "dev", .mode = 0755 },
        { .op = PLAN_DIR, .target = "proc", .mode = 0555 },
        { .op = PLAN_DIR, .target = "home", .mode = 0755 },
        { .op = PLAN_DIR, .target = "root", .mode = 0700 },
        { .op = PLAN_DIR, .target = "run", .mode = 0755 },
        { .op = PLAN_DIR, .target = "run/.void", .mode = 0 },
        { .op = PLAN_DIR, .target = "opt", .mode = 0755 },
        { .op = PLAN_DIR, .target = "tmp", .mode = 01777 },
        { .op = PLAN_DIR, .target = "var", .mode = 0755 },
        { .op = PLAN_DIR, .target = "var/tmp", .mode = 01777 },
        { .op = PLAN_DIR, .target = BOX_HOME_INSIDE, .mode = 0755, .flags = PLAN_OF_USER },
    };

    EACH(d, dirs)
        if (add(p, *d, e) < 0)
            return -1;
    return 0;
}

static int add_dev_dirs(struct plan *p, struct err *e)
{
    static const struct plan_row dirs[] = {
        { .op = PLAN_DIR, .target = "dev/pts", .mode = 0755 },
        { .op = PLAN_DIR, .target = "dev/shm", .mode = 01777 },
    };

    EACH(d, dirs)
        if (add(p, *d, e) < 0)
            return -1;
    return 0;
}

/* The host's programs and libraries, read-only; /bin and its like as this host has them. */
static int add_usr(struct plan *p, const struct plan_host *host, struct err *e)
{
    static const struct plan_row usr = {
        .op = PLAN_BIND, .source = "/usr", .target = "usr", .flags = PLAN_RDONLY | PLAN_NODEV
    };
    static const char *const to[] = { "usr/bin", "usr/sbin", "usr/lib", "usr/lib64" };
    static const char *const from[] = { "/bin", "/sbin", "/lib", "/lib64" };
    static const struct plan_row python = { .op = PLAN_LINK,
                                            .target = "opt/silica/bin/python",
                                            .source = "/usr/bin/python3" };

    if (add(p, usr, e) < 0)
        return -1;
    for (size_t i = 0; i < LEN(merged); i++) {
        struct plan_row row = { .op = PLAN_LINK, .target = merged[i], .source = to[i] };

        if (host->has_dir[i] &&
            add_bind(p, &(struct box_bind){ .source = from[i], .target = from[i] }, e) < 0)
            return -1;
        if (host->has_merged[i] && add(p, row, e) < 0)
            return -1;
    }
    if (!host->has_python3 || host->has_python)
        return 0;
    return add_parents(p, python.target, 0, e) < 0 ? -1 : add(p, python, e);
}

static int add_name(struct plan *p, size_t which, char *text, struct err *e)
{
    struct plan_row row = { .op = PLAN_FILE,
                            .target =
                                p->is_framed ? own_names[which].framed : own_names[which].target,
                            .mode = 0644,
                            .source = keep(p, text) };

    return add(p, row, e);
}

PRINTF(1, 2) static char *text_of(const char *fmt, ...)
{
    OWN(buf_done) struct buf text = BUF_INIT(PLAN_TEXT_MAX_BYTES);
    struct err e;
    va_list ap;

    va_start(ap, fmt);
    (void)buf_vaddf(&text, &e, fmt, ap); /* fits: our own few lines */
    va_end(ap);
    return own_strdup(buf_cstr(&text));
}

/* Who is who in here, in files of our own: the host's say who lives there. */
static int add_names(struct plan *p, struct err *e)
{
    unsigned uid = p->ids.uid, gid = p->ids.gid;
    char *passwd, *group;

    passwd = uid && uid != 65534 ? text_of("root:x:0:0:root:/root:" PLAN_SHELL "\n"
                                           "sandbox:x:%u:%u:sandbox:" BOX_HOME ":" PLAN_SHELL "\n"
                                           "nobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n",
                                           uid, gid)
                                 : text_of("root:x:0:0:root:%s:" PLAN_SHELL "\n"
                                           "nobody:x:65534:65534:nobody:%s:" PLAN_SHELL "\n",
                                           uid ? "/root" : BOX_HOME, uid ? BOX_HOME : "/");
    group = gid && gid != 65534 ? text_of("root:x:0:\nsandbox:x:%u:\nnogroup:x:65534:\n", gid)
                                : text_of("root:x:0:\nnogroup:x:65534:\n");
    if (add_name(p, NAME_PASSWD, passwd, e) < 0 || add_name(p, NAME_GROUP, group, e) < 0 ||
        add_name(p, NAME_HOSTNAME, text_of("%s\n", p->hostname), e) < 0)
        return -1;
    return add_name(p, NAME_HOSTS, text_of("127.0.0.1 localhost %s\n::1 localhost\n", p->hostname),
                    e);
}

static int add_lookups(struct plan *p, struct err *e)
{
    /* There is no network but loopback, and no name server. So a name that is in no file does not exist: a temporary failure,
     * as of a server that does not answer, is what programs try again. Some do not read nsswitch.conf; they ask a server that
     * refuses at once. pip tries again whatever the reason was. */
    static const struct plan_row files[] = {
        { .op = PLAN_FILE,
          .target = "etc/nsswitch.conf",
          .mode = 0644,
          .source = "passwd: files\ngroup: files\nhosts: files\n"
                    "services: files\nprotocols: files\n" },
        { .op = PLAN_FILE,
          .target = "etc/resolv.conf",
          .mode = 0644,
          .source =
              "# This sandbox has no network but loopback: names that are not in /etc/hosts do\n"
              "# not exist (nsswitch.conf), and no server answers at this address.\n"
              "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n" },
        { .op = PLAN_FILE,
          .target = "etc/pip.conf",
          .mode = 0644,
          .source =
              "# This sandbox has no network but loopback: another attempt would fail as well.\n"
              "[global]\nretries = 0\ndisable-pip-version-check = true\n" },
    };

    EACH(f, files)
        if (add(p, *f, e) < 0)
            return -1;
    return 0;
}

static int add_etc(struct plan *p, struct err *e)
{
    static const struct plan_row links[] = {
        { .op = PLAN_LINK, .target = "etc/mtab", .source = "/proc/self/mounts" },
        { .op = PLAN_LINK, .target = "etc/os-release", .source = "../usr/lib/os-release" },
    };

    EACH(l, links)
        if (add(p, *l, e) < 0)
            return -1;
    for (size_t i = 0; i < LEN(etc_shown); i++) {
        struct plan_row row = { .op = PLAN_BIND,
                                .flags = PLAN_RDONLY | PLAN_NODEV | PLAN_OPTIONAL };

        row.source = etc_shown[i];
        row.target = row.source + 1; /* without the slash */
        if (add_parents(p, row.target, 0, e) < 0 || add(p, row, e) < 0)
            return -1;
    }
    return add_lookups(p, e);
}

static int add_nodes(struct plan *p, struct err *e)
{
    for (size_t i = 0; i < LEN(dev_nodes); i++) {
        struct plan_row row = { .op = PLAN_BIND, .flags = PLAN_NOEXEC };

        row.source = dev_nodes[i];
        row.target = row.source + 1;
        if (add(p, row, e) < 0)
            return -1;
    }
    EACH(l, dev_links) {
        struct plan_row row = { .op = PLAN_LINK, .target = l->target, .source = l->to };

        if (add(p, row, e) < 0)
            return -1;
    }
    return 0;
}

/* Terminals and shared memory of the sandbox's own. */
static int add_dev_mounts(struct plan *p, struct err *e)
{
    struct plan_row pts = { .op = PLAN_DEVPTS, .target = "dev/pts", .flags = PLAN_NOEXEC };
    struct plan_row shm = { .op = PLAN_TMPFS,
                            .target = "dev/shm",
                            .mode = 01777,
                            .flags = PLAN_NODEV,
                            .bytes = p->root_bytes / BOX_SHM_SHARE };

    return add(p, pts, e) < 0 ? -1 : add(p, shm, e);
}

static int add_hidden(struct plan *p, const char *const *targets, size_t n, const char *cover,
                      unsigned flags, struct err *e)
{
    for (size_t i = 0; i < n; i++) {
        struct plan_row row = {
            .op = PLAN_HIDE, .target = targets[i], .source = cover, .flags = flags | PLAN_OPTIONAL
        };

        if (add(p, row, e) < 0)
            return -1;
    }
    return 0;
}

/* How much of what the kernel counts for users this sandbox may have (user_counts.h). */
static int add_counts(struct plan *p, const struct plan_host *host, struct err *e)
{
    for (int i = 0; i < USER_COUNTS; i++) {
        struct plan_row row = { .op = PLAN_WRITE,
                                .target = user_count_setting((enum user_count)i) };
        char text[32];

        if (!host->counts[i])
            continue;
        (void)snprintf(text, sizeof text, "%llu", (unsigned long long)host->counts[i]);
        row.source = keep(p, own_strdup(text));
        if (add(p, row, e) < 0)
            return -1;
    }
    return 0;
}

/* The setting goes in before /proc/sys is sealed: no filter can see the flags of clone3, so it is this that keeps code
 * from making user namespaces, and with them capabilities, of its own. */
static int add_proc(struct plan *p, const struct plan_host *host, struct err *e)
{
    static const struct plan_row first[] = {
        { .op = PLAN_PROC, .target = "proc", .flags = PLAN_NODEV | PLAN_NOEXEC },
        { .op = PLAN_WRITE, .target = "proc/sys/user/max_user_namespaces", .source = "0" },
    };

    EACH(row, first)
        if (add(p, *row, e) < 0)
            return -1;
    if (add_counts(p, host, e) < 0)
        return -1;
    for (size_t i = 0; i < LEN(proc_sealed); i++) {
        struct plan_row row = { .op = PLAN_SEAL, .target = proc_sealed[i], .flags = PLAN_OPTIONAL };

        if (add(p, row, e) < 0)
            return -1;
    }
    return add_hidden(p, proc_hidden, LEN(proc_hidden), "dev/null", PLAN_NOEXEC, e) < 0
               ? -1
               : add_hidden(p, proc_hidden_dirs, LEN(proc_hidden_dirs), "run/.void", PLAN_RDONLY,
                            e);
}

/* ---- the home at two places ---- */

static bool is_at_or_below(const char *path, const char *dir)
{
    size_t n = strlen(dir);

    return strncmp(path, dir, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

static bool has_bind_at(const struct box_spec *spec, const char *place)
{
    for (size_t i = 0; i < spec->bind_count; i++) {
        OWN_MEM char *target = inside_path(spec->binds[i].target);

        if (target && strcmp(target, place) == 0)
            return true;
    }
    return false;
}

/* The alias without its leading slash; NULL: the home has none. */
static char *alias_of(const struct box_spec *spec)
{
    OWN_MEM char *alias = spec->home_alias ? inside_path(spec->home_alias) : NULL;

    if (!alias || is_at_or_below(alias, BOX_HOME_INSIDE) || is_at_or_below(BOX_HOME_INSIDE, alias))
        return NULL;
    return has_bind_at(spec, alias) && has_bind_at(spec, BOX_HOME_INSIDE) ? NULL : take_ptr(&alias);
}

/* Without a volume at one of them the directory of the new root is seen at both. */
static int add_alias(struct plan *p, const struct box_spec *spec, struct err *e)
{
    char *alias = alias_of(spec);
    struct plan_row dir = { .op = PLAN_DIR, .target = alias, .mode = 0755, .flags = PLAN_OF_USER };
    struct plan_row row = { .op = PLAN_ALIAS, .target = alias, .source = BOX_HOME_INSIDE };

    if (!alias)
        return 0;
    (void)keep(p, alias);
    if (!has_target(p, span_cstr(alias)) && (add_parents(p, alias, 0, e) < 0 || add(p, dir, e) < 0))
        return -1;
    return has_bind_at(spec, alias) || has_bind_at(spec, BOX_HOME_INSIDE) ? 0 : add(p, row, e);
}

/* The other place of what is shown at or below one of the two: absolute, or NULL. */
static char *other_place(const struct box_spec *spec, const char *target)
{
    OWN_MEM char *alias = alias_of(spec), *path = inside_path(target);
    const char *from = BOX_HOME_INSIDE, *to = alias;
    char *other;

    if (!alias || !path)
        return NULL;
    if (!is_at_or_below(path, from))
        from = alias, to = BOX_HOME_INSIDE;
    if (!is_at_or_below(path, from))
        return NULL;
    if (asprintf(&other, "/%s%s", to, path + strlen(from)) < 0)
        abort();
    return other;
}

static int add_other(struct plan *p, const struct box_spec *spec, const struct box_bind *b,
                     struct err *e)
{
    OWN_MEM char *other = other_place(spec, b->target);
    struct box_bind twin = *b;

    twin.target = other;
    return !other || has_bind_at(spec, other + 1) ? 0 : add_bind(p, &twin, e);
}

static int add_callers(struct plan *p, const struct box_spec *spec, struct err *e)
{
    for (const char *const *h = spec->host_paths; h && *h; h++)
        if (add_bind(p, &(struct box_bind){ .source = *h, .target = *h }, e) < 0)
            return err_wrap(e, "host path");
    for (size_t i = 0; i < spec->bind_count; i++)
        if (add_bind(p, &spec->binds[i], e) < 0 || add_other(p, spec, &spec->binds[i], e) < 0)
            return err_wrap(e, "volume");
    return 0;
}

static bool is_usual_message(const char *path)
{
    return strcmp(path, BOX_MESSAGE_PATH) == 0;
}

/* A file that anybody inside may write, as the kubelet's; one of a caller's own place comes after the trees it may be in. */
static int add_message(struct plan *p, const struct box_spec *spec, bool is_usual, struct err *e)
{
    struct plan_row row = { .op = PLAN_TOUCH, .mode = 0666 };

    if (!spec->message_path || is_usual_message(spec->message_path) != is_usual)
        return 0;
    if (is_usual) {
        row.target = p->is_framed ? MESSAGE_FRAMED : MESSAGE_TARGET;
        p->message = p->is_framed ? "/" MESSAGE_FRAMED : BOX_MESSAGE_PATH;
    } else {
        char *clean = inside_path(spec->message_path);

        if (!clean)
            return err_set(e, ERR_INVALID, "'%s' cannot be where last words are written",
                           spec->message_path);
        row.target = keep(p, clean);
        row.flags = PLAN_FOREIGN;
        p->message = spec->message_path;
        if (span_starts(span_cstr(clean), "proc"))
            return 0; /* the kernel's: nothing can be made there */
        if (add_parents(p, row.target, PLAN_FOREIGN, e) < 0)
            return -1;
    }
    return add(p, row, e);
}

static int seal_root(struct plan *p, struct err *e)
{
    static const struct plan_row rows[] = {
        { .op = PLAN_KEEP, .target = "tmp" },
        { .op = PLAN_KEEP, .target = BOX_HOME_INSIDE },
        { .op = PLAN_SEAL_ROOT, .target = "" },
    };

    /* Not one of a caller's own place: what is there may be a link of a stranger's. */
    for (size_t i = 0, n = p->n; i < n; i++)
        if (p->rows[i].op == PLAN_TOUCH && !(p->rows[i].flags & PLAN_FOREIGN) &&
            add(p, (struct plan_row){ .op = PLAN_KEEP, .target = p->rows[i].target }, e) < 0)
            return -1;
    EACH(row, rows)
        if (add(p, *row, e) < 0)
            return -1;
    return 0;
}

/* A name of the caller's as the host name inside: letters, digits and dashes stay. */
static char *hostname_of(const char *name)
{
    char text[HOSTNAME_MAX_BYTES + 1];
    size_t n = 0;

    for (; name && *name && n < HOSTNAME_MAX_BYTES; name++)
        text[n++] = isalnum((unsigned char)*name) ? *name : '-';
    text[n] = '\0';
    return own_strdup(n ? text : "sandbox");
}

/* A working directory of a name that nothing else has. */
static int add_cwd(struct plan *p, const struct box_spec *spec, struct err *e)
{
    char *target = spec->makes_cwd ? inside_path(spec->cwd) : NULL;
    struct span top = span_cstr(target);

    if (!target)
        return 0;
    (void)keep(p, target);
    top = span_slice(top, 0, span_find(top, '/'));
    if (!top.n || has_target(p, top))
        return 0;
    return add_parents(p, target, PLAN_OF_USER, e) < 0
               ? -1
               : add(p,
                     (struct plan_row){
                         .op = PLAN_DIR, .target = target, .mode = 0755, .flags = PLAN_OF_USER },
                     e);
}

/* In what sandboxes share, or on it; or on what its links lead to. */
static bool is_at_frame(const char *path)
{
    OWN_MEM char *target = inside_path(path);
    struct span all = span_cstr(target), top = span_slice(all, 0, span_find(all, '/'));

    return span_is(top, "etc") || span_is(top, "dev") || span_is(all, "run") ||
           span_starts(all, "run/.names");
}

/* The i-th place of the caller's trees, or NULL. */
static const char *callers_place(const struct box_spec *spec, size_t i)
{
    for (const char *const *h = spec->host_paths; h && *h; h++, i--)
        if (i == 0)
            return *h;
    return i < spec->bind_count ? spec->binds[i].target : NULL;
}

/* What all sandboxes share cannot be written to. So not where the user is root in here, or the owner of everything; not
 * where a volume wants a place made for it there, nor where one is placed in another, whose links may lead there. */
static bool can_be_framed(const struct box_spec *spec, const struct ids *ids)
{
    const char *one, *other;

    if (ids->kind == IDS_ONE || ids->uid == 0)
        return false;
    if (spec->message_path && !is_usual_message(spec->message_path) &&
        is_at_frame(spec->message_path))
        return false;
    for (size_t i = 0; (one = callers_place(spec, i)); i++) {
        if (is_at_frame(one))
            return false;
        for (size_t k = 0; (other = callers_place(spec, k)); k++)
            if (k != i && (spec->home_alias || span_starts(span_cstr(other), one)))
                return false; /* with an alias one may be in another at its second place */
    }
    return true;
}

static int add_frame(struct plan *p, struct err *e)
{
    static const struct plan_row rows[] = {
        { .op = PLAN_FRAME, .target = "etc" },
        { .op = PLAN_FRAME, .target = "dev" },
        { .op = PLAN_DIR, .target = "run/.names", .mode = 0755 },
    };

    EACH(row, rows)
        if (add(p, *row, e) < 0)
            return -1;
    return 0;
}

static int add_own(struct plan *p, struct err *e)
{
    return add_etc(p, e) < 0 || add_dev_dirs(p, e) < 0 ? -1 : add_nodes(p, e);
}

int plan_make_frame(struct plan *p, struct err *e)
{
    static const struct plan_row rows[] = {
        { .op = PLAN_DIR, .target = "etc", .mode = 0755 },
        { .op = PLAN_DIR, .target = "dev", .mode = 0755 },
        { .op = PLAN_TMPFS, .target = "etc", .mode = 0755, .flags = PLAN_NODEV },
        { .op = PLAN_TMPFS, .target = "dev", .mode = 0755, .flags = PLAN_NODEV },
    };

    *p = (struct plan){ .root_bytes = FRAME_BYTES };
    EACH(row, rows) {
        struct plan_row sized = *row;

        sized.bytes = row->op == PLAN_TMPFS ? FRAME_BYTES : 0;
        if (add(p, sized, e) < 0)
            return -1;
    }
    if (add(p,
            (struct plan_row){ .op = PLAN_LINK, .target = MESSAGE_TARGET, .source = MESSAGE_LINK },
            e) < 0)
        return -1;
    EACH(n, own_names)
        if (add(p, (struct plan_row){ .op = PLAN_LINK, .target = n->target, .source = n->link },
                e) < 0)
            return -1;
    return add_own(p, e);
}

int plan_make_ground(struct plan *p, struct err *e)
{
    static const struct plan_row rows[] = {
        { .op = PLAN_DIR, .target = "proc", .mode = 0 },
        { .op = PLAN_SEAL_ROOT, .target = "" },
    };

    *p = (struct plan){ .root_bytes = FRAME_BYTES };
    EACH(row, rows)
        if (add(p, *row, e) < 0)
            return -1;
    return 0;
}

int plan_make(struct plan *p, const struct box_spec *spec, const struct ids *ids,
              const struct plan_host *host, struct err *e)
{
    *p = (struct plan){ .ids = *ids,
                        .is_root_sealed = spec->is_read_only,
                        .can_be_framed = can_be_framed(spec, ids) };
    p->is_framed = host->has_frame && p->can_be_framed;
    p->hostname = keep(p, hostname_of(spec->host_name ? spec->host_name : spec->name));
    p->cwd = spec->cwd ? spec->cwd : BOX_HOME;
    p->root_bytes = spec->root_bytes ? spec->root_bytes : BOX_ROOT_BYTES;
    if (spec->layers)
        return err_set(e, ERR_UNSUPPORTED, "images made of layers cannot be used yet");
    if (p->cwd[0] != '/')
        return err_set(e, ERR_INVALID, "working directory '%s' is not an absolute path", p->cwd);
    if (add_dirs(p, e) < 0 || (p->is_framed ? add_frame(p, e) : add_own(p, e)) < 0 ||
        add_usr(p, host, e) < 0 || add_names(p, e) < 0 || add_dev_mounts(p, e) < 0 ||
        add_message(p, spec, true, e) < 0 || add_cwd(p, spec, e) < 0 || add_alias(p, spec, e) < 0)
        return -1;
    /* The masks of proc are made of what is ours, so before a volume can cover that. */
    if (add_proc(p, host, e) < 0 || add_callers(p, spec, e) < 0 ||
        add_message(p, spec, false, e) < 0)
        return -1;
    return spec->is_read_only ? seal_root(p, e) : 0;
}

void plan_done(struct plan *p)
{
    for (size_t i = 0; i < p->text_count; i++)
        free(p->texts[i]);
    p->text_count = p->n = 0;
}
