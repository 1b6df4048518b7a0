/* SPDX-License-Identifier: MIT */
/* What the kinds of events are called: a list of words, in the order of enum gp_event_kind. */
#ifndef GP_BASE_EVENT_WORDS_H
#define GP_BASE_EVENT_WORDS_H

#define GP_EVENT_WORDS "suspend resume failed backoff ejected lease client gone starved lost"

#endif
