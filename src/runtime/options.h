/* options: what the command line and the environment say.
 *
 * Owns:     nothing; texts point into argv and the environment, but for the token, which is copied and wiped from
 *           both: /proc shows them to everybody in the sandbox.
 */
#ifndef SILICA_RUNTIME_OPTIONS_H
#define SILICA_RUNTIME_OPTIONS_H

#include "base/opt.h"

enum contract { CONTRACT_PYTHON, CONTRACT_SANDBOXD, CONTRACT_PYDANTIC };

struct runtime_options {
    struct opt_list listen;
    const char *listen_host;
    uint64_t rest_port, grpc_port, sandbox_port;
    const char *root;
    const char *token, *token_file;
    uint64_t ready_fd, control_fd; /* UINT64_MAX when not given */
    /* For the engine: "started" goes here when the main command runs, and with is_staying, where we outlive it, "exit N"
     * when it has ended. */
    uint64_t status_fd;
    bool is_staying;
    const char
        *message_file; /* of the main command: told to the engine at the end (base/lastwords.h) */
    uint64_t exec_timeout_ms, max_timeout_ms;
    uint64_t output_limit, grpc_output_limit, pydantic_output_limit;
    uint64_t max_commands, max_connections;
    uint64_t shutdown_timeout_ms, idle_timeout_ms, stall_timeout_ms;
    uint64_t chunk_size;
    const char *metadata_prefix;
    struct opt_list allow_origin, allow_host;
    const char *cluster_domain;
    const char *log_level, *log_format;
    /* sandboxd's logging flags: the level counts unless --log-level is given, the others have no effect */
    const char *zap_log_level, *zap_ignored;
    bool zap_ignored_flag;
    bool is_version, is_help, is_roff;
    const char *install; /* where this program is to be put, instead of serving */
    /* derived */
    const char *base_dir; /* SANDBOX_BASE_DIR, trimmed, or NULL */
    bool has_rest_flags;  /* one of --listen-host, --rest-port, --grpc-port */
};

extern const struct opt_program runtime_program;

/* Reads everything, wipes the token from argv and the environment. *ret_rest: index of the command, or argc. */
int runtime_options_read(struct runtime_options *o, int argc, char **argv, int *ret_rest,
                         struct err *e);
/* The root directory of a contract's paths and commands. */
const char *runtime_root(const struct runtime_options *o, enum contract contract);

#endif
