// SPDX-License-Identifier: MIT
/* A socket that everybody comes to, and what lies in its place. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/file.h"
#include "base/listen.h"

static char folder[] = "/tmp/gpreempt-listen-XXXXXX", path[64], lock[80];

static void assert_opens(struct gp_listen *l)
{
	assert_int_equal(gp_listen_open(l, "the test", path, false), 0);
}

static void assert_refused(const char *at, int status, const char *said)
{
	struct gp_listen l;

	assert_int_equal(gp_listen_open(&l, "the test", at, false), status);
	assert_non_null(strstr(l.error, said));
	assert_int_equal(l.fd, -1);
	assert_int_equal(l.lock, -1);
}

static int connected(void)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	strcpy(at.sun_path, path);
	if (connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0)
		return fd;
	close(fd);
	return -errno;
}

static void assert_serves(void)
{
	int fd = connected();

	assert_true(fd >= 0);
	close(fd);
}

static void everybody_may_come_to_roots_and_the_user_alone_to_another_ones(void **state)
{
	struct gp_listen l;
	struct stat st;

	(void)state;
	assert_opens(&l);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, geteuid() == 0 ? 0666 : 0600);
	assert_int_equal(stat(lock, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_serves();
	gp_listen_close(&l);
	assert_int_equal(connected(), -ENOENT);
}

static mode_t mode_of(const char *at)
{
	struct stat st;

	assert_int_equal(stat(at, &st), 0);
	return st.st_mode & 0777;
}

static void a_socket_behind_a_folder_is_for_whoever_has_the_inner_one_alone(void **state)
{
	char outer[64], inner[80], beside[80];
	struct gp_listen l;

	(void)state;
	snprintf(outer, sizeof(outer), "%s/outer", folder);
	snprintf(inner, sizeof(inner), "%s/online", outer);
	snprintf(beside, sizeof(beside), "%s/online.lock", outer);
	assert_int_equal(mkdir(outer, 0755), 0); /* as one who mounts it makes it */
	for (int i = 0; i < 2; i++) {
		assert_int_equal(gp_listen_open_behind(&l, "the test", outer, "online", false), 0);
		assert_int_equal(mode_of(outer), 0700);
		assert_int_equal(mode_of(inner), 0755);
		assert_int_equal(mode_of(l.path), geteuid() == 0 ? 0666 : 0600);
		assert_int_equal(mode_of(beside), 0600);
		gp_listen_close(&l);
		assert_int_equal(access(l.path, F_OK), -1);
	}
	unlink(beside);
	assert_int_equal(rmdir(inner), 0); /* nothing was left in it */
	assert_int_equal(rmdir(outer), 0);
}

static void a_folder_with_other_things_keeps_its_mode_and_is_refused(void **state)
{
	char outer[64], thing[80];
	struct gp_listen l;

	(void)state;
	snprintf(outer, sizeof(outer), "%s/outer", folder);
	snprintf(thing, sizeof(thing), "%s/thing", outer);
	assert_int_equal(mkdir(outer, 0755), 0);
	assert_int_equal(mkdir(thing, 0755), 0);
	assert_int_equal(gp_listen_open_behind(&l, "the test", outer, "online", false), -ENOTEMPTY);
	assert_non_null(strstr(l.error, "as thing; choose an empty folder by --class-sockets"));
	assert_int_equal(mode_of(outer), 0755);
	assert_int_equal(chmod(outer, 0700), 0); /* as it must be: nobody is shut out by us */
	assert_int_equal(gp_listen_open_behind(&l, "the test", outer, "online", false), 0);
	gp_listen_close(&l);
	assert_int_equal(unlink(l.lock_path), 0);
	*strrchr(l.path, '/') = '\0';
	assert_int_equal(rmdir(l.path), 0);
	assert_int_equal(rmdir(thing), 0);
	assert_int_equal(rmdir(outer), 0);
}

