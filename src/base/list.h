/* SPDX-License-Identifier: MIT */
/* A doubly linked list whose nodes live in their owners. */
#ifndef GP_BASE_LIST_H
#define GP_BASE_LIST_H

#include <stddef.h>

struct gp_list {
	struct gp_list *next;
	struct gp_list *prev;
};

#define gp_container(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))
#define gp_list_each(pos, head) for (struct gp_list *pos = (head)->next; pos != (head); pos = pos->next)
/* pos may be removed in the body. */
#define gp_list_each_safe(pos, head) \
	for (struct gp_list *pos = (head)->next, *pos##_next = pos->next; pos != (head); \
	     pos = pos##_next, pos##_next = pos->next)

static inline void gp_list_init(struct gp_list *l)
{
	l->next = l->prev = l;
}

static inline int gp_list_empty(const struct gp_list *l)
{
	return l->next == l;
}

static inline void gp_list_append(struct gp_list *head, struct gp_list *node)
{
	node->prev = head->prev;
	node->next = head;
	head->prev->next = node;
	head->prev = node;
}

/* Removing a node that is in no list (but initialised) does nothing. */
static inline void gp_list_remove(struct gp_list *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
	gp_list_init(node);
}

#endif
