// SPDX-License-Identifier: MIT
/* What of the text of /proc/<pid>/cgroup is believed, over hierarchies that are made here. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "discover/scan.h"
#include "unit.h"

#define TOP "sys/fs/cgroup"
#define SOMEBODY 12345

/* A 64-digit id, by its first two. */
#define ID(xx) xx xx xx xx xx xx xx xx xx xx xx xx xx xx xx xx xx xx xx xx xx xx xx xx xx xx xx xx xx xx xx xx
#define UID "4a1c5c0e-7f1e-4e0b-9a77-2f7f6a0d1e11"
#define UID_SYSTEMD "4a1c5c0e_7f1e_4e0b_9a77_2f7f6a0d1e11"
#define SERVICE "/user.slice/user-1000.slice/user@1000.service"

struct state {
	char root[64];
	int fd;
	struct gp_found_client client;
};

static int begin(void **arg)
{
	struct state *s = calloc(1, sizeof(*s));

	snprintf(s->root, sizeof(s->root), "/tmp/gpreempt-cgroup-XXXXXX");
	*arg = s;
	if (!mkdtemp(s->root))
		return -1;
	s->fd = open(s->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return s->fd < 0 ? -1 : 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static int end(void **arg)
{
	struct state *s = *arg;

	close(s->fd);
	nftw(s->root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(s);
	return 0;
}

/* A folder, with all above it: a hierarchy's and a path in it. */
static void make(struct state *s, const char *hierarchy, const char *path)
{
	char name[4096];

	snprintf(name, sizeof(name), TOP "%s%s/", hierarchy, path);
	for (char *p = name; (p = strchr(p, '/')); p++) {
		*p = '\0';
		if (mkdirat(s->fd, name, 0755) < 0)
			assert_int_equal(errno, EEXIST);
		*p = '/';
	}
}

/* What systemd does for a user. Who is not root cannot give a folder away; others may write there then. */
static void give_away(struct state *s, const char *name)
{
	if (geteuid() == 0)
		assert_int_equal(fchownat(s->fd, name, SOMEBODY, SOMEBODY, 0), 0);
	else
		assert_int_equal(fchmodat(s->fd, name, 0775, 0), 0);
}

static const struct gp_found_client *know(struct state *s, const char *text)
{
	s->client = (struct gp_found_client){ .cgroup = "left", .container = "over", .pod = "here" };
	gp_cgroup_parse(s->fd, text, strlen(text), &s->client);
	return &s->client;
}

#define assert_known(s, text, path, id, uid) \
	do { \
		const struct gp_found_client *c = know(s, text); \
\
		assert_string_equal(c->cgroup, path); \
		assert_string_equal(c->container, id); \
		assert_string_equal(c->pod, uid); \
	} while (0)

static void containers_and_pods_are_known_by_the_names_of_cgroups(void **arg)
{
	/* rest: below the container, and without a word in it */
	static const struct {
		const char *path, *rest, *container, *pod;
	} cases[] = {
		{ "/system.slice/docker-" ID("a1") ".scope", "", ID("a1"), "" },
		{ "/docker/" ID("a2"), "", ID("a2"), "" },
		{ "/docker/" ID("a1"), "/docker/" ID("a2"), ID("a1"), "" },
		{ "/machine.slice/libpod-" ID("a4") ".scope", "/container", ID("a4"), "" },
		{ "/machine.slice/libpod-conmon-" ID("a4") ".scope", "", "", "" },
		{ "/libpod_parent/libpod-" ID("b1"), "", ID("b1"), "" },
		{ "/system.slice/x.service/libpod-payload-" ID("b2"), "", ID("b2"), "" },
		{ "/default/" ID("b3"), "", ID("b3"), "" },
		{ "/kubepods.slice/kubepods-pod" UID_SYSTEMD ".slice/crio-" ID("a5") ".scope", "", ID("a5"),
		  UID },
		{ "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" UID_SYSTEMD
		  ".slice/cri-containerd-" ID("a6") ".scope",
		  "", ID("a6"), UID },
		{ "/kubepods/burstable/pod" UID "/" ID("a7"), "", ID("a7"), UID },
		{ "/system.slice/containerd.service/kubepods-pod" UID_SYSTEMD
		  ".slice:cri-containerd:" ID("a8"),
		  "", ID("a8"), UID },
		{ "/kubepods/pod0123456789abcdef0123456789abcdef/" ID("a9"), "", ID("a9"),
		  "0123456789abcdef0123456789abcdef" },
		{ "/docker/" ID("a1"), "/kubelet/kubepods/pod" UID "/" ID("a2"), ID("a1"), "" },
		{ "/user.slice/user-1000.slice/session-1.scope", "", "", "" },
		{ "/docker/" ID("zz"), "", "", "" },
		{ "/podcast/pod123/x" ID("a1"), "", "", "" },
	};
	struct state *s = *arg;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char path[1024], text[1100];

		snprintf(path, sizeof(path), "%s%s", cases[i].path, cases[i].rest);
		make(s, "", path);
		snprintf(text, sizeof(text), "0::%s\n", path);
		assert_known(s, text, cases[i].path, cases[i].container, cases[i].pod);
	}
	assert_known(s, "0::\n::\n\n:\n", "", "", "");
	assert_known(s, "", "", "", "");
	assert_known(s, "0::/\n", "/", "", "");
}

static void in_a_folder_that_is_not_roots_no_name_counts(void **arg)
{
	struct state *s = *arg;

	make(s, "", SERVICE "/docker-" ID("a1") ".scope");
	make(s, "", SERVICE "/kubepods/pod" UID "/" ID("a2"));
	assert_known(s, "0::" SERVICE "/docker-" ID("a1") ".scope\n", SERVICE "/docker-" ID("a1") ".scope",
		     ID("a1"), "");
	give_away(s, TOP SERVICE);
	assert_known(s, "0::" SERVICE "/docker-" ID("a1") ".scope\n", SERVICE, "", "");
	assert_known(s, "0::" SERVICE "/kubepods/pod" UID "/" ID("a2") "\n", SERVICE, "", "");
}

static void a_folder_that_others_may_write_in_is_not_roots(void **arg)
{
	static const mode_t modes[] = { 0775, 0757 };
	struct state *s = *arg;

	make(s, "", "/batch/docker-" ID("a1") ".scope");
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		assert_int_equal(fchmodat(s->fd, TOP "/batch", modes[i], 0), 0);
		assert_known(s, "0::/batch/docker-" ID("a1") ".scope\n", "/batch", "", "");
	}
	assert_int_equal(fchmodat(s->fd, TOP "/batch", 0755, 0), 0);
	assert_string_equal(know(s, "0::/batch/docker-" ID("a1") ".scope\n")->container, ID("a1"));
}

static void a_container_whose_folder_was_given_away_is_one_because_root_named_it(void **arg)
{
	static const char scope[] = "/machine.slice/libpod-" ID("a1") ".scope";
	struct state *s = *arg;
	char text[512], name[512];

	make(s, "", "/machine.slice/libpod-" ID("a1") ".scope/container");
	snprintf(name, sizeof(name), TOP "%s", scope);
	give_away(s, name);
	snprintf(text, sizeof(text), "0::%s/container\n", scope);
	assert_known(s, text, scope, ID("a1"), "");
}

static void roots_folder_below_somebodys_counts_as_little_as_his(void **arg)
{
	struct state *s = *arg;

	make(s, "", "/batch/jobs/docker-" ID("a1") ".scope");
	give_away(s, TOP "/batch");
	assert_known(s, "0::/batch/jobs/docker-" ID("a1") ".scope\n", "/batch", "", "");
}

static void what_is_not_seen_is_not_believed(void **arg)
{
	struct state *s = *arg;

	assert_known(s, "0::/docker/" ID("a1") "\n", "", "", ""); /* no hierarchy at all */
	assert_known(s, "0::/\n", "", "", "");
	make(s, "", "/docker");
	make(s, "", "/a/docker");
	assert_known(s, "0::/docker/" ID("a1") " (deleted)\n", "/docker", "", "");
	assert_known(s, "0::/a/../docker\n", "/a", "", "");
	assert_known(s, "0::/../docker/" ID("a1") "\n", "/", "", "");
	assert_known(s, "0::/./docker\n", "/", "", "");
	assert_known(s, "0::docker\n", "", "", "");
	assert_int_equal(symlinkat("docker", s->fd, TOP "/docker-" ID("a1") ".scope"), 0);
	assert_known(s, "0::/docker-" ID("a1") ".scope\n", "/", "", "");
}

static void each_hierarchy_is_looked_for_where_it_is_mounted(void **arg)
{
	struct state *s = *arg;

	make(s, "/unified", "/init.scope");
	make(s, "/memory", "/docker/" ID("a3"));
	make(s, "/systemd", "/docker/" ID("a4"));
	make(s, "/cpu,cpuacct", "/docker/" ID("a5"));
	assert_int_equal(symlinkat("cpu,cpuacct", s->fd, TOP "/cpuacct"), 0);
	assert_known(s, "4:memory:/docker/" ID("a3") "\n0::/\n", "/docker/" ID("a3"), ID("a3"), "");
	assert_known(s, "1:name=systemd:/docker/" ID("a4") "\n", "/docker/" ID("a4"), ID("a4"), "");
	assert_known(s, "3:cpu,cpuacct:/docker/" ID("a5") "\n", "/docker/" ID("a5"), ID("a5"), "");
	assert_known(s, "3:cpuacct,cpu:/docker/" ID("a5") "\n", "/docker/" ID("a5"), ID("a5"), "");
	assert_known(s, "5:pids:/docker/" ID("a3") "\n", "", "", "");
	assert_known(s, "9:cpu,cpuacct:/\n0::/init.scope\n", "/init.scope", "", "");
	assert_known(s, "9:cpu,cpuacct:/docker\n0::/\n", "/docker", "", "");
	give_away(s, TOP "/memory/docker"); /* in one of them nobody is believed: the others count */
	assert_known(s, "4:memory:/docker/" ID("a3") "\n0::/init.scope\n", "/init.scope", "", "");
	assert_known(s, "4:memory:/docker/" ID("a3") "\n1:name=systemd:/docker/" ID("a4") "\n",
		     "/docker/" ID("a4"), ID("a4"), "");
}

static void a_path_too_long_for_us_is_cut_but_its_container_is_found(void **arg)
{
	struct state *s = *arg;
	char path[2048] = "", text[2100];

	for (int i = 0; i < 100; i++)
		strcat(path, "/some-long-name");
	strcat(path, "/docker-" ID("cd") ".scope");
	make(s, "", path);
	snprintf(text, sizeof(text), "0::%s\n", path);
	assert_int_equal(strlen(know(s, text)->cgroup), sizeof(s->client.cgroup) - 1);
	assert_string_equal(s->client.container, ID("cd"));
}

#define TREE_TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TREE_TEST(containers_and_pods_are_known_by_the_names_of_cgroups),
		TREE_TEST(in_a_folder_that_is_not_roots_no_name_counts),
		TREE_TEST(a_folder_that_others_may_write_in_is_not_roots),
		TREE_TEST(a_container_whose_folder_was_given_away_is_one_because_root_named_it),
		TREE_TEST(roots_folder_below_somebodys_counts_as_little_as_his),
		TREE_TEST(what_is_not_seen_is_not_believed),
		TREE_TEST(each_hierarchy_is_looked_for_where_it_is_mounted),
		TREE_TEST(a_path_too_long_for_us_is_cut_but_its_container_is_found),
	};

	umask(022);
	return cmocka_run_group_tests_name("cgroup", tests, NULL, NULL);
}
