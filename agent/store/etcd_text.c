// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "etcd_text.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/keys_json.h"
#include "common/base64.h"
#include "common/owned.h"
#include "common/text.h"

/* --- requests -------------------------------------------------------------------------------- */

static json_t *number(uint64_t n)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, n);
	return json_string(text);
}

static json_t *bytes(const char *from, size_t length)
{
	_cleanup_(freep) char *text = base64_print(from, length);

	return text ? json_string(text) : NULL;
}

static json_t *key_of(const char *prefix, const char *key)
{
	char whole[2 * STORE_KEY_BYTES];

	snprintf(whole, sizeof(whole), "%s%s", prefix, key);
	return bytes(whole, strlen(whole));
}

/* The first key behind all that begin so: its last byte is one more. Keys end below 0x7f. */
static json_t *end_of(const char *prefix, const char *of)
{
	char whole[2 * STORE_KEY_BYTES];

	snprintf(whole, sizeof(whole), "%s%s", prefix, of);
	whole[strlen(whole) - 1]++;
	return bytes(whole, strlen(whole));
}

/* Takes `json`, which is NULL where there was no memory for a part of it. */
static char *dump(json_t *json)
{
	char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;

	json_decref(json);
	return text;
}

static json_t *comparison(const char *prefix, const struct store_seen *seen)
{
	return json_pack("{so ss ss so}", "key", key_of(prefix, seen->key), "target", "MOD",
			 "result", "EQUAL", "mod_revision", number(seen->revision));
}

static json_t *operation(const char *prefix, const struct store_change *c, uint64_t lease)
{
	json_t *put;

	if (!c->value)
		return json_pack("{s{so}}", "request_delete_range", "key", key_of(prefix, c->key));
	put = json_pack("{so so}", "key", key_of(prefix, c->key), "value",
			bytes(c->value, strlen(c->value)));
	if (put && c->leased && json_object_set_new(put, "lease", number(lease)) < 0)
		return NULL;
	return json_pack("{so}", "request_put", put);
}

char *etcd_write(const char *prefix, const struct store_write *w, uint64_t lease)
{
	json_t *compare = json_array(), *success = json_array();
	int r = 0;

	for (unsigned int i = 0; i < w->seens && r == 0; i++)
		r = json_array_append_new(compare, comparison(prefix, &w->seen[i]));
	for (unsigned int i = 0; i < w->changes && r == 0; i++)
		r = json_array_append_new(success, operation(prefix, &w->change[i], lease));
	if (r < 0) {
		json_decref(compare);
		json_decref(success);
		return NULL;
	}
	return dump(json_pack("{so so}", "compare", compare, "success", success));
}

char *etcd_range(const char *prefix, const char *of, const char *after, uint64_t revision,
		 unsigned int limit)
{
	char from[2 * STORE_KEY_BYTES];
	size_t length;

	snprintf(from, sizeof(from), "%s%s", prefix, after ? after : of);
	length = strlen(from) + !!after; /* the next key has a NUL behind it */
	return dump(json_pack("{so so so so}", "key", bytes(from, length), "range_end",
			      end_of(prefix, of), "revision", number(revision), "limit",
			      number(limit)));
}

char *etcd_watch(const char *prefix, const char *of, uint64_t revision)
{
	return dump(json_pack("{s{so so so sb}}", "create_request", "key", key_of(prefix, of),
			      "range_end", end_of(prefix, of), "start_revision", number(revision),
			      "progress_notify", true));
}

char *etcd_grant(unsigned int seconds) { return dump(json_pack("{so}", "TTL", number(seconds))); }
char *etcd_keep(uint64_t lease) { return dump(json_pack("{so}", "ID", number(lease))); }
char *etcd_revoke(uint64_t lease) { return etcd_keep(lease); }

char *etcd_login(const char *user, const char *password)
{
	return dump(json_pack("{ss ss}", "name", user, "password", password));
}

/* --- answers --------------------------------------------------------------------------------- */

