// SPDX-License-Identifier: MIT
/* No classes.ini or rule, however broken, may crash the reader; what is refused is refused with a word. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "discover/classes.h"
#include "fuzz.h"

static void judge(struct gp_classes *classes, const char *text)
{
	struct gp_found_client client = {
		.pid = 5, .name = "train", .cgroup = "/kubepods/x", .container_name = "c"
	};
	struct gp_found_queue queue = { .pid = 5, .priority = 7, .ring = 0x7f0000000000 };
	struct gp_class_subject subject = { &client, &queue, text, 0, 0 };
	struct gp_class_verdict verdict;

	memset(queue.from, GP_SOURCE_MQDS, sizeof(queue.from));
	gp_classes_judge(classes, &subject, &verdict);
	if (verdict.client_class > GP_CLASS_ONLINE || !verdict.rule[0] ||
	    strlen(verdict.rule) >= sizeof(verdict.rule))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gp_classes *classes;
	char path[32], error[200] = "", *text = calloc(1, size + 1);
	int fd = memfd_create("classes.ini", 0);

	if (!text || fd < 0 || gp_classes_new(&classes) < 0)
		abort();
	memcpy(text, data, size);
	if (write(fd, data, size) != (ssize_t)size)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (gp_classes_read(classes, path, error, sizeof(error)) < 0 && !error[0])
		abort();
	error[0] = '\0';
	if (gp_classes_add(classes, text, NULL, error, sizeof(error)) < 0 && !error[0])
		abort();
	judge(classes, text);
	gp_classes_free(classes);
	free(text);
	close(fd);
	return 0;
}
