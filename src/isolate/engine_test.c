/* Long-lived sandboxes for real, with a keeper of our own: by who runs the tests, and where that is root also by an
 * account that has nothing but its uid, and by one with a range of ids. */
#include "isolate/engine_impl.h"

#include "base/fd.h"
#include "base/scratch.h"
#include "isolate/cellar.h"
#include "isolate/dir.h"
#include "isolate/keeper.h"
#include "isolate/runtime_path.h"
#include "isolate/testwho.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define WAIT_MS   20000
#define LINGER_MS 60000 /* the tests end it */

static const char *const env[] = { "PATH=" BOX_PATH, "HOME=" BOX_HOME, "LC_ALL=C",
                                   "ASAN_OPTIONS=detect_leaks=0", NULL };
static int runtime_fd = -1;
static bool is_ranged;
static struct scratch scratch;
static struct engine *en;
static pid_t keeper;

/* ---- a keeper ---- */

static int start_keeper(void)
{
    struct keeper_spec spec = { .dir = scratch_path(&scratch, "data"), .linger_ms = LINGER_MS };
    struct pollfd ready;
    int fds[2];
    struct err e;

    if (pipe2(fds, O_CLOEXEC) < 0)
        return -1;
    keeper = fork();
    if (keeper == 0) {
        int program_fd = fd_open_program("silica-runtime", &e);
        OWN(buf_done) struct buf program = BUF_INIT(64 << 20);

        (void)lseek(runtime_fd, 0, SEEK_SET);
        if (program_fd < 0 || fd_read_all(runtime_fd, &program, &e) < 0 ||
            fd_write_all(program_fd, buf_span(&program), &e) < 0 ||
            fd_seal_program(program_fd, &e) < 0)
            _exit(2);
        buf_done(&program);
        (void)close(fds[0]);
        spec.runtime_fd = program_fd;
        spec.ready_fd = fds[1];
        _exit(keeper_run(&spec, &e) < 0);
    }
    (void)close(fds[1]);
    ready = (struct pollfd){ .fd = fds[0], .events = POLLIN };
    (void)poll(&ready, 1, WAIT_MS);
    (void)close(fds[0]);
    return 0;
}

static void end_keeper(int signal_number)
{
    (void)kill(keeper, signal_number);
    (void)waitpid(keeper, NULL, 0);
}

static int set_up(void **state)
{
    struct engine_spec spec = { .starts_keeper = false };
    struct err e;

    (void)state;
    scratch_make(&scratch);
    if (start_keeper() < 0)
        return -1;
    spec.dir = scratch_path(&scratch, "data");
    if (engine_open(&spec, &en, &e) < 0)
        fail_msg("%s", e.msg);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    engine_close(en);
    end_keeper(SIGTERM);
    scratch_remove(&scratch);
    return 0;
}

/* ---- in short ---- */

static int try_create(struct engine_create c, const char *name, const char *script, struct err *e)
{
    const char *const command[] = { "sh", "-c", script, NULL };
    struct box_spec box = { .name = name,
                            .env = env,
                            .uid = 1000,
                            .gid = 1000,
                            .wants_range = is_ranged,
                            .command = script ? command : NULL };
    struct engine_created made;

    c.box = &box;
    return engine_create(en, &c, &made, e);
}

static void create(struct engine_create c, const char *name, const char *script)
{
    struct err e;

    if (try_create(c, name, script, &e) < 0)
        fail_msg("%s: %s", name, e.msg);
}

static enum engine_status status_of(const char *name)
{
    struct engine_info info;
    struct err e;

    if (engine_get(en, name, &info, &e) < 0)
        fail_msg("%s", e.msg);
    return info.status;
}

static bool has_said(const char *name, const char *word)
{
    OWN(buf_done) struct buf log = BUF_INIT(1 << 20);
    OWN_FD int dir_fd = -1, fd = -1;
    struct err e;

    if (engine_open_logs(en, name, &dir_fd, &e) < 0)
        fail_msg("%s", e.msg);
    fd = openat(dir_fd, DIR_LOG, O_RDONLY | O_CLOEXEC);
    return fd >= 0 && fd_read_all(fd, &log, &e) == 0 && strstr(buf_cstr(&log), word);
}

