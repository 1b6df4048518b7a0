// SPDX-License-Identifier: MIT
#include <malloc.h>
#include <string.h>

#include "daemon/binder.h"
#include "daemon/conf.h"
#include "daemon/dbg.h"
#include "daemon/log.h"
#include "daemon/manager.h"

static int serve(struct gp_conf *conf)
{
	static struct gp_manager m;
	int r;

	gp_log_open(conf->root);
	r = gp_manager_open(&m, conf);
	if (r == 0)
		r = gp_manager_run(&m);
	gp_manager_close(&m);
	if (r < 0 && !m.is_told)
		(void)gp_die("cannot go on: %s", strerror(-r));
	return r < 0;
}

int main(int argc, char **argv)
{
	struct gp_conf conf;
	int status;

	/* What a scan needs goes back to the system: the C library keeps more the more there was. */
	(void)mallopt(M_MMAP_THRESHOLD, 32 * 1024);
	(void)mallopt(M_ARENA_MAX, 1); /* nor is there anything for a second thread to keep */
	if (gp_conf_parse(&conf, argc, argv, &status) == 0)
		status = conf.dbg_pid      ? gp_dbg_main(conf.dbg_pid, conf.dbg_uid)
			 : conf.attach_pid ? gp_binder_main(conf.attach_pid)
					   : serve(&conf);
	gp_conf_free(&conf);
	return status;
}
