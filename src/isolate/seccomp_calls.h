/* seccomp_calls: every system call that code in a sandbox may make, with something that needs it. Read by the
 * generator (seccomp_gen.c) at build time and counted by the tests; whatever is not here is ENOSYS. */
#ifndef SILICA_ISOLATE_SECCOMP_CALLS_H
#define SILICA_ISOLATE_SECCOMP_CALLS_H

/* What a filter has besides what all have. A set of these is its number. */
enum seccomp_variant {
    SECCOMP_OF_ROOT =
        1 << 0, /* commands are uid 0: calls that change owners succeed without effect */
    SECCOMP_ON_SHARED =
        1 << 1, /* others of the host may reach what commands write: no set-user-ID */
    SECCOMP_VARIANTS = 1 << 2,
};

struct seccomp_call {
    const char *name;
    const char *needed_by;
};

/* Calls with an argument that decides (clone, socket, socketpair, personality) are rules of their own in seccomp_gen.c. */
#define SECCOMP_RULED_CALLS 4
#define SECCOMP_CALLS_MAX   260

/* clang-format off */
static const struct seccomp_call seccomp_calls[] = {
    /* files and directories */
    { "read", "all" }, { "write", "all" }, { "open", "busybox" }, { "openat", "all" }, { "openat2", "programs that confine themselves" },
    { "creat", "old programs" }, { "close", "all" }, { "close_range", "python" }, { "stat", "go" }, { "fstat", "all" },
    { "lstat", "go" }, { "newfstatat", "all" }, { "statx", "node" }, { "lseek", "all" }, { "pread64", "gcc" },
    { "pwrite64", "git" }, { "readv", "node" }, { "writev", "node" }, { "preadv", "databases" }, { "pwritev", "databases" },
    { "preadv2", "databases" }, { "pwritev2", "databases" }, { "access", "all" }, { "faccessat", "coreutils" },
    { "faccessat2", "glibc 2.33" }, { "dup", "sh" }, { "dup2", "sh" }, { "dup3", "go" }, { "fcntl", "all" },
    { "flock", "apt" }, { "fsync", "git" }, { "fdatasync", "sqlite" }, { "sync", "coreutils" }, { "syncfs", "coreutils" },
    { "sync_file_range", "dpkg" }, { "truncate", "coreutils" }, { "ftruncate", "gcc" }, { "fallocate", "node" },
    { "getdents64", "all" }, { "getcwd", "sh" }, { "chdir", "sh" }, { "fchdir", "find" },
    { "rename", "gcc" }, { "renameat", "go" }, { "renameat2", "mv" }, { "mkdir", "git" }, { "mkdirat", "go" },
    { "rmdir", "coreutils" }, { "link", "git" }, { "linkat", "ln" }, { "unlink", "gcc" }, { "unlinkat", "rm" },
    { "symlink", "git" }, { "symlinkat", "ln" }, { "readlink", "python" }, { "readlinkat", "coreutils" },
    { "chmod", "python" }, { "fchmod", "git" }, { "fchmodat", "chmod" }, { "fchmodat2", "glibc 2.39" }, { "chown", "python" },
    { "fchown", "tar" }, { "lchown", "python" }, { "fchownat", "chown" }, { "umask", "sh" }, { "mknod", "mkfifo" },
    { "mknodat", "mkfifo" }, { "utime", "old programs" }, { "utimes", "python" },
    { "utimensat", "touch" }, { "statfs", "python" }, { "fstatfs", "git" }, { "copy_file_range", "cp" },
    { "sendfile", "python" }, { "splice", "coreutils" },
    { "fadvise64", "coreutils" }, { "getxattr", "ls" }, { "lgetxattr", "ls" },
    { "fgetxattr", "cp" }, { "setxattr", "cp" }, { "lsetxattr", "cp" }, { "fsetxattr", "cp" }, { "listxattr", "cp" },
    { "llistxattr", "cp" }, { "flistxattr", "cp" }, { "removexattr", "cp" }, { "lremovexattr", "cp" },
    { "fremovexattr", "cp" }, { "inotify_init1", "node" },
    { "inotify_add_watch", "node" }, { "inotify_rm_watch", "node" }, { "pipe", "sh" }, { "pipe2", "all" },
    { "ioctl", "sh" }, { "memfd_create", "chromium" },
    /* waiting */
    { "select", "python" }, { "pselect6", "sh" }, { "poll", "python" }, { "ppoll", "git" }, { "epoll_create", "old programs" },
    { "epoll_create1", "node" }, { "epoll_ctl", "node" }, { "epoll_wait", "node" }, { "epoll_pwait", "go" },
    { "epoll_pwait2", "glibc 2.35" }, { "eventfd", "old programs" }, { "eventfd2", "node" },
    { "signalfd4", "silica-runtime" }, { "timerfd_create", "chromium" }, { "timerfd_settime", "chromium" },
    { "timerfd_gettime", "chromium" }, { "pause", "sh" },
    /* memory */
    { "mmap", "all" }, { "mprotect", "all" }, { "munmap", "all" }, { "brk", "all" }, { "mremap", "all" }, { "madvise", "go" },
    { "mincore", "go" }, { "msync", "databases" }, { "mlock", "databases" }, { "mlock2", "databases" }, { "munlock", "databases" },
    { "mlockall", "databases" }, { "munlockall", "databases" }, { "membarrier", "chromium" }, { "pkey_alloc", "node" },
    { "pkey_free", "node" }, { "pkey_mprotect", "node" }, { "mseal", "glibc 2.41" },
    /* processes, threads, signals */
    { "fork", "busybox" }, { "vfork", "make" }, { "execve", "all" }, { "execveat", "the engine, to start PID 1" },
    { "exit", "all" }, { "exit_group", "all" }, { "wait4", "sh" }, { "waitid", "go" }, { "kill", "sh" }, { "tkill", "go" },
    { "tgkill", "go" }, { "pidfd_open", "python" }, { "pidfd_send_signal", "python" }, { "getpid", "all" },
    { "getppid", "sh" }, { "gettid", "go" }, { "getpgid", "sh" }, { "setpgid", "sh" }, { "getpgrp", "sh" }, { "getsid", "sh" },
    { "setsid", "silica-runtime" }, { "rt_sigaction", "all" }, { "rt_sigprocmask", "all" }, { "rt_sigreturn", "all" },
    { "rt_sigpending", "python" }, { "rt_sigsuspend", "sh" }, { "rt_sigtimedwait", "python" }, { "rt_sigqueueinfo", "python" },
    { "rt_tgsigqueueinfo", "glibc" }, { "sigaltstack", "go" }, { "restart_syscall", "all" }, { "futex", "all" },
    { "set_tid_address", "all" }, { "set_robust_list", "all" },
    { "rseq", "glibc 2.35" }, { "arch_prctl", "all" }, { "prctl", "node" }, { "seccomp", "chromium" },
    { "landlock_create_ruleset", "programs that confine themselves" }, { "landlock_add_rule", "programs that confine themselves" },
    { "landlock_restrict_self", "programs that confine themselves" }, { "capget", "git" }, { "capset", "programs that drop privileges" },
    /* who and how much */
    { "getuid", "all" }, { "geteuid", "all" }, { "getgid", "all" }, { "getegid", "all" }, { "getresuid", "python" },
    { "getresgid", "python" }, { "getgroups", "sh" }, { "setuid", "programs that drop privileges" },
    { "setgid", "programs that drop privileges" }, { "setreuid", "sh" }, { "setregid", "sh" }, { "setresuid", "sh" },
    { "setresgid", "sh" }, { "setgroups", "programs that drop privileges" }, { "setfsuid", "coreutils" }, { "setfsgid", "coreutils" },
    { "getrlimit", "python" }, { "setrlimit", "sh" }, { "prlimit64", "all" }, { "getrusage", "make" }, { "times", "sh" },
    { "getpriority", "nice" }, { "setpriority", "nice" },
    { "sched_yield", "go" }, { "sched_getaffinity", "go" }, { "sched_setaffinity", "taskset" }, { "sched_getparam", "python" },
    { "sched_setparam", "python" }, { "sched_getscheduler", "python" }, { "sched_setscheduler", "python" },
    { "sched_get_priority_max", "node" }, { "sched_get_priority_min", "node" }, { "sched_rr_get_interval", "python" },
    { "sched_getattr", "chromium" }, { "sched_setattr", "chromium" }, { "uname", "all" }, { "sysinfo", "node" },
    { "getcpu", "go" }, { "getrandom", "all" },
    /* time */
    { "time", "old programs" }, { "gettimeofday", "all" }, { "clock_gettime", "all" }, { "clock_getres", "python" },
    { "clock_nanosleep", "python" }, { "nanosleep", "go" }, { "alarm", "python" }, { "getitimer", "python" },
    { "setitimer", "go" }, { "timer_create", "go" }, { "timer_settime", "go" }, { "timer_gettime", "glibc" },
    { "timer_getoverrun", "glibc" }, { "timer_delete", "go" },
    /* sockets */
    { "bind", "python" }, { "listen", "python" }, { "accept", "python" }, { "accept4", "node" },
    { "connect", "python" }, { "shutdown", "python" }, { "sendto", "python" }, { "recvfrom", "python" }, { "sendmsg", "python" },
    { "recvmsg", "python" }, { "sendmmsg", "glibc's resolver" }, { "recvmmsg", "chromium" }, { "getsockname", "python" },
    { "getpeername", "python" }, { "setsockopt", "python" }, { "getsockopt", "python" },
    /* System V memory, semaphores and queues: of this sandbox's own IPC namespace */
    { "shmget", "databases" }, { "shmat", "databases" }, { "shmdt", "databases" }, { "shmctl", "databases" },
    { "semget", "databases" }, { "semop", "databases" }, { "semtimedop", "databases" }, { "semctl", "databases" },
    { "msgget", "python sysv_ipc" }, { "msgsnd", "python sysv_ipc" }, { "msgrcv", "python sysv_ipc" }, { "msgctl", "python sysv_ipc" },
   
};
/* clang-format on */

#endif
