/* silica status: what runs, how full the pools are, and what protects the sandboxes. */
#include "cli/command.h"

#include "base/fd.h"
#include "cli/facts.h"
#include "cli/status_seen.h"
#include "isolate/cgroup_parent.h"
#include "isolate/engine.h"
#include "node/project_quota.h"
#include "node/run.h"
#include "up/place.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

struct status_options {
    const char *data, *output;
    bool is_help;
};

#define AT_FIELD(field) offsetof(struct status_options, field)

/* clang-format off */
static const struct opt opts[] = {
    { "--output", NULL, OPT_STR, AT_FIELD(output), "text", 0, 0, "FORMAT", "text or json", NULL, 'o' },
    { "--data", "SILICA_DATA", OPT_STR, AT_FIELD(data), NULL, 0, 0, "DIR", "the data directory it was started with" },
    COMMAND_HELP(AT_FIELD(is_help), NULL),
};
/* clang-format on */

const struct opt_program status_program = {
    .name = "silica status",
    .usage = "[-o json] [--data DIR]",
    .example = "silica status",
    .opts = opts,
    .opt_count = LEN(opts),
    .epilog = "Exit status: 0 when it is up and all parts serve, 1 when a part does not,\n"
              "3 when it is not up, 4 when there are problems that waiting does not heal.",
};

/* ---- the sandboxes ---- */

/* What is nobody's option: it holds for every sandbox of this design. */
static void add_network(struct facts *f)
{
    (void)facts_add(f, "egress", HOLDS, "nothing leaves a sandbox: it has a network of its own");
    fact_advise(facts_add(f, "ingress", LACKS,
                          "policies of ingress do not hold at the 127.x addresses of Pods"),
                "who connects there must be this account, whatever a policy says");
}

