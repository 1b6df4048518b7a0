// SPDX-License-Identifier: MIT
/* The plug-in of Slurm's in a slurmstepd made of nothing: what it declares, and what it tells at a step's
 * end. */
#include "unit.h"

#include <dlfcn.h>
#include <errno.h>
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <slurm/spank.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "discover/discover.h"
#include "base/time.h"
#include "fake_daemon.h"
#include "slurm/controller.h"

#define JOB 7

static char place[64];
static struct fake_daemon fake;
static void *plugin;
static struct spank_option *class_option;
static uint32_t tasks;     /* of the step, here */
static bool has_no_memory; /* to share */
static char said[256];     /* last, in slurmd's log */

/* slurmctld: what is asked and changed in another process is seen in this one. */
static struct controller {
	uint32_t loads, updates;         /* that were tried */
	uint32_t bad_loads, bad_updates; /* so many of them, the first, fail with that */
	int error;
	bool hangs;
	char comment[4096];
} * controller;

/* The plug-in's, too. */
void *mmap(void *at, size_t size, int prot, int flags, int fd, off_t offset)
{
	if (has_no_memory && flags & MAP_SHARED) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	return (void *)syscall(SYS_mmap, at, size, prot, flags, fd, offset);
}

/* What slurmstepd has. */

int spank_remote(spank_t sp)
{
	(void)sp;
	return 1;
}

spank_err_t spank_option_register(spank_t sp, struct spank_option *option)
{
	(void)sp;
	if (!strcmp(option->name, "gpreempt"))
		class_option = option;
	return ESPANK_SUCCESS;
}

spank_err_t spank_get_item(spank_t sp, spank_item_t item, ...)
{
	va_list args;
	void *ret;

	(void)sp;
	va_start(args, item);
	ret = va_arg(args, void *);
	va_end(args);
	if (item == S_TASK_PID)
		*(pid_t *)ret = getpid();
	else
		*(uint32_t *)ret = item == S_JOB_ID ? JOB : item == S_JOB_LOCAL_TASK_COUNT ? tasks : 0;
	return ESPANK_SUCCESS;
}

spank_err_t spank_getenv(spank_t sp, const char *name, char *text, int size)
{
	(void)sp;
	(void)name;
	(void)text;
	(void)size;
	return ESPANK_ENV_NOEXIST;
}

spank_err_t spank_setenv(spank_t sp, const char *name, const char *value, int overwrite)
{
	(void)sp;
	(void)name;
	(void)value;
	(void)overwrite;
	return ESPANK_SUCCESS;
}

void slurm_error(const char *format, ...)
{
	(void)format;
}

void slurm_info(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(said, sizeof(said), format, args);
	va_end(args);
}

void slurm_spank_log(const char *format, ...)
{
	(void)format;
}

int slurm_load_job(job_info_msg_t **ret, uint32_t job, uint16_t flags)
{
	static job_info_t info;
	static job_info_msg_t all;

	(void)flags;
	while (controller->hangs)
		(void)pause();
	if (controller->loads++ < controller->bad_loads) {
		errno = controller->error;
		return SLURM_ERROR;
	}
	info = (job_info_t){ .job_id = job, .comment = controller->comment };
	all = (job_info_msg_t){ .record_count = 1, .job_array = &info };
	*ret = &all;
	return SLURM_SUCCESS;
}

void slurm_free_job_info_msg(job_info_msg_t *all)
{
	(void)all;
}

void slurm_init_job_desc_msg(job_desc_msg_t *change)
{
	memset(change, 0, sizeof(*change));
}

int slurm_update_job(job_desc_msg_t *change)
{
	if (controller->updates++ < controller->bad_updates) {
		errno = controller->error;
		return SLURM_ERROR;
	}
	snprintf(controller->comment, sizeof(controller->comment), "%s", change->comment);
	return SLURM_SUCCESS;
}

static int call(const char *name, int argc, char **argv)
{
	spank_f *fn = (spank_f *)dlsym(plugin, name);

	assert_non_null(fn);
	return fn(NULL, argc, argv);
}

