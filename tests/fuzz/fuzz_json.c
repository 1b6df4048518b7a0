// SPDX-License-Identifier: MIT
/* No text in place of a container runtime's JSON may crash what reads it, or give what is not in the text. */
#include <string.h>

#include "fuzz.h"

/* What was found is a string of the text: between two quotes. */
static void check_found(int found, const struct gp_span *s, const char *text, size_t size)
{
	if (found && (s->at <= text || s->at > s->end || s->end >= text + size || *s->end != '"'))
		abort();
}

static void check_names(const char *text, size_t size)
{
	struct gp_found_client c;

	memset(&c, 0xff, sizeof(c));
	c.container_name[0] = c.kube_namespace[0] = '\0';
	if (gp_annotated_name(text, size, &c) != (c.container_name[0] != '\0') ||
	    strlen(c.container_name) >= sizeof(c.container_name) ||
	    !memchr(c.kube_namespace, '\0', sizeof(c.kube_namespace)))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct gp_span found;

	check_found(gp_docker_name(text, size, &found), &found, text, size);
	check_found(gp_podman_find(text, size, NULL, "a", &found), &found, text, size);
	check_found(gp_podman_find(text, size, "a", NULL, &found), &found, text, size);
	check_found(gp_json_find(text, size, NULL, "a", &found), &found, text, size);
	check_found(gp_json_find(text, size, "annotations", "a", &found), &found, text, size);
	check_names(text, size);
	return 0;
}
