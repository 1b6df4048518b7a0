// SPDX-License-Identifier: MIT
/* Who is behind a socket, and who can write a file. Needs root, to be several users. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/owned.h"
#include "base/server.h"

#define USER 4711u
#define OTHER 4712u
#define OVERFLOW 65534u
#define NOWHERE "/nowhere/socket"

static char folder[] = "/tmp/gpreempt-server-XXXXXX", path[64];
static int listener = -1;

/* The server's user is the one who called listen(). */
static void serve(uint32_t server, uint32_t owner)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	strcpy(address.sun_path, path);
	listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(chmod(path, 0666), 0);
	assert_int_equal(chown(folder, owner, (gid_t)-1), 0);
	assert_int_equal(seteuid(server), 0);
	assert_int_equal(listen(listener, 8), 0);
	assert_int_equal(seteuid(0), 0);
}

static void hang_up(void)
{
	close(listener);
	unlink(path);
}

/* What a child finds that has become that user: an exit status. */
static int ask(const char *roots_path, uint32_t server)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), r;
	uint32_t uid = 12345;

	strcpy(address.sun_path, path);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return 99;
	r = gp_server_check(fd, path, roots_path, &uid);
	if (r == 0)
		return 0;
	return r == -EKEYREJECTED && uid == server ? 1 : 98;
}

static int wait_for(pid_t child)
{
	int status = -1;

	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + status;
}

/* 0: served; 1: refused, and told who it is. */
static int as_user(uint32_t user, uint32_t server, uint32_t owner)
{
	pid_t child;
	int r;

	serve(server, owner);
	child = fork();
	if (child == 0)
		_exit(setresuid(user, user, user) < 0 ? 97 : ask(NOWHERE, server));
	r = wait_for(child);
	hang_up();
	return r;
}

static void root_and_oneself_are_served_by_and_nobody_else(void **state)
{
	(void)state;
	assert_int_equal(as_user(0, 0, 0), 0);
	assert_int_equal(as_user(USER, 0, 0), 0);
	assert_int_equal(as_user(USER, USER, USER), 0);
	assert_int_equal(as_user(0, USER, USER), 1);
	assert_int_equal(as_user(USER, OTHER, OTHER), 1);
}

static void a_folder_of_anybody_else_than_the_server_is_refused(void **state)
{
	(void)state;
	assert_int_equal(as_user(USER, USER, 0), 1);
	assert_int_equal(as_user(USER, USER, OTHER), 1);
	assert_int_equal(as_user(USER, 0, USER), 1);
	assert_int_equal(as_user(0, 0, USER), 1);
}

static int write_file(const char *name, const char *text)
{
	int fd = open(name, O_WRONLY | O_CLOEXEC), r;

	r = fd < 0 ? -1 : (int)write(fd, text, strlen(text));
	close(fd);
	return r < 0 ? -1 : 0;
}

/* In a user namespace where the user is root and root is nobody. */
static int ask_from_within(const char *roots_path)
{
	char map[32];

	snprintf(map, sizeof(map), "0 %u 1", USER);
	if (setresuid(USER, USER, USER) < 0 || prctl(PR_SET_DUMPABLE, 1) < 0)
		return 97;
	if (unshare(CLONE_NEWUSER) < 0)
		return 77; /* not on this machine */
	if (write_file("/proc/self/uid_map", map) < 0)
		return 96;
	return ask(roots_path, OVERFLOW);
}

static int from_within(const char *roots_path, uint32_t server)
{
	pid_t child;
	int r;

	serve(server, server);
	child = fork();
	if (child == 0)
		_exit(ask_from_within(roots_path));
	r = wait_for(child);
	hang_up();
	return r;
}

static void in_a_user_namespace_roots_own_path_is_known_though_root_has_no_number(void **state)
{
	int r = from_within(path, 0);

	(void)state;
	if (r == 77)
		return;
	assert_int_equal(r, 0);
	assert_int_equal(from_within(NOWHERE, 0), 1);
	assert_int_equal(from_within(NOWHERE, USER), 0); /* it is user 0 there */
}

static void outside_of_one_the_overflow_user_is_a_user_like_any(void **state)
{
	pid_t child;
	int r;

	(void)state;
	serve(OVERFLOW, OVERFLOW);
	child = fork();
	if (child == 0)
		_exit(setresuid(USER, USER, USER) < 0 ? 97 : ask(path, OVERFLOW));
	r = wait_for(child);
	hang_up();
	assert_int_equal(r, 1);
}

/* FOLDER/in/file, and what of it belongs to whom with which mode. */
struct owned {
	char in[64], file[80];
};

