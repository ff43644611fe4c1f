#include "isolate/plan.h"
#include "isolate/seccomp_calls.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static const struct plan_host debian = { .has_merged = { true, true, true, true },
                                         .has_python3 = true };
static const struct ids one = { .kind = IDS_ONE,
                                .uid = 1000,
                                .gid = 1000,
                                .outside_uid = 65534,
                                .outside_gid = 65534,
                                .count = 1 };

static const struct plan_row *find(const struct plan *p, enum plan_op op, const char *target)
{
    for (size_t i = 0; i < p->n; i++)
        if (p->rows[i].op == op && strcmp(p->rows[i].target, target) == 0)
            return &p->rows[i];
    return NULL;
}

static size_t index_of(const struct plan *p, enum plan_op op, const char *target)
{
    const struct plan_row *row = find(p, op, target);

    assert_non_null(row);
    return (size_t)(row - p->rows);
}

static void make(struct plan *p, const struct box_spec *spec)
{
    struct err e = { 0 };

    if (plan_make(p, spec, &one, &debian, &e) < 0)
        fail_msg("%s", e.msg);
}

static void host_image(void **state)
{
    static const struct row {
        enum plan_op op;
        const char *target, *source;
        unsigned flags;
    } rows[] = {
        { PLAN_BIND, "usr", "/usr", PLAN_RDONLY | PLAN_NODEV },
        { PLAN_LINK, "bin", "usr/bin", 0 },
        { PLAN_LINK, "lib64", "usr/lib64", 0 },
        { PLAN_LINK, "opt/silica/bin/python", "/usr/bin/python3", 0 },
        { PLAN_BIND, "etc/ssl/certs", "/etc/ssl/certs", PLAN_RDONLY | PLAN_NODEV | PLAN_OPTIONAL },
        { PLAN_BIND, "dev/null", "/dev/null", PLAN_NOEXEC },
        { PLAN_LINK, "dev/ptmx", "pts/ptmx", 0 },
        { PLAN_TMPFS, "dev/shm", NULL, PLAN_NODEV },
        { PLAN_FILE, "etc/hostname", "my-box\n", 0 },
        { PLAN_FILE, "etc/group", "root:x:0:\nsandbox:x:1000:\nnogroup:x:65534:\n", 0 },
        { PLAN_PROC, "proc", NULL, PLAN_NODEV | PLAN_NOEXEC },
        { PLAN_HIDE, "proc/kcore", "dev/null", PLAN_OPTIONAL | PLAN_NOEXEC },
        { PLAN_HIDE, "proc/scsi", "run/.void", PLAN_OPTIONAL | PLAN_RDONLY },
        { PLAN_SEAL, "proc/sys", NULL, PLAN_OPTIONAL },
        { PLAN_WRITE, "proc/sys/user/max_user_namespaces", "0", 0 },
        { PLAN_DIR, "workspace", NULL, PLAN_OF_USER },
    };
    const struct box_spec spec = { .name = "my_box", .uid = 1000, .gid = 1000 };
    struct plan p;

    (void)state;
    make(&p, &spec);
    EACH(r, rows) {
        const struct plan_row *row = find(&p, r->op, r->target);

        if (!row)
            fail_msg("no row %s %s", plan_op_name(r->op), r->target);
        assert_int_equal(row->flags, r->flags);
        if (r->source)
            assert_string_equal(row->source, r->source);
    }
    assert_string_equal(p.cwd, "/workspace");
    assert_int_equal(p.root_bytes, BOX_ROOT_BYTES);
    plan_done(&p);
}

