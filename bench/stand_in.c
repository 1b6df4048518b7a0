// SPDX-License-Identifier: MIT
#include "stand_in.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define GPU 38571
#define NODES "sys/class/kfd/kfd/topology/nodes"

static pid_t daemon_pid;
static char folder[] = "/tmp/gpreempt-bench-XXXXXX";

uint64_t clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * GP_S + (uint64_t)t.tv_nsec;
}

void wait_until(uint64_t ns)
{
	struct timespec t = { .tv_sec = (time_t)(ns / GP_S), .tv_nsec = (long)(ns % GP_S) };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
}

void check(int is_good, const char *what)
{
	if (is_good)
		return;
	fprintf(stderr, "bench: %s: %s\n", what, strerror(errno));
	exit(1);
}

pid_t spawn(void)
{
	pid_t parent = getpid(), pid;

	fflush(stdout);
	pid = fork();
	check(pid >= 0, "fork");
	if (pid)
		return pid;
	daemon_pid = 0; /* it is the parent's to stop */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	return 0;
}

void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

uint64_t cpu_ns(pid_t pid)
{
	struct timespec t;
	clockid_t clock;

	check(clock_getcpuclockid(pid, &clock) == 0 && clock_gettime(clock, &t) == 0, "CPU time");
	return (uint64_t)t.tv_sec * GP_S + (uint64_t)t.tv_nsec;
}

/* The tree */

__attribute__((format(printf, 2, 3))) static void put(const char *text, const char *fmt, ...)
{
	char path[256];
	va_list args;
	int n = snprintf(path, sizeof(path), "%s/", folder);
	FILE *file;

	va_start(args, fmt);
	vsnprintf(path + n, sizeof(path) - (size_t)n, fmt, args);
	va_end(args);
	for (char *at = strchr(path + n, '/'); at; at = strchr(at + 1, '/')) {
		*at = '\0';
		check(mkdir(path, 0755) == 0 || errno == EEXIST, path);
		*at = '/';
	}
	file = fopen(path, "w");
	check(file && fputs(text, file) >= 0 && fclose(file) == 0, path);
}

void daemon_show_queues(pid_t pid)
{
	char gpu[16];

	snprintf(gpu, sizeof(gpu), "%d\n", GPU);
	for (int i = 0; i < QUEUES; i++) {
		put(gpu, "root/sys/class/kfd/kfd/proc/%d/queues/%d/gpuid", pid, i);
		put("4096\n", "root/sys/class/kfd/kfd/proc/%d/queues/%d/size", pid, i);
		put("0\n", "root/sys/class/kfd/kfd/proc/%d/queues/%d/type", pid, i);
	}
}

static void put_gpu(void)
{
	char gpu[16];

	snprintf(gpu, sizeof(gpu), "%d\n", GPU);
	put("0\n", "root/" NODES "/0/gpu_id");
	put(gpu, "root/" NODES "/1/gpu_id");
	put("ip discovery\n", "root/" NODES "/1/name");
	put("cpu_cores_count 0\nsimd_count 320\nsimd_per_cu 4\nnum_cp_queues 24\ngfx_target_version 90402\n",
	    "root/" NODES "/1/properties");
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st;
	(void)kind;
	(void)at;
	return remove(path);
}

/* The daemon */

static int try_to_connect(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	check(fd >= 0, "socket");
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/socket", folder);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
		return fd;
	close(fd);
	return -1;
}

static void become_daemon(const char *path)
{
	check(dup2(open("log", O_CREAT | O_WRONLY, 0644), STDERR_FILENO) >= 0, "log");
	execl(path, "gpreemptd", "--config", "conf", "--socket", "socket", "--root", "root", "--classes",
	      "classes", NULL);
	_exit(1);
}

void daemon_start(const char *path, const char *settings)
{
	char *whole = realpath(path, NULL);
	int fd;

	check(whole != NULL, path);
	memcpy(folder + sizeof(folder) - 7, "XXXXXX", 6);
	check(mkdtemp(folder) != NULL, "folder");
	put(settings, "conf");
	put("", "classes");
	put_gpu();
	atexit(daemon_stop);
	daemon_pid = spawn();
	if (daemon_pid == 0) {
		check(chdir(folder) == 0, folder);
		become_daemon(whole);
	}
	free(whole);
	while ((fd = try_to_connect()) < 0) {
		check(waitpid(daemon_pid, NULL, WNOHANG) == 0, "gpreemptd ended");
		wait_until(clock_ns() + GP_MS);
	}
	close(fd);
}

