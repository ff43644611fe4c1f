#include "node/make.h"

#include "node/limits.h"
#include "node/security.h"
#include "node/volume_memory.h"
#include "node/volumes.h"
#include "node/volumes_in_use.h"
#include "base/str.h"
#include "sandbox/sandbox.h"

#include <string.h>

#define COMMAND_MAX 8192

/* PID 1's own program, in any root. */
#define SELF "/proc/self/exe"
#define SERVER_BASE_DIR                                                                            \
    "/app" /* its root of files in the contract of Python; that of the others is the home */

struct make {
    struct node *node;
    struct crew_job job;
    make_fn done;
    void *ctx;
    char name[RUN_NAME_BYTES], join[RUN_NAME_BYTES];
    char *host_name, *cwd;
    const struct json *container; /* the Pod's, which `volumes` holds */
    struct env env;
    struct image_start start;
    struct security security;
    struct volumes_spec volumes;
    struct volume_binds binds;
    struct object *pod;
    struct notes notes;
    const char **command;
    struct box_spec box;
    struct make_result result;
};

static void make_free(struct make *m)
{
    env_done(&m->env);
    volume_binds_done(&m->binds);
    image_start_done(&m->start);
    object_unref(m->pod);
    notes_done(&m->notes);
    volumes_held_done(&m->result.held);
    free(m->command);
    free(m->host_name);
    free(m->cwd);
    free(m);
}

/* ---- on a thread ---- */

/* Its volumes as they should be, and where it sees them. */
static int prepare(struct make *m, struct engine *en, struct make_result *r)
{
    r->wait_reason = "ContainerCreating";
    r->event = "FailedMount";
    if (volume_memory_find(&m->volumes, en, &r->e) < 0 ||
        volumes_prepare(&m->volumes, NULL, &m->notes, &r->e) < 0)
        return -1;
    volumes_held_read(&m->volumes, &r->held);
    r->wait_reason = "CreateContainerConfigError";
    r->event = "Failed";
    if (volumes_binds(&m->volumes, m->container, &m->env, &m->binds, &m->notes, &r->e) < 0)
        return -1;
    m->box.binds = m->binds.v;
    m->box.bind_count = m->binds.n;
    r->wait_reason = "CreateContainerError";
    return 0;
}

/* What a lost answer left behind is the sandbox we want: its name is this attempt's. */
static void run(void *ctx, struct engine *en, const struct err *e)
{
    struct make *m = ctx;
    struct make_result *r = &m->result;
    const struct engine_create c = { .box = &m->box,
                                     .is_kept = true,
                                     .ends_with_command = true,
                                     .join = *m->join ? m->join : NULL };

    r->rc = -1;
    if (prepare(m, en, r) < 0)
        return;
    if (!en) {
        r->e = *e;
        return;
    }
    if (engine_create(en, &c, &r->made, &r->e) < 0 && r->e.code != ERR_EXISTS) {
        r->is_command = r->made.exit_code != 0;
        return;
    }
    r->rc = engine_get(en, m->name, &r->info, &r->e);
}

static void finished(void *ctx)
{
    struct make *m = ctx;

    m->result.notes = &m->notes;
    m->done(m->ctx, &m->result);
    make_free(m);
}

/* ---- what it is to be ---- */

/* A Pod says a host name, or is called like itself; a name ends where a host name must. */
static char *host_name_of(const struct object *pod)
{
    const char *given = object_text(pod, "spec.hostname");
    struct span name = span_cstr(given && *given ? given : object_name(pod));
    size_t dot = span_find(name, '.');

    return span_dup(span_slice(name, 0, MIN(dot, (size_t)63)));
}

static const struct image *image_of(struct record *r, const struct json *spec,
                                    const char **ret_reason, struct err *e)
{
    struct node *n = r->node;
    const char *name = json_cstr(json_get(spec, "image"));
    const char *policy = json_cstr(json_get(spec, "imagePullPolicy"));
    const struct image *image;
    struct err broken;

    if (images_find(n->images, name ? name : "", policy, &image, ret_reason, e) == 0)
        return image;
    /* The operator may have written it down meanwhile. */
    if (images_reload(&n->images, &broken) < 0) {
        *e = broken;
        return NULL;
    }
    return images_find(n->images, name ? name : "", policy, &image, ret_reason, e) == 0 ? image
                                                                                        : NULL;
}

const char *make_cwd(struct record *r, size_t at)
{
    const struct json *spec = record_spec(r, at);
    const char *given = json_cstr(json_get(spec, "workingDir")), *reason;
    const struct image *image;
    struct err e;

    if (given && *given)
        return given;
    image = image_of(r, spec, &reason, &e);
    return image && image->cwd ? image->cwd : BOX_HOME;
}

