/* silica as people start it: the commands of sandboxes, linked without what only servers need. TLS, the store and the
 * schemas of Kubernetes put 28,000 addresses into 600 KiB of tables, and relocating these at each start, copying them
 * with each clone and dropping them with the exec took a sixth of a short run. Every other command is the full
 * program's, carried inside, which we become. */
#include "cli/command.h"

#include "base/fd.h"
#include "base/log.h"
#include "cli/payload.h"

#include <fcntl.h>
#include <sys/syscall.h>

extern char **environ;

static const struct command commands[] = { QUICK_COMMANDS };

static int become_full(char **argv)
{
    struct err e;
    OWN_FD int fd = -1;

    if (payload_open_full(&fd, &e) < 0)
        return command_fail(&e, EXIT_FAILED);
    (void)syscall(SYS_execveat, fd, "", argv, environ, AT_EMPTY_PATH);
    (void)err_sys(&e, "cannot run the full program from memory");
    return command_fail(&e, EXIT_FAILED);
}

int main(int argc, char **argv)
{
    struct err e;

    if (fd_fill_stdio(&e) < 0)
        return EXIT_FAILED; /* nobody to tell */
    /* stderr is the command's: what goes on with less than an error is not said there. */
    log_open(2, LOG_ERROR, LOG_TEXT);
    EACH(c, commands) {
        if (argc > 1 && strcmp(c->name, argv[1]) == 0)
            return c->run(argc - 1, argv + 1);
    }
    return become_full(argv);
}
