/* silica logs: what the main command of a long-lived sandbox said. */
#include "cli/command.h"

#include "base/str.h"
#include "base/time.h"
#include "cli/target.h"
#include "sandbox/logs.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#define READ_BYTES (64 * 1024)
#define POLL_MS    100 /* between looks at a log that is followed */

struct logs_options {
    const char *data, *tail;
    bool is_followed, has_times, is_help;
};

#define AT(field) offsetof(struct logs_options, field)

/* clang-format off */
static const struct opt opts[] = {
    { "--follow", NULL, OPT_BOOL, AT(is_followed), NULL, 0, 0, NULL, "go on until the command ends", NULL, 'f' },
    { "--tail", NULL, OPT_STR, AT(tail), "all", 0, 0, "N", "begin with the last N lines", NULL, 'n' },
    { "--timestamps", NULL, OPT_BOOL, AT(has_times), NULL, 0, 0, NULL, "each line with its time", NULL, 't' },
    TARGET_DATA_OPT(AT(data)),
    COMMAND_HELP(AT(is_help), NULL),
};
/* clang-format on */

const struct opt_program logs_program = {
    .name = "silica logs",
    .usage = "[options] NAME",
    .example = "silica logs -f demo",
    .opts = opts,
    .opt_count = LEN(opts),
    .epilog =
        "Output of the command that `silica run -d` started; what it wrote on standard error comes on standard\n"
        "error. The last 8 to 16 MiB are kept.",
};

struct show {
    const struct logs_options *options;
    struct logs reader;
    int dir_fd;
    int fd;        /* the newest file, or -1 while there is none */
    uint64_t skip; /* lines before the first that is shown */
    bool is_inside_line[2];
};

/* ---- entries ---- */

static void count_entry(void *ctx, const struct logs_entry *entry)
{
    uint64_t *lines = ctx;

    *lines += entry->is_end;
}

static void show_entry(void *ctx, const struct logs_entry *entry)
{
    FILE *out = entry->stream == SANDBOX_STDOUT ? stdout : stderr;
    struct show *s = ctx;

    if (s->skip) {
        s->skip -= entry->is_end;
        return;
    }
    if (entry->stream == SANDBOX_STDERR)
        (void)fflush(stdout); /* on one terminal they stay in order */
    if (s->options->has_times && !s->is_inside_line[entry->stream])
        (void)fprintf(out, "%.*s ", SPAN_ARG(entry->time));
    (void)fwrite(entry->text.p, 1, entry->text.n, out);
    if (entry->is_end)
        (void)fputc('\n', out);
    s->is_inside_line[entry->stream] = !entry->is_end;
}

/* ---- files ---- */

static int read_rest(int fd, struct logs *reader, struct err *e)
{
    uint8_t piece[READ_BYTES];

    for (;;) {
        ssize_t n = read(fd, piece, sizeof piece);

        if (n == 0)
            return 0;
        if (n > 0)
            logs_feed(reader, span_of(piece, (size_t)n));
        else if (errno != EINTR)
            return err_sys(e, "cannot read the log");
    }
}

/* -1 where there is none. */
static int open_log(int dir_fd, const char *name)
{
    return openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
}

static bool is_same_file(int fd, int other_fd)
{
    struct stat a, b;

    return fd >= 0 && other_fd >= 0 && fstat(fd, &a) == 0 && fstat(other_fd, &b) == 0 &&
           a.st_ino == b.st_ino;
}

static int count_lines(int fd, uint64_t *lines, struct err *e)
{
    struct logs reader;
    int done;

    if (fd < 0)
        return 0;
    logs_init(&reader, count_entry, lines);
    done = read_rest(fd, &reader, e);
    logs_done(&reader);
    if (done == 0 && lseek(fd, 0, SEEK_SET) < 0)
        return err_sys(e, "cannot read the log");
    return done;
}

static int read_old(struct show *s, int old_fd, struct err *e)
{
    if (old_fd < 0)
        return 0;
    if (read_rest(old_fd, &s->reader, e) < 0)
        return -1;
    logs_end(&s->reader);
    return 0;
}