/* The whole host is not there, whatever else changes: each bind is /usr, a node, or a name of the allow-list. */
static void nothing_else_of_the_host(void **state)
{
    static const char *const never[] = { "/",    "/root",       "/home",    "/var",
                                         "/etc", "/run",        "/proc",    "/sys",
                                         "/dev", "/etc/shadow", "/etc/ssl", "/etc/passwd" };
    const struct box_spec spec = { .name = "x", .uid = 1000, .gid = 1000 };
    struct plan p;

    (void)state;
    make(&p, &spec);
    for (size_t i = 0; i < p.n; i++) {
        const struct plan_row *row = &p.rows[i];

        if (row->op != PLAN_BIND)
            continue;
        for (size_t k = 0; k < LEN(never); k++)
            assert_string_not_equal(row->source, never[k]);
        assert_true((row->flags & PLAN_RDONLY) || span_starts(span_cstr(row->source), "/dev/"));
    }
    assert_null(find(&p, PLAN_SEAL_ROOT, ""));
    plan_done(&p);
}

/* Where a command's last words are: a file that is kept writable, unless the place is the caller's. */
static void last_words(void **state)
{
    static const struct row {
        const char *path, *target, *message;
        bool is_sealed, is_framed, is_kept;
    } rows[] = {
        { BOX_MESSAGE_PATH, "dev/termination-log", "/dev/termination-log", false, false, false },
        { BOX_MESSAGE_PATH, "dev/termination-log", "/dev/termination-log", true, false, true },
        { BOX_MESSAGE_PATH, "run/.names/termination-log", "/run/.names/termination-log", true, true,
          true },
        { "/data//words", "data/words", "/data//words", true, false, false },
    };
    struct ids ids = { .kind = IDS_ROOT, .uid = 1000 };
    struct plan p;
    struct err e;

    (void)state;
    EACH(r, rows) {
        const struct box_spec spec = { .uid = 1000,
                                       .message_path = r->path,
                                       .is_read_only = r->is_sealed };
        const struct plan_host host = { .has_frame = r->is_framed };

        assert_int_equal(plan_make(&p, &spec, &ids, &host, &e), 0);
        assert_non_null(find(&p, PLAN_TOUCH, r->target));
        assert_string_equal(p.message, r->message);
        assert_int_equal(find(&p, PLAN_KEEP, r->target) != NULL, r->is_kept);
        plan_done(&p);
    }
    assert_int_equal(plan_make(&p, &(struct box_spec){ .message_path = "/a/../b" }, &ids,
                               &(struct plan_host){ 0 }, &e),
                     -1);
    plan_done(&p);
}

/* With what was made ahead nothing of /etc and /dev is made again, and nobody has it who could write there. */
static void a_frame(void **state)
{
    static const struct box_bind at_etc = { .source = "/srv", .target = "//etc/./app" },
                                 at_dev = { .source = "/srv", .target = "/dev" },
                                 at_run = { .source = "/srv", .target = "/run" },
                                 beside = { .source = "/srv", .target = "/etcetera" };
    static const struct box_bind nested[] = { { .source = "/srv", .target = "/a" },
                                              { .source = "/srv", .target = "/a/b" } };
    static const char *const host_path[] = { "/etc/app", NULL };
    static const struct row {
        const char *name;
        struct box_spec spec;
        bool is_framed;
    } rows[] = {
        { "a user", { .uid = 1000 }, true },
        { "root inside", { .uid = 0 }, false },
        { "a volume in /etc", { .uid = 1000, .binds = &at_etc, .bind_count = 1 }, false },
        { "a volume at /dev", { .uid = 1000, .binds = &at_dev, .bind_count = 1 }, false },
        { "a volume elsewhere", { .uid = 1000, .binds = &beside, .bind_count = 1 }, true },
        { "a volume in a volume", { .uid = 1000, .binds = nested, .bind_count = 2 }, false },
        { "a path of the host's", { .uid = 1000, .host_paths = host_path }, false },
        { "a volume on what its links lead to",
          { .uid = 1000, .binds = &at_run, .bind_count = 1 },
          false },
        { "last words", { .uid = 1000, .message_path = BOX_MESSAGE_PATH }, true },
        { "last words elsewhere", { .uid = 1000, .message_path = "/tmp/w" }, true },
        { "last words at /dev", { .uid = 1000, .message_path = "/dev/w" }, false },
    };
    struct plan_host host = { .has_frame = true };
    struct ids ids = { .kind = IDS_ROOT };
    struct plan p;
    struct err e;

    (void)state;
    EACH(r, rows) {
        ids.uid = r->spec.uid;
        assert_int_equal(plan_make(&p, &r->spec, &ids, &host, &e), 0);
        if (p.is_framed != r->is_framed)
            fail_msg("%s: %d", r->name, p.is_framed);
        assert_int_equal(find(&p, PLAN_FRAME, "etc") && find(&p, PLAN_FRAME, "dev"), r->is_framed);
        assert_int_equal(!find(&p, PLAN_BIND, "dev/null"), r->is_framed);
        assert_int_equal(!find(&p, PLAN_FILE, "etc/passwd"), r->is_framed);
        assert_int_equal(!!find(&p, PLAN_FILE, "run/.names/passwd"), r->is_framed);
        plan_done(&p);
    }
    ids = (struct ids){ .kind = IDS_ONE, .uid = 1000 };
    assert_int_equal(plan_make(&p, &rows[0].spec, &ids, &host, &e), 0);
    assert_false(p.is_framed); /* all is the user's */
    plan_done(&p);
}