/* Until its command has said so: others write to the log too, such as a sanitizer at PID 1's start. */
static void wait_for_word(const char *name, const char *word)
{
    for (int tries = 0; tries < WAIT_MS / 10; tries++) {
        if (has_said(name, word))
            return;
        (void)poll(NULL, 0, 10);
    }
    fail_msg("'%s' does not say '%s'", name, word);
}

static void expect_exit(const char *name, int code)
{
    struct engine_info info;
    struct err e;

    if (engine_wait(en, name, WAIT_MS, &info, &e) < 0)
        fail_msg("%s", e.msg);
    assert_int_equal(info.exit_code, code);
}

/* ---- life ---- */

static void made_listed_destroyed(void **state)
{
    struct engine_info *v = NULL;
    size_t n;
    struct err e;

    (void)state;
    create((struct engine_create){ 0 }, "b", "exec sleep 1000");
    create((struct engine_create){ .is_kept = true }, "a", NULL);
    assert_int_equal(try_create((struct engine_create){ 0 }, "a", NULL, &e), -1);
    assert_int_equal(e.code, ERR_EXISTS);
    assert_int_equal(engine_list(en, &v, &n, &e), 0);
    assert_int_equal(n, 2);
    assert_string_equal(v[0].name, "a");
    assert_string_equal(v[1].command, "sh -c exec sleep 1000");
    assert_true(v[0].is_kept && !v[1].is_kept && v[0].pid && v[1].pid && v[0].created_ms);
    free(v);
    assert_int_equal(engine_destroy(en, "a", &e), 0);
    assert_int_equal(engine_destroy(en, "b", &e), 0);
    assert_int_equal(engine_destroy(en, "b", &e), -1);
    assert_int_equal(e.code, ERR_NOT_FOUND);
    assert_int_equal(scratch_count(&scratch, "data/sandboxes"), 0);
}

static void commands_end(void **state)
{
    struct engine_info info;
    struct err e;

    (void)state;
    create((struct engine_create){ .is_kept = true }, "kept", "exit 7");
    expect_exit("kept", 7);
    assert_int_equal(status_of("kept"), ENGINE_RUNNING);
    create((struct engine_create){ 0 }, "gone", "sleep 0.2; exit 9");
    expect_exit("gone", 9);
    create((struct engine_create){ .is_kept = true }, "long", "exec sleep 1000");
    assert_int_equal(engine_wait(en, "long", 20, &info, &e), -1);
    assert_int_equal(e.code, ERR_TIMEOUT);
    assert_int_equal(engine_stop(en, "long", WAIT_MS, &e), 0);
    expect_exit("long", 128 + SIGTERM);
    create((struct engine_create){ .is_kept = true }, "deaf",
           "trap '' TERM; echo deaf; while :; do sleep 1; done");
    wait_for_word("deaf", "deaf");
    assert_int_equal(engine_stop(en, "deaf", 50, &e), 0);
    expect_exit("deaf", 128 + SIGKILL);
    assert_int_equal(engine_stop(en, "deaf", 50, &e), 0);
    create((struct engine_create){ .is_kept = true, .timeout_ms = 100 }, "late", "exec sleep 1000");
    expect_exit("late", 124);
}

/* As a container does: it ends with its command, and how it ended stays. */
static void ends_with_its_command(void **state)
{
    const struct engine_create c = { .is_kept = true, .ends_with_command = true };
    struct err e;

    (void)state;
    create(c, "brief", "sleep 1000 & exit 3");
    expect_exit("brief", 3);
    assert_int_equal(status_of("brief"), ENGINE_EXITED);
    create(c, "told", "trap 'exit 5' USR1; echo told; while :; do sleep 0.05; done");
    wait_for_word("told", "told");
    assert_int_equal(engine_signal(en, "told", SIGUSR1, &e), 0);
    expect_exit("told", 5);
    assert_int_equal(engine_signal(en, "told", SIGUSR1, &e), -1);
    assert_int_equal(e.code, ERR_CLOSED);
}

