// SPDX-License-Identifier: MIT
#include "daemon/account.h"

#include <errno.h>
#include <gpreempt/gpreempt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/log.h"
#include "daemon/subuid.h"

#define LINES_BURST 20
#define LINES_A_SECOND 2
#define IDLE_NS (60 * GP_S)

const struct gp_limits gp_limits_of_root = { .peers = 4096,
					     .processes = 8192,
					     .queues = 65536,
					     .holds = 65536,
					     .requests = 16384,
					     .items = 262144,
					     .debuggers = 64,
					     .followers = 1024,
					     .unread = 64u << 20 };

bool gp_identity_is_root(const struct gp_identity *id)
{
	return id->uid == 0 && id->is_administrator && id->user_ns == gp_process_self()->user_ns;
}

bool gp_identity_is_local(const struct gp_identity *id)
{
	const struct gp_identity *self = gp_process_self();

	return id->user_ns && id->user_ns == self->user_ns && id->pid_ns == self->pid_ns &&
	       id->root[0] == self->root[0] && id->root[1] == self->root[1];
}

bool gp_identity_is_made_by_root(const struct gp_identity *id)
{
	return id->user_ns == gp_process_self()->user_ns ||
	       (id->user_ns_owner == geteuid() && !id->container);
}

void gp_accounts_init(struct gp_accounts *a, struct gp_loop *loop, const char *root,
		      const struct gp_limits *limits)
{
	*a = (struct gp_accounts){ .loop = loop, .root = root, .limits = limits, .last_id = 1ull << 63 };
	gp_list_init(&a->all);
}

/*
 * By what those inside cannot change.  In a container that somebody made who may do so here, root may
 * take any uid, and make namespaces without end.  In a user namespace that somebody else made, all uids
 * are that one's, or lent to that one.
 */
uint64_t gp_account_key(const struct gp_accounts *a, const struct gp_identity *id)
{
	if (gp_identity_is_root(id))
		return GP_ACCOUNT_ROOT;
	if (id->container)
		return GP_ACCOUNT_NAMESPACE | id->container;
	if (!id->user_ns || id->user_ns == gp_process_self()->user_ns)
		return gp_subuid_owner(a->root, id->uid);
	if (id->user_ns_owner != UINT32_MAX)
		return gp_subuid_owner(a->root, id->user_ns_owner);
	return GP_ACCOUNT_NAMESPACE | id->user_ns;
}

static struct gp_account *new_account(struct gp_accounts *a, uint64_t key)
{
	struct gp_account *account = calloc(1, sizeof(*account));

	if (!account || gp_map_put(&a->by_key, key, account) < 0) {
		free(account);
		return NULL;
	}
	account->key = key;
	account->id = ++a->last_id;
	account->most = key == GP_ACCOUNT_ROOT ? &gp_limits_of_root : a->limits;
	account->idle_ns = a->loop->now_ns;
	gp_list_append(&a->all, &account->all);
	return account;
}

int gp_account_get(struct gp_accounts *a, uint64_t key, struct gp_account **ret)
{
	struct gp_account *account = gp_map_get(&a->by_key, key);
	int r = 0;

	if (!account)
		account = new_account(a, key);
	if (!account)
		return -ENOMEM;
	if (!account->users)
		r = gp_turns_open(a->loop, &account->turns);
	if (r < 0)
		return r;
	account->users++;
	*ret = account;
	return 0;
}

void gp_account_put(struct gp_accounts *a, struct gp_account *account)
{
	if (!account || --account->users)
		return;
	gp_turns_close(a->loop, &account->turns);
	account->idle_ns = a->loop->now_ns;
}

static void free_account(struct gp_accounts *a, struct gp_account *account)
{
	gp_map_remove(&a->by_key, account->key);
	gp_list_remove(&account->all);
	free(account);
}

void gp_accounts_tidy(struct gp_accounts *a, bool (*is_needed)(void *arg, const struct gp_account *account),
		      void *arg)
{
	gp_list_each_safe(pos, &a->all) {
		struct gp_account *one = gp_container(pos, struct gp_account, all);

		if (!one->users && a->loop->now_ns - one->idle_ns > IDLE_NS && !is_needed(arg, one))
			free_account(a, one);
	}
}

void gp_accounts_free(struct gp_accounts *a)
{
	gp_list_each_safe(pos, &a->all)
		free_account(a, gp_container(pos, struct gp_account, all));
	gp_map_free(&a->by_key);
}

struct gp_account *gp_account_largest(const struct gp_accounts *a)
{
	struct gp_account *largest = NULL;

	gp_list_each(pos, &a->all) {
		struct gp_account *one = gp_container(pos, struct gp_account, all);

		if (one->key != GP_ACCOUNT_ROOT && (!largest || one->now.peers > largest->now.peers))
			largest = one;
	}
	return largest;
}

const char *gp_account_name(const struct gp_account *a, char *text, size_t size)
{
	if (a->key == GP_ACCOUNT_ROOT)
		snprintf(text, size, "root");
	else if (a->key & GP_ACCOUNT_CLASS)
		snprintf(text, size, "containers that are %s",
			 a->key == (GP_ACCOUNT_CLASS | GP_CLASS_ONLINE) ? "online" : "offline");
	else
		snprintf(text, size, "%s %u", a->key & GP_ACCOUNT_NAMESPACE ? "namespace" : "user",
			 (uint32_t)a->key);
	return text;
}

const char *gp_accounts_name(const struct gp_accounts *a, uint64_t id, char *text, size_t size)
{
	gp_list_each(pos, &a->all) {
		const struct gp_account *one = gp_container(pos, struct gp_account, all);

		if (one->id == id)
			return gp_account_name(one, text, size);
	}
	snprintf(text, size, "somebody");
	return text;
}

bool gp_bucket_take(struct gp_bucket *b, uint32_t burst, uint32_t rate, uint64_t now_ns)
{
	uint64_t back = (now_ns - b->last_ns) / (GP_S / rate);

	if (back) {
		b->used = back < b->used ? b->used - (uint32_t)back : 0;
		b->last_ns = b->used ? b->last_ns + back * (GP_S / rate) : now_ns;
	}
	if (b->used >= burst)
		return false;
	b->used++;
	return true;
}

void gp_account_log(struct gp_account *a, uint64_t now_ns, const struct gp_about *about, const char *fmt, ...)
{
	char text[400], name[32];
	va_list args;

	if (a && !gp_bucket_take(&a->lines, LINES_BURST, LINES_A_SECOND, now_ns)) {
		a->lines_left_out++;
		return;
	}
	if (a && a->lines_left_out) {
		gp_log("%llu lines about %s were left out", (unsigned long long)a->lines_left_out,
		       gp_account_name(a, name, sizeof(name)));
		a->lines_left_out = 0;
	}
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	gp_log_about(about, "%s", text);
}
