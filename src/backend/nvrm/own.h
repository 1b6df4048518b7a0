/* SPDX-License-Identifier: MIT */
/*
 * The channel groups of this process on NVIDIA's driver: a queue is one group, or a channel that is in none.
 * The book is kept by what the application allocates, duplicates and frees; classes count by their kind, so
 * that a new generation's are known.  No lock is held while the driver works; signals are blocked while one
 * is held.
 *
 *           .--STOP--> STOPPED (all its channels disabled) <--STOP--.
 *           |             |                     |                   |
 *        RUNNING <---RUN--'                     '--BACKGROUND--> BACKGROUND (a slice of 1 us)
 *           ^                                                       |
 *           '--RUN: the slice that the application last set, or the driver's--'
 *
 * A slice that the application sets is remembered; while the group is in the background the driver gets ours.
 * A channel that is added to a stopped group is disabled as well, and one that the application disables stays
 * so until it enables it.  Whoever finds, after its call returned, that something else is wanted by now calls
 * again: the last call the driver sees is always the last wish.
 *
 * RM takes a client's calls by the open file alone that made it.  So ours go by the number on which the
 * application used the client last, which is duplicated for the time of the call: the application may close
 * its own at any time, and when it does the client goes, as without us.
 *
 * Whether a group has work nobody can tell: activity() knows nothing.
 *
 * GPREEMPT_NVIDIACTL names the driver's file; /dev/nvidiactl if it is not set.
 */
#ifndef GP_BACKEND_NVRM_OWN_H
#define GP_BACKEND_NVRM_OWN_H

#include "backend/own.h"

extern const struct gp_own_ops gp_nvrm_own;

#endif