/* What is in plugstack.conf beside the socket. The plug-in keeps the texts. */
static void read_settings(const char *more)
{
	static char socket[sizeof(place) + 8];
	char *argv[] = { socket, (char *)more };

	snprintf(socket, sizeof(socket), "socket=%s", place);
	assert_int_equal(call("slurm_spank_init", more ? 2 : 1, argv), 0);
}

/* A step of so many tasks of a job that is offline, up to where its tasks are there. */
static void begin_step(uint32_t n)
{
	tasks = n;
	assert_int_equal(class_option->cb(class_option->val, "offline", 1), 0);
	assert_int_equal(call("slurm_spank_init_post_opt", 0, NULL), 0);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(call("slurm_spank_task_post_fork", 0, NULL), 0);
}

static void a_step_is_declared_once_with_the_start_of_its_slurmstepd_and_the_usual_weight(void **state)
{
	(void)state;
	read_settings(NULL);
	begin_step(3);
	assert_int_equal(fake_seen(&fake, GP_MSG_JOB, 1), 1);
	assert_string_equal(fake.job.name, "slurm 7.0");
	assert_int_equal(fake.job.pid, getpid());
	assert_true(fake.job.start != 0 && fake.job.start == gp_proc_start("", (uint32_t)getpid()));
	assert_int_equal(fake.job.client_class, GP_CLASS_OFFLINE);
	assert_int_equal(fake.job.weight, 100);
}

static void what_a_step_had_is_told_when_the_last_of_its_tasks_has_ended_and_once(void **state)
{
	uint32_t asked;

	(void)state;
	read_settings(NULL);
	begin_step(2);
	(void)call("slurm_spank_task_exit", 0, NULL);
	assert_int_equal(controller->updates, 0);
	(void)call("slurm_spank_task_exit", 0, NULL);
	assert_int_equal(controller->updates, 1);
	assert_non_null(strstr(controller->comment, ": offline, ran 0 s"));
	asked = fake_seen(&fake, GP_MSG_JOBS, 1);
	(void)call("slurm_spank_exit", 0, NULL);
	assert_int_equal(controller->updates, 1);
	assert_int_equal(fake_seen(&fake, GP_MSG_JOBS, 1), asked);
}

/* slurmstepd does not wait for its tasks where another plug-in failed after they were there. */
static void what_a_step_had_is_told_where_its_tasks_were_not_seen_to_end(void **state)
{
	(void)state;
	read_settings(NULL);
	begin_step(2);
	(void)call("slurm_spank_task_exit", 0, NULL);
	(void)call("slurm_spank_exit", 0, NULL);
	assert_int_equal(controller->updates, 1);
	assert_non_null(strstr(controller->comment, ": offline, ran 0 s"));
}

static void why_a_comment_has_no_entry_is_in_the_log(void **state)
{
	(void)state;
	read_settings(NULL);
	memset(controller->comment, 'x', sizeof(controller->comment) - 1);
	begin_step(1);
	(void)call("slurm_spank_task_exit", 0, NULL);
	assert_string_equal(said, "gpreempt: nothing added to the comment of job 7: there is no room in it");
}

static void a_slurmctld_that_refuses_the_comment_is_said_to_in_the_log(void **state)
{
	(void)state;
	read_settings(NULL);
	controller->bad_updates = 1;
	controller->error = ESLURM_ACCESS_DENIED;
	begin_step(1);
	(void)call("slurm_spank_task_exit", 0, NULL);
	assert_string_equal(said, "gpreempt: nothing added to the comment of job 7: slurmctld refuses");
}

