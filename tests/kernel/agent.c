// SPDX-License-Identifier: MIT
/* bed: timeout=300 memory=3G param=cus=4 */
/*
 * Programs under the agent, on the real driver.  This program starts itself, preloaded or
 * not, once for each part below; a part's exit status says which of its checks failed.  In
 * the last part it is the daemon, too.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kfd.h"
#include "tap.h"
#include "wire/wire.h"

#define MS 1000000ull
#define SECOND (1000 * MS)
#define THREADS 4
#define QUEUES 5 /* that each thread creates, one after the other */
#define CHILDREN 3
#define SOCKET_PATH "/tmp/gpreempt-agent-test.sock"

static struct kfd kfd;

static int count(const char *folder)
{
	DIR *dir = opendir(folder);
	int n = 0;

	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n - 2 - (strstr(folder, "fd") != NULL); /* ".", "..", and the folder's own */
}

static int fds(void)
{
	return count("/proc/self/fd");
}

static int tasks(void)
{
	return count("/proc/self/task");
}

/* A queue comes, works, and goes. */
static int use_queue(uint32_t type)
{
	struct kfd_signal *signal;
	struct kfd_queue q;
	struct kfd_mem mem;
	int r = kfd_alloc(&kfd, &kfd.gpus[0], sizeof(*signal), &mem);

	if (r == 0)
		r = kfd_queue_create(&kfd, &kfd.gpus[0], type, 7, &q);
	if (r < 0)
		return r;
	signal = mem.addr;
	signal->value = 1;
	if (type == KFD_TYPE_AQL) {
		kfd_dispatch(&q, 4, MS, signal);
		r = kfd_wait(signal, KFD_SOON);
	}
	if (r == 0)
		r = kfd_queue_update(&q, 50, 9);
	if (r == 0 && kfd_queue_update(&q, 101, 9) != -EINVAL)
		r = -EPROTO;
	if (r == 0)
		r = kfd_queue_destroy(&q);
	return r < 0 ? r : kfd_free(&kfd, &kfd.gpus[0], &mem);
}

static void *use_queues(void *wrong)
{
	for (int i = 0; i < QUEUES; i++)
		if (use_queue(i % 3 == 2 ? KFD_TYPE_SDMA : KFD_TYPE_AQL) < 0)
			__atomic_add_fetch((int *)wrong, 1, __ATOMIC_RELAXED);
	return NULL;
}

/* The parent's memory is not the driver's here: another kfd. */
static int child(void)
{
	if (tasks() != 1)
		return 1;
	if (kfd_open(&kfd) < 0)
		return 2;
	return use_queue(KFD_TYPE_AQL) < 0 ? 3 : 0;
}

static int fork_child(void)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0)
		_exit(child());
	waitpid(pid, &status, 0);
	return status;
}

static int churn(void)
{
	int own_tasks = getenv("LD_PRELOAD") ? 2 : 1, wrong = 0, before;
	pthread_t threads[THREADS];

	if (kfd_open(&kfd) < 0)
		return 1;
	if (use_queue(KFD_TYPE_AQL) < 0)
		return 2;
	kfd_sleep(500 * MS); /* the agent has what it needs */
	before = fds();
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, use_queues, &wrong);
	for (int i = 0; i < CHILDREN; i++)
		if (fork_child())
			wrong += 100;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	if (wrong)
		return 3;
	for (int i = 0; i < 100 && tasks() != own_tasks; i++)
		kfd_sleep(10 * MS); /* a thread that was joined may be seen for a moment */
	if (tasks() != own_tasks)
		return 4;
	return fds() != before ? 5 : 0;
}

/* The program closes its descriptor of the driver, and then everything from 3 on. */
static int close_driver(void)
{
	if (kfd_open(&kfd) < 0 || use_queue(KFD_TYPE_AQL) < 0)
		return 1;
	close(kfd.fd);
	kfd.fd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
	if (kfd.fd < 0 || use_queue(KFD_TYPE_AQL) < 0)
		return 2;
	for (int fd = 3; fd < 1100; fd++)
		if (fd != kfd.fd && fd != kfd.gpus[0].render_fd)
			close(fd);
	for (int i = 0; i < 3; i++) {
		if (use_queue(KFD_TYPE_AQL) < 0)
			return 3;
		kfd_sleep(50 * MS);
	}
	return 0;
}

/* What exec finds: nothing of the agent's, and it may begin again. */
static int execed(void)
{
	if (tasks() != 1)
		return 1;
	if (fds() > 3)
		return 2;
	if (kfd_open(&kfd) < 0 || use_queue(KFD_TYPE_AQL) < 0)
		return 3;
	return 0;
}

static int exec_self(const char *self)
{
	if (kfd_open(&kfd) < 0 || use_queue(KFD_TYPE_AQL) < 0)
		return 11;
	kfd_sleep(300 * MS);
	execl(self, self, "execed", (char *)NULL);
	return 12;
}

/* A queue with work of 400 ms, and how the program found it: 0 is well. */
static int worker(void)
{
	struct kfd_signal *signal;
	struct kfd_queue q;
	struct kfd_mem mem;

	if (kfd_open(&kfd) < 0 || kfd_alloc(&kfd, &kfd.gpus[0], sizeof(*signal), &mem) < 0)
		return 1;
	if (kfd_queue_create(&kfd, &kfd.gpus[0], KFD_TYPE_AQL, 7, &q) < 0)
		return 2;
	signal = mem.addr;
	signal->value = 1;
	kfd_dispatch(&q, 4, 400 * MS, signal);
	if (kfd_wait(signal, 100 * SECOND) < 0)
		return 3;
	return kfd_queue_destroy(&q) < 0 ? 4 : 0;
}

