/* SPDX-License-Identifier: MIT */
/* Where gpreemptd is, if nobody names another place. */
#ifndef GP_BASE_PLACES_H
#define GP_BASE_PLACES_H

#define GP_RUN_NAME "gpreempt" /* of a folder below /run or XDG_RUNTIME_DIR */
#define GP_RUN_FOLDER "/run/" GP_RUN_NAME
#define GP_SOCKET_NAME "gpreemptd.sock" /* in it */

#endif