static void a_link_in_the_place_of_a_class_is_not_followed_and_left_alone(void **state)
{
	char outer[64], inner[80], elsewhere[80];
	struct gp_listen l;

	(void)state;
	snprintf(outer, sizeof(outer), "%s/outer", folder);
	snprintf(inner, sizeof(inner), "%s/online", outer);
	snprintf(elsewhere, sizeof(elsewhere), "%s/elsewhere", folder);
	assert_int_equal(mkdir(outer, 0700), 0);
	assert_int_equal(mkdir(elsewhere, 0700), 0);
	assert_int_equal(symlink(elsewhere, inner), 0);
	assert_int_equal(gp_listen_open_behind(&l, "the test", outer, "online", false), -EEXIST);
	assert_int_equal(mode_of(elsewhere), 0700);
	assert_int_equal(unlink(inner), 0);
	assert_int_equal(rmdir(outer), 0);
	assert_int_equal(symlink(elsewhere, outer), 0);
	assert_int_equal(gp_listen_open_behind(&l, "the test", outer, "online", false), -ENOTDIR);
	assert_int_equal(unlink(outer), 0);
	assert_int_equal(rmdir(elsewhere), 0); /* nothing was put there */
}

static void a_folder_of_another_user_is_not_listened_in(void **state)
{
	bool is_root = geteuid() == 0;
	char theirs[64] = "/usr";
	struct gp_listen l;
	mode_t before;

	(void)state;
	if (is_root) {
		snprintf(theirs, sizeof(theirs), "%s/theirs", folder);
		assert_int_equal(mkdir(theirs, 0755), 0);
		assert_int_equal(chown(theirs, 4711, 4711), 0);
	}
	before = mode_of(theirs);
	assert_int_equal(gp_listen_open_behind(&l, "the test", theirs, "online", false), -EPERM);
	assert_non_null(strstr(l.error, is_root ? "is user 4711's" : "is user 0's"));
	assert_int_equal(mode_of(theirs), before);
	if (is_root)
		assert_int_equal(rmdir(theirs), 0);
}

static void each_message_bears_who_sent_it(void **state)
{
	struct gp_listen l;
	int fd, accepted, yes = 0;
	socklen_t size = sizeof(yes);

	(void)state;
	assert_opens(&l);
	fd = connected();
	accepted = accept(l.fd, NULL, NULL);
	assert_true(accepted >= 0);
	assert_int_equal(getsockopt(accepted, SOL_SOCKET, SO_PASSCRED, &yes, &size), 0);
	assert_int_equal(yes, 1);
	close(accepted);
	close(fd);
	gp_listen_close(&l);
}

/* What the kernel of this machine can do decides; on an old one it must not be claimed. */
static void descriptors_are_not_said_to_be_barred_where_they_are_not(void **state)
{
	struct gp_listen l;
	int fd, accepted;

	(void)state;
	assert_int_equal(gp_listen_open(&l, "the test", path, true), 0);
	fd = connected();
	accepted = accept(l.fd, NULL, NULL);
	assert_false(gp_listen_bars_descriptors(accepted));
	close(accepted);
	close(fd);
	gp_listen_close(&l);
}

static void the_second_is_refused_for_as_long_as_the_first_lives(void **state)
{
	struct gp_listen first, second;

	(void)state;
	assert_opens(&first);
	assert_refused(path, -EADDRINUSE, "another the test listens on");
	assert_serves();
	gp_listen_close(&first);
	assert_opens(&second);
	gp_listen_close(&second);
}

static void the_socket_of_one_that_died_is_taken_over(void **state)
{
	struct gp_listen dead, next;

	(void)state;
	assert_opens(&dead);
	close(dead.fd);
	close(dead.lock);
	assert_int_equal(connected(), -ECONNREFUSED);
	assert_opens(&next);
	assert_serves();
	gp_listen_close(&next);
}

/* As systemd does it. */
static int bound(int type)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	strcpy(at.sun_path, path);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	return fd;
}

static void assert_next_hears(int kept, int fd)
{
	struct gp_listen l;
	int accepted, yes = 0;
	socklen_t size = sizeof(yes);

	assert_int_equal(gp_listen_open_lent(&l, "the test", path, dup(kept), false), 0);
	assert_refused(path, -EADDRINUSE, "another the test listens on");
	accepted = gp_listen_accept(&l);
	assert_true(accepted >= 0);
	assert_int_equal(getsockopt(accepted, SOL_SOCKET, SO_PASSCRED, &yes, &size), 0);
	assert_int_equal(yes, 1);
	assert_int_equal(gp_listen_accept(&l), -EAGAIN); /* it does not wait */
	assert_int_equal(fcntl(l.fd, F_GETFD), FD_CLOEXEC);
	close(accepted);
	close(fd);
	gp_listen_close(&l);
}