static pid_t start(const char *self, const char *part, int is_preloaded)
{
	char agent[512];
	pid_t pid = fork();

	if (pid)
		return pid;
	snprintf(agent, sizeof(agent), "%s/libgpreempt-agent.so", getenv("GPREEMPT_BUILD"));
	if (is_preloaded)
		setenv("LD_PRELOAD", agent, 1);
	setenv("GPREEMPT_SOCKET", SOCKET_PATH, 1);
	execl(self, self, part, (char *)NULL);
	_exit(127);
}

static int run_part(const char *self, const char *part, int is_preloaded)
{
	int status = -1;

	waitpid(start(self, part, is_preloaded), &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + status;
}

static struct gp_msg msg;

static int next_message(int peer)
{
	static unsigned char packet[GP_WIRE_MOST_BYTES];
	ssize_t size = recv(peer, packet, sizeof(packet), 0);

	return size > 0 && gp_wire_decode(packet, (size_t)size, &msg) == 0 ? (int)msg.type : -1;
}

static int tell(int peer)
{
	static unsigned char packet[GP_WIRE_MOST_BYTES];
	int size = gp_wire_encode(&msg, 0, packet, sizeof(packet));

	return size > 0 && send(peer, packet, (size_t)size, MSG_NOSIGNAL) == size ? 0 : -1;
}

static int apply(int peer, uint64_t queue, uint32_t want)
{
	msg.type = GP_MSG_WANTS;
	msg.items = (struct gp_msg_items){ .way = GP_KFD_WAY_UPDATE, .n = 1 };
	msg.item[0] = (struct gp_wire_item){ .queue = queue, .want = want };
	if (tell(peer) < 0 || next_message(peer) != GP_MSG_DONE)
		return -EIO;
	return msg.item[0].status;
}

static void check_stops(const char *self)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = SOCKET_PATH };
	int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), peer, status = 0;
	int64_t running;
	uint64_t queue;
	pid_t pid;

	unlink(SOCKET_PATH);
	ok(bind(listener, (struct sockaddr *)&address, sizeof(address)) == 0 && listen(listener, 1) == 0,
	   "a daemon listens");
	pid = start(self, "worker", 1);
	peer = accept(listener, NULL, NULL);
	ok(next_message(peer) == GP_MSG_HELLO && msg.hello.pid == (uint32_t)pid, "the agent comes");
	ok(msg.hello.ways == GP_KFD_WAY_UPDATE, "the stock driver is seen to have no private call (ways %u)",
	   msg.hello.ways);
	msg.type = GP_MSG_WELCOME;
	msg.welcome = (struct gp_msg_welcome){ .lease_ns = 300 * SECOND };
	ok(tell(peer) == 0 && next_message(peer) == GP_MSG_QUEUE && msg.queue.queue_id == 0 &&
		   msg.queue.priority == 7,
	   "and tells its queue");
	queue = msg.queue.queue;
	ok(kfd_wait_stat(0, "mapped", 1, KFD_SOON) == 0, "the queue is on the GPU");
	ok(apply(peer, queue, GP_STOP) == 0, "it is stopped");
	ok(kfd_stat(0, "mapped") == 0, "and off the GPU");
	running = kfd_stat(0, "cycles");
	ok(apply(peer, queue, GP_STOP) == 0 && kfd_stat(0, "cycles") == running,
	   "a second stop costs nothing");
	kfd_sleep(SECOND);
	ok(waitpid(pid, &status, WNOHANG) == 0, "its work does not end");
	close(peer); /* the daemon dies */
	close(listener);
	unlink(SOCKET_PATH);
	waitpid(pid, &status, 0);
	ok(status == 0, "when the daemon is gone it ends, as if nothing had been (status %d)", status >> 8);
}

int main(int argc, char **argv)
{
	const char *part = argc > 1 ? argv[1] : "";
	int plain, under;

	if (!strcmp(part, "churn"))
		return churn();
	if (!strcmp(part, "close"))
		return close_driver();
	if (!strcmp(part, "exec"))
		return exec_self("/proc/self/exe");
	if (!strcmp(part, "execed"))
		return execed();
	if (!strcmp(part, "worker"))
		return worker();
	plain = run_part("/proc/self/exe", "churn", 0);
	ok(plain == 0, "queues come and go in four threads, with children in between (status %d)", plain);
	under = run_part("/proc/self/exe", "churn", 1);
	ok(under == 0, "the same under the agent, and no descriptor or thread is left (status %d)", under);
	under = run_part("/proc/self/exe", "close", 1);
	ok(under == 0, "a program may close every descriptor and go on (status %d)", under);
	under = run_part("/proc/self/exe", "exec", 1);
	ok(under == 0, "exec leaves nothing behind and begins anew (status %d)", under);
	check_stops("/proc/self/exe");
	ok(kfd_wait_stat(0, "mapped", 0, KFD_SOON) == 0, "nothing is left mapped");
	return tap_done();
}
