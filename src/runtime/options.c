#include "runtime/options.h"

#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "runtime/exec/exec.h"

#define TOKEN_MAX_BYTES 4096 /* far above any key; a larger file is a mistake */

#define AT(field) offsetof(struct runtime_options, field)

/* clang-format off */
static const struct opt opts[] = {
    /* flag, environment, kind, field, default, min, max, argument, help, heading above it */
    { "--listen", "SILICA_RUNTIME_LISTEN", OPT_LIST, AT(listen), NULL, 0, 0, "HOST:PORT", "serve here; may be repeated; port 0 picks a free one", "Serving" },
    { "--root", "SILICA_RUNTIME_ROOT", OPT_STR, AT(root), NULL, 0, 0, "DIR", "root of all paths and directory of all commands; made if missing" },
    { "--root-dir", NULL, OPT_STR, AT(root), NULL, 0, 0, "DIR", NULL },
    { "--token", "SANDBOX_EXEC_TOKEN", OPT_STR, AT(token), NULL, 0, 0, "SECRET", "ask for this token on every route but the health ones" },
    { "--token-file", "SILICA_RUNTIME_TOKEN_FILE", OPT_STR, AT(token_file), NULL, 0, 0, "FILE", "read the token from a file instead" },
    { "--allow-origin", "SILICA_RUNTIME_ALLOW_ORIGIN", OPT_LIST, AT(allow_origin), NULL, 0, 0, "ORIGIN", "accept this Origin besides our own; may be repeated; '*' for any" },
    { "--allow-host", "SILICA_RUNTIME_ALLOW_HOST", OPT_LIST, AT(allow_host), NULL, 0, 0, "HOST", "accept this Host where only local ones are; may be repeated" },
    { "--cluster-domain", "SILICA_RUNTIME_CLUSTER_DOMAIN", OPT_STR, AT(cluster_domain), "cluster.local", 0, 0, "NAME", "what names of Services end in: local Hosts" },
    { "--ready-fd", NULL, OPT_U64, AT(ready_fd), NULL, 0, 65535, "N", "write one JSON line to this descriptor when serving" },
    { "--control-fd", NULL, OPT_U64, AT(control_fd), NULL, 0, 65535, "N", "serve on this inherited socket and nowhere else" },
    { "--status-fd", NULL, OPT_U64, AT(status_fd), NULL, 0, 65535, "N", NULL },
    { "--message-file", NULL, OPT_STR, AT(message_file), NULL, 0, 0, "FILE", NULL },
    { "--stay", NULL, OPT_BOOL, AT(is_staying), NULL, 0, 0, NULL, NULL },
    { "--exec-timeout", "SILICA_RUNTIME_EXEC_TIMEOUT", OPT_MS, AT(exec_timeout_ms), "300s", 1, 0, "TIME", "end an /execute command after this long", "Commands" },
    { "--max-timeout", "SILICA_RUNTIME_MAX_TIMEOUT", OPT_MS, AT(max_timeout_ms), "24h", 1, 0, "TIME", "the longest time an /exec request may ask for" },
    { "--output-limit", "SILICA_RUNTIME_OUTPUT_LIMIT", OPT_BYTES, AT(output_limit), "8MiB", 1024, 1 << 30, "SIZE", "kept of each output of /execute; a cut is reported" },
    { "--grpc-output-limit", "SILICA_RUNTIME_GRPC_OUTPUT_LIMIT", OPT_BYTES, AT(grpc_output_limit), "4032KiB", 1024, 1 << 30, "SIZE", "kept of both outputs of Execute; clients take 4 MiB" },
    { "--exec-output-limit", "SILICA_RUNTIME_EXEC_OUTPUT_LIMIT", OPT_BYTES, AT(pydantic_output_limit), "100000", 1, 1 << 30, "SIZE", "kept of the output of /exec" },
    { "--stream-chunk-size", "SILICA_RUNTIME_STREAM_CHUNK_SIZE", OPT_U64, AT(chunk_size), "4096", 0, 1 << 20, "BYTES", "largest piece of the output that Start streams" },
    { "--max-commands", "SILICA_RUNTIME_MAX_COMMANDS", OPT_U64, AT(max_commands), "1024", 1, 100000, "N", "commands at once; more wait their turn" },
    { "--max-connections", "SILICA_RUNTIME_MAX_CONNECTIONS", OPT_U64, AT(max_connections), "16384", 1, 1000000, "N", "connections at once; more are closed", "Connections" },
    { "--http-idle-timeout", "SILICA_RUNTIME_HTTP_IDLE_TIMEOUT", OPT_MS, AT(idle_timeout_ms), "60s", 1, 0, "TIME", "close a connection without requests after this long" },
    { "--stall-timeout", "SILICA_RUNTIME_STALL_TIMEOUT", OPT_MS, AT(stall_timeout_ms), "60s", 1, 0, "TIME", "give up a transfer that stands still for this long" },
    { "--shutdown-timeout", "SILICA_RUNTIME_SHUTDOWN_TIMEOUT", OPT_MS, AT(shutdown_timeout_ms), "10s", 0, 0, "TIME", "the longest a graceful stop may take" },
    { "--listen-host", "SILICA_RUNTIME_LISTEN_HOST", OPT_STR, AT(listen_host), NULL, 0, 0, "HOST", "address of the ports below; without --listen", "In place of another server" },
    { "--rest-port", "SILICA_RUNTIME_REST_PORT", OPT_U64, AT(rest_port), "8080", 1, 65535, "PORT", "the first port of sandboxd" },
    { "--grpc-port", "SILICA_RUNTIME_GRPC_PORT", OPT_U64, AT(grpc_port), "9090", 1, 65535, "PORT", "its second port; both serve everything" },
    { "--sandbox-port", "SANDBOX_PORT", OPT_U64, AT(sandbox_port), NULL, 1, 65535, "PORT", "the one port to listen on instead of the default three" },
    { "--metadata-env-prefix", "SILICA_RUNTIME_METADATA_ENV_PREFIX", OPT_STR, AT(metadata_prefix), "SANDBOX_", 0, 0, "PREFIX", "variables that /v1/metadata shows begin so" },
    { "--zap-log-level", NULL, OPT_STR, AT(zap_log_level), NULL, 0, 0, "LEVEL", NULL },
    { "--zap-devel", NULL, OPT_BOOL, AT(zap_ignored_flag), NULL, 0, 0, NULL, NULL },
    { "--zap-encoder", NULL, OPT_STR, AT(zap_ignored), NULL, 0, 0, "NAME", NULL },
    { "--zap-stacktrace-level", NULL, OPT_STR, AT(zap_ignored), NULL, 0, 0, "LEVEL", NULL },
    { "--zap-time-encoding", NULL, OPT_STR, AT(zap_ignored), NULL, 0, 0, "NAME", NULL },
    { "--log-level", "SILICA_LOG_LEVEL", OPT_STR, AT(log_level), "info", 0, 0, "LEVEL", "how much to log: debug, info, warn, error or off", "Logs and help" },
    { "--log-format", "SILICA_LOG_FORMAT", OPT_STR, AT(log_format), "text", 0, 0, "FORMAT", "how to log: text or json" },
    { "--install", NULL, OPT_STR, AT(install), NULL, 0, 0, "FILE", "copy this program there and exit: for an init container" },
    { "--help", NULL, OPT_BOOL, AT(is_help), NULL, 0, 0, NULL, "show this and exit" },
    { "--help-roff", NULL, OPT_BOOL, AT(is_roff), NULL, 0, 0, NULL, NULL },
    { "--version", NULL, OPT_BOOL, AT(is_version), NULL, 0, 0, NULL, "show the version and exit" },
};
/* clang-format on */

