/* boxes: what sandboxes cost a program that stays up and calls the engine itself.
 *
 *     boxes run RUNS RUNTIME             make one, run /bin/true in it to its end, end it; then the time to a first output.
 *                                        What has ended is removed in the next one's time, as a server does: dying takes a while
 *     boxes exec RUNS RUNTIME            /bin/true in one that runs already
 *     boxes pause RUNS RUNTIME           hold all of one, and let it go on
 *     boxes density COUNT SILICA DIR     COUNT idle ones, kept by `SILICA keeper` with its data in DIR, then removed
 *
 * RUNTIME is silica-runtime. Each prints one line of JSON; times are medians in us. */
#include "bench/measure.h"

#include "base/fd.h"
#include "base/str.h"
#include "ev/loop.h"
#include "isolate/engine.h"
#include "isolate/yard.h"
#include "sandbox/sandbox.h"

#include <dirent.h>
#include <fcntl.h>

#define RUNS_MAX  10000
#define EDGE      50 /* how many creations at either end are compared */
#define MIN_RUNS  10
#define WARM_RUNS 5

static struct yard *yard; /* beside us, as a server has it */

static const char *const env[] = { "PATH=" BOX_PATH, "HOME=" BOX_HOME, NULL };

static void must_err(int rc, const struct err *e)
{
    if (rc == 0)
        return;
    fprintf(stderr, "boxes: %s\n", e->msg);
    exit(1);
}

static double median_us(int64_t *values, size_t n)
{
    sort_values(values, n);
    return percentile_us(values, n, 0.5);
}

/* ---- one command ---- */

struct ended {
    struct ev_loop *loop;
    int64_t output_ns; /* when the first came; 0: none */
    int code;
};

static void on_started(void *ctx)
{
    (void)ctx;
}

static void on_output(void *ctx, enum sandbox_output which, struct span piece)
{
    struct ended *x = ctx;

    (void)which, (void)piece;
    if (!x->output_ns)
        x->output_ns = now_ns();
}

static void on_drain(void *ctx, bool is_open)
{
    (void)ctx, (void)is_open;
}

static void on_exit_of(void *ctx, int code, const struct err *e)
{
    struct ended *x = ctx;

    x->code = e ? 255 : code;
    ev_loop_stop(x->loop);
}

static struct ended run_command(struct sandbox *s, const char *program, const char *arg)
{
    static const struct sandbox_exec_events events = { on_started, on_output, on_drain,
                                                       on_exit_of };
    struct ended x = { .loop = sandbox_loop(s) };
    char *argv[] = { (char *)(uintptr_t)program, (char *)(uintptr_t)arg, NULL };
    struct sandbox_exec_spec spec = { .argv = argv, .events = &events, .ctx = &x };
    struct sandbox_exec *exec;
    struct err e;

    must_err(sandbox_exec(s, &spec, &exec, &e), &e);
    ev_loop_run(x.loop);
    must(x.code == 0, program);
    return x;
}

/* ---- boxes of our own ---- */

/* The program once for all, as a server has it. */
static int seal(const char *path)
{
    OWN(buf_done) struct buf bytes = BUF_INIT(64 << 20);
    struct err e;
    int fd = fd_open_program("silica-runtime", &e);

    must(fd >= 0, "a file in memory");
    must_err(fd_read_file(path, &bytes, &e), &e);
    must_err(fd_write_all(fd, buf_span(&bytes), &e), &e);
    must_err(fd_seal_program(fd, &e), &e);
    return fd;
}

static struct box *start(int runtime_fd, bool is_brief)
{
    struct box_spec spec = { .name = "bench",
                             .env = env,
                             .uid = 1000,
                             .gid = 1000,
                             .is_brief = is_brief,
                             .runtime_fd = runtime_fd,
                             .runtime_args = sandbox_runtime_args,
                             .yard = yard };
    struct box *b;
    struct err e;

    must_err(box_start(&spec, &b, &e), &e);
    return b;
}

static struct sandbox *open_box(struct ev_loop *loop, struct box *b)
{
    struct sandbox *s;
    struct err e;

    must_err(sandbox_open(loop, box_take_control(b), &s, &e), &e);
    return s;
}

/* It still has to be freed. */
static void end_box(struct ev_loop *loop, struct sandbox *s, struct box *b)
{
    struct err e;

    must_err(box_end(b, &e),
             &e); /* first: it dies while we let go of it, and what is posted needs no answer */
    sandbox_close(s);
    ev_loop_turn(loop);
    ev_loop_turn(loop);
}

static void close_box(struct ev_loop *loop, struct sandbox *s, struct box *b)
{
    end_box(loop, s, b);
    box_free(b); /* when it is gone */
}

