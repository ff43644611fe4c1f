/* command: one row per command of `silica`. Each is a file of its own.
 *
 * Two programs: people wait for what concerns sandboxes (QUICK_COMMANDS), so `silica` has these alone, and starts in half
 *             the time; it carries the full program, which has every command, and becomes it for the rest (front.c).
 * Exit codes: one table for all commands (exit_codes.c); those below are the names of its rows.
 */
#ifndef SILICA_CLI_COMMAND_H
#define SILICA_CLI_COMMAND_H

#include "base/opt.h"

#define EXIT_NO         1 /* the answer is no, or a part was not done */
#define EXIT_USAGE      2
#define EXIT_NOT_UP     3   /* as systemctl status has it */
#define EXIT_PROBLEMS   4   /* it is up, and waiting does not heal what status lists */
#define EXIT_TIMED_OUT  124 /* as timeout(1) has it */
#define EXIT_FAILED     125 /* ours, not the program's; as env(1), docker and others have it */
#define EXIT_CANNOT_RUN 126 /* found, but not to be run */
#define EXIT_NOT_FOUND  127
#define COMMAND_GOES_ON (-1) /* no exit code: see command_parse */

/* Every table's row; `group` is its heading, or NULL. */
#define COMMAND_HELP(at, group)                                                                    \
    {                                                                                              \
        "--help", NULL, OPT_BOOL, at, NULL, 0, 0, NULL, "this text", group, 'h'                    \
    }

struct command {
    const char *name;
    const char *summary;               /* NULL: not for people, and not listed */
    const struct opt_program *program; /* its options, for --help and the manual; NULL: none */
    /* argv[0] is the command's name. Returns the exit code. */
    int (*run)(int argc, char **argv);
};

extern const struct opt_program run_program;
int run_command(int argc, char **argv);
extern const struct opt_program exec_program;
int exec_command(int argc, char **argv);
extern const struct opt_program cp_program;
int cp_command(int argc, char **argv);
extern const struct opt_program stats_program;
int stats_command(int argc, char **argv);
extern const struct opt_program logs_program;
int logs_command(int argc, char **argv);
extern const struct opt_program pause_program, resume_program; /* both in freeze.c */
int pause_command(int argc, char **argv);
int resume_command(int argc, char **argv);
extern const struct opt_program ps_program;
int ps_command(int argc, char **argv);
extern const struct opt_program rm_program;
int rm_command(int argc, char **argv);
extern const struct opt_program keeper_program;
int keeper_command(int argc, char **argv);
extern const struct opt_program apiserver_program;
int apiserver_command(int argc, char **argv);
extern const struct opt_program pod_backend_program;
int pod_backend_command(int argc, char **argv);
extern const struct opt_program controller_program;
int controller_command(int argc, char **argv);
extern const struct opt_program up_program;
int up_command(int argc, char **argv);
extern const struct opt_program control_program;
int control_command(int argc, char **argv);
extern const struct opt_program parts_program;
int parts_command(int argc, char **argv);
extern const struct opt_program down_program;
int down_command(int argc, char **argv);
extern const struct opt_program status_program;
int status_command(int argc, char **argv);
extern const struct opt_program env_program, kubeconfig_program; /* both in env.c */
int env_command(int argc, char **argv);
int kubeconfig_command(int argc, char **argv);
extern const struct opt_program in_cluster_program;
int in_cluster_command(int argc, char **argv);
extern const struct opt_program token_program;
int token_command(int argc, char **argv);
extern const struct opt_program node_program;
int node_command(int argc, char **argv);
extern const struct opt_program router_program;
int router_command(int argc, char **argv);
extern const struct opt_program doctor_program;
int doctor_command(int argc, char **argv);

/* main.c: the full program has it. */
bool command_is_known(const char *name);
/* command.c: a message on stderr with its hint. Returns `code`. */
int command_fail(const struct err *e, int code);
/* The same where the data directory of `silica up` was asked for: EXIT_NOT_UP, or EXIT_FAILED. */
int command_fail_up(const struct err *e);
/* Prints what `make` writes for the program. */
int command_show(void (*make)(const struct opt_program *, struct buf *),
                 const struct opt_program *program);

/* Fills `options` by the program's table. COMMAND_GOES_ON, or the exit code: help was asked for and printed, or something
 * was wrong and said so. *ret_rest: the first argument that is not an option; NULL: there may be none. */
int command_parse(const struct opt_program *program, int argc, char **argv, void *options,
                  int *ret_rest);
/* *ret: it says `yes`, rather than `no`. ERR_USAGE: neither. */
int command_choice(const char *flag, const char *text, const char *no, const char *yes, bool *ret,
                   struct err *e);
/* Says that the flag must be given. Returns the exit code. */
int command_missing(const char *flag);

/* For what another process of ours starts: a descriptor that we were given moves aside, out of reach of what we start. */
int command_take_fd(int fd, int *ret_fd, struct err *e);
/* Closes one that we were given; a standard stream stays taken, since what is opened next must not become it. */
void command_let_go(int fd);

/* clang-format off */
#define QUICK_COMMANDS \
    { "run", "run a command in a new sandbox", &run_program, run_command }, \
    { "exec", "run one more command in a sandbox", &exec_program, exec_command }, \
    { "cp", "copy files into a sandbox, or out of it", &cp_program, cp_command }, \
    { "ps", "list long-lived sandboxes", &ps_program, ps_command }, \
    { "stats", "say what sandboxes use", &stats_program, stats_command }, \
    { "logs", "show what a sandbox's command said", &logs_program, logs_command }, \
    { "pause", "hold all processes of a sandbox", &pause_program, pause_command }, \
    { "resume", "let them go on", &resume_program, resume_command }, \
    { "keeper", NULL, &keeper_program, keeper_command }, \
    { "doctor", "say which protections sandboxes have on this host", &doctor_program, \
      doctor_command }
/* clang-format on */

#endif