/* What is shared has nothing in it that tells one sandbox from another. */
static void what_is_shared(void **state)
{
    struct plan p;
    struct err e;

    (void)state;
    assert_int_equal(plan_make_ground(&p, &e), 0); /* a place for the lens, and no more */
    assert_int_equal(p.n, 2);
    assert_non_null(find(&p, PLAN_DIR, "proc"));
    assert_non_null(find(&p, PLAN_SEAL_ROOT, ""));
    plan_done(&p);
    assert_int_equal(plan_make_frame(&p, &e), 0);
    for (size_t i = 0; i < p.n; i++) {
        const char *target = p.rows[i].target;

        assert_true(span_starts(span_cstr(target), "etc") || span_starts(span_cstr(target), "dev"));
    }
    assert_string_equal(find(&p, PLAN_LINK, "etc/hosts")->source, "../run/.names/hosts");
    assert_non_null(find(&p, PLAN_BIND, "dev/null"));
    assert_null(find(&p, PLAN_FILE, "etc/passwd"));
    assert_null(find(&p, PLAN_DEVPTS, "dev/pts"));
    plan_done(&p);
}

static void a_working_directory(void **state)
{
    static const struct row {
        const char *cwd;
        bool makes_it;
        const char *target; /* NULL: no row is added */
    } rows[] = {
        { "/app", true, "app" },        { "/app/src", true, "app/src" }, { "/app", false, NULL },
        { "/usr/src/app", true, NULL }, { "/workspace", true, NULL },
    };

    (void)state;
    EACH(r, rows) {
        const struct box_spec spec = { .name = "x", .cwd = r->cwd, .makes_cwd = r->makes_it };
        const struct box_spec plain = { .name = "x" };
        struct plan p, without;

        make(&p, &spec);
        make(&without, &plain);
        if (r->target)
            assert_int_equal(find(&p, PLAN_DIR, r->target)->flags, PLAN_OF_USER);
        else
            assert_int_equal(p.n, without.n);
        plan_done(&p);
        plan_done(&without);
    }
}