static void run_mode(struct ev_loop *loop, int runtime_fd, size_t runs)
{
    static int64_t total[RUNS_MAX], made[RUNS_MAX], output[RUNS_MAX];
    struct box *before = NULL; /* it has ended */

    for (size_t i = 0; i < runs + WARM_RUNS; i++) {
        size_t at = i < WARM_RUNS ? 0 : i - WARM_RUNS;
        int64_t began = now_ns();
        struct box *b = start(runtime_fd, true);
        struct sandbox *s = open_box(loop, b);

        made[at] = now_ns() - began;
        box_free(before);
        before = b;
        (void)run_command(s, "/bin/true", NULL);
        end_box(loop, s, b);
        total[at] = now_ns() - began;
        began = now_ns();
        b = start(runtime_fd, true);
        s = open_box(loop, b);
        output[at] = run_command(s, "/bin/echo", "x").output_ns - began;
        box_free(before);
        before = b;
        end_box(loop, s, b);
    }
    box_free(before);
    printf("{\"runs\":%zu,\"median_us\":%.0f,\"made_us\":%.0f,\"output_us\":%.0f}\n", runs,
           median_us(total, runs), median_us(made, runs), median_us(output, runs));
}

static void exec_mode(struct ev_loop *loop, int runtime_fd, size_t runs)
{
    static int64_t took[RUNS_MAX];
    struct box *b = start(runtime_fd, false);
    struct sandbox *s = open_box(loop, b);

    for (size_t i = 0; i < runs + WARM_RUNS; i++) {
        int64_t began = now_ns();

        (void)run_command(s, "/bin/true", NULL);
        took[i < WARM_RUNS ? 0 : i - WARM_RUNS] = now_ns() - began;
    }
    close_box(loop, s, b);
    printf("{\"runs\":%zu,\"median_us\":%.0f}\n", runs, median_us(took, runs));
}

static void pause_mode(struct ev_loop *loop, int runtime_fd, size_t runs)
{
    static int64_t held[RUNS_MAX], released[RUNS_MAX];
    struct box *b = start(runtime_fd, false);
    struct sandbox *s = open_box(loop, b);
    struct err e;

    (void)run_command(s, "/bin/true", NULL);
    for (size_t i = 0; i < runs; i++) {
        int64_t began = now_ns();

        must_err(box_pause(b, &e), &e);
        held[i] = now_ns() - began;
        began = now_ns();
        must_err(box_resume(b, &e), &e);
        released[i] = now_ns() - began;
    }
    (void)run_command(s, "/bin/true", NULL); /* it does go on */
    close_box(loop, s, b);
    printf("{\"runs\":%zu,\"pause_us\":%.0f,\"resume_us\":%.0f}\n", runs, median_us(held, runs),
           median_us(released, runs));
}

/* ---- many, kept ---- */

static uint64_t available_kib(void)
{
    OWN(buf_done) struct buf text = BUF_INIT(1 << 16);
    struct span rest, line;
    uint64_t kib = 0;
    struct err e;

    must_err(fd_read_file("/proc/meminfo", &text, &e), &e);
    for (rest = buf_span(&text); span_cut(&rest, '\n', &line);)
        if (span_starts(line, "MemAvailable:")) {
            line = span_trim(span_skip(line, sizeof "MemAvailable:" - 1));
            line.n -= MIN(line.n, sizeof " kB" - 1);
            must(str_u64(line, UINT64_MAX, &kib), "MemAvailable");
        }
    return kib;
}

static size_t entries(pid_t pid, const char *what)
{
    char path[64];
    size_t n = 0;
    DIR *dir;

    (void)snprintf(path, sizeof path, "/proc/%d/%s", pid, what);
    dir = opendir(path);
    while (dir && readdir(dir))
        n++;
    if (dir)
        closedir(dir);
    return n > 2 ? n - 2 : 0;
}

/* The parent of a PID 1, and the one beside it that makes them: what the host has for all of them. */
static void keepers_of(pid_t pid, pid_t ret[2])
{
    OWN(buf_done) struct buf text = BUF_INIT(1 << 20);
    struct span rest, word;
    char path[64];
    struct err e;
    uint64_t number = 0;

    (void)snprintf(path, sizeof path, "/proc/%d/stat", pid);
    must_err(fd_read_file(path, &text, &e), &e);
    rest = buf_span(&text);
    while (rest.n && rest.p[0] != ')')
        rest = span_skip(rest, 1);
    rest = span_skip(rest, 4); /* ") S " */
    must(span_cut(&rest, ' ', &word) && str_u64(word, INT32_MAX, &number), "the keeper");
    ret[0] = (pid_t)number;
    ret[1] = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/task/%d/children", ret[0], ret[0]);
    buf_clear(&text);
    must_err(fd_read_file(path, &text, &e), &e);
    rest = buf_span(&text);
    if (span_cut(&rest, ' ', &word) && str_u64(word, INT32_MAX, &number))
        ret[1] = (pid_t)number; /* its first child */
}

