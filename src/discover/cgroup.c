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
 *
 * A name counts if only root can have given it.  The entries of a folder are root's as long as root owns it
 * and nobody else may write there; systemd gives every user a folder of his own, and in that any name is
 * anybody's choice.  A path is read down to the first such folder.  It also ends with the outermost
 *container: what is below was made in there, where root is somebody else, though perhaps by the same number.
 */
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "discover/scan.h"

#define MOUNTS "sys/fs/cgroup"

static int is_hex(const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!((p[i] >= '0' && p[i] <= '9') || (p[i] >= 'a' && p[i] <= 'f')))
			return 0;
	return 1;
}

int gp_is_container_id(const char *at)
{
	return is_hex(at, GP_CONTAINER_DIGITS);
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
	if (!gp_is_container_id(id.at) || gp_span_find(&monitor, "conmon-"))
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

void gp_cgroup_names(struct gp_span *path, struct gp_found_client *client)
{
	struct gp_span rest = *path, part;

	while (!client->container[0] && gp_span_split(&rest, '/', &part)) {
		if (!client->pod[0])
			look_for_pod(part, client);
		look_for_container(part, client);
		if (client->container[0])
			path->end = part.end;
	}
}

/* A path below the root folder. */
struct place {
	char path[PATH_MAX];
	size_t len;
};

/* 0: too long; or it names no entry, as the dots for what lies outside the reader's cgroup namespace. */
static int add_part(struct place *to, struct gp_span part)
{
	size_t len = gp_span_len(&part);

	if ((len <= 2 && !memcmp(part.at, "..", len)) || to->len + 1 + len >= sizeof(to->path))
		return 0;
	to->path[to->len++] = '/';
	memcpy(to->path + to->len, part.at, len);
	to->len += len;
	to->path[to->len] = '\0';
	return 1;
}

/* statx(), since fstatat() is a symbol of glibc 2.33, and the library loads on 2.28. */
static int is_folder(int root, const struct place *at, int flags, struct statx *ret)
{
	return statx(root, at->path, flags, STATX_TYPE | STATX_MODE | STATX_UID, ret) == 0 &&
	       S_ISDIR(ret->stx_mode);
}

static int is_top(int root, struct gp_span name, struct place *ret, struct statx *ret_stat)
{
	strcpy(ret->path, MOUNTS);
	ret->len = strlen(MOUNTS);
	return (!name.at || add_part(ret, name)) && is_folder(root, ret, 0, ret_stat);
}

/* Where a hierarchy is mounted: version 1's by its controllers, or by the first of them, which is a link. */
static int find_top(int root, struct gp_span controllers, struct place *ret, struct statx *ret_stat)
{
	struct gp_span first;

	if (!gp_span_len(&controllers))
		return is_top(root, gp_span_of("unified"), ret, ret_stat) ||
		       is_top(root, (struct gp_span){ 0 }, ret, ret_stat);
	(void)gp_span_take(&controllers, "name=");
	if (is_top(root, controllers, ret, ret_stat))
		return 1;
	return gp_span_split(&controllers, ',', &first) && is_top(root, first, ret, ret_stat);
}

/*
 * Whether only root makes entries in a folder.  Root is whoever owns the hierarchy, since a recorded tree is
 * somebody's; and what the reader makes deceives nobody else.
 */
static int is_roots(const struct statx *folder, const struct statx *top)
{
	return (folder->stx_uid == top->stx_uid || folder->stx_uid == geteuid()) &&
	       !(folder->stx_mode & (S_IWGRP | S_IWOTH) & ~top->stx_mode);
}

/* What of a path is root's word; empty if the hierarchy cannot be seen. */
static struct gp_span believed(int root, struct gp_span controllers, struct gp_span path)
{
	struct gp_span rest = path, part;
	struct statx top, folder;
	struct place at;

	path.end = path.at;
	if (!gp_span_take(&rest, "/") || !find_top(root, controllers, &at, &top))
		return path;
	path.end = rest.at;
	folder = top;
	while (is_roots(&folder, &top) && gp_span_split(&rest, '/', &part) && add_part(&at, part) &&
	       is_folder(root, &at, AT_SYMLINK_NOFOLLOW, &folder))
		path.end = part.end;
	return path;
}

/* "12:memory:/docker/..." for each hierarchy of version 1, "0::/..." for version 2. */
static int split_line(struct gp_span line, struct gp_span *ret_controllers, struct gp_span *ret_path)
{
	struct gp_span number;

	if (!gp_span_split(&line, ':', &number) || !gp_span_split(&line, ':', ret_controllers))
		return 0;
	*ret_path = line;
	return 1;
}

/* The path that names a container is the best, then version 2's, then any but the root. 0: unknown. */
static int rank_of(const struct gp_found_client *client, const struct gp_span *controllers,
		   const struct gp_span *path)
{
	if (client->container[0] || client->pod[0])
		return 4;
	if (gp_span_len(path) <= 1)
		return (int)gp_span_len(path);
	return gp_span_len(controllers) ? 2 : 3;
}

void gp_cgroup_parse(int root, const char *text, size_t len, struct gp_found_client *client)
{
	struct gp_span all = { text, text + len };
	struct gp_span line, controllers, path;
	int best = 0;

	client->cgroup[0] = client->container[0] = client->pod[0] = '\0';
	while (gp_span_split(&all, '\n', &line)) {
		struct gp_found_client one = { .pid = 0 };
		int rank;

		if (!split_line(line, &controllers, &path))
			continue;
		path = believed(root, controllers, path);
		gp_cgroup_names(&path, &one);
		rank = rank_of(&one, &controllers, &path);
		if (rank <= best)
			continue;
		best = rank;
		gp_span_copy(&path, client->cgroup, sizeof(client->cgroup));
		memcpy(client->container, one.container, sizeof(one.container));
		memcpy(client->pod, one.pod, sizeof(one.pod));
	}
}
