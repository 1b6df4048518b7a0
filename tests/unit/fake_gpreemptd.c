// SPDX-License-Identifier: MIT
/*
 * Not a test: fake_daemon.h as a program, for tests of programs.
 *
 *   fake_gpreemptd SOCKET [WORD...]   says "ready", and goes when its standard input ends
 *
 *   PID:QUEUE[:PRIORITY]   it has this queue
 *   many=N                 N queues of process 300
 *   refuse=PID:QUEUE=N     stopping that one comes to -N
 *   unwelcome=N            it refuses everybody, with -N and the text
 *   text=TEXT              of its answers
 *   batch                  its devices take many queues at once
 *   silent=N, drop=N       at messages of this type it does not answer, or hangs up
 */
#include "fake_daemon.h"

static struct fake_daemon fake;

static void refuse(uint32_t pid, uint32_t id, int status)
{
	for (size_t i = 0; i < fake.nqueues; i++)
		if (fake.queues[i].info.pid == pid && fake.queues[i].info.queue_id == id)
			fake.queues[i].status = -status;
}

static void take(const char *word)
{
	uint32_t pid, id, priority = 7, n;
	int status;

	if (sscanf(word, "refuse=%u:%u=%d", &pid, &id, &status) == 3)
		refuse(pid, id, status);
	else if (sscanf(word, "many=%u", &n) == 1)
		for (uint32_t i = 0; i < n; i++)
			fake_add(&fake, 300, i, (uint64_t)(i + 1) << 16);
	else if (sscanf(word, "unwelcome=%d", &status) == 1)
		fake.unwelcome = 1, fake.error = -status;
	else if (!strncmp(word, "text=", 5))
		snprintf(fake.text, sizeof(fake.text), "%s", word + 5);
	else if (!strcmp(word, "batch"))
		fake.caps |= GP_CAP_BATCH;
	else if (sscanf(word, "silent=%u", &n) == 1)
		fake.silent_at = n;
	else if (sscanf(word, "drop=%u", &n) == 1)
		fake.drop_at = n;
	else if (sscanf(word, "%u:%u:%u", &pid, &id, &priority) >= 2)
		fake_add(&fake, pid, id, 0x7f0000000000 + ((uint64_t)id << 16))->info.priority = priority;
}

int main(int argc, char **argv)
{
	char c;

	if (argc < 2)
		return 2;
	fake.ndevices = 1;
	fake.caps = GP_CAP_INTERRUPT | GP_CAP_CROSS_PROCESS;
	for (int i = 2; i < argc; i++)
		take(argv[i]);
	if (fake_start(&fake, argv[1]) < 0)
		return 1;
	puts("ready");
	fflush(stdout);
	while (read(0, &c, 1) > 0)
		;
	fake_stop(&fake);
	return 0;
}