struct held {
    size_t descriptors, tasks;
};

static struct held held_by(const pid_t keepers[2])
{
    return (struct held){ entries(keepers[0], "fd") + entries(keepers[1], "fd"),
                          entries(keepers[0], "task") + entries(keepers[1], "task") };
}

static struct {
    struct engine *en;
    size_t made; /* they are removed however we end */
} many;

static void destroy_all(void)
{
    struct err e;

    for (; many.made; many.made--) {
        char name[32];

        (void)snprintf(name, sizeof name, "idle-%zu", many.made - 1);
        if (engine_destroy(many.en, name, &e) < 0 && e.code != ERR_NOT_FOUND)
            fprintf(stderr, "boxes: %s\n", e.msg);
    }
}

static void create(void)
{
    char name[32];
    const struct box_spec box = {
        .name = name, .env = env, .uid = 1000, .gid = 1000, .runtime_args = sandbox_runtime_args
    };
    struct engine_create c = { .box = &box, .is_kept = true };
    struct engine_created made;
    struct err e;

    (void)snprintf(name, sizeof name, "idle-%zu", many.made++);
    must_err(engine_create(many.en, &c, &made, &e), &e);
}

static void look_at_tasks(size_t *ret_tasks, size_t *ret_alive)
{
    OWN_MEM struct engine_info *list = NULL;
    struct err e;
    size_t n;

    must_err(engine_list(many.en, &list, &n, &e), &e);
    *ret_tasks = *ret_alive = 0;
    for (size_t i = 0; i < n; i++) {
        *ret_tasks += entries(list[i].pid, "task");
        *ret_alive += list[i].status == ENGINE_RUNNING;
    }
}

static void density_mode(const char *silica, const char *dir, size_t count)
{
    static int64_t took[RUNS_MAX];
    struct engine_spec spec = { .dir = dir, .starts_keeper = true, .program = silica };
    struct engine_info first;
    struct held before, after;
    uint64_t kib_before, kib_after;
    size_t tasks, alive;
    pid_t keepers[2];
    struct err e;

    must_err(engine_open(&spec, &many.en, &e), &e);
    must(atexit(destroy_all) == 0, "atexit");
    create();
    must_err(engine_get(many.en, "idle-0", &first, &e), &e);
    keepers_of(first.pid, keepers);
    before = held_by(keepers);
    kib_before = available_kib();
    for (size_t i = 0; i < count; i++) {
        int64_t began = now_ns();

        create();
        took[i] = now_ns() - began;
    }
    kib_after = available_kib();
    after = held_by(keepers);
    look_at_tasks(&tasks, &alive);
    must(alive == count + 1, "some have ended");
    printf("{\"count\":%zu,\"first_us\":%.0f,", count, median_us(took, EDGE));
    printf("\"last_us\":%.0f,\"kib_each\":%.1f,", median_us(took + count - EDGE, EDGE),
           ((double)kib_before - (double)kib_after) / (double)count);
    printf("\"descriptors_each\":%.2f,\"tasks_each\":%.2f}\n",
           ((double)after.descriptors - (double)before.descriptors) / (double)count,
           (double)tasks / (double)(count + 1) +
               ((double)after.tasks - (double)before.tasks) / (double)count);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    struct ev_loop *loop;
    struct err e;
    size_t n;
    int fd;

    if (argc != (strcmp(mode, "density") == 0 ? 5 : 4)) {
        fprintf(stderr,
                "usage: boxes run|exec|pause RUNS RUNTIME, boxes density COUNT SILICA DIR\n");
        return 2;
    }
    n = (size_t)number(argv[2], "a number");
    must(n >= MIN_RUNS && n <= RUNS_MAX, "from 10 to 10,000");
    if (strcmp(mode, "density") == 0) {
        must(n >= 2 * EDGE, "too few to compare");
        density_mode(argv[3], argv[4], n);
        return 0;
    }
    must_err(yard_open(&yard, &e), &e);
    fd = seal(argv[3]);
    must_err(ev_loop_new(&loop, &e), &e);
    if (strcmp(mode, "run") == 0)
        run_mode(loop, fd, n);
    else if (strcmp(mode, "exec") == 0)
        exec_mode(loop, fd, n);
    else
        pause_mode(loop, fd, n);
    yard_close(yard);
    return 0;
}