/* frozen: so many sandboxes of Pods stand still, for want of room. */
static void add_volumes(const char *data, size_t frozen, struct facts *f)
{
    OWN_FD int fd = data ? open(data, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

    (void)facts_add(f, "volumes", HOLDS,
                    "%s; a Pod that grows one past its size is frozen and evicted",
                    fd >= 0 && project_quota_is_there(fd)
                        ? "sizes are quotas of the file system, and measured"
                        : "sizes are measured: this file system has no project quotas for us");
    if (frozen)
        fact_advise(facts_add(f, "disk", LACKS,
                              "it is nearly full: %zu sandboxes of Pods stand still", frozen),
                    "make room on it; `kubectl describe pod` has the Event DiskPressure");
}

/* What all sandboxes may take together. */
static void add_total(struct facts *f, const char *path)
{
    OWN(dir_done) struct dir dir = DIR_INIT;
    struct cgroup_parent p;
    struct err e;

    if (dir_open(&dir, path, false, &e) < 0 || cgroup_parent_read(dir.fd, &p, &e) < 0) {
        if (e.code != ERR_NOT_FOUND)
            (void)facts_add_err(f, "total limits", LACKS, &e);
        return; /* no keeper: there are none */
    }
    if (*p.unenforced)
        fact_advise(facts_add(f, "total limits", LACKS,
                              "for all sandboxes together cannot be enforced: %s", p.unenforced),
                    "`silica doctor` says what to do");
    else
        (void)facts_add(
            f, "total limits", HOLDS, "all sandboxes together: %llu MiB of memory, %llu processes",
            (unsigned long long)p.limits.memory_bytes >> 20, (unsigned long long)p.limits.pids);
}

/* Looks at one that runs, and at what was left out of each. */
static int look(const char *dir, size_t *ret_running, struct facts *f, struct err *e)
{
    struct engine *en = NULL;
    OWN_MEM struct engine_info *v = NULL;
    const struct engine_info *first = NULL, *lacking = NULL;
    struct run_id id;
    size_t n = 0, frozen = 0;
    bool is_other;
    int rc = engine_open(&(struct engine_spec){ .dir = dir }, &en, e);

    if (rc == 0)
        rc = engine_list(en, &v, &n, e);
    is_other = rc == 0 && engine_keeper_is_other(en);
    engine_close(en);
    if (rc < 0)
        return -1;
    *ret_running = 0;
    for (size_t i = 0; i < n; i++) {
        if (v[i].status != ENGINE_RUNNING && v[i].status != ENGINE_PAUSED)
            continue;
        (*ret_running)++;
        frozen += v[i].status == ENGINE_PAUSED && run_read(v[i].name, &id);
        first = first ? first : &v[i];
        lacking = !lacking && *v[i].unenforced ? &v[i] : lacking;
    }
    if (n && is_other)
        fact_advise(facts_add(f, "keeper", LACKS,
                              "one of another build keeps the sandboxes, and makes new ones; "
                              "`silica down --sandboxes`, then `silica up`, replaces it"),
                    "`silica down --sandboxes`, then `silica up`");
    facts_of_host(f);
    add_total(f, dir);
    if (first)
        facts_of_process(f, first->pid);
    if (lacking)
        fact_advise(facts_add(f, "limits", LACKS, "%s cannot be enforced, as for '%s'",
                              lacking->unenforced, lacking->name),
                    "`silica doctor` says what to do");
    add_network(f);
    add_volumes(dir, frozen, f);
    return 0;
}

static int show_sandboxes(const char *dir, struct json_out *out, struct err *e)
{
    struct facts facts = { 0 };
    size_t running;

    if (look(dir, &running, &facts, e) < 0)
        return -1;
    if (out) {
        json_out_key(out, "sandboxes"), json_out_u64(out, running);
        json_out_key(out, "protections"), facts_write(&facts, out);
        return 0;
    }
    printf("sandboxes %zu\n", running);
    for (size_t i = 0; i < facts.n; i++)
        printf("%-9s %s: %s\n", verdict_name(facts.v[i].verdict), facts.v[i].name, facts.v[i].text);
    return 0;
}

/* ---- what runs ---- */

static bool is_serving(const struct json *part)
{
    return span_is(json_str(json_get(part, "state")), "serving");
}

static bool all_serve(const struct place_info *info)
{
    JSON_EACH(part, info->parts)
    {
        if (!is_serving(part))
            return false;
    }
    return true;
}

static int show_text(const struct place_info *info, const char *dir, struct seen *s, struct err *e)
{
    int64_t started = 0;

    (void)json_i64(json_get(json_doc_root(info->doc), "started"), &started);
    printf("silica %s is up since %lld s, process %d\n",
           json_cstr(json_get(json_doc_root(info->doc), "version")),
           (long long)(time(NULL) - started), (int)info->pid);
    printf("API       https://%s\n", info->listen);
    if (info->router)
        printf("router    %s\n", info->router);
    printf("config    %s\n", info->kubeconfig);
    JSON_EACH(part, info->parts)
    {
        int64_t pid = 0, restarts = 0;

        (void)json_i64(json_get(part, "pid"), &pid);
        (void)json_i64(json_get(part, "restarts"), &restarts);
        printf("part      %s: %s, process %lld, %lld restarts\n", json_cstr(json_get(part, "name")),
               json_cstr(json_get(part, "state")), (long long)pid, (long long)restarts);
    }
    (void)fflush(stdout);
    if (seen_ask(s, info, dir, e) < 0)
        return -1;
    return show_sandboxes(dir, NULL, e);
}

static int show_json(const struct place_info *info, const char *dir, struct seen *s, struct err *e)
{
    OWN(buf_done) struct buf text = BUF_INIT(1 << 20);
    struct json_out out;

    json_out_init(&out, &text, 0);
    json_out_object_begin(&out);
    JSON_MEMBERS(name, value, json_doc_root(info->doc))
    {
        json_out_key_span(&out, json_str(name)), json_out_value(&out, value);
    }
    s->out = &out;
    if (seen_ask(s, info, dir, e) < 0 || show_sandboxes(dir, &out, e) < 0)
        return -1;
    json_out_object_end(&out);
    if (json_out_end(&out, e) < 0 || buf_addc(&text, '\n', e) < 0)
        return -1;
    return fd_write_all(1, buf_span(&text), e);
}

int status_command(int argc, char **argv)
{
    OWN(place_done) struct place place = PLACE_INIT;
    OWN(place_info_done) struct place_info info = { 0 };
    OWN(seen_done) struct seen seen = SEEN_INIT;
    struct status_options o = { 0 };
    bool is_json;
    struct err e;
    int code = command_parse(&status_program, argc, argv, &o, NULL);

    if (code != COMMAND_GOES_ON)
        return code;
    if (command_choice("--output", o.output, "text", "json", &is_json, &e) < 0)
        return command_fail(&e, EXIT_USAGE);
    if (place_open(&place, o.data, false, &e) < 0 || place_read(&place, &info, &e) < 0)
        return command_fail_up(&e);
    if ((is_json ? show_json(&info, place.path, &seen, &e)
                 : show_text(&info, place.path, &seen, &e)) < 0)
        return command_fail(&e, EXIT_FAILED);
    if (!all_serve(&info))
        return EXIT_NO;
    return seen.problems ? EXIT_PROBLEMS : 0;
}
