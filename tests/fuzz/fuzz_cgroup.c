// SPDX-License-Identifier: MIT
/* No text in place of /proc/<pid>/cgroup, status or a container's JSON may crash what reads it. */
#include <string.h>

#include "fuzz.h"

static void check_span(const struct gp_span *s, const uint8_t *data, size_t size)
{
	if ((const uint8_t *)s->at < data || s->at > s->end || (const uint8_t *)s->end > data + size)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct gp_found_client c;
	struct gp_span found;
	uint32_t pids[4];

	memset(&c, 0xff, sizeof(c));
	gp_cgroup_parse(text, size, &c);
	if (strlen(c.cgroup) >= sizeof(c.cgroup) || strlen(c.pod) >= sizeof(c.pod) ||
	    (c.container[0] && strlen(c.container) != GP_CONTAINER_DIGITS))
		abort();
	if (gp_status_pids(text, size, pids, 4) > 4)
		abort();
	if (gp_docker_name(text, size, &found))
		check_span(&found, data, size);
	if (gp_podman_find(text, size, NULL, "a", &found))
		check_span(&found, data, size);
	if (gp_podman_find(text, size, "a", NULL, &found))
		check_span(&found, data, size);
	return 0;
}