static void a_home_at_two_places(void **state)
{
    static const struct row {
        const char *name, *alias;
        const char *binds[3]; /* targets */
        const char *shown;    /* what is bound where, in order; = is the root's own directory */
    } rows[] = {
        { "none", NULL, { "/workspace" }, "workspace" },
        { "no volume", "/app", { NULL }, "app=" },
        { "at the home", "/app", { "/workspace/" }, "workspace app" },
        { "at the alias", "/app", { "/app" }, "app workspace" },
        { "at both", "/app", { "/app", "//workspace" }, "app workspace" },
        { "below one", "/app", { "/app/a" }, "app= app/a workspace/a" },
        { "below both", "/app", { "/app/a", "/workspace/a" }, "app= app/a workspace/a" },
        { "at and below", "/app", { "/app", "/workspace/a" }, "app workspace workspace/a app/a" },
        { "beside", "/app", { "/apple", "/workspaces" }, "app= apple workspaces" },
        { "in the home", "/workspace/app", { "/workspace" }, "workspace" },
        { "not a path", "app", { "/workspace" }, "workspace" },
    };

    (void)state;
    EACH(r, rows) {
        OWN(buf_done) struct buf shown = BUF_INIT(1024);
        struct box_bind binds[3];
        struct box_spec spec = { .name = "x", .home_alias = r->alias, .binds = binds };
        struct plan p;
        struct err e;

        for (; spec.bind_count < LEN(r->binds) && r->binds[spec.bind_count]; spec.bind_count++)
            binds[spec.bind_count] =
                (struct box_bind){ .source = "/srv", .target = r->binds[spec.bind_count] };
        make(&p, &spec);
        for (size_t i = 0; i < p.n; i++) {
            const struct plan_row *row = &p.rows[i];

            if (row->op == PLAN_ALIAS || (row->op == PLAN_BIND && (row->flags & PLAN_FOREIGN)))
                assert_int_equal(buf_addf(&shown, &e, "%s%s%s", shown.n ? " " : "", row->target,
                                          row->op == PLAN_ALIAS ? "=" : ""),
                                 0);
        }
        if (strcmp(buf_cstr(&shown), r->shown) != 0)
            fail_msg("%s: %s", r->name, buf_cstr(&shown));
        plan_done(&p);
    }
}

static void order(void **state)
{
    static const struct box_bind binds[] = { { "/srv/data", "/data/deep//in/./", true, "a/b" } };
    static const char *const host_paths[] = { "/opt/tool", NULL };
    const struct box_spec spec = { .name = "x",
                                   .uid = 1000,
                                   .gid = 1000,
                                   .binds = binds,
                                   .bind_count = 1,
                                   .host_paths = host_paths,
                                   .is_read_only = true };
    struct plan p;

    (void)state;
    make(&p, &spec);
    assert_true(index_of(&p, PLAN_DIR, "data") < index_of(&p, PLAN_DIR, "data/deep"));
    assert_true(index_of(&p, PLAN_DIR, "data/deep") < index_of(&p, PLAN_BIND, "data/deep/in"));
    assert_int_equal(find(&p, PLAN_BIND, "data/deep/in")->flags, PLAN_FOREIGN | PLAN_NODEV);
    assert_string_equal(find(&p, PLAN_BIND, "data/deep/in")->sub, "a/b");
    assert_null(find(&p, PLAN_BIND, "opt/tool")->sub);
    assert_int_equal(find(&p, PLAN_BIND, "opt/tool")->flags,
                     PLAN_FOREIGN | PLAN_NODEV | PLAN_RDONLY);
    assert_true(index_of(&p, PLAN_PROC, "proc") <
                index_of(&p, PLAN_WRITE, "proc/sys/user/max_user_namespaces"));
    assert_true(index_of(&p, PLAN_WRITE, "proc/sys/user/max_user_namespaces") <
                index_of(&p, PLAN_SEAL, "proc/sys"));
    assert_true(index_of(&p, PLAN_BIND, "dev/null") < index_of(&p, PLAN_HIDE, "proc/kcore"));
    assert_int_equal(find(&p, PLAN_DIR, "data")->flags, PLAN_FOREIGN);
    assert_int_equal(find(&p, PLAN_DIR, "etc/ssl")->flags, 0);
    assert_int_equal(index_of(&p, PLAN_SEAL_ROOT, ""), p.n - 1);
    assert_true(index_of(&p, PLAN_KEEP, "tmp") < p.n - 1);
    plan_done(&p);
}