/* gpreemptd was there before, and takes no job now. The tasks are forked, and wait. */
static int start_in_task(void)
{
	int fds[2], status;
	pid_t pid;
	char go;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (pid == 0)
		_exit(read(fds[0], &go, 1) == 1 && call("slurm_spank_task_init", 0, NULL) == 0 ? 0 : 1);
	(void)call("slurm_spank_task_post_fork", 0, NULL);
	assert_int_equal(write(fds[1], "", 1), 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	close(fds[0]);
	close(fds[1]);
	return WEXITSTATUS(status);
}

static void a_job_that_gpreemptd_refuses_when_its_tasks_are_there_does_not_start_where_one_is_required(
	void **state)
{
	(void)state;
	fake.error_at = GP_MSG_JOB;
	fake.error = -ENOSPC;
	read_settings("require");
	begin_step(0);
	assert_int_equal(start_in_task(), 1);
	assert_int_equal(fake_seen(&fake, GP_MSG_JOB, 1), 1);
}

static void a_job_that_gpreemptd_refuses_when_its_tasks_are_there_starts_elsewhere(void **state)
{
	(void)state;
	fake.error_at = GP_MSG_JOB;
	fake.error = -ENOSPC;
	read_settings(NULL);
	begin_step(0);
	assert_int_equal(start_in_task(), 0);
}

static void a_job_that_could_not_be_told_whether_to_start_does_so_only_where_no_gpreemptd_is_required(
	void **state)
{
	(void)state;
	has_no_memory = true;
	read_settings("require");
	begin_step(0);
	assert_int_equal(start_in_task(), 1);
	assert_int_equal(fake_seen(&fake, GP_MSG_JOB, 1), 0);
}

static void a_job_that_could_not_be_told_whether_to_start_is_scheduled_elsewhere(void **state)
{
	(void)state;
	has_no_memory = true;
	read_settings(NULL);
	begin_step(0);
	assert_int_equal(start_in_task(), 0);
	assert_int_equal(fake_seen(&fake, GP_MSG_JOB, 1), 1);
}

static void a_gpreemptd_that_went_before_the_tasks_are_declared_is_as_good_as_none(void **state)
{
	(void)state;
	read_settings("require");
	begin_step(0);
	fake_end(&fake);
	assert_int_equal(start_in_task(), 1);
	assert_int_equal(fake_start(&fake, place), 0);
}

/* What the plug-in knows of a step goes with it. */
static int load(void **state)
{
	char path[512];

	(void)state;
	memset(controller, 0, sizeof(*controller));
	memset(&fake, 0, sizeof(fake));
	has_no_memory = false;
	fake.features = GP_FEATURE_JOBS;
	snprintf(place, sizeof(place), "/tmp/gpreempt-test-spank-%d", (int)getpid());
	snprintf(path, sizeof(path), "%s/gpreempt-slurm.so", getenv("GPREEMPT_BUILD"));
	plugin = dlopen(path, RTLD_NOW);
	return plugin ? fake_start(&fake, place) : -1;
}

static int unload(void **state)
{
	(void)state;
	fake_stop(&fake);
	return dlclose(plugin);
}

/* As gpreempt slurm-comment left it, when the step had all that it was to have. */
static void a_steps_entry_takes_the_place_of_what_it_has_had_so_far_where_that_is_as_much(void **state)
{
	char whole[sizeof(controller->comment)];

	(void)state;
	read_settings(NULL);
	begin_step(1);
	(void)call("slurm_spank_task_exit", 0, NULL);
	snprintf(whole, sizeof(whole), "%s", controller->comment);
	unload(state);
	load(state);
	snprintf(controller->comment, sizeof(controller->comment), "%.300s, so far; mine", whole);
	read_settings(NULL);
	begin_step(1);
	(void)call("slurm_spank_task_exit", 0, NULL);
	assert_memory_equal(controller->comment, "mine; ", 6);
	assert_string_equal(controller->comment + 6, whole);
}

static void nobody_is_left(void)
{
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

static void while_slurmctld_is_away_the_comment_is_tried_again(void **state)
{
	(void)state;
	controller->bad_loads = controller->bad_updates = 2;
	controller->error = SLURMCTLD_COMMUNICATIONS_CONNECTION_ERROR;
	read_settings(NULL);
	begin_step(1);
	(void)call("slurm_spank_task_exit", 0, NULL);
	assert_non_null(strstr(controller->comment, ": offline, ran 0 s"));
	assert_int_equal(controller->updates, 3);
	nobody_is_left();
}

static void a_comment_that_slurmctld_refuses_is_not_tried_again(void **state)
{
	(void)state;
	controller->bad_updates = 2;
	controller->error = ESLURM_JOB_FINISHED;
	assert_int_equal(gp_slurm_job_comment(JOB, "gpreempt 0@n1: it", 60 * GP_S), -EIO);
	assert_int_equal(controller->updates, 1);
	assert_string_equal(controller->comment, "");
	nobody_is_left();
}

static void a_slurmctld_that_hangs_is_waited_for_as_long_as_is_said(void **state)
{
	struct gp_slurm_job job;
	uint64_t begun = fake_now();

	(void)state;
	controller->hangs = true;
	assert_int_equal(gp_slurm_job_comment(JOB, "gpreempt 0@n1: it", 200 * GP_MS), -ETIMEDOUT);
	assert_int_equal(gp_slurm_job_get(JOB, 200 * GP_MS, &job), -ETIMEDOUT);
	assert_in_range(fake_now() - begun, 400 * GP_MS, 20 * GP_S);
	nobody_is_left();
}

/* A job may be online by its partition or its quality of service; where neither is set, nobody may. */
static void without_a_setting_nobody_is_online_and_slurmctld_is_not_asked(void **state)
{
	(void)state;
	read_settings(NULL);
	tasks = 1;
	assert_int_equal(class_option->cb(class_option->val, "online", 1), 0);
	assert_int_equal(call("slurm_spank_init_post_opt", 0, NULL), 0);
	(void)call("slurm_spank_task_post_fork", 0, NULL);
	assert_int_equal(fake_seen(&fake, GP_MSG_JOB, 1), 1);
	assert_int_equal(fake.job.client_class, GP_CLASS_OFFLINE);
	assert_int_equal(controller->loads, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_step_is_declared_once_with_the_start_of_its_slurmstepd_and_the_usual_weight, load,
			unload),
		cmocka_unit_test_setup_teardown(
			what_a_step_had_is_told_when_the_last_of_its_tasks_has_ended_and_once, load, unload),
		cmocka_unit_test_setup_teardown(what_a_step_had_is_told_where_its_tasks_were_not_seen_to_end,
						load, unload),
		cmocka_unit_test_setup_teardown(
			a_steps_entry_takes_the_place_of_what_it_has_had_so_far_where_that_is_as_much, load,
			unload),
		cmocka_unit_test_setup_teardown(why_a_comment_has_no_entry_is_in_the_log, load, unload),
		cmocka_unit_test_setup_teardown(a_slurmctld_that_refuses_the_comment_is_said_to_in_the_log,
						load, unload),
		cmocka_unit_test_setup_teardown(
			a_job_that_gpreemptd_refuses_when_its_tasks_are_there_does_not_start_where_one_is_required,
			load, unload),
		cmocka_unit_test_setup_teardown(
			a_job_that_gpreemptd_refuses_when_its_tasks_are_there_starts_elsewhere, load, unload),
		cmocka_unit_test_setup_teardown(
			a_job_that_could_not_be_told_whether_to_start_does_so_only_where_no_gpreemptd_is_required,
			load, unload),
		cmocka_unit_test_setup_teardown(
			a_job_that_could_not_be_told_whether_to_start_is_scheduled_elsewhere, load, unload),
		cmocka_unit_test_setup_teardown(
			a_gpreemptd_that_went_before_the_tasks_are_declared_is_as_good_as_none, load, unload),
		cmocka_unit_test_setup_teardown(while_slurmctld_is_away_the_comment_is_tried_again, load,
						unload),
		cmocka_unit_test_setup_teardown(a_comment_that_slurmctld_refuses_is_not_tried_again, load,
						unload),
		cmocka_unit_test_setup_teardown(a_slurmctld_that_hangs_is_waited_for_as_long_as_is_said, load,
						unload),
		cmocka_unit_test_setup_teardown(without_a_setting_nobody_is_online_and_slurmctld_is_not_asked,
						load, unload),
	};

	controller =
		mmap(NULL, sizeof(*controller), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (controller == MAP_FAILED)
		return 1;

	return cmocka_run_group_tests_name("spank", tests, NULL, NULL);
}