size_t make_server_ports(struct record *r, size_t at, uint16_t ports[MAKE_PORTS_MAX])
{
    const struct json *spec = record_spec(r, at);
    const struct image *image;
    const char *reason;
    size_t n = 0;
    struct err e;

    image = image_of(r, spec, &reason, &e);
    /* A Pod's own command in place of the server's is not asked for ours. */
    if (!image || !image->is_server || json_count(json_get(spec, "command")))
        return 0;
    for (size_t i = 0; i < image->port_count && n < MAKE_PORTS_MAX; i++)
        ports[n++] = image->ports[i];
    JSON_EACH(var, json_get(spec, "env"))
    {
        uint64_t number;

        if (n < MAKE_PORTS_MAX && span_is(json_str(json_get(var, "name")), "SANDBOX_PORT") &&
            str_u64(json_str(json_get(var, "value")), UINT16_MAX, &number) && number)
            ports[n++] = (uint16_t)number;
    }
    JSON_EACH(port, json_get(spec, "ports"))
    {
        uint64_t number;

        if (n < MAKE_PORTS_MAX && json_u64(json_get(port, "containerPort"), &number) &&
            number <= UINT16_MAX)
            ports[n++] = (uint16_t)number;
    }
    return n;
}

/* Those that may become variables, borrowed for the turn. */
static struct object **services_of(const struct record *r, size_t *ret_n)
{
    struct informer *copy = r->node->services;
    OWN(informer_walk_done) struct informer_walk w = { 0 };
    struct object *o, **v;
    size_t n = 0;

    v = own_array(informer_count_of(copy, 0, r->namespace, "") + 1, sizeof(struct object *));
    informer_walk(&w, copy, 0, r->namespace, "");
    while ((o = informer_walk_next(&w)))
        v[n++] = o;
    o = informer_get(copy, "default", "kubernetes");
    if (o && strcmp(r->namespace, "default") != 0)
        v[n++] = o;
    *ret_n = n;
    return v;
}

static int read_env(struct make *m, struct record *r, const struct json *spec,
                    const struct image *image, struct err *e)
{
    static const char *const ours[] = { "PATH=" BOX_PATH, "HOME=" BOX_HOME, "LANG=C.UTF-8",
                                        BOX_NPM };
    const char *base[LEN(ours) + 2 + 64] = { NULL };
    char host[80];
    size_t n = 0, service_count;
    struct object **services = services_of(r, &service_count);
    int rc;

    for (size_t i = 0; i < LEN(ours); i++)
        base[n++] = ours[i];
    (void)snprintf(host, sizeof host, "HOSTNAME=%s", m->host_name);
    base[n++] = host;
    for (const char *const *v = image->env; v && *v && n < LEN(base) - 1; v++)
        base[n++] = *v;
    rc = env_make(&(struct env_spec){ .downward = m->volumes.downward,
                                      .container = spec,
                                      .needs = &r->needs,
                                      .base = base,
                                      .services = services,
                                      .service_count = service_count },
                  &m->env, &m->notes, e);
    free(services);
    return rc;
}

static struct volumes_spec volumes_of(struct record *r, struct object *pod,
                                      const struct volume_owner *owner)
{
    struct node *n = r->node;

    return (struct volumes_spec){
        .dir_fd = n->dir_fd,
        .dir = n->dir,
        .downward = { .pod = pod,
                      .pod_ip = r->ip,
                      .host_ip = NODE_HOST_IP,
                      .cpu_milli = (uint64_t)sysconf(_SC_NPROCESSORS_ONLN) * 1000,
                      .memory_bytes =
                          (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) },
        .needs = &r->needs, /* the record's, whose one pass we are */
        .owner = *owner,
        .is_ranged = n->has_ids && geteuid() != 0,
    };
}

/* Files that all containers see belong to whom the first one runs as: another would take them away from it. */
int make_volumes(struct record *r, struct object *pod, struct volumes_spec *ret, struct err *e)
{
    const struct json *first = json_at(object_at(pod, "spec.containers"), 0);
    OWN(notes_done) struct notes ignored = { 0 };
    struct security s;

    if (security_make(pod, first, r->node->has_ids, &s, &ignored, e) < 0)
        return -1;
    *ret = volumes_of(r, pod, &s.owner);
    return 0;
}