static void refusals(void **state)
{
    static const char *const layers[] = { "/x", NULL };
    static const struct box_bind up[] = { { "/srv", "/a/../etc", false } };
    static const struct box_bind root[] = { { "/srv", "//", false } };
    static const struct box_bind relative[] = { { "srv", "/srv", false } };
    static const struct box_bind proc[] = { { "/srv", "/proc/sys", false } };
    static const struct row {
        const char *name;
        struct box_spec spec;
        enum err_code code;
        const char *text;
    } rows[] = {
        { "layers", { .layers = layers }, ERR_UNSUPPORTED, "images made of layers" },
        { "relative cwd", { .cwd = "x" }, ERR_INVALID, "working directory 'x' is not" },
        { "..",
          { .binds = up, .bind_count = 1 },
          ERR_INVALID,
          "cannot show '/srv' at '/a/../etc'" },
        { "/", { .binds = root, .bind_count = 1 }, ERR_INVALID, "cannot show '/srv' at '//'" },
        { "relative source",
          { .binds = relative, .bind_count = 1 },
          ERR_INVALID,
          "'srv' is not an" },
        { "proc", { .binds = proc, .bind_count = 1 }, ERR_INVALID, "proc is the kernel's" },
    };

    (void)state;
    EACH(r, rows) {
        struct plan p;
        struct err e = { 0 };

        assert_int_equal(plan_make(&p, &r->spec, &one, &debian, &e), -1);
        assert_int_equal(e.code, r->code);
        if (!strstr(e.msg, r->text))
            fail_msg("%s: '%s'", r->name, e.msg);
        plan_done(&p);
    }
}

static void too_much(void **state)
{
    struct box_bind binds[PLAN_ROWS_MAX];
    const struct box_spec spec = { .name = "x", .binds = binds, .bind_count = LEN(binds) };
    struct plan p;
    struct err e = { 0 };

    (void)state;
    EACH(b, binds)
        *b = (struct box_bind){ "/srv", "/some/where", false };
    assert_int_equal(plan_make(&p, &spec, &one, &debian, &e), -1);
    assert_int_equal(e.code, ERR_LIMIT);
    plan_done(&p);
}

/* Before /proc/sys is sealed, and only what there is to write. */
static void counts_of_users(void **state)
{
    struct plan_host host = { .counts = { [USER_INOTIFY_INSTANCES] = 32 } };
    struct box_spec spec = { .name = "s" };
    struct plan p = { 0 };
    struct err e;
    size_t at;

    (void)state;
    assert_int_equal(plan_make(&p, &spec, &one, &host, &e), 0);
    at = index_of(&p, PLAN_WRITE, "proc/sys/user/max_inotify_instances");
    assert_string_equal(p.rows[at].source, "32");
    assert_true(at < index_of(&p, PLAN_SEAL, "proc/sys"));
    assert_null(find(&p, PLAN_WRITE, "proc/sys/user/max_inotify_watches"));
    plan_done(&p);
}

static void id_ranges(void **state)
{
    static const struct row {
        const char *map;
        uint32_t base, count;
        bool want;
    } rows[] = {
        { "         0          0 4294967295\n", IDS_BASE, IDS_COUNT, true },
        { "0 100000 65536\n", IDS_BASE, IDS_COUNT, false },
        { "0 100000 65536\n", 0, 65536, true },
        { "0 100000 65536\n", 1, 65536, false },
        { "0 1000 1\n1 100000 65536\n", 1, 65536, true },
        { "", 0, 1, false },
        { "nonsense\n", 0, 1, false },
    };

    (void)state;
    EACH(r, rows)
        assert_int_equal(ids_map_covers(span_cstr(r->map), r->base, r->count), r->want);
}

