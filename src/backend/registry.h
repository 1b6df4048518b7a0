/* SPDX-License-Identifier: MIT */
/* Every backend there is, in the order "auto" tries them. */
#ifndef GP_BACKEND_REGISTRY_H
#define GP_BACKEND_REGISTRY_H

#include <gpreempt/backend.h>

/*
 * Opens by name, or the first that finds its hardware (NULL, "auto").  ret_ops is
 * complete: nothing in it is NULL.  -ENOENT: no backend of that name; -ENODEV: its
 * hardware is not here.
 */
int gp_backend_open(const char *name, const struct gp_backend_opts *opts, struct gp_backend_ops *ret_ops,
		    struct gp_backend **ret);
/* What a table leaves out becomes -ENOTSUP. -EPROTO, -EINVAL, -E2BIG: not such a table. */
int gp_backend_complete(struct gp_backend_ops *dst, const struct gp_backend_ops *src);
const char *gp_backend_name(size_t i); /* NULL: there are no more */

#endif
