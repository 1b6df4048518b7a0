// SPDX-License-Identifier: MIT
/* No text in place of /proc/<pid>/cgroup, status or a monitor's command line may crash what reads it. */
#include <fcntl.h>
#include <string.h>

#include "fuzz.h"

static void check_span(const struct gp_span *s, const uint8_t *data, size_t size)
{
	if ((const uint8_t *)s->at < data || s->at > s->end || (const uint8_t *)s->end > data + size)
		abort();
}

static void check_names(const struct gp_found_client *c)
{
	if (strlen(c->cgroup) >= sizeof(c->cgroup) || strlen(c->pod) >= sizeof(c->pod) ||
	    (c->container[0] && strlen(c->container) != GP_CONTAINER_DIGITS))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	static int root = -1;
	struct gp_found_client c;
	struct gp_span found = { text, text + size };
	uint32_t pids[4];

	if (root < 0)
		root = gp_open_at(AT_FDCWD, "/", O_DIRECTORY);
	memset(&c, 0xff, sizeof(c));
	gp_cgroup_parse(root, text, size, &c); /* paths are looked for where this runs */
	check_names(&c);
	c.container[0] = c.pod[0] = '\0';
	gp_cgroup_names(&found, &c);
	check_span(&found, data, size);
	check_names(&c);
	if (gp_status_pids(text, size, pids, 4) > 4)
		abort();
	(void)gp_conmon_names(text, size, &c);
	return 0;
}
