// SPDX-License-Identifier: MIT
/* Not a test: another tool for HSA_TOOLS_LIB, which makes queues that it looks into itself, as a profiler
 * does. Counts the launches that it sees, in a file that GPREEMPT_OTHER_TOOL names. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "level/aql.h"
#include "level/rocr_tables.h"

#define EXPORT __attribute__((visibility("default")))

bool OnLoad(struct gp_hsa_tables *tables, uint64_t version, uint64_t nfailed,
	    const char *const *failed) EXPORT;
void OnUnload(void) EXPORT;

static gp_hsa_queue_create *intercept_create;
static gp_hsa_register *intercept_register;
static uint64_t launches;

static void handle(const void *packets, uint64_t n, uint64_t index, void *data, gp_hsa_writer writer)
{
	(void)index;
	(void)data;
	__atomic_add_fetch(&launches, gp_aql_launches(packets, n), __ATOMIC_SEQ_CST);
	writer(packets, n);
}

static int create(gp_hsa_agent agent, uint32_t size, uint32_t type, gp_hsa_error error, void *data,
		  uint32_t private_size, uint32_t group_size, struct gp_hsa_queue **ret)
{
	int r = intercept_create(agent, size, type, error, data, private_size, group_size, ret);

	return r == 0 ? intercept_register(*ret, handle, NULL) : r;
}

bool OnLoad(struct gp_hsa_tables *tables, uint64_t version, uint64_t nfailed, const char *const *failed)
{
	struct gp_rocr_entries e;
	char why[256];

	(void)version;
	(void)nfailed;
	(void)failed;
	if (gp_rocr_entries(tables, &e, why, sizeof(why)) < 0)
		return false;
	intercept_create = *e.intercept_create;
	intercept_register = *e.intercept_register;
	*e.queue_create = create;
	return true;
}

void OnUnload(void)
{
	const char *path = getenv("GPREEMPT_OTHER_TOOL");
	FILE *file = path ? fopen(path, "w") : NULL;

	if (!file)
		return;
	fprintf(file, "%llu\n", (unsigned long long)launches);
	fclose(file);
}