static void who_comes_to_a_lent_socket_while_nobody_is_there_is_heard_by_the_next(void **state)
{
	int kept = bound(SOCK_SEQPACKET);

	(void)state;
	assert_int_equal(listen(kept, 8), 0);
	for (int i = 0; i < 2; i++)
		assert_next_hears(kept, connected());
	assert_serves(); /* it is still there */
	close(kept);
	assert_int_equal(unlink(path), 0);
}

static void a_lent_socket_of_another_kind_is_refused_and_left_where_it_is(void **state)
{
	static const int types[] = { SOCK_STREAM, SOCK_SEQPACKET }; /* the second: nobody listens on it */
	struct gp_listen l;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		int kept = bound(types[i]);

		if (i == 0)
			assert_int_equal(listen(kept, 8), 0);
		assert_int_equal(gp_listen_open_lent(&l, "the test", path, dup(kept), false), -EPROTOTYPE);
		assert_non_null(strstr(l.error, "use ListenSequentialPacket= in its unit"));
		assert_int_equal(l.fd, -1);
		close(kept);
		assert_int_equal(unlink(path), 0);
	}
}

static void what_is_no_socket_is_left_alone(void **state)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	char text[8];

	(void)state;
	assert_int_equal(write(fd, "text", 4), 4);
	close(fd);
	assert_refused(path, -EEXIST, "is no socket; it is left alone");
	assert_string_equal(gp_file_text(path, text, sizeof(text)), "text");
	assert_int_equal(unlink(path), 0);
}

static void in_going_nobody_elses_socket_is_removed(void **state)
{
	struct gp_listen first, other;

	(void)state;
	assert_opens(&first);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(unlink(lock), 0);
	assert_opens(&other);
	gp_listen_close(&first);
	assert_serves();
	gp_listen_close(&other);
}

static void a_place_that_cannot_be_is_named(void **state)
{
	char at[200];

	(void)state;
	memset(at, 'a', sizeof(at));
	at[sizeof(at) - 1] = '\0';
	assert_refused(at, -ENAMETOOLONG, "cannot listen on");
	assert_refused("/proc/gpreempt/socket", -ENOENT, "/proc/gpreempt");
	assert_refused("/proc/socket", -ENOENT, "/proc/socket.lock");
}

static void the_beginning_of_a_file_is_read_and_of_none_nothing(void **state)
{
	char text[5] = "old";

	(void)state;
	assert_string_equal(gp_file_text("/nowhere", text, sizeof(text)), "");
	assert_string_equal(gp_file_text("/proc/sys/kernel/ostype", text, sizeof(text)), "Linu");
}

static int prepare(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/sock", folder);
	snprintf(lock, sizeof(lock), "%s.lock", path);
	return 0;
}

static int clean_up(void **state)
{
	(void)state;
	unlink(lock);
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everybody_may_come_to_roots_and_the_user_alone_to_another_ones),
		cmocka_unit_test(a_socket_behind_a_folder_is_for_whoever_has_the_inner_one_alone),
		cmocka_unit_test(a_folder_with_other_things_keeps_its_mode_and_is_refused),
		cmocka_unit_test(a_link_in_the_place_of_a_class_is_not_followed_and_left_alone),
		cmocka_unit_test(a_folder_of_another_user_is_not_listened_in),
		cmocka_unit_test(each_message_bears_who_sent_it),
		cmocka_unit_test(descriptors_are_not_said_to_be_barred_where_they_are_not),
		cmocka_unit_test(the_second_is_refused_for_as_long_as_the_first_lives),
		cmocka_unit_test(the_socket_of_one_that_died_is_taken_over),
		cmocka_unit_test(who_comes_to_a_lent_socket_while_nobody_is_there_is_heard_by_the_next),
		cmocka_unit_test(a_lent_socket_of_another_kind_is_refused_and_left_where_it_is),
		cmocka_unit_test(what_is_no_socket_is_left_alone),
		cmocka_unit_test(in_going_nobody_elses_socket_is_removed),
		cmocka_unit_test(a_place_that_cannot_be_is_named),
		cmocka_unit_test(the_beginning_of_a_file_is_read_and_of_none_nothing),
	};

	return cmocka_run_group_tests(tests, prepare, clean_up);
}
