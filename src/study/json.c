// SPDX-License-Identifier: MIT
#include "study/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#if JSON_C_VERSION_NUM < (14 << 8)
struct json_object *gp_json_new_uint64(uint64_t value)
{
	char text[32];

	if (value <= INT64_MAX)
		return json_object_new_int64((int64_t)value);
	snprintf(text, sizeof(text), "%" PRIu64, value);
	return json_object_new_double_s((double)value, text);
}

uint64_t gp_json_get_uint64(struct json_object *o)
{
	int64_t value = json_object_get_int64(o);

	return value < 0 ? 0 : (uint64_t)value;
}
#endif

/* The value is what its text says, so that a table is the same from memory and from the file. */
struct json_object *gp_json_double(double value)
{
	char text[32];

	if (isnan(value))
		return NULL;
	snprintf(text, sizeof(text), "%.6g", value);
	return json_object_new_double_s(strtod(text, NULL), text);
}

void gp_json_add_double(struct json_object *o, const char *key, double value)
{
	json_object_object_add(o, key, gp_json_double(value));
}

void gp_json_add_ns(struct json_object *o, const char *key, double ns)
{
	json_object_object_add(o, key, isnan(ns) ? NULL : json_object_new_uint64((uint64_t)ns));
}

void gp_json_add_int(struct json_object *o, const char *key, uint64_t value)
{
	json_object_object_add(o, key, json_object_new_uint64(value));
}

void gp_json_add_text(struct json_object *o, const char *key, const char *value)
{
	json_object_object_add(o, key, json_object_new_string(value));
}

/* json-c escapes what is below a space and copies any other byte. The text is its own, written anew each
 * time. */
const char *gp_json_text(struct json_object *o)
{
	const int how = JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE;
	char *text = (char *)json_object_to_json_string_ext(o, how);

	if (o && text)
		gp_text_clean(text);
	return text;
}

void gp_json_print(struct json_object *o)
{
	puts(gp_json_text(o));
	json_object_put(o);
}

struct json_object *gp_json_get(struct json_object *o, const char *path)
{
	char key[64];

	while (*path) {
		size_t len = strcspn(path, "/");

		if (len >= sizeof(key) || !json_object_is_type(o, json_type_object))
			return NULL;
		memcpy(key, path, len);
		key[len] = '\0';
		if (!json_object_object_get_ex(o, key, &o))
			return NULL;
		path += len + (path[len] == '/');
	}
	return o;
}

double gp_json_get_double(struct json_object *o, const char *path)
{
	struct json_object *value = gp_json_get(o, path);

	if (!json_object_is_type(value, json_type_double) && !json_object_is_type(value, json_type_int))
		return NAN;
	return json_object_get_double(value);
}

const char *gp_json_get_text(struct json_object *o, const char *path)
{
	struct json_object *value = gp_json_get(o, path);

	return json_object_is_type(value, json_type_string) ? json_object_get_string(value) : "";
}
