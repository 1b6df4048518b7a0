/* SPDX-License-Identifier: MIT */
/*
 * The KFD queues of this process: what the application last asked for, and what we
 * make of it.  No lock is held while the driver works; signals are blocked while one is
 * held.
 *
 *            application's UPDATE: remembered; while stopped, the driver gets it with 0 percent
 *           .----.
 *           v    |
 *         RUNNING --STOP--> STOPPED (0 percent in the driver)
 *            ^                 |
 *            '------RUN--------'   the driver gets what the application last asked for
 *
 * Whoever finds, after its call returned, that something else is wanted by now calls
 * again: the last call the driver sees is always the last wish.
 *
 * activity() makes one system call for 128 queues, finished() two: for the names of signals, and
 * then for their values.  An AQL queue has finished when its last packet's completion signal has come
 * down to 0; unknown is one whose last packet has none.  Packets before it that it does not wait for
 * (no barrier bit) may still run, and a signal that is set anew, or that others share, keeps the queue
 * busy.  Of PM4 and SDMA queues there are the pointers alone.
 *
 * GPREEMPT_KFD names the driver's file; /dev/kfd if it is not set.
 */
#ifndef GP_BACKEND_KFD_OWN_H
#define GP_BACKEND_KFD_OWN_H

#include "backend/own.h"

extern const struct gp_own_ops gp_kfd_own;

#endif
