#include "cli/tty.h"

#include <errno.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>

static struct termios before;
static volatile sig_atomic_t raw_fd_plus_one; /* 0: nothing to restore */

/* Also called from a signal handler: only calls that are allowed there. */
void tty_restore(void)
{
    int fd = raw_fd_plus_one - 1;

    raw_fd_plus_one = 0;
    if (fd >= 0)
        (void)tcsetattr(fd, TCSADRAIN, &before);
}

static void on_crash(int number)
{
    tty_restore();
    (void)raise(number); /* the default action is back: SA_RESETHAND */
}

static void restore_on_crash(void)
{
    static const int crashes[] = { SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGSYS };
    struct sigaction action = { .sa_handler = on_crash, .sa_flags = (int)SA_RESETHAND };

    for (size_t i = 0; i < LEN(crashes); i++)
        (void)sigaction(crashes[i], &action, NULL);
}

int tty_raw(int fd, struct err *e)
{
    struct termios raw;

    if (!isatty(fd))
        return 0;
    if (tcgetattr(fd, &before) < 0)
        return err_sys(e, "cannot read the terminal's settings");
    raw = before;
    cfmakeraw(&raw);
    (void)atexit(tty_restore);
    restore_on_crash();
    raw_fd_plus_one = fd + 1;
    if (tcsetattr(fd, TCSADRAIN, &raw) < 0)
        return err_sys(e, "cannot set the terminal raw");
    return 0;
}

bool tty_size(uint16_t *ret_cols, uint16_t *ret_rows)
{
    struct winsize size;

    for (int fd = 0; fd < 3; fd++)
        if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col && size.ws_row) {
            *ret_cols = size.ws_col;
            *ret_rows = size.ws_row;
            return true;
        }
    return false;
}
