/* SPDX-License-Identifier: MIT */
/* What the kinds of events are called: a list of words, in the order of enum gp_event_kind; and what failed.
 */
#ifndef GP_BASE_EVENT_WORDS_H
#define GP_BASE_EVENT_WORDS_H

#include <stddef.h>
#include <stdint.h>

#define GP_EVENT_WORDS "suspend resume failed backoff ejected lease client gone starved lost policy class"

/* As struct gp_event has it. NULL: nothing, or what a later release tries. */
static inline const char *gp_tried_word(uint32_t tried)
{
	static const char *const words[] = { NULL, "suspend", "resume", "yield" };

	return tried < sizeof(words) / sizeof(words[0]) ? words[tried] : NULL;
}

#endif