const struct opt_program runtime_program = {
    .name = "silica-runtime",
    .usage = "[options] [-- COMMAND [ARG...]]",
    .example = "Serves the commands and files of the sandbox it runs in.\n\n"
               "  silica-runtime --listen 127.0.0.1:8888 --root /work\n"
               "  curl -s 127.0.0.1:8888/execute -H 'Content-Type: application/json' \\\n"
               "       -d '{\"command\":\"uname -a\"}'",
    .opts = opts,
    .opt_count = LEN(opts),
    .epilog =
        "Defaults are in parentheses. Without --listen: ports 8888, 8080 and 9090, on all addresses if it\n"
        "is PID 1 or has a token, else on loopback. COMMAND runs beside the server, which ends with it and\n"
        "with its status. Options can be given as variables too, --root as SILICA_RUNTIME_ROOT and so on:\n"
        "see silica-runtime(1), also for SANDBOX_BASE_DIR and SANDBOX_EXEC_TIMEOUT_SECONDS.",
};

/* The contract's own reading of its variable: whatever is not a positive number of seconds means the default. */
static void read_exec_timeout(struct runtime_options *o, bool has_flag)
{
    const char *text = getenv("SANDBOX_EXEC_TIMEOUT_SECONDS");
    char clean[64];
    size_t n = 0;
    double seconds;

    if (!text || has_flag)
        return;
    for (const char *c = text; *c && n < sizeof clean - 1; c++) {
        bool is_blank = *c == ' ' || *c == '\t' || *c == '\n' || *c == '\r';

        if (!is_blank && *c != '_')
            clean[n++] = *c;
    }
    clean[n] = '\0';
    if (str_double(span_cstr(clean), &seconds) && seconds > 0 && seconds < 1e12)
        o->exec_timeout_ms = MAX((uint64_t)(seconds * 1000), (uint64_t)1);
    else
        log_warn("options.timeout", KV("variable", "SANDBOX_EXEC_TIMEOUT_SECONDS"),
                 KV("value", text), KV("used_ms", o->exec_timeout_ms));
}