/* More than the keeper takes at once, in a sandbox that stays: who hears of the end finds all of it in the log. */
static void all_is_logged_before_the_end_is_told(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        char name[16];

        (void)snprintf(name, sizeof name, "wordy%d", i);
        create((struct engine_create){ .is_kept = true }, name, "seq 9000; echo the very last");
        expect_exit(name, 0);
        assert_true(has_said(name, "the very last"));
    }
}

/* ---- volumes in memory ---- */

static void create_with_memory(const char *name, const char *sub, const char *script)
{
    const char *const command[] = { "sh", "-c", script, NULL };
    const struct box_bind bind = { .source = scratch_path(&scratch, "."),
                                   .target = "/vol",
                                   .is_writable = true,
                                   .sub = sub,
                                   .memory = "pod.vol" };
    const struct box_spec box = { .name = name,
                                  .env = env,
                                  .uid = 1000,
                                  .gid = 1000,
                                  .wants_range = is_ranged,
                                  .command = command,
                                  .binds = &bind,
                                  .bind_count = 1 };
    const struct engine_create c = { .box = &box, .is_kept = true, .ends_with_command = true };
    struct engine_created made;
    struct err e;

    if (engine_create(en, &c, &made, &e) < 0)
        fail_msg("%s: %s", name, e.msg);
}

static void volumes_in_memory(void **state)
{
    const struct cellar_volume v = { .name = "pod.vol", .bytes = 1 << 20 };
    const struct cellar_volume bad = { .name = "../x", .bytes = 1 << 20 };
    struct err e;

    (void)state;
    assert_int_equal(engine_make_memory(en, &bad, &e), -1);
    assert_int_equal(e.code, ERR_INVALID);
    if (engine_make_memory(en, &v, &e) < 0 || engine_make_memory(en, &v, &e) < 0)
        fail_msg("%s", e.msg);
    create_with_memory("w", NULL, "stat -f -c %T /vol && echo hello > /vol/x && stat -c %u /vol/x");
    expect_exit("w", 0);
    assert_true(has_said("w", " tmpfs\n") && has_said("w", " 1000\n"));
    /* The one that wrote it has ended: who comes next finds it, and the end of its size. */
    create_with_memory("r", NULL,
                       "grep -q hello /vol/x && ! head -c 2000000 /dev/zero > /vol/y && echo full");
    expect_exit("r", 0);
    assert_true(has_said("r", "full\n"));
    create_with_memory("sub", "a/b", "echo in > /vol/z; ls /vol");
    expect_exit("sub", 0);
    create_with_memory("all", NULL, "ls /vol/a/b");
    expect_exit("all", 0);
    assert_true(has_said("all", "z\n"));
    assert_false(scratch_has(&scratch, "a")); /* nothing of it is on disk */
    if (engine_drop_memory(en, "pod.", &e) < 0 || engine_drop_memory(en, "pod.", &e) < 0)
        fail_msg("%s", e.msg);
    assert_int_equal(engine_make_memory(en, &v, &e), 0);
    create_with_memory("new", NULL, "ls -A /vol | wc -l");
    expect_exit("new", 0);
    assert_true(has_said("new", " 0\n"));
}

/* A volume that nobody has made is an error, not an empty directory. */
static void no_volume_in_memory(void **state)
{
    const struct box_bind bind = { .source = "/tmp", .target = "/vol", .memory = "none" };
    const struct box_spec box = { .name = "n", .env = env, .binds = &bind, .bind_count = 1 };
    const struct cellar_volume other = { .name = "other", .bytes = 4096 };
    struct engine_created made;
    struct err e;

    (void)state;
    assert_int_equal(engine_create(en, &(struct engine_create){ .box = &box }, &made, &e), -1);
    assert_int_equal(e.code, ERR_NOT_FOUND);
    assert_int_equal(engine_make_memory(en, &other, &e), 0);
    assert_int_equal(engine_create(en, &(struct engine_create){ .box = &box }, &made, &e), -1);
    assert_non_null(strstr(e.msg, "there is no volume 'none' in memory"));
}

