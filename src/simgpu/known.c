// SPDX-License-Identifier: MIT
#include "simgpu/known.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void gp_simknown_init(struct gp_simknown *k, const struct gp_device_info *devices, uint32_t ndevices,
		      const uint64_t *key, void (*say)(const char *line))
{
	gp_simconn_init(&k->conn, NULL);
	k->devices = devices;
	k->ndevices = ndevices;
	k->key = key;
	k->say = say;
}

static void lose(struct gp_simknown *k, uint64_t now_ns)
{
	gp_simconn_lose(&k->conn, (int)k->is_welcome, now_ns);
	k->is_welcome = 0;
}

static int greet(struct gp_simknown *k)
{
	struct gp_msg_hello *hello = &gp_simconn_begin(&k->conn, GP_MSG_HELLO, 0)->hello;

	hello->role = GP_ROLE_CONTROL; /* it has no queues */
	hello->pid = (uint32_t)getpid();
	hello->features = GP_FEATURES;
	(void)snprintf(hello->name, sizeof(hello->name), "sim-gpu");
	return gp_simconn_send(&k->conn);
}

/* In their order: so they are numbered. The serial says which one an answer is about. */
static int tell(struct gp_simknown *k)
{
	int r = 0;

	k->is_welcome = 1;
	k->conn.features = k->conn.msg.welcome.features;
	for (uint32_t i = 0; i < k->ndevices && r == 0; i++) {
		struct gp_msg *msg = gp_simconn_begin(&k->conn, GP_MSG_DEVICE, i + 1);

		msg->device = k->devices[i];
		memcpy(msg->device_key, k->key, sizeof(msg->device_key));
		r = gp_simconn_send(&k->conn);
	}
	return r;
}

static int refused(struct gp_simknown *k)
{
	uint32_t device = k->conn.msg.serial - 1;
	char about[32] = "refuses", text[256];

	if (!k->is_welcome)
		return -ECONNREFUSED;
	if (device < k->ndevices)
		(void)snprintf(about, sizeof(about), "does not know device %u", device);
	(void)snprintf(text, sizeof(text), "gpreemptd %s: %s", about, k->conn.msg.error.text);
	if (k->say)
		k->say(text);
	return 0;
}

static int hear(struct gp_simknown *k)
{
	int r = gp_simconn_receive(&k->conn);

	if (r < 0)
		return r == -ENOMSG ? 0 : r;
	if (k->conn.msg.type == GP_MSG_WELCOME && !k->is_welcome)
		return tell(k);
	return k->conn.msg.type == GP_MSG_ERROR ? refused(k) : 0;
}

void gp_simknown_turn(struct gp_simknown *k, uint64_t now_ns)
{
	int r = 0;

	if (gp_simconn_is_due(&k->conn, now_ns) && gp_simconn_open(&k->conn, now_ns) == 0) {
		k->greeted_ns = now_ns;
		r = greet(k);
	}
	for (int i = 0; i < GP_SIMCONN_AT_ONCE && r == 0 && k->conn.fd >= 0; i++)
		r = hear(k);
	if ((r == 0 || r == -EAGAIN) && (k->is_welcome || now_ns < k->greeted_ns + GP_SIMCONN_GREETING_NS))
		return;
	if (k->conn.fd >= 0)
		lose(k, now_ns);
}

uint64_t gp_simknown_next_ns(const struct gp_simknown *k)
{
	if (k->conn.fd < 0)
		return k->conn.paths[0][0] ? k->conn.retry_ns : UINT64_MAX;
	return k->is_welcome ? UINT64_MAX : k->greeted_ns + GP_SIMCONN_GREETING_NS;
}

void gp_simknown_close(struct gp_simknown *k)
{
	if (k->conn.fd >= 0)
		close(k->conn.fd);
	k->conn.fd = -1;
}
