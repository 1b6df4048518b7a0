// SPDX-License-Identifier: MIT
#include <stdio.h>
#include <string.h>

#include "ini/keys.h"
#include "study/parse.h"
#include "ini/words.h"

#define HINTS "+hints"

static int complain_unknown_config(const struct gp_place *at, const char *word)
{
	char list[256] = "";
	size_t used = 0;

	for (uint32_t kind = 0; kind < GP_CONFIG_COUNT && used < sizeof(list); kind++)
		used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", kind ? " " : "",
					 gp_config_name(kind));
	return gp_complain_unknown(at, "config", word, list);
}

static int parse_one(char *word, const struct gp_place *at, struct gp_config *ret)
{
	char *plus = strchr(word, '+');
	uint32_t kind;

	if (plus && strcmp(plus, HINTS))
		return gp_complain(at, "unknown ending \"%s\"; a config ends in " HINTS " or in nothing",
				   plus);
	if (plus)
		*plus = '\0';
	if (gp_config_kind_parse(word, &kind) < 0)
		return complain_unknown_config(at, word);
	*ret = (struct gp_config){ .kind = kind, .hints = plus != NULL };
	return 0;
}

static int check_new(const struct gp_place *at, const struct gp_config *configs, uint32_t n)
{
	char text[GP_SCENARIO_NAME];

	for (uint32_t i = 0; i < n; i++)
		if (configs[i].kind == configs[n].kind && configs[i].hints == configs[n].hints)
			return gp_complain(at, "%s is there twice; leave one out",
					   gp_config_text(&configs[n], text));
	return 0;
}

int gp_configs_parse(const char *list, const struct gp_place *at, struct gp_config *ret, uint32_t *ret_n)
{
	struct gp_config configs[GP_MAX_CONFIGS];
	char word[64];
	uint32_t n = 0;
	int r;

	while (gp_word_next(&list, word, sizeof(word))) {
		if (n == GP_MAX_CONFIGS)
			return gp_complain(at, "more than %d configs; write fewer", GP_MAX_CONFIGS);
		r = parse_one(word, at, &configs[n]);
		if (r == 0)
			r = check_new(at, configs, n);
		if (r < 0)
			return r;
		n++;
	}
	if (!n)
		return gp_complain(at, "no config; write some, as in: exclusive native auto+hints");
	memcpy(ret, configs, n * sizeof(configs[0]));
	*ret_n = n;
	return 0;
}

const char *gp_config_text(const struct gp_config *config, char text[GP_SCENARIO_NAME])
{
	snprintf(text, GP_SCENARIO_NAME, "%s%s", gp_config_name(config->kind), config->hints ? HINTS : "");
	return text;
}