static void make_owned(struct owned *o)
{
	snprintf(o->in, sizeof(o->in), "%s/in", folder);
	snprintf(o->file, sizeof(o->file), "%s/file", o->in);
	assert_int_equal(chown(folder, 0, 0), 0);
	assert_int_equal(mkdir(o->in, 0755), 0);
	close(open(o->file, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
}

static void remove_owned(struct owned *o)
{
	assert_int_equal(unlink(o->file), 0);
	assert_int_equal(rmdir(o->in), 0);
}

static void own(const char *at, uid_t user, gid_t group, mode_t mode)
{
	assert_int_equal(chown(at, user, group), 0);
	assert_int_equal(chmod(at, mode), 0);
}

/* culprit: NULL if the file is good. */
static void assert_owned(const struct owned *o, const char *culprit)
{
	char ret[PATH_MAX];

	assert_int_equal(gp_owned_path(o->file, ret), culprit ? -EPERM : 0);
	assert_string_equal(ret, culprit ? culprit : o->file);
}

static void a_file_is_ours_if_nobody_else_can_write_it_or_a_folder_above(void **state)
{
	struct owned o;
	const char *parts[] = { o.file, o.in };

	(void)state;
	make_owned(&o);
	assert_owned(&o, NULL);
	for (size_t i = 0; i < 2; i++) {
		own(parts[i], 0, 0, 0775); /* root's own group */
		assert_owned(&o, NULL);
		own(parts[i], 0, USER, 0775);
		assert_owned(&o, parts[i]);
		own(parts[i], 0, USER, 0755);
		assert_owned(&o, NULL);
		own(parts[i], 0, 0, 0757);
		assert_owned(&o, parts[i]);
		own(parts[i], USER, 0, 0755);
		assert_owned(&o, parts[i]);
		own(parts[i], 0, 0, 0755);
	}
	own(o.in, 0, 0, 01777); /* as /tmp, which is above it all */
	assert_owned(&o, NULL);
	own(o.file, 0, 0, 01757);
	assert_owned(&o, o.file);
	own(o.file, USER, 0, 0644);
	assert_owned(&o, o.file);
	remove_owned(&o);
}

static int look_as(uint32_t user, uint32_t group, const char *file)
{
	char ret[PATH_MAX];
	pid_t child = fork();

	if (child == 0)
		_exit(setresgid(group, group, group) < 0 || setresuid(user, user, user) < 0
			      ? 97
			      : -gp_owned_path(file, ret));
	return wait_for(child);
}

static void a_users_own_files_are_his_with_a_group_that_is_his_alone(void **state)
{
	struct owned o;

	(void)state;
	make_owned(&o);
	own(o.file, USER, USER, 0664);
	assert_int_equal(look_as(USER, USER, o.file), 0);
	assert_int_equal(look_as(USER, OTHER, o.file), EPERM);
	assert_int_equal(look_as(OTHER, USER, o.file), EPERM);
	own(o.file, USER, OTHER, 0664);
	assert_int_equal(look_as(USER, OTHER, o.file), EPERM); /* others may be in that one */
	own(o.file, OTHER, OTHER, 0644);
	assert_int_equal(look_as(USER, USER, o.file), EPERM);
	remove_owned(&o);
}

static void a_link_is_followed_and_what_it_leads_to_counts(void **state)
{
	char link[80], ret[PATH_MAX];
	struct owned o;

	(void)state;
	make_owned(&o);
	snprintf(link, sizeof(link), "%s/link", folder);
	assert_int_equal(symlink(o.file, link), 0);
	assert_int_equal(gp_owned_path(link, ret), 0);
	assert_string_equal(ret, o.file);
	own(o.in, USER, 0, 0755);
	assert_int_equal(gp_owned_path(link, ret), -EPERM);
	assert_string_equal(ret, o.in);
	remove_owned(&o);
	assert_int_equal(gp_owned_path(link, ret), -ENOENT);
	assert_string_equal(ret, link);
	assert_int_equal(unlink(link), 0);
}

static int prepare(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/sock", folder);
	return chmod(folder, 0755);
}

static int clean_up(void **state)
{
	(void)state;
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(root_and_oneself_are_served_by_and_nobody_else),
		cmocka_unit_test(a_folder_of_anybody_else_than_the_server_is_refused),
		cmocka_unit_test(in_a_user_namespace_roots_own_path_is_known_though_root_has_no_number),
		cmocka_unit_test(outside_of_one_the_overflow_user_is_a_user_like_any),
		cmocka_unit_test(a_file_is_ours_if_nobody_else_can_write_it_or_a_folder_above),
		cmocka_unit_test(a_users_own_files_are_his_with_a_group_that_is_his_alone),
		cmocka_unit_test(a_link_is_followed_and_what_it_leads_to_counts),
	};

	if (getuid() != 0) {
		puts("1..0 # SKIP needs root, to be several users");
		return 0;
	}
	return cmocka_run_group_tests(tests, prepare, clean_up);
}
