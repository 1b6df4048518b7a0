// SPDX-License-Identifier: MIT
/*
 * How long it takes to know the queues of a full machine: a recorded tree of many queues, 8 devices and 1,000
 * queues to a process, read and joined, against reading the same files' bytes and nothing else.
 *
 * discover_speed make FOLDER QUEUES; discover_speed measure FOLDER QUEUES
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "discover/discover.h"

#define DEVICES 8
#define PER_PROCESS 1000
#define FIRST_PID 1000
#define WORDS 512 /* of a compute MQD */
#define SDMA_WORDS 128
#define RUNS 5
#define BAR_SECONDS 1.0

static const char *root;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void make_folders(char *path)
{
	for (char *p = path + 1; *p; p++)
		if (*p == '/') {
			*p = '\0';
			(void)mkdir(path, 0755);
			*p = '/';
		}
}

static FILE *create(const char *name)
{
	char path[512];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	file = fopen(path, "w");
	if (file)
		return file;
	make_folders(path);
	file = fopen(path, "w");
	if (!file)
		die(path);
	return file;
}

static void put(const char *name, const char *text)
{
	FILE *file = create(name);

	fputs(text, file);
	if (fclose(file))
		die(name);
}

static unsigned gpu_id(unsigned device)
{
	return 0x1000 + device;
}

static unsigned device_of(unsigned queue)
{
	return queue % DEVICES;
}

static int is_sdma(unsigned queue)
{
	return queue % 50 >= 48;
}

static unsigned size_log(unsigned queue)
{
	return is_sdma(queue) ? 18 : 12 + queue % 3; /* of dwords */
}

static void hex_dump(FILE *file, const char *indent, const unsigned *words, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		if (i % 8 == 0)
			fprintf(file, "%s%s%08x:", i ? "\n" : "", indent, i * 4);
		fprintf(file, " %08x", words[i]);
	}
	fputc('\n', file);
}

static void mqd_of(unsigned queue, unsigned *w)
{
	unsigned long ring = 0x7f0000000000ul + queue * 0x100000ul;

	memset(w, 0, WORDS * sizeof(*w));
	if (is_sdma(queue)) {
		w[0] = size_log(queue) << 1;
		w[1] = (unsigned)(ring >> 8);
		w[2] = (unsigned)(ring >> 40);
		w[22] = queue << 2;
		return;
	}
	w[0] = 0xc0310800;
	w[128] = queue * 0x1000;
	w[129] = 0x7f00;
	w[130] = 1;
	w[134] = 7;
	w[136] = (unsigned)(ring >> 8);
	w[137] = (unsigned)(ring >> 40);
	w[143] = queue << 2;
	w[145] = size_log(queue) - 1;
}

static void write_sysfs(unsigned queue)
{
	unsigned pid = FIRST_PID + queue / PER_PROCESS, id = queue % PER_PROCESS;
	char name[128], text[32];

	snprintf(name, sizeof(name), "sys/class/kfd/kfd/proc/%u/queues/%u/gpuid", pid, id);
	snprintf(text, sizeof(text), "%u", gpu_id(device_of(queue)));
	put(name, text);
	snprintf(name, sizeof(name), "sys/class/kfd/kfd/proc/%u/queues/%u/size", pid, id);
	snprintf(text, sizeof(text), "%u", 4u << size_log(queue));
	put(name, text);
	snprintf(name, sizeof(name), "sys/class/kfd/kfd/proc/%u/queues/%u/type", pid, id);
	put(name, is_sdma(queue) ? "1" : "0");
}

static void write_devices(void)
{
	char name[128], text[64];

	for (unsigned i = 0; i < DEVICES; i++) {
		snprintf(name, sizeof(name), "sys/class/kfd/kfd/topology/nodes/%u/gpu_id", i + 1);
		snprintf(text, sizeof(text), "%u\n", gpu_id(i));
		put(name, text);
		snprintf(name, sizeof(name), "sys/class/kfd/kfd/topology/nodes/%u/properties", i + 1);
		put(name,
		    "simd_count 320\nsimd_per_cu 4\ngfx_target_version 90402\nnum_sdma_engines 2\nnum_xcc 1\n");
	}
}