static void paused(void **state)
{
    struct box_stats stats;
    struct err e;
    int fd = -1;

    (void)state;
    create((struct engine_create){ .is_kept = true }, "p", "while :; do :; done");
    if (engine_pause(en, "p", &e) < 0)
        fail_msg("%s", e.msg);
    assert_int_equal(status_of("p"), ENGINE_PAUSED);
    assert_int_equal(engine_control(en, "p", &fd, &e), -1);
    assert_int_equal(e.code, ERR_CONFLICT);
    assert_int_equal(engine_stats(en, "p", &stats, &e), 0);
    assert_true(stats.has_pids && stats.pids >= 2);
    assert_int_equal(engine_resume(en, "p", &e), 0);
    assert_int_equal(status_of("p"), ENGINE_RUNNING);
    assert_int_equal(engine_pause(en, "p", &e), 0);
    assert_int_equal(engine_stop(en, "p", WAIT_MS, &e), 0); /* what stands still is ended too */
    assert_int_equal(engine_pause(en, "p", &e), -1);
    assert_int_equal(e.code, ERR_CLOSED);
}

/* ---- reached ---- */

/* A server inside says a word to whoever connects. */
static void expect_word(const char *name, int port, const char *want)
{
    struct sockaddr_in at = { .sin_family = AF_INET,
                              .sin_port = htons((uint16_t)port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    char got[16] = "";
    struct err e;

    for (int tries = 0; tries < WAIT_MS / 20; tries++) {
        OWN_FD int fd = -1;

        if (engine_socket(en, name, AF_INET, SOCK_STREAM, &fd, &e) < 0)
            fail_msg("%s", e.msg);
        if (connect(fd, (struct sockaddr *)&at, sizeof at) == 0) {
            (void)!read(fd, got, sizeof got - 1);
            assert_string_equal(got, want);
            return;
        }
        (void)poll(NULL, 0, 20); /* it is not up yet */
    }
    fail_msg("nobody listens in '%s'", name);
}

#define SERVER(port, word)                                                                         \
    "exec python3 -c \"import socket; s = socket.create_server(('127.0.0.1', " port "));\n"        \
    "while True: s.accept()[0].sendall(b'" word "')\""

static pid_t spawner_of_keeper(void)
{
    OWN(buf_done) struct buf text = BUF_INIT(1 << 16);
    char path[64];
    struct err e;
    uint64_t first = 0;

    (void)snprintf(path, sizeof path, "/proc/%d/task/%d/children", keeper, keeper);
    assert_int_equal(fd_read_file(path, &text, &e), 0);
    for (size_t i = 0; i < text.n && text.p[i] != ' '; i++)
        first = first * 10 + (uint64_t)(text.p[i] - '0');
    return (pid_t)first; /* it was started before any sandbox */
}

static void reached(void **state)
{
    OWN_FD int control_fd = -1;
    pid_t spawner = spawner_of_keeper();
    char answer[16] = "";
    struct err e;

    (void)state;
    create((struct engine_create){ 0 }, "one", SERVER("8000", "one"));
    create((struct engine_create){ 0 }, "two", SERVER("8000", "two"));
    expect_word("one", 8000, "one");
    expect_word("two", 8000, "two");
    assert_int_equal(kill(spawner, SIGKILL), 0);
    create((struct engine_create){ .join = "one" }, "three", SERVER("8001", "three"));
    expect_word("one", 8000, "one");
    expect_word("one", 8001, "three"); /* they share a network */
    expect_word("three", 8000, "one");
    if (engine_control(en, "one", &control_fd, &e) < 0)
        fail_msg("%s", e.msg);
    assert_int_equal(
        fd_write_all(control_fd, SPAN("GET /v1/health HTTP/1.1\r\nHost: x\r\n\r\n"), &e), 0);
    assert_int_equal(fd_read_exact(control_fd, answer, 12, &e), 0);
    assert_string_equal(answer, "HTTP/1.1 200");
}

/* Code that sees the socket, through a volume, is not let in: it comes from the PID namespace that is served. */
static void control_is_the_owners(void **state)
{
    static const char script[] =
        "python3 -c \"\nimport socket, time\nwhile True:\n  s = socket.socket(socket.AF_UNIX)\n  try:\n"
        "    s.connect('/data/sandboxes/in/control.sock'); break\n  except OSError: time.sleep(0.01)\n"
        "try:\n  s.sendall(b'GET /v1/health HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n')\n"
        "  print('got', s.recv(100))\nexcept ConnectionError: print('got', b'')\n\" > /tmp/said; "
        "grep -qx \"got b''\" /tmp/said";
    const char *const command[] = { "sh", "-c", script, NULL };
    struct box_bind bind = { scratch_path(&scratch, "data"), "/data", true };
    struct box_spec box = { .name = "in",
                            .env = env,
                            .wants_range = is_ranged,
                            .binds = &bind,
                            .bind_count = 1,
                            .command = command };
    struct engine_create c = { .box = &box, .is_kept = true };
    struct engine_created made;
    struct err e;

    (void)state;
    if (engine_create(en, &c, &made, &e) < 0)
        fail_msg("%s", e.msg);
    expect_exit("in", 0);
}

/* ---- lost ---- */

static void a_keeper_that_is_killed(void **state)
{
    struct engine_swept swept;
    struct engine_info info;
    struct err e;

    (void)state;
    create((struct engine_create){ .is_kept = true }, "kept", "exec sleep 1000");
    create((struct engine_create){ 0 }, "gone", "exec sleep 1000");
    end_keeper(SIGKILL);
    assert_int_equal(try_create((struct engine_create){ 0 }, "x", NULL, &e), -1);
    assert_int_equal(e.code, ERR_UNAVAILABLE);
    assert_int_equal(engine_sweep(en, &swept, &e), 0);
    assert_true(swept.lost == 1 && swept.removed == 1);
    assert_int_equal(engine_get(en, "kept", &info, &e), 0);
    assert_true(info.status == ENGINE_LOST && info.exit_code == 137 && !info.pid);
    assert_int_equal(engine_destroy(en, "kept", &e), 0);
    assert_int_equal(scratch_count(&scratch, "data/sandboxes"), 0);
    assert_int_equal(start_keeper(), 0);
    create((struct engine_create){ 0 }, "gone", "exec sleep 1000");
}

/* For one of another build: engine_renew asks. */
static void only_an_empty_keeper_makes_room(void **state)
{
    const struct cellar_volume v = { .name = "pod.vol", .bytes = 1 << 20 };
    struct err e;

    (void)state;
    create((struct engine_create){ .is_kept = true }, "a", NULL);
    engine_renew(en);
    assert_int_equal(status_of("a"), ENGINE_RUNNING);
    assert_int_equal(engine_make_memory(en, &v, &e), 0);
    assert_int_equal(engine_destroy(en, "a", &e), 0);
    engine_renew(en);
    assert_int_equal(engine_drop_memory(en, "pod.", &e), 0); /* by the same keeper: we start none */
    engine_renew(en);
    assert_int_equal(waitpid(keeper, NULL, 0), keeper);
    assert_int_equal(start_keeper(), 0);
    create((struct engine_create){ .is_kept = true }, "a", NULL);
    assert_int_equal(engine_destroy(en, "a", &e), 0);
}

static int run_all(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(made_listed_destroyed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(commands_end, set_up, tear_down),
        cmocka_unit_test_setup_teardown(ends_with_its_command, set_up, tear_down),
        cmocka_unit_test_setup_teardown(all_is_logged_before_the_end_is_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(volumes_in_memory, set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_volume_in_memory, set_up, tear_down),
        cmocka_unit_test_setup_teardown(paused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(reached, set_up, tear_down),
        cmocka_unit_test_setup_teardown(control_is_the_owners, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_keeper_that_is_killed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(only_an_empty_keeper_makes_room, set_up, tear_down),
    };
    char who[64];

    (void)snprintf(who, sizeof who, "user %u%s", geteuid(), is_ranged ? " with a range" : "");
    return cmocka_run_group_tests_name(who, tests, NULL, NULL);
}

static int run_ranged(void)
{
    is_ranged = true;
    return run_all();
}

int main(void)
{
    int failed;

    runtime_fd = open(SILICA_RUNTIME_PATH, O_RDONLY | O_CLOEXEC);
    if (runtime_fd < 0)
        return 1;
    failed = run_all();
    if (geteuid() == 0)
        failed |= testwho_run_as_nobody(run_all) | testwho_run_as_ranged(run_ranged);
    return failed;
}
