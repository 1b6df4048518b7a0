// SPDX-License-Identifier: MIT
/* No packet, however broken, may be read beyond its end, and what is taken can be sent again and means the
 * same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "wire/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct gp_msg first, second;

static void send_again(uint32_t features, size_t most)
{
	static unsigned char packet[GP_WIRE_MOST_BYTES];
	int n = gp_wire_encode(&first, features, packet, sizeof(packet));

	if (n < 0 || (size_t)n > most || gp_wire_decode(packet, (size_t)n, &second) < 0)
		abort();
	if (memcmp(&first, &second, offsetof(struct gp_msg, item)))
		abort();
}

static void decode(const uint8_t *data, size_t size)
{
	if (gp_wire_decode(data, size, &first) < 0)
		return;
	send_again(0, size);
	send_again(GP_FEATURES, size + 4); /* where the items are */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *told = malloc(size ? size : 1);

	if (!told)
		return 0;
	decode(data, size);
	/* The length as it should be, else few packets would come further. */
	memcpy(told, data, size);
	for (size_t i = 0; i < 4 && i < size; i++)
		told[i] = (uint8_t)(size >> 8 * i);
	decode(told, size);
	free(told);
	return 0;
}