static json_t *parse(const char *text, size_t length)
{
	json_error_t error;
	json_t *json = NULL;

	return keys_json_parse(text, length, &json, &error) < 0 ? NULL : json;
}

/* What is left out is 0. */
static bool take_up_to(uint64_t max, const json_t *from, const char *name, uint64_t *ret)
{
	const json_t *value = json_object_get(from, name);

	*ret = 0;
	return !value ||
	       (json_is_string(value) && text_number(json_string_value(value), false, max, ret));
}

static bool take_number(const json_t *from, const char *name, uint64_t *ret)
{
	return take_up_to(INT64_MAX, from, name, ret);
}

/* codes.Code of gRPC (google.golang.org/grpc/codes). */
enum code {
	CODE_INVALID = 3,
	CODE_DEADLINE = 4,
	CODE_NOT_FOUND = 5,
	CODE_DENIED = 7,
	CODE_EXHAUSTED = 8,
	CODE_OUT_OF_RANGE = 11,
	CODE_UNAVAILABLE = 14,
	CODE_UNAUTHENTICATED = 16,
};

/* rpctypes/error.go of etcd has these texts; a code alone does not tell them apart. */
static enum etcd_fault fault_of(json_int_t code, const char *text)
{
	switch (code) {
	case CODE_INVALID:
		if (strstr(text, "user name is empty") || strstr(text, "revision in header is old"))
			return ETCD_LOGIN;
		return strstr(text, "too large") || strstr(text, "too many operations")
			       ? ETCD_TOO_LARGE
			       : ETCD_OTHER;
	case CODE_NOT_FOUND:
		return strstr(text, "lease not found") ? ETCD_LEASE : ETCD_OTHER;
	case CODE_DENIED:
		return ETCD_FORBIDDEN;
	case CODE_EXHAUSTED:
		return strstr(text, "larger than max") ? ETCD_TOO_LARGE : ETCD_OTHER;
	case CODE_OUT_OF_RANGE:
		return strstr(text, "compacted") ? ETCD_COMPACTED : ETCD_OTHER;
	case CODE_DEADLINE:
	case CODE_UNAVAILABLE:
		return ETCD_AWAY;
	case CODE_UNAUTHENTICATED:
		return ETCD_LOGIN;
	default:
		return ETCD_OTHER;
	}
}

/* A unary call says {"error": text, "code": n}, a stream {"error": {"grpc_code", "message"}}. */
enum etcd_fault etcd_fault(const char *text, size_t length, struct why *why)
{
	_cleanup_(json_freep) json_t *json = parse(text, length);
	const json_t *error = json_object_get(json, "error");
	const json_t *code = json_object_get(json_is_object(error) ? error : json,
					     json_is_object(error) ? "grpc_code" : "code");
	const json_t *message = json_is_object(error) ? json_object_get(error, "message") : error;

	if (!error)
		return ETCD_NONE;
	snprintf(why->text, sizeof(why->text), "%.200s",
		 json_is_string(message) ? json_string_value(message) : "an error without a text");
	return fault_of(json_integer_value(code), why->text);
}

static bool take_revision(const json_t *from, uint64_t *ret)
{
	const json_t *header = json_object_get(from, "header");

	return json_is_object(header) && take_number(header, "revision", ret) && *ret > 0;
}

/* A hash of its first members. */
static uint64_t cluster_of(const json_t *from)
{
	uint64_t cluster;

	return take_up_to(UINT64_MAX, json_object_get(from, "header"), "cluster_id", &cluster)
		       ? cluster
		       : 0;
}

int etcd_read_written(const char *text, size_t length, struct etcd_written *ret)
{
	_cleanup_(json_freep) json_t *json = parse(text, length);

	if (!take_revision(json, &ret->revision))
		return -EINVAL;
	ret->done = json_is_true(json_object_get(json, "succeeded"));
	return 0;
}

