// SPDX-License-Identifier: MIT
#include "daemon/settings.h"

#include <errno.h>
#include <string.h>

#include "daemon/log.h"
#include "daemon/manager.h"

#define UNKNOWN 1 /* gp_setting.status */

bool gp_settings_reserve(const struct gp_manager *m, uint32_t device)
{
	const struct gp_setting *s = &m->settings.reserves[device];

	return m->settings.session && (m->settings.status == UNKNOWN || (s->told && s->status >= 0));
}

bool gp_settings_background(const struct gp_manager *m, uint32_t device)
{
	const struct gp_setting *s = &m->settings.backgrounds[device];

	return s->told && s->status == 0;
}

static bool is_wanted(const struct gp_manager *m)
{
	return m->nreserves || m->conf->driver_watches;
}

/* What the driver is told */

/* Whether it will be told: else in the next step. */
static bool tell(struct gp_manager *m, const struct kfd_session_args *setting)
{
	struct gp_session_batch *b = gp_session_batch(0);

	if (!b) {
		m->reserves_changed = true;
		return false;
	}
	b->setting = *setting;
	gp_session_give(m->settings.session, b);
	return true;
}

/* Reservations and the background are for whole processes: one with an online queue is online. */
static uint32_t class_of(const struct gp_client *c)
{
	uint32_t class = KFD_SESSION_CLASS_NONE;

	gp_list_each(pos, &c->queues) {
		uint32_t of_queue = gp_container(pos, struct gp_queue, of_client)->client_class;

		if (of_queue == GP_CLASS_ONLINE)
			return KFD_SESSION_CLASS_ONLINE;
		if (of_queue == GP_CLASS_OFFLINE)
			class = KFD_SESSION_CLASS_OFFLINE;
	}
	return class;
}

static void tell_class(struct gp_manager *m, struct gp_client *c)
{
	struct kfd_session_args args = { .op = KFD_SESSION_SET_CLASS };

	/* With another program in its process the driver begins anew. */
	if (gp_list_empty(&c->queues))
		c->told_class = KFD_SESSION_CLASS_NONE;
	args.class.class = is_wanted(m) ? class_of(c) : KFD_SESSION_CLASS_NONE;
	if (!c->start || args.class.class == c->told_class)
		return;
	args.class.pid = c->pid;
	args.class.start_time = c->start;
	if (tell(m, &args))
		c->told_class = args.class.class;
}

static void tell_reserve(struct gp_manager *m, uint32_t device)
{
	const struct gp_reserve *r = &m->reserves[device];
	struct gp_setting *s = &m->settings.reserves[device];
	struct kfd_session_args args = { .op = KFD_SESSION_SET_RESERVATION,
					 .reservation = { .gpu_id =
								  m->world.devices.by_number[device]->gpu_id,
							  .online_percent = r->online_percent,
							  .offline_percent = r->offline_percent } };
	uint32_t wanted = r->online_percent << 8 | r->offline_percent;

	if (wanted != s->told && tell(m, &args))
		*s = (struct gp_setting){ .told = wanted, .status = UNKNOWN };
}

static void tell_background(struct gp_manager *m, uint32_t device)
{
	struct gp_setting *s = &m->settings.backgrounds[device];
	struct kfd_session_args args = { .op = KFD_SESSION_SET_BACKGROUND,
					 .background = { .gpu_id = m->world.devices.by_number[device]->gpu_id,
							 .enable = m->conf->driver_watches } };

	if (args.background.enable != s->told && tell(m, &args))
		*s = (struct gp_setting){ .told = args.background.enable, .status = UNKNOWN };
}

static void tell_all(struct gp_manager *m)
{
	/* First, or online queues would be taken for others. */
	gp_list_each(pos, &m->world.all_clients)
		tell_class(m, gp_container(pos, struct gp_client, all));
	for (uint32_t i = 0; i < GP_MOST_DEVICES; i++) {
		const struct gp_device *device = gp_devices_at(&m->world.devices, i);

		if (device && gp_device_is_kfd(device)) {
			tell_reserve(m, i);
			tell_background(m, i);
		}
	}
}