/* What is there now, from the line that was asked for. */
static int show_so_far(struct show *s, struct err *e)
{
    OWN_FD int old_fd = -1;
    uint64_t lines = 0, wanted;

    s->fd = open_log(s->dir_fd, "log"); /* first: what becomes the old one meanwhile is then both */
    old_fd = open_log(s->dir_fd, "log.1");
    if (is_same_file(s->fd, old_fd))
        own_fd_close(&old_fd);
    if (str_u64(span_cstr(s->options->tail), UINT64_MAX, &wanted)) {
        if (count_lines(old_fd, &lines, e) < 0 || count_lines(s->fd, &lines, e) < 0)
            return -1;
        s->skip = lines > wanted ? lines - wanted : 0;
    }
    if (read_old(s, old_fd, e) < 0)
        return -1;
    return s->fd < 0 ? 0 : read_rest(s->fd, &s->reader, e);
}

/* A new file has begun when "log" is not ours any more; ours is then the old one, or was. */
static int change_file(struct show *s, struct err *e)
{
    OWN_FD int next = open_log(s->dir_fd, "log"), old_fd = -1;

    if (next < 0 || is_same_file(s->fd, next))
        return 0;
    if (s->fd >= 0) {
        if (read_rest(s->fd, &s->reader, e) < 0) /* what came before it was put away */
            return -1;
        logs_end(&s->reader);
        old_fd = open_log(s->dir_fd, "log.1");
        if (old_fd >= 0 && !is_same_file(s->fd, old_fd)) {
            fprintf(stderr, "silica: some of it was dropped: it came faster than it was read\n");
            if (read_old(s, old_fd, e) < 0)
                return -1;
        }
        own_fd_close(&s->fd);
    }
    s->fd = take_fd(&next);
    return read_rest(s->fd, &s->reader, e);
}

static bool is_going_on(struct engine *en, const char *name)
{
    struct engine_info info;
    struct err e;

    return engine_get(en, name, &info, &e) == 0 && info.pid && !info.has_exit;
}

static int follow(struct engine *en, const char *name, struct show *s, struct err *e)
{
    const struct timespec wait = { .tv_nsec = POLL_MS * 1000000L };
    bool is_last;

    do {
        (void)fflush(stdout);
        (void)nanosleep(&wait, NULL);
        is_last = !is_going_on(en, name); /* asked first: then all of it is there to be read */
        if ((s->fd >= 0 && read_rest(s->fd, &s->reader, e) < 0) || change_file(s, e) < 0)
            return -1;
    } while (!is_last && !ferror(stdout));
    return 0;
}

/* ---- the command ---- */

static int show(struct engine *en, const char *name, const struct logs_options *o, struct err *e)
{
    struct show s = { .options = o, .dir_fd = -1, .fd = -1 };
    struct engine_info info;
    int done;

    if (target_get(en, name, &info, e) < 0 || engine_open_logs(en, name, &s.dir_fd, e) < 0)
        return -1;
    if (!*info.command)
        fprintf(stderr, "silica: sandbox '%s' has no main command: nothing is logged\n", name);
    logs_init(&s.reader, show_entry, &s);
    done = show_so_far(&s, e);
    if (done == 0 && o->is_followed)
        done = follow(en, name, &s, e);
    logs_done(&s.reader);
    own_fd_close(&s.fd);
    own_fd_close(&s.dir_fd);
    if (done == 0 && (fflush(stdout) != 0 || ferror(stdout)))
        return err_sys(e, "cannot write");
    return done;
}

int logs_command(int argc, char **argv)
{
    struct logs_options o = { 0 };
    struct engine *en = NULL;
    uint64_t lines;
    struct err e;
    int rest, done, code = command_parse(&logs_program, argc, argv, &o, &rest);

    if (code != COMMAND_GOES_ON)
        return code;
    if (argc - rest != 1) {
        (void)err_set(&e, ERR_USAGE, "one sandbox is to be named, not %d", argc - rest);
        return command_fail(&e, EXIT_USAGE);
    }
    if (strcmp(o.tail, "all") != 0 && !str_u64(span_cstr(o.tail), UINT64_MAX, &lines)) {
        (void)err_set(&e, ERR_USAGE, "--tail: '%s' is neither a number nor 'all'", o.tail);
        return command_fail(&e, EXIT_USAGE);
    }
    if (target_open(o.data, &en, &e) < 0)
        return command_fail(&e, EXIT_FAILED);
    done = show(en, argv[rest], &o, &e);
    engine_close(en);
    return done < 0 ? command_fail(&e, EXIT_FAILED) : 0;
}