/* Of a grant as it is, of a keep in a stream's "result". */
int etcd_read_lease(const char *text, size_t length, uint64_t *ret)
{
	_cleanup_(json_freep) json_t *json = parse(text, length);
	const json_t *result = json_object_get(json, "result");
	const json_t *from = result ? result : json;
	uint64_t seconds, id;

	if (!json_is_object(from) || !take_number(from, "ID", &id) ||
	    !take_number(from, "TTL", &seconds) || id == 0)
		return -EINVAL;
	*ret = seconds ? id : 0;
	return 0;
}

int etcd_read_token(const char *text, size_t length, char **ret)
{
	_cleanup_(json_freep) json_t *json = parse(text, length);
	const char *token = json_string_value(json_object_get(json, "token"));

	if (!token)
		return -EINVAL;
	*ret = strdup(token);
	return *ret ? 0 : -ENOMEM;
}

/* Bytes with a NUL among them nobody wrote who keeps to the interface: they are told as "", which
 * is no key, and no value that anybody understands. */
static int take_text(const json_t *from, const char *name, char **ret)
{
	const json_t *value = json_object_get(from, name);
	size_t length;
	int r;

	if (value && !json_is_string(value))
		return -EINVAL;
	r = base64_parse(value ? json_string_value(value) : "",
			 value ? json_string_length(value) : 0, ret, &length);
	if (r == 0 && memchr(*ret, 0, length))
		**ret = '\0';
	return r;
}

/* A key and what it has; `is_gone`: it has nothing. */
static int take_item(const json_t *kv, const char *prefix, bool is_gone,
		     int (*item)(void *context, const struct store_item *item), void *context)
{
	_cleanup_(freep) char *key = NULL, *value = NULL;
	struct store_item is;
	int r = json_is_object(kv) ? take_text(kv, "key", &key) : -EINVAL;

	if (r == 0)
		r = take_text(kv, "value", &value);
	if (r < 0 || !*key)
		return r;
	if (strncmp(key, prefix, strlen(prefix)) != 0 ||
	    !take_number(kv, "mod_revision", &is.revision))
		return -EINVAL;
	is.key = key + strlen(prefix);
	is.value = is_gone ? NULL : value;
	return item(context, &is);
}

int etcd_read_range(const char *text, size_t length, const char *prefix,
		    int (*item)(void *context, const struct store_item *item), void *context,
		    struct etcd_told *ret)
{
	_cleanup_(json_freep) json_t *json = parse(text, length);
	const json_t *kvs = json_object_get(json, "kvs"), *kv;
	int r = 0;
	size_t i;

	*ret = (struct etcd_told){ 0 };
	if (!take_revision(json, &ret->revision))
		return -EINVAL;
	ret->cluster = cluster_of(json);
	ret->more = json_is_true(json_object_get(json, "more"));
	json_array_foreach(kvs, i, kv) if (r == 0 && item)
		r = take_item(kv, prefix, false, item, context);
	return r;
}

int etcd_read_watch(const char *text, size_t length, const char *prefix,
		    int (*item)(void *context, const struct store_item *item), void *context,
		    struct etcd_told *ret)
{
	_cleanup_(json_freep) json_t *json = parse(text, length);
	const json_t *result = json_object_get(json, "result"), *event;
	const json_t *events = json_object_get(result, "events");
	int r = 0;
	size_t i;

	*ret = (struct etcd_told){ 0 };
	if (!json_is_object(result) || !take_number(result, "compact_revision", &ret->compacted))
		return -EINVAL;
	take_revision(result, &ret->revision); /* not in the last word of all */
	ret->cluster = cluster_of(result);
	ret->ended = json_is_true(json_object_get(result, "canceled"));
	json_array_foreach(events, i, event)
	{
		const char *type = json_string_value(json_object_get(event, "type"));

		if (r == 0)
			r = take_item(json_object_get(event, "kv"), prefix,
				      type && !strcmp(type, "DELETE"), item, context);
	}
	return r;
}