void daemon_stop(void)
{
	if (!daemon_pid)
		return;
	end_child(daemon_pid);
	daemon_pid = 0;
	(void)nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

pid_t daemon_process(void)
{
	return daemon_pid;
}

uint64_t daemon_resident_bytes(void)
{
	char path[32], line[128];
	uint64_t kb = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", daemon_pid);
	file = fopen(path, "r");
	check(file != NULL, path);
	while (fgets(line, sizeof(line), file) && sscanf(line, "VmRSS: %" SCNu64, &kb) != 1)
		;
	fclose(file);
	return kb * 1024;
}

/* Its peers */

void stand_in_say(int fd, const struct gp_msg *msg)
{
	static unsigned char packet[GP_WIRE_MOST_BYTES];
	int n = gp_wire_encode(msg, 0, packet, sizeof(packet));

	check(n > 0 && send(fd, packet, (size_t)n, MSG_NOSIGNAL) == n, "send");
}

const struct gp_msg *stand_in_hear(int fd, uint32_t type)
{
	static unsigned char packet[GP_WIRE_MOST_BYTES];
	static struct gp_msg msg;

	do {
		ssize_t n = recv(fd, packet, sizeof(packet), 0);

		if (n <= 0 && !daemon_pid)
			_exit(0); /* a child's: the parent, which misses what it does, has ended it all */
		check(n > 0 && gp_wire_decode(packet, (size_t)n, &msg) == 0, "recv");
	} while (msg.type != type);
	return &msg;
}

int stand_in_open(uint32_t role, uint32_t client_class)
{
	static struct gp_msg hello = { .type = GP_MSG_HELLO };
	int fd = try_to_connect();

	check(fd >= 0, "connect");
	hello.hello = (struct gp_msg_hello){
		.role = role, .ways = GP_KFD_WAY_UPDATE, .seen = client_class, .name = "bench"
	};
	stand_in_say(fd, &hello);
	(void)stand_in_hear(fd, GP_MSG_WELCOME);
	return fd;
}

void stand_in_tell_queues(int fd)
{
	static struct gp_msg queue = { .type = GP_MSG_QUEUE };

	for (uint32_t i = 0; i < QUEUES; i++) {
		queue.queue = (struct gp_msg_queue){ .queue = i + 1,
						     .ring = 0x7f0000000000 + 0x10000ull * i,
						     .ring_size = 4096,
						     .queue_id = i,
						     .gpu_id = GPU,
						     .kind = GP_KIND_COMPUTE,
						     .percent = 100 };
		stand_in_say(fd, &queue);
	}
}

static void hint(int fd, uint32_t what, uint32_t serial)
{
	static struct gp_msg msg = { .type = GP_MSG_HINT };

	msg.serial = serial;
	msg.hint = (struct gp_msg_hint){ .number = serial + 1, .what = what, .device = GP_ALL_DEVICES };
	stand_in_say(fd, &msg);
}

void stand_in_hint(int fd, uint32_t what)
{
	hint(fd, what, 0);
}

/* The end of a hint that nobody gave: it is refused, in its turn. */
void stand_in_sync(int fd)
{
	hint(fd, GP_HINT_END, 1);
	(void)stand_in_hear(fd, GP_MSG_ERROR);
}

void stand_in_obey(int fd, const struct gp_msg *wants)
{
	static struct gp_msg done;

	done = *wants;
	done.type = GP_MSG_DONE;
	stand_in_say(fd, &done);
}

pid_t stand_in_spawn(uint32_t client_class)
{
	int ready[2], fd;
	char byte = 0;
	pid_t pid;

	check(pipe(ready) == 0, "pipe");
	pid = spawn();
	if (pid) {
		close(ready[1]);
		check(read(ready[0], &byte, 1) == 1, "a stand-in");
		close(ready[0]);
		return pid;
	}
	daemon_show_queues(getpid());
	fd = stand_in_open(GP_ROLE_AGENT, client_class);
	stand_in_tell_queues(fd);
	stand_in_sync(fd);
	check(write(ready[1], &byte, 1) == 1, "pipe");
	while (1)
		stand_in_obey(fd, stand_in_hear(fd, GP_MSG_WANTS));
}
