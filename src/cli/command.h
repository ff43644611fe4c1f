/* command: one row per command of `silica`. Each is a file of its own.
 *
 * Exit codes: what the command says; 2 for bad usage, 125 for a failure of ours where a sandboxed program has codes
 *             of its own.
 */
#ifndef SILICA_CLI_COMMAND_H
#define SILICA_CLI_COMMAND_H

#include "base/opt.h"

#define EXIT_USAGE      2
#define EXIT_TIMED_OUT  124 /* as timeout(1) has it */
#define EXIT_FAILED     125 /* ours, not the program's; as env(1), docker and others have it */
#define EXIT_CANNOT_RUN 126 /* found, but not to be run */
#define EXIT_NOT_FOUND  127

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
extern const struct opt_program doctor_program;
int doctor_command(int argc, char **argv);

/* main.c: a message on stderr with its hint. Returns `code`. */
int command_fail(const struct err *e, int code);
/* Prints what `make` writes for the program. */
int command_show(void (*make)(const struct opt_program *, struct buf *),
                 const struct opt_program *program);

#endif