static void id_files(void **state)
{
    static const char passwd[] = "root:x:0:0::/root:/bin/sh\nann:x:1001:1001::/:/bin/sh\nbad\n";
    static const struct row {
        const char *file;
        uid_t uid;
        bool want;
        uint32_t base;
    } rows[] = {
        { "bob:1:65536\nann:100000:65536\n", 1001, true, 100000 },
        { "1001:200000:65536\n", 1001, true, 200000 },
        { "ann:100000:1000\nann:300000:65536\n", 1001, true, 300000 },
        { "ann:100000:65535\n", 1001, false, 0 },
        { "ann:4294967000:65536\n", 1001, false, 0 },
        { "ann:x:65536\nann\n:1:65536\n", 1001, false, 0 },
        { ":100000:65536\n", 7, false, 0 }, /* a uid without a name */
        { "", 1001, false, 0 },
    };

    (void)state;
    EACH(r, rows) {
        struct span name = ids_find_name(span_cstr(passwd), r->uid);
        uint32_t base = 0;

        assert_int_equal(ids_find_range(span_cstr(r->file), name, r->uid, IDS_COUNT, &base),
                         r->want);
        assert_int_equal(base, r->base);
    }
}

static void id_maps(void **state)
{
    static const struct row {
        struct ids ids;
        const char *uids, *gids;
    } rows[] = {
        { { .kind = IDS_ONE, .uid = 1000, .gid = 100, .outside_uid = 5, .outside_gid = 6 },
          "1000 5 1\n",
          "100 6 1\n" },
        { { .kind = IDS_ROOT, .uid = 1000, .base = 70000, .gid_base = 70000, .count = 65536 },
          "0 70000 65536\n",
          "0 70000 65536\n" },
        { { .kind = IDS_RANGE,
            .uid = 1000,
            .gid = 0,
            .outside_uid = 5,
            .outside_gid = 6,
            .base = 100000,
            .gid_base = 200000,
            .count = 65536 },
          "0 5 1\n1 100000 65535\n",
          "0 6 1\n1 200000 65535\n" },
        { { .kind = IDS_ENGINE,
            .outside_uid = 5,
            .outside_gid = 6,
            .base = 70000,
            .gid_base = 80000,
            .count = 65536 },
          "5 5 1\n70000 70000 65536\n",
          "6 6 1\n80000 80000 65536\n" },
    };

    (void)state;
    EACH(r, rows) {
        OWN(buf_done) struct buf uids = BUF_INIT(1000);
        OWN(buf_done) struct buf gids = BUF_INIT(1000);
        struct err e;

        assert_int_equal(ids_lines(&r->ids, false, &uids, &e), 0);
        assert_int_equal(ids_lines(&r->ids, true, &gids, &e), 0);
        assert_string_equal(buf_cstr(&uids), r->uids);
        assert_string_equal(buf_cstr(&gids), r->gids);
    }
}

static void few_calls(void **state)
{
    (void)state;
    assert_true(LEN(seccomp_calls) + SECCOMP_RULED_CALLS <= SECCOMP_CALLS_MAX);
    for (size_t i = 0; i < LEN(seccomp_calls); i++) {
        assert_true(seccomp_calls[i].needed_by[0] != '\0');
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(seccomp_calls[i].name, seccomp_calls[k].name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(host_image),
        cmocka_unit_test(nothing_else_of_the_host),
        cmocka_unit_test(last_words),
        cmocka_unit_test(a_frame),
        cmocka_unit_test(what_is_shared),
        cmocka_unit_test(a_working_directory),
        cmocka_unit_test(a_home_at_two_places),
        cmocka_unit_test(order),
        cmocka_unit_test(refusals),
        cmocka_unit_test(too_much),
        cmocka_unit_test(id_ranges),
        cmocka_unit_test(counts_of_users),
        cmocka_unit_test(few_calls),
        cmocka_unit_test(id_files),
        cmocka_unit_test(id_maps),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
