// SPDX-License-Identifier: MIT
/*
 * Containers and pods by the names of cgroups.  Docker, podman, CRI-O and containerd all put an id of 64 hex
 * digits into the name, with a prefix if systemd makes the cgroup, alone if the runtime does:
 *
 *	/docker/ID
 *	/system.slice/docker-ID.scope
 *	/machine.slice/libpod-ID.scope/container
 *	/kubepods/burstable/podUID/ID
 *	/kubepods.slice/kubepods-podUID.slice/cri-containerd-ID.scope
 *	/system.slice/containerd.service/kubepods-podUID.slice:cri-containerd:ID
 */
#include <string.h>

#include "discover/scan.h"

static int is_hex(const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!((p[i] >= '0' && p[i] <= '9') || (p[i] >= 'a' && p[i] <= 'f')))
			return 0;
	return 1;
}

/* The monitor of a container has its id too, but runs outside. */
static void look_for_container(struct gp_span part, struct gp_found_client *client)
{
	struct gp_span monitor = part;
	struct gp_span id = part;

	if (gp_span_len(&id) > 6 && !memcmp(id.end - 6, ".scope", 6))
		id.end -= 6;
	if (gp_span_len(&id) < GP_CONTAINER_DIGITS)
		return;
	id.at = id.end - GP_CONTAINER_DIGITS;
	if (!is_hex(id.at, GP_CONTAINER_DIGITS) || gp_span_find(&monitor, "conmon-"))
		return;
	if (id.at == part.at || id.at[-1] == '-' || id.at[-1] == ':')
		gp_span_copy(&id, client->container, sizeof(client->container));
}

/* "pod" and a uid: 36 characters, dashes or in systemd's names underscores, or a static pod's 32 digits. */
static void look_for_pod(struct gp_span part, struct gp_found_client *client)
{
	struct gp_span uid = part;
	size_t n = 0;
	char *c;

	do {
		if (!gp_span_find(&uid, "pod"))
			return;
		for (n = 0; uid.at + n < uid.end; n++)
			if (uid.at[n] != '-' && uid.at[n] != '_' && !is_hex(uid.at + n, 1))
				break;
	} while (n != 36 && n != 32);
	uid.end = uid.at + n;
	gp_span_copy(&uid, client->pod, sizeof(client->pod));
	for (c = client->pod; *c; c++)
		if (*c == '_')
			*c = '-';
}

static void look_at_path(struct gp_span path, struct gp_found_client *client)
{
	struct gp_span part;

	while (gp_span_split(&path, '/', &part)) {
		look_for_container(part, client);
		look_for_pod(part, client);
	}
}

/*
 * "12:memory:/docker/..." for each hierarchy of version 1, "0::/..." for version 2.  The path that names a
 * container is the best, then version 2's, then any but the root.
 */
void gp_cgroup_parse(const char *text, size_t len, struct gp_found_client *client)
{
	struct gp_span all = { text, text + len };
	struct gp_span line, number, controllers;
	int best = 0;

	client->cgroup[0] = client->container[0] = client->pod[0] = '\0';
	while (gp_span_split(&all, '\n', &line)) {
		struct gp_found_client one = { .pid = 0 };
		int rank;

		if (!gp_span_split(&line, ':', &number) || !gp_span_split(&line, ':', &controllers) ||
		    line.at == line.end)
			continue;
		look_at_path(line, &one);
		rank = one.container[0] || one.pod[0] ? 4
		       : gp_span_len(&line) == 1      ? 1
		       : gp_span_len(&controllers)    ? 2
						      : 3;
		if (rank <= best)
			continue;
		best = rank;
		gp_span_copy(&line, client->cgroup, sizeof(client->cgroup));
		memcpy(client->container, one.container, sizeof(one.container));
		memcpy(client->pod, one.pod, sizeof(one.pod));
	}
}