/* Who it runs as, and what it sees of the Pod's volumes. */
static int read_outfit(struct make *m, struct record *r, const struct json *spec, struct err *e)
{
    m->container = spec;
    m->pod = object_ref(r->pod);
    if (security_make(m->pod, spec, r->node->has_ids, &m->security, &m->notes, e) < 0)
        return -1;
    return volumes_in_use_add(r, e) < 0 ? -1 : make_volumes(r, m->pod, &m->volumes, e);
}

/* A Pod may say by a variable how long a command of /execute may take; an option would win over it. */
static bool says_exec_timeout(const struct env *env)
{
    return env_get(env, "SANDBOX_EXEC_TIMEOUT_SECONDS").p ||
           env_get(env, "SILICA_RUNTIME_EXEC_TIMEOUT").p;
}

static bool is_blank(struct span text)
{
    while (text.n && strchr(" \t\r\n\v\f", text.p[0]))
        text = span_skip(text, 1);
    return !text.n;
}

static bool has_root_option(char **words)
{
    static const char *const names[] = { "--root", "--root-dir" };

    for (; words && *words; words++)
        EACH(name, names)
            if (span_starts(span_cstr(*words), *name) &&
                (!(*words)[strlen(*name)] || (*words)[strlen(*name)] == '='))
                return true;
    return false;
}

/* Our server has a root of files for each contract, and a volume is at one of them: so they are one directory, unless the
 * Pod says where files are. */
static const char *home_alias_of(const struct make *m, const struct image *image)
{
    if (!m->start.is_server || strcmp(image->root, "host") != 0 ||
        has_root_option(m->start.options) || env_get(&m->env, "SILICA_RUNTIME_ROOT").p ||
        !is_blank(env_get(&m->env, "SANDBOX_BASE_DIR")))
        return NULL;
    return SERVER_BASE_DIR;
}

/* The words that PID 1 is to run. */
static void set_command(struct make *m)
{
    size_t n = 0, words = 0;
    char **given = m->start.is_server ? m->start.options : m->start.command;

    while (given && given[words])
        words++;
    m->command = own_array(words + 4, sizeof *m->command);
    if (m->start.is_server)
        m->command[n++] = SELF;
    if (m->start.is_server && !says_exec_timeout(&m->env)) {
        m->command[n++] = "--exec-timeout";
        m->command[n++] = NODE_EXEC_TIMEOUT;
    }
    for (size_t i = 0; i < words; i++)
        m->command[n++] = given[i];
    m->box.command = m->command;
}

static void set_join(struct make *m, const struct record *r)
{
    size_t at = record_running(r);

    if (at != SIZE_MAX)
        record_box(r, at, r->life.v[at].now.attempt, m->join);
}

/* The API gives every container one; its last words are read there. */
static const char *message_path_of(const struct json *spec)
{
    const char *path = json_cstr(json_get(spec, "terminationMessagePath"));

    return path && *path ? path : BOX_MESSAGE_PATH;
}

int make_start(struct record *r, size_t at, make_fn done, void *ctx, const char **ret_reason,
               struct err *e)
{
    const struct json *spec = record_spec(r, at);
    struct make *m = NEW(struct make);
    const struct image *image;

    m->node = r->node;
    m->done = done;
    m->ctx = ctx;
    record_box(r, at, r->life.v[at].now.attempt, m->name);
    m->host_name = host_name_of(r->pod);
    m->cwd = own_strdup(make_cwd(r, at));
    *ret_reason = "InvalidImageName";
    image = image_of(r, spec, ret_reason, e);
    if (!image)
        goto failed;
    *ret_reason = "CreateContainerConfigError";
    if (read_outfit(m, r, spec, e) < 0 || read_env(m, r, spec, image, e) < 0 ||
        image_start_make(image, spec, &m->env, &m->start, &m->notes, e) < 0)
        goto failed;
    m->box = (struct box_spec){ .name = m->name,
                                .host_name = m->host_name,
                                .env = m->env.v,
                                .cwd = m->cwd,
                                .makes_cwd = true,
                                .home_alias = home_alias_of(m, image),
                                .message_path = message_path_of(spec),
                                .uid = m->security.uid,
                                .gid = m->security.gid,
                                .wants_range = r->node->has_ids,
                                .root_bytes = m->security.root_bytes,
                                .is_read_only = m->security.is_read_only,
                                .limits = m->security.limits,
                                .defaults = r->node->limits,
                                .is_best_effort = true,
                                .runtime_args = sandbox_runtime_args };
    memcpy(m->box.groups, m->security.groups, sizeof m->box.groups);
    m->box.group_count = m->security.group_count;
    set_command(m);
    set_join(m, r);
    m->result.is_server = m->start.is_server;
    crew_submit(r->node->crew, &m->job, run, finished, m);
    return 0;
failed:
    make_free(m);
    return -1;
}