static void write_mqds(unsigned queues)
{
	FILE *file = create("sys/kernel/debug/kfd/mqds");
	unsigned words[WORDS];

	for (unsigned i = queues; i-- > 0;) {
		if (i == queues - 1 || i % PER_PROCESS == PER_PROCESS - 1)
			fprintf(file, "Process %u PASID 0x%x:\n", FIRST_PID + i / PER_PROCESS,
				0x8000 + i / PER_PROCESS);
		fprintf(file, "  %s queue on device %x\n", is_sdma(i) ? "SDMA" : "Compute",
			gpu_id(device_of(i)));
		mqd_of(i, words);
		hex_dump(file, "    ", words, is_sdma(i) ? SDMA_WORDS : WORDS);
	}
	if (fclose(file))
		die("mqds");
}

/* Every second queue is runnable. */
static void write_rls(unsigned queues)
{
	FILE *file = create("sys/kernel/debug/kfd/rls");
	unsigned *words = calloc(queues + 1, 7 * sizeof(*words));

	if (!words)
		die("rls");
	for (unsigned d = 0; d < DEVICES; d++) {
		unsigned n = 0;

		for (unsigned i = d; i < queues; i += DEVICES) {
			if (i / DEVICES % 2)
				continue;
			words[n] = 0xc005a200;
			words[n + 2] = i << 2;
			words[n + 3] = i * 0x1000;
			words[n + 4] = 0x7f00;
			n += 7;
		}
		fprintf(file, "Node %u, gpu_id %x:\n", d + 1, gpu_id(d));
		hex_dump(file, "  ", words, n);
	}
	free(words);
	if (fclose(file))
		die("rls");
}

static void make(unsigned queues)
{
	char name[128];

	for (unsigned i = 0; i < queues; i++)
		write_sysfs(i);
	for (unsigned i = 0; i * PER_PROCESS < queues; i++) {
		snprintf(name, sizeof(name), "sys/class/kfd/kfd/proc/%u/pasid", FIRST_PID + i);
		put(name, "32768\n");
	}
	write_devices();
	write_mqds(queues);
	write_rls(queues);
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Every file below a folder, read and thrown away. */
static unsigned long read_bytes(int dir, const char *name)
{
	static char buffer[1 << 20];
	int fd = openat(dir, name, O_RDONLY);
	unsigned long total = 0;
	struct dirent *entry;
	ssize_t n;
	DIR *folder;

	while ((n = read(fd, buffer, sizeof(buffer))) > 0)
		total += (unsigned long)n;
	if (n == 0) {
		close(fd);
		return total;
	}
	folder = fdopendir(fd);
	if (!folder)
		die(name);
	while ((entry = readdir(folder)))
		if (entry->d_name[0] != '.')
			total += read_bytes(fd, entry->d_name);
	closedir(folder);
	return total;
}

static int check(const struct gp_found *found, unsigned queues)
{
	size_t active = 0, ids = 0;

	for (size_t i = 0; i < found->nqueues; i++) {
		active += found->queues[i].active;
		ids += found->queues[i].from[GP_FIELD_ID] != GP_SOURCE_UNKNOWN;
	}
	return found->nqueues == queues && ids == queues && active * 2 >= queues && active < queues;
}

static int measure(unsigned queues)
{
	const struct gp_discover_opts opts = { .root = root };
	double best = 1e30, plain = 1e30;
	unsigned long bytes = 0;

	for (int i = 0; i < RUNS; i++) {
		double begin = seconds(), middle;
		struct gp_found *found;

		if (gp_discover(&opts, &found) < 0 || !check(found, queues)) {
			fprintf(stderr, "discover_speed: not all queues were found\n");
			return 1;
		}
		middle = seconds();
		gp_found_free(found);
		best = middle - begin < best ? middle - begin : best;
		begin = seconds();
		bytes = read_bytes(AT_FDCWD, root);
		plain = seconds() - begin < plain ? seconds() - begin : plain;
	}
	printf("discover: %u queues, %lu MB in %.0f ms; reading the bytes alone %.0f ms: %.2f times (bar %.0f s)\n",
	       queues, bytes / 1000000, best * 1e3, plain * 1e3, best / plain, BAR_SECONDS);
	return best >= BAR_SECONDS;
}

int main(int argc, char **argv)
{
	if (argc != 4)
		return 1;
	root = argv[2];
	if (!strcmp(argv[1], "measure"))
		return measure((unsigned)strtoul(argv[3], NULL, 10));
	make((unsigned)strtoul(argv[3], NULL, 10));
	return 0;
}