/* What it answers */

static const char *say_why(int status)
{
	return status == -EPERM   ? "gpreemptd lacks CAP_SYS_ADMIN"
	       : status == -EBUSY ? "another scheduling session does"
				  : strerror(-status);
}

static struct gp_setting *setting_of(struct gp_settings *s, const struct kfd_session_args *args,
				     uint32_t device)
{
	return args->op == KFD_SESSION_SET_RESERVATION ? &s->reserves[device] : &s->backgrounds[device];
}

static void answered(struct gp_manager *m, const struct kfd_session_args *args, int status)
{
	bool is_reserve = args->op == KFD_SESSION_SET_RESERVATION;
	uint32_t device = gp_devices_number(&m->world.devices,
					    is_reserve ? args->reservation.gpu_id : args->background.gpu_id);
	struct gp_setting *s = device < GP_MOST_DEVICES ? setting_of(&m->settings, args, device) : NULL;

	if (!s || s->status == status)
		return;
	s->status = status;
	if (s->told && status == 0)
		gp_log_about(GP_ABOUT_DEVICE(device), "device %u: the driver %s", device,
			     is_reserve ? "keeps the reservation" : "looks for online work itself");
	else if (s->told)
		gp_log_about(GP_ABOUT_DEVICE(device), "device %u: the driver does not %s: %s", device,
			     is_reserve ? "keep the reservation" : "look for online work itself",
			     say_why(status));
	m->reserves_changed = true;
	gp_schedule_caps(m, device);
}

static void forget(struct gp_manager *m)
{
	memset(m->settings.reserves, 0, sizeof(m->settings.reserves));
	memset(m->settings.backgrounds, 0, sizeof(m->settings.backgrounds));
	gp_list_each(pos, &m->world.all_clients)
		gp_container(pos, struct gp_client, all)->told_class = KFD_SESSION_CLASS_NONE;
	for (uint32_t i = 0; i < GP_MOST_DEVICES; i++)
		if (gp_devices_at(&m->world.devices, i))
			gp_schedule_caps(m, i);
	m->reserves_changed = true;
}

/* One that the driver did not know yet, or that another session told of, is told again when it changes. */
static void class_answered(struct gp_manager *m, const struct kfd_session_class *told, int status)
{
	struct gp_client *c = gp_map_get(&m->world.clients, told->pid);

	if (status < 0 && c && c->start == told->start_time)
		c->told_class = KFD_SESSION_CLASS_NONE;
}

static void done(void *arg, struct gp_session_batch *batch)
{
	struct gp_manager *m = arg;
	struct gp_settings *s = &m->settings;

	if (batch->has_ended)
		forget(m);
	if (!batch->setting.op && batch->status != s->status) {
		s->status = batch->status;
		m->reserves_changed = true;
	}
	if (batch->has_ended || !batch->setting.op)
		return;
	if (batch->setting.op == KFD_SESSION_SET_CLASS)
		class_answered(m, &batch->setting.class, batch->status);
	else
		answered(m, &batch->setting, batch->status);
}

/* From beginning to end */

void gp_settings_look(struct gp_manager *m)
{
	struct gp_settings *s = &m->settings;

	if (!s->session && is_wanted(m) && gp_sessions_may_open(m)) {
		s->status = UNKNOWN;
		if (gp_session_new(&m->loop, &gp_kfd_session, m->conf->lease_ns, done, m, &s->session) < 0)
			s->session = NULL; /* with the next change */
	}
	if (s->session && s->status == 0)
		tell_all(m);
}

void gp_settings_renew(struct gp_manager *m)
{
	if (m->settings.session && m->settings.status != UNKNOWN && m->settings.status != -EPERM)
		gp_session_renew(m->settings.session);
}

void gp_settings_close(struct gp_manager *m)
{
	gp_session_free(m->settings.session);
	m->settings.session = NULL;
}
