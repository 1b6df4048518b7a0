// SPDX-License-Identifier: MIT
#include "level/aql.h"

#include <string.h>

#include "level/level.h"

#define TYPE_MASK 0xffu
#define TYPE_DISPATCH 2u
#define TYPE_BARRIER_AND 3u
#define BARRIER (1u << 8)

struct packet {
	uint16_t header;
	uint16_t fields[27];
	uint64_t completion_signal;
};

struct barrier {
	uint16_t header, reserved0;
	uint32_t reserved1;
	uint64_t signals[5];
	uint64_t reserved2;
	uint64_t completion_signal;
};

_Static_assert(sizeof(struct packet) == GP_AQL_PACKET, "a packet has 64 bytes");
_Static_assert(sizeof(struct barrier) == GP_AQL_PACKET, "a packet has 64 bytes");

static int is_launch(const struct packet *p)
{
	return (p->header & TYPE_MASK) == TYPE_DISPATCH;
}

uint32_t gp_aql_launches(const void *packets, uint64_t n)
{
	const struct packet *p = packets;
	uint32_t launches = 0;

	for (uint64_t i = 0; i < n; i++)
		launches += (uint32_t)is_launch(&p[i]);
	return launches;
}

static void *put_barrier(void *at, uint32_t barrier_bit, uint64_t waits_for, uint64_t completion_signal)
{
	struct barrier b = { .header = (uint16_t)(TYPE_BARRIER_AND | barrier_bit),
			     .signals = { waits_for },
			     .completion_signal = completion_signal };

	memcpy(at, &b, sizeof(b));
	return (char *)at + sizeof(b);
}

static void *put_launch(void *at, const struct packet *p, uint32_t adds, const struct gp_aql_signals *signals)
{
	struct packet launch = *p;
	int counts_itself = adds & GP_ADD_COUNT && !p->completion_signal;

	if (adds & GP_ADD_GATE)
		at = put_barrier(at, p->header & BARRIER, signals->gate, 0);
	if (counts_itself)
		launch.completion_signal = signals->count;
	memcpy(at, &launch, sizeof(launch));
	at = (char *)at + sizeof(launch);
	/* The bit, else it would not wait for the launch. */
	return adds & GP_ADD_COUNT && !counts_itself ? put_barrier(at, BARRIER, 0, signals->count) : at;
}

uint64_t gp_aql_rewrite(const void *packets, uint64_t n, uint32_t adds, const struct gp_aql_signals *signals,
			void *ret)
{
	const struct packet *p = packets;
	void *at = ret;

	for (uint64_t i = 0; i < n; i++) {
		if (is_launch(&p[i])) {
			at = put_launch(at, &p[i], adds, signals);
			continue;
		}
		memcpy(at, &p[i], sizeof(*p));
		at = (char *)at + sizeof(*p);
	}
	return (uint64_t)((char *)at - (char *)ret) / GP_AQL_PACKET;
}

/* The last may do it itself; a barrier packet has no bit, and holds nothing up. */
uint64_t gp_aql_mark(void *packets, uint64_t n, uint64_t signal)
{
	struct packet *p = packets;

	if (n && is_launch(&p[n - 1]) && !p[n - 1].completion_signal) {
		p[n - 1].completion_signal = signal;
		return n;
	}
	(void)put_barrier(&p[n], 0, 0, signal);
	return n + 1;
}
