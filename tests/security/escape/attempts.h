/* attempts: ways out of a sandbox, each one small, all in one static program.
 *
 *     attempts inside            every attempt, as code in a sandbox would
 *     attempts HOST              the twins that need nothing special
 *     attempts SCRATCH           the twins that need to be root of new namespaces, made by an unprivileged caller
 *     attempts ROOT              the twins that need the host's root, in mount, pid, net, ipc and uts namespaces of their own
 *
 * Prints `NAME RESULT` for each: `ok` when the attempt got what it wanted, else the name of the errno or signal, or a word of
 * its own in capitals. attempts.def says what each must print inside and outside.
 * What the host has to offer is in the environment: E_PID E_PORT E_UDP E_ABSTRACT E_SOCKET E_FILE E_SHM E_SEM E_QUEUE E_MEMORY
 * E_PORT6 E_SECRET E_DIR.
 */
#ifndef SILICA_TESTS_ATTEMPTS_H
#define SILICA_TESTS_ATTEMPTS_H

#include <stdbool.h>
#include <stddef.h>

enum attempt_kind {
    DO_CALL,
    DO_SOCKET,
    DO_SOCKETPAIR,
    DO_OPEN,
    DO_READ,
    DO_MOUNT,
    DO_CLONE,
    DO_OF_PID_1,
    DO_OF_HOST,
    DO_ROUTE,
    DO_OPTION,
    DO_INTERFACE,
    DO_TRICK
};

struct attempt_how {
    enum attempt_kind kind;
    const char *path, *data;
    long n[7];
    const char *(*trick)(void);
};

enum attempt_where { HOST, SCRATCH, ROOT };

struct attempt {
    const char *name;
    struct attempt_how how;
    enum attempt_where where;
};

extern bool has_inherited; /* descriptors beyond 0, 1 and 2 were open when we began */
extern bool is_outside;    /* a twin: what the attempt aims at is made first */

/* "ok", or the name of errno. */
const char *result(long got);

/* A child that only sleeps; it dies with us. */
int sleeper(void);
const char *given(const char *name);

/* tricks.c */
const char *remount_usr(void);
const char *bind_mount(void);
const char *open_tree_clone(void);
const char *move_a_mount(void);
const char *set_mount_attributes(void);
const char *pivot(void);
const char *unmask(void);
const char *write_usr(void);
const char *kill_host_pid(void);
const char *pidfd_of_host_pid(void);
const char *renice_host_pid(void);
const char *root_of_host_pid(void);
const char *kill_pid_1(void);
const char *trace_pid_1(void);
const char *read_pid_1(void);
const char *write_pid_1(void);
const char *descriptor_of_pid_1(void);
const char *mem_of_pid_1(void);
const char *environ_of_pid_1(void);
const char *maps_of_pid_1(void);
const char *fd_of_pid_1(void);
const char *exe_of_pid_1(void);
const char *root_of_pid_1(void);
const char *cwd_of_pid_1(void);
const char *net_namespace_of_pid_1(void);
const char *limits_of_pid_1(void);
const char *overwrite_exe(void);
const char *leaked_descriptor(void);
const char *cwd_through_descriptor(void);
const char *climb(void);
const char *host_file(void);
const char *host_file_by_self_root(void);
const char *link_in_volume(void);
const char *write_volume(void);
const char *setuid_file(void);
const char *capable_file(void);
const char *host_secret(void);
const char *host_shm(void);
const char *join_namespace(void);
const char *parent_namespace(void);

const char *use_of_target(const char *what, int flags);

/* talks.c */
const char *route_message(int type);
const char *socket_option(int family, int level, int name, int value);
const char *change_interface(unsigned long request);
const char *docker_socket(void);
const char *host_unix_socket(void);
const char *host_abstract_socket(void);
const char *host_abstract_datagram(void);
const char *host_loopback(void);
const char *host_loopback_udp(void);
const char *out_by_ipv4(void);
const char *out_by_ipv6(void);
const char *metadata_service(void);
const char *socket_high_bits(void);
const char *change_link(void);
const char *lower_loopback(void);
const char *type_into_terminal(void);
const char *type_high_bits(void);
const char *console_tricks(void);
const char *callers_terminal(void);
const char *i386_call(void);
const char *x32_call(void);
const char *clone3_user(void);
const char *clone_high_bits(void);
const char *all_capabilities(void);
const char *ambient_capability(void);
const char *other_uid(void);
const char *other_gid(void);
const char *drop_groups(void);
const char *give_file_away(void);
const char *chmod_setuid(void);
const char *fchmod_setuid(void);
const char *fchmodat_setuid(void);
const char *fchmodat2_setuid(void);
const char *open_setuid(void);
const char *open_setuid_high_bits(void);
const char *creat_setuid(void);
const char *temporary_setuid(void);
const char *openat2_setuid(void);
const char *mknod_setuid(void);
const char *label_capable(void);
const char *core_limit(void);
const char *char_device(void);
const char *block_device(void);
const char *lock_memory(void);
const char *handle_of_root(void);
const char *open_by_handle(void);
const char *perf_counter(void);
const char *bpf_map(void);
const char *ring(void);
const char *real_time(void);

/* steps.c */
const char *volume_truncate(void);
const char *volume_truncate_open(void);
const char *volume_chmod(void);
const char *volume_chown(void);
const char *volume_unlink(void);
const char *volume_rename(void);
const char *volume_exchange(void);
const char *volume_mkdir(void);
const char *volume_symlink(void);
const char *volume_link(void);
const char *volume_fifo(void);
const char *volume_utimes(void);
const char *volume_xattr(void);
const char *volume_bind(void);
const char *volume_reopen(void);
const char *volume_mapping(void);
const char *volume_link_out(void);
const char *volume_immutable(void);
const char *filter_that_allows(void);
const char *landlock_that_allows(void);
const char *thread_without_filter(void);
const char *program_without_filter(void);
const char *owner_of_signals(void);
const char *forged_pid(void);
const char *forged_uid(void);
const char *lease_on_usr(void);
const char *freeze_root(void);
const char *immutable_file(void);
const char *trusted_attribute(void);
const char *security_attribute(void);
const char *hang_up(void);
const char *host_semaphores(void);
const char *host_queue(void);
const char *host_posix_shm(void);
const char *host_loopback_v6(void);
const char *host_wildcard(void);
const char *host_mapped(void);

#endif