static void read_base_dir(struct runtime_options *o)
{
    const char *text = getenv("SANDBOX_BASE_DIR");
    struct span s = span_cstr(text);

    while (s.n && strchr(" \t\r\n\v\f", s.p[0]))
        s = span_skip(s, 1);
    while (s.n && strchr(" \t\r\n\v\f", s.p[s.n - 1]))
        s.n--;
    o->base_dir = s.n ? span_dup(s) : NULL; /* lives as long as the process */
}

/* What /proc/PID/environ and cmdline show is the process's own memory: overwrite it there. */
static void wipe(const char *text)
{
    for (volatile char *c = (char *)(uintptr_t)text; c && *c; c++)
        *c = 'x';
}

static int read_token(struct runtime_options *o, struct err *e)
{
    struct buf file = BUF_INIT(TOKEN_MAX_BYTES);
    const char *given = o->token;

    if (o->token_file) {
        if (fd_read_file(o->token_file, &file, e) < 0)
            return err_wrap(e, "--token-file");
        while (file.n && (file.p[file.n - 1] == '\n' || file.p[file.n - 1] == '\r'))
            file.p[--file.n] = '\0';
        if (file.n == 0)
            return err_set(e, ERR_USAGE, "--token-file: '%s' is empty", o->token_file);
        o->token = (const char *)file.p; /* lives as long as the process */
    } else if (given) {
        o->token = own_strdup(given);
    }
    if (given)
        wipe(given);
    wipe(getenv("SANDBOX_EXEC_TOKEN"));
    (void)unsetenv("SANDBOX_EXEC_TOKEN"); /* commands inherit our environment */
    (void)unsetenv("SILICA_RUNTIME_TOKEN_FILE");
    if (o->token && !*o->token)
        return err_set(e, ERR_USAGE, "--token is empty");
    return 0;
}

/* sandboxd's words for how much to log: ours, or a number that only grows. */
static void take_zap_level(struct runtime_options *o)
{
    static const char *const names[] = { "debug", "info", "warn", "error", "off" };

    if (o->zap_log_level)
        o->log_level = names[log_level_of_zap(o->zap_log_level)];
}

static int open_log(struct runtime_options *o, bool has_flag, struct err *e)
{
    bool is_json = strcmp(o->log_format, "json") == 0;
    enum log_level level;

    if (!has_flag)
        take_zap_level(o);
    if (!log_level_parse(o->log_level, &level))
        return err_set(e, ERR_USAGE, "--log-level: '%s' is not debug, info, warn, error or off",
                       o->log_level);
    if (!is_json && strcmp(o->log_format, "text") != 0)
        return err_set(e, ERR_USAGE, "--log-format: '%s' is not text or json", o->log_format);
    log_open(2, level, is_json ? LOG_JSON : LOG_TEXT);
    return 0;
}

int runtime_options_read(struct runtime_options *o, int argc, char **argv, int *ret_rest,
                         struct err *e)
{
    const struct opt_program *p = &runtime_program;

    *o = (struct runtime_options){ .ready_fd = UINT64_MAX,
                                   .control_fd = UINT64_MAX,
                                   .status_fd = UINT64_MAX };
    if (opt_parse(p, argc, argv, o, ret_rest, e) < 0)
        return -1;
    if (open_log(o, opt_was_given(p, argc, argv, "--log-level"), e) < 0)
        return -1;
    o->has_rest_flags = o->listen_host || opt_was_given(p, argc, argv, "--rest-port") ||
                        opt_was_given(p, argc, argv, "--grpc-port");
    if (o->has_rest_flags && o->rest_port == o->grpc_port)
        return err_set(e, ERR_USAGE, "--rest-port and --grpc-port must differ");
    if (opt_was_given(p, argc, argv, "--root") && !*o->root)
        return err_set(e, ERR_USAGE, "--root is empty");
    if (!*o->metadata_prefix)
        o->metadata_prefix = "SANDBOX_";
    if (!o->chunk_size) /* sandboxd's own default, and what it means there */
        o->chunk_size = EXEC_CHUNK_BYTES;
    read_exec_timeout(o, opt_was_given(p, argc, argv, "--exec-timeout"));
    read_base_dir(o);
    if (o->control_fd != UINT64_MAX && o->token == getenv("SANDBOX_EXEC_TOKEN") &&
        o->token_file == getenv("SILICA_RUNTIME_TOKEN_FILE")) {
        /* The engine's PID 1 is reached by its owner alone: a token in the environment is the main command's, which may be
         * this very program. */
        o->token = o->token_file = NULL;
        return 0;
    }
    return read_token(o, e);
}

const char *runtime_root(const struct runtime_options *o, enum contract contract)
{
    if (o->root)
        return o->root;
    if (contract == CONTRACT_PYTHON)
        return o->base_dir ? o->base_dir : "/app";
    return "/workspace";
}
