#include "cli/facts.h"

#include "base/fd.h"
#include "base/str.h"
#include "isolate/confine.h"
#include "isolate/id_range.h"
#include "isolate/ranged.h"
#include "isolate/userns.h"

#include <stdarg.h>

#define STATUS_MAX_BYTES 8192 /* /proc/PID/status has about 1,500 */

struct fact *facts_add(struct facts *f, const char *name, enum verdict verdict, const char *fmt,
                       ...)
{
    struct fact *row = &f->v[f->n++];
    va_list ap;

    assert(f->n <= FACTS_MAX);
    *row = (struct fact){ .name = name, .verdict = verdict };
    va_start(ap, fmt);
    (void)vsnprintf(row->text, sizeof row->text, fmt, ap);
    va_end(ap);
    return row;
}

void fact_advise(struct fact *f, const char *hint)
{
    (void)snprintf(f->hint, sizeof f->hint, "%s", hint);
}

struct fact *facts_add_err(struct facts *f, const char *name, enum verdict verdict,
                           const struct err *e)
{
    struct fact *row = facts_add(f, name, verdict, "%.190s", e->msg);

    fact_advise(row, e->hint);
    return row;
}

/* ---- what holds for PID 1 of a sandbox, as the kernel tells it ---- */

static bool status_has(struct span status, const char *want)
{
    struct span line;

    while (span_cut(&status, '\n', &line))
        if (span_is(line, want))
            return true;
    return false;
}

void facts_of_process(struct facts *f, pid_t pid)
{
    static const struct {
        const char *name, *line, *yes, *no;
    } rows[] = {
        { "seccomp", "Seccomp:\t2", "an allow-list of system calls is on",
          "no filter of system calls" },
        { "no_new_privs", "NoNewPrivs:\t1", "nothing inside gains rights by exec",
          "exec may give rights" },
        { "capabilities", "CapBnd:\t0000000000000000", "none, and none to be had",
          "the bounding set is not empty" },
    };
    OWN(buf_done) struct buf status = BUF_INIT(STATUS_MAX_BYTES);
    char path[64];
    struct err e;

    (void)snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    if (fd_read_file(path, &status, &e) < 0) {
        (void)facts_add_err(f, "PID 1", BROKEN, &e);
        return;
    }
    EACH(row, rows) {
        bool holds = status_has(buf_span(&status), row->line);

        (void)facts_add(f, row->name, holds ? HOLDS : BROKEN, "%s", holds ? row->yes : row->no);
    }
}

/* ---- what the host has ---- */

static void look_at_ids(struct facts *f)
{
    uint32_t base = 0;
    struct err e;

    if (id_range_take(id_ranges_of_machine(), "doctor", 1000, &base, &e) < 0)
        (void)facts_add_err(f, "ids", BROKEN, &e);
    else if (!base)
        (void)facts_add(f, "ids", HOLDS, "one: who the command is inside is you outside");
    else
        (void)facts_add(f, "ids", HOLDS, "%u of its own for each sandbox", IDS_COUNT);
    id_range_release(id_ranges_of_machine(), base);
}

/* What an account has besides itself. */
static void look_at_range(struct facts *f)
{
    struct err e;

    if (geteuid() == 0)
        return;
    if (ranged_check(&e) == 0)
        (void)facts_add(f, "range", HOLDS,
                        "ids of /etc/subuid for `silica run --range`, and for Pods");
    else
        (void)facts_add_err(f, "range", LACKS, &e);
}

static void look_at_landlock(struct facts *f)
{
    int abi = confine_landlock_abi();

    if (abi >= CONFINE_LANDLOCK_FLOOR) {
        (void)facts_add(f, "landlock", HOLDS, "ABI %d: paths are fenced a second time", abi);
        return;
    }
    fact_advise(facts_add(f, "landlock", LACKS,
                          "ABI %d, at least %d is wanted: the mounts alone fence paths", abi,
                          CONFINE_LANDLOCK_FLOOR),
                "Linux 5.19 or later with landlock among the lsm= of its command line");
}

void facts_of_host(struct facts *f)
{
    look_at_ids(f);
    look_at_range(f);
    look_at_landlock(f);
}

/* ---- what is said ---- */

bool facts_are_broken(const struct facts *f)
{
    for (size_t i = 0; i < f->n; i++)
        if (f->v[i].verdict == BROKEN)
            return true;
    return false;
}

const char *verdict_name(enum verdict v)
{
    static const char *const words[] = { "ok", "lacks", "broken" };

    return words[v];
}

void facts_write(const struct facts *f, struct json_out *out)
{
    json_out_array_begin(out);
    for (size_t i = 0; i < f->n; i++) {
        const struct fact *row = &f->v[i];

        json_out_object_begin(out);
        json_out_key(out, "name"), json_out_cstr(out, row->name);
        json_out_key(out, "verdict"), json_out_cstr(out, verdict_name(row->verdict));
        json_out_key(out, "text"), json_out_cstr(out, row->text);
        json_out_key(out, "hint"), json_out_cstr(out, row->hint);
        json_out_object_end(out);
    }
    json_out_array_end(out);
}
