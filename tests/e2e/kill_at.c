// SPDX-License-Identifier: GPL-2.0-only
/*
 * Ends a program at one of its system calls, as a power cut or the OOM killer would.
 *
 *	kill_at N COMMAND...    runs the command
 *	kill_at N -p PID        watches a process that runs; says "armed" when it does
 *
 * SIGKILL comes before the N-th system call that anybody else could notice is performed: between
 * two such calls all moments are alike. Then kill_at says "killed N CALL". At SIGTERM, or when the
 * program ends by itself, kill_at says "passed COUNT": so many such calls were performed; a
 * command is killed then, a process goes on. Whatever is not known to be unnoticeable counts.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* What ends with the process, or only looks. */
static const int unnoticeable[] = {
	SYS_read,
	SYS_pread64,
	SYS_readv,
	SYS_mmap,
	SYS_munmap,
	SYS_mremap,
	SYS_mprotect,
	SYS_brk,
	SYS_madvise,
	SYS_futex,
	SYS_clock_gettime,
	SYS_clock_nanosleep,
	SYS_getrandom,
	SYS_fstat,
	SYS_newfstatat,
	SYS_statx,
	SYS_lseek,
	SYS_close,
	SYS_epoll_pwait,
	SYS_epoll_ctl,
	SYS_epoll_create1,
	SYS_ppoll,
	SYS_getpid,
	SYS_gettid,
	SYS_getppid,
	SYS_getuid,
	SYS_geteuid,
	SYS_getgid,
	SYS_getegid,
	SYS_rt_sigaction,
	SYS_rt_sigprocmask,
	SYS_rt_sigreturn,
	SYS_getdents64,
	SYS_faccessat,
	SYS_faccessat2,
	SYS_readlinkat,
	SYS_uname,
	SYS_getsockopt,
	SYS_setsockopt,
	SYS_getsockname,
	SYS_recvmsg,
	SYS_recvfrom,
	SYS_fcntl,
	SYS_prlimit64,
	SYS_getrusage,
	SYS_timerfd_create,
	SYS_timerfd_settime,
	SYS_signalfd4,
	SYS_socket,
	SYS_set_tid_address,
	SYS_set_robust_list,
	SYS_rseq,
	SYS_prctl,
	SYS_statfs,
	SYS_fstatfs,
	SYS_sched_getaffinity,
	SYS_exit_group,
	SYS_capget,
	SYS_capset,
	SYS_dup,
	SYS_eventfd2,
	SYS_flock,
	SYS_restart_syscall,
	SYS_accept4,
	SYS_execve,
	SYS_perf_event_open,
	SYS_sysinfo,
#ifdef __x86_64__
	SYS_epoll_wait,
	SYS_poll,
	SYS_arch_prctl,
	SYS_access,
	SYS_readlink,
	SYS_stat,
	SYS_lstat,
#endif
};

static const enum bpf_cmd lasting[] = {
	BPF_MAP_UPDATE_ELEM,  BPF_MAP_DELETE_ELEM,  BPF_OBJ_PIN,     BPF_PROG_ATTACH,
	BPF_PROG_DETACH,      BPF_LINK_CREATE,	    BPF_LINK_UPDATE, BPF_LINK_DETACH,
	BPF_MAP_UPDATE_BATCH, BPF_MAP_DELETE_BATCH, BPF_MAP_FREEZE,
};

static bool is_lasting(uint64_t command)
{
	for (size_t i = 0; i < sizeof(lasting) / sizeof(*lasting); i++)
		if (command == lasting[i])
			return true;
	return false;
}

static bool is_noticeable(const struct __ptrace_syscall_info *call)
{
	const __uint64_t *arg = call->entry.args;

	for (size_t i = 0; i < sizeof(unnoticeable) / sizeof(*unnoticeable); i++)
		if ((int)call->entry.nr == unnoticeable[i])
			return false;
	switch (call->entry.nr) {
	case SYS_openat:
		return arg[2] & O_CREAT;
	case SYS_write:
		return arg[0] != STDERR_FILENO;
	case SYS_bpf:
		return is_lasting(arg[0]);
	}
	return true;
}

static volatile sig_atomic_t is_over;
static pid_t tracee;
static bool is_ours;

static void on_term(int signal)
{
	is_over = 1;
	ptrace(PTRACE_INTERRUPT, tracee, 0, 0);
}

static void begin(int argc, char **argv)
{
	const long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL;
	int status;

	if (argc == 4 && !strcmp(argv[2], "-p")) {
		tracee = (pid_t)strtol(argv[3], NULL, 10);
		if (ptrace(PTRACE_SEIZE, tracee, 0, PTRACE_O_TRACESYSGOOD) < 0 ||
		    ptrace(PTRACE_INTERRUPT, tracee, 0, 0) < 0)
			err(2, "process %d", tracee);
		return;
	}
	is_ours = true;
	tracee = fork();
	if (tracee == 0) {
		raise(SIGSTOP);
		execvp(argv[2], &argv[2]);
		err(2, "%s", argv[2]);
	}
	waitpid(tracee, &status, WUNTRACED);
	if (ptrace(PTRACE_SEIZE, tracee, 0, options) < 0)
		err(2, "%s", argv[2]);
	ptrace(PTRACE_INTERRUPT, tracee, 0, 0);
	kill(tracee, SIGCONT);
}

/* Goes on from a stop. False: the process is no more. */
static bool next_stop(int signal, int *ret_status)
{
	ptrace(PTRACE_SYSCALL, tracee, 0, signal);
	while (waitpid(tracee, ret_status, 0) < 0)
		if (errno != EINTR)
			return false;
	return WIFSTOPPED(*ret_status);
}

/* A signal of its own is the program's; a stop of ours, or at a system call, is not. */
static int signal_of(int status)
{
	const int signal = WSTOPSIG(status);

	if (signal == (SIGTRAP | 0x80) || status >> 16 == PTRACE_EVENT_STOP)
		return 0;
	return signal;
}

static void end(void)
{
	if (is_ours)
		kill(tracee, SIGKILL);
	else
		ptrace(PTRACE_DETACH, tracee, 0, 0);
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = on_term };
	unsigned long count = 0, at = argc > 2 ? strtoul(argv[1], NULL, 10) : 0;
	struct __ptrace_syscall_info call = { 0 };
	int status = 0, signal = 0;

	if (argc < 3)
		errx(2, "usage: kill_at N COMMAND... | kill_at N -p PID");
	begin(argc, argv);
	sigaction(SIGTERM, &action, NULL);
	while (waitpid(tracee, &status, 0) < 0)
		;
	if (!is_ours)
		puts("armed");
	fflush(stdout);
	for (; next_stop(signal, &status); signal = signal_of(status)) {
		if (is_over) {
			end();
			break;
		}
		if (WSTOPSIG(status) != (SIGTRAP | 0x80) ||
		    ptrace(PTRACE_GET_SYSCALL_INFO, tracee, sizeof(call), &call) < 0 ||
		    call.op != PTRACE_SYSCALL_INFO_ENTRY || !is_noticeable(&call))
			continue;
		if (++count != at)
			continue;
		kill(tracee, SIGKILL);
		waitpid(tracee, &status, 0);
		printf("killed %lu %llu\n", count, (unsigned long long)call.entry.nr);
		return 0;
	}
	printf("passed %lu\n", count);
	return 0;
}
