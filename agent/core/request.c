// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "common/address.h"
#include "common/name.h"
#include "request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <tally/wire.h>

#include "common/jobfile.h"
#include "dataplane_state.h"
#include "common/text.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

enum {
	REAL_DIGITS = 12, /* of rates: what is printed is what was meant */
};

struct reading {
	const char *verb;
	struct why *why;
};

struct key {
	const char *name;
	enum request_key bit;
	int (*take)(struct reading *r, const struct key *key, const json_t *value, void *into);
	size_t offset; /* in struct request, of what it is read into */
	size_t bytes; /* of a number there */
	uint64_t min, max; /* of a number */
	bool needed;
};

/* --- what is wrong */

/* A value as it was written, as far as it can be shown. */
static const char *value_quote(const json_t *value, char *ret)
{
	_cleanup_(freep) char *dumped = NULL;

	if (json_is_string(value))
		return text_quote(json_string_value(value), json_string_length(value), ret);
	dumped = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
	return text_quote(dumped ? dumped : "?", dumped ? strlen(dumped) : 1, ret);
}

static int refuse(struct reading *r, const struct key *key, const json_t *value,
		  const char *allowed)
{
	char quoted[TEXT_QUOTED_BYTES];

	return why_say(r->why, -EINVAL, "%s: %s: %s: %s", r->verb, key->name,
		       value_quote(value, quoted), allowed);
}

/* --- values */

static int take_name(struct reading *r, const struct key *key, const json_t *value, void *into)
{
	const char *text = json_string_value(value);

	if (!text || !name_is_valid(text))
		return refuse(r, key, value,
			      "1 to 63 of a-z, 0-9, '.', '_' and '-', the first one no sign");
	memcpy(into, text, strlen(text) + 1);
	return 0;
}

static int take_port(struct reading *r, const struct key *key, const json_t *value, void *into)
{
	const char *text = json_string_value(value);

	if (!text || !tenant_port_is_valid(text))
		return refuse(r, key, value, "the name of an interface");
	memcpy(into, text, strlen(text) + 1);
	return 0;
}

static int take_service(struct reading *r, const struct key *key, const json_t *value, void *into)
{
	const char *text = json_string_value(value);
	struct sockaddr_storage address;

	if (!text || address_parse(text, TALLY_UDP_PORT, &address) < 0)
		return refuse(r, key, value,
			      "an address without port, such as 10.77.0.1 or fd77::1");
	memcpy(into, &address, sizeof(address));
	return 0;
}

static bool is_in_range(const struct key *key, const json_t *value)
{
	json_int_t n = json_integer_value(value);

	return json_is_integer(value) && n >= 0 && (uint64_t)n >= key->min &&
	       (uint64_t)n <= key->max;
}

static void number_store(const struct key *key, uint64_t n, void *into)
{
	switch (key->bytes) {
	case sizeof(uint8_t):
		*(uint8_t *)into = n;
		break;
	case sizeof(uint16_t):
		*(uint16_t *)into = n;
		break;
	case sizeof(uint32_t):
		*(uint32_t *)into = n;
		break;
	default:
		*(uint64_t *)into = n;
	}
}

static int take_number(struct reading *r, const struct key *key, const json_t *value, void *into)
{
	char allowed[80];

	snprintf(allowed, sizeof(allowed), "a whole number from %ju to %ju", (uintmax_t)key->min,
		 (uintmax_t)key->max);
	if (!is_in_range(key, value))
		return refuse(r, key, value, allowed);
	number_store(key, json_integer_value(value), into);
	return 0;
}

static int take_window(struct reading *r, const struct key *key, const json_t *value, void *into)
{
	json_int_t n = json_integer_value(value);

	if (!is_in_range(key, value) || n & (n - 1))
		return refuse(r, key, value, "a power of two from 1 to 1024");
	number_store(key, n, into);
	return 0;
}

static int take_payload(struct reading *r, const struct key *key, const json_t *value, void *into)
{
	json_int_t n = json_integer_value(value);

	if (!is_in_range(key, value) || n % TALLY_BLOCK_BYTES)
		return refuse(r, key, value, "a multiple of 64 from 64 to 3392 (bytes)");
	number_store(key, n, into);
	return 0;
}

_Static_assert(TALLY_WINDOW_MAX == 1024 && TALLY_PAYLOAD_MAX == 3392 && TALLY_BLOCK_BYTES == 64,
	       "the texts above name them");

/* `into` is the tenant, which has the points and how many they are. */
static int take_ingress(struct reading *r, const struct key *key, const json_t *value, void *into)
{
	struct tenant *tenant = into;
	struct why why;

	if (!json_is_array(value))
		return refuse(r, key, value,
			      "an array of ingress points, such as "
			      "[\"eth1 vlan 5 source 10.77.1.0/24\"]");
	if (json_array_size(value) > TENANT_POINTS_MAX)
		return why_say(r->why, -EINVAL, "%s: %s: has %zu ingress points; at most %d",
			       r->verb, key->name, json_array_size(value), TENANT_POINTS_MAX);
	for (size_t i = 0; i < json_array_size(value); i++) {
		const json_t *item = json_array_get(value, i);

		if (!json_is_string(item))
			return refuse(r, key, item,
				      "an ingress point, such as \"eth1 vlan 5 source "
				      "10.77.1.0/24\"");
		if (tenant_point_parse(json_string_value(item), &tenant->point[i], &why) < 0)
			return why_say(r->why, -EINVAL, "%s: %s[%zu]: %s", r->verb, key->name, i,
				       why.text);
	}
	tenant->points = json_array_size(value);
	return 0;
}

/* --- keys and verbs */

#define AT(member) offsetof(struct request, member)
#define NUMBER(member) AT(member), sizeof(((struct request *)0)->member)

static const struct key tenant_list_keys[] = {
	{ "name", REQUEST_NAME, take_name, .offset = AT(filter.tenant) },
};

static const struct key tenant_keys[] = {
	{ "name", REQUEST_NAME, take_name, .offset = AT(tenant.name), .needed = true },
	{ "slots", REQUEST_SLOTS, take_number, NUMBER(tenant.slots), .max = DATAPLANE_SLOTS_MAX },
	{ "packets_per_second", REQUEST_PACKETS_PER_SECOND, take_number,
	  NUMBER(tenant.packets_per_second), .max = TENANT_RATE_MAX },
	{ "bytes_per_second", REQUEST_BYTES_PER_SECOND, take_number,
	  NUMBER(tenant.bytes_per_second), .max = TENANT_RATE_MAX },
	{ "priority", REQUEST_PRIORITY, take_number, NUMBER(tenant.priority),
	  .max = TENANT_PRIORITY_MAX },
	{ "ingress", REQUEST_INGRESS, take_ingress, .offset = AT(tenant) },
};

static const struct key name_keys[] = {
	{ "name", REQUEST_NAME, take_name, .offset = AT(name), .needed = true },
};

static const struct key job_list_keys[] = {
	{ "name", REQUEST_NAME, take_name, .offset = AT(filter.job) },
	{ "tenant", REQUEST_TENANT, take_name, .offset = AT(filter.tenant) },
};

static const struct key job_create_keys[] = {
	{ "name", REQUEST_NAME, take_name, .offset = AT(job.name), .needed = true },
	{ "workers", REQUEST_WORKERS, take_number, NUMBER(job.workers), .min = 1,
	  .max = TALLY_WORKERS_MAX, .needed = true },
	{ "tenant", REQUEST_TENANT, take_name, .offset = AT(job.tenant) },
	{ "window", REQUEST_WINDOW, take_window, NUMBER(job.window), .min = 1,
	  .max = TALLY_WINDOW_MAX },
	{ "payload", REQUEST_PAYLOAD, take_payload, NUMBER(job.payload_bytes), .min = 1,
	  .max = TALLY_PAYLOAD_MAX },
	{ "service", REQUEST_SERVICE, take_service, .offset = AT(job.service) },
	{ "id", REQUEST_ID, take_number, NUMBER(job.id), .max = UINT32_MAX },
};

static const struct key stats_keys[] = {
	{ "job", REQUEST_JOB, take_name, .offset = AT(filter.job) },
	{ "tenant", REQUEST_TENANT, take_name, .offset = AT(filter.tenant) },
	{ "port", REQUEST_PORT, take_port, .offset = AT(filter.port) },
};

static const struct key trace_keys[] = {
	{ "every", REQUEST_EVERY, take_number, NUMBER(filter.every), .min = 1, .max = 1U << 31 },
	{ "job", REQUEST_JOB, take_name, .offset = AT(filter.job) },
};

static const struct verb {
	const char *name;
	bool changes;
	const struct key *keys;
	size_t count;
} verbs[] = {
#define KEYS(keys) keys, COUNT(keys)
	[REQUEST_STATUS] = { "status", false, NULL, 0 },
	[REQUEST_TENANT_LIST] = { "tenant-list", false, KEYS(tenant_list_keys) },
	[REQUEST_TENANT_ADD] = { "tenant-add", true, KEYS(tenant_keys) },
	[REQUEST_TENANT_SET] = { "tenant-set", true, KEYS(tenant_keys) },
	[REQUEST_TENANT_DEL] = { "tenant-del", true, KEYS(name_keys) },
	[REQUEST_JOB_LIST] = { "job-list", false, KEYS(job_list_keys) },
	[REQUEST_JOB_CREATE] = { "job-create", true, KEYS(job_create_keys) },
	[REQUEST_JOB_TOKEN] = { "job-token", true, KEYS(name_keys) },
	[REQUEST_JOB_DEL] = { "job-del", true, KEYS(name_keys) },
	[REQUEST_STATS] = { "stats", false, KEYS(stats_keys) },
	[REQUEST_LINKS] = { "links", false, NULL, 0 },
	[REQUEST_TOP] = { "top", false, NULL, 0 },
	[REQUEST_TRACE] = { "trace", true, KEYS(trace_keys) },
#undef KEYS
};

_Static_assert(COUNT(verbs) == REQUEST_VERB_COUNT, "each verb has its line");

bool request_changes(enum request_verb verb) { return verbs[verb].changes; }

const char *request_verb_name(enum request_verb verb) { return verbs[verb].name; }

/* --- the whole */

static int verb_find(const json_t *root, enum request_verb *ret, struct why *why)
{
	const json_t *value = json_object_get(root, "do");
	const char *word = json_string_value(value);
	char list[TEXT_LIST_BYTES], quoted[TEXT_QUOTED_BYTES];

	for (unsigned int i = 0; word && i < COUNT(verbs); i++)
		if (!strcmp(word, verbs[i].name)) {
			*ret = i;
			return 0;
		}
	text_list(verbs, COUNT(verbs), sizeof(*verbs), list);
	if (!value)
		return why_say(why, -EINVAL, "do: is needed; there are %s", list);
	return why_say(why, -EINVAL, "do: %s: there is no such request; there are %s",
		       value_quote(value, quoted), list);
}

static const struct key *key_find(const struct verb *verb, const char *name)
{
	for (size_t i = 0; i < verb->count; i++)
		if (!strcmp(name, verb->keys[i].name))
			return &verb->keys[i];
	return NULL;
}

static int keys_check(const struct verb *verb, json_t *root, struct why *why)
{
	char list[TEXT_LIST_BYTES], quoted[TEXT_QUOTED_BYTES];
	const char *name;
	json_t *value;

	json_object_foreach(root, name, value)
	{
		if (!strcmp(name, "do") || key_find(verb, name))
			continue;
		text_quote(name, strlen(name), quoted);
		/* Without its quotes: the place of an error is a bare word everywhere. */
		return why_say(why, -EINVAL, "%s: %.*s: there is no such key; there %s%s",
			       verb->name, (int)strlen(quoted) - 2, quoted + 1,
			       verb->count ? "are " : "is none",
			       text_list(verb->keys, verb->count, sizeof(*verb->keys), list));
	}
	return 0;
}

static int keys_take(const struct verb *verb, const json_t *root, struct request *q,
		     struct why *why)
{
	struct reading reading = { .verb = verb->name, .why = why };
	int r = 0;

	for (size_t i = 0; r == 0 && i < verb->count; i++) {
		const struct key *key = &verb->keys[i];
		const json_t *value = json_object_get(root, key->name);

		if (value) {
			q->given |= key->bit;
			r = key->take(&reading, key, value, (char *)q + key->offset);
		} else if (key->needed) {
			r = why_say(why, -EINVAL, "%s: %s: is needed", verb->name, key->name);
		}
	}
	return r;
}

/* What the library says may show bytes of the line; the answer is to be plain text. */
static int refuse_syntax(const json_error_t *error, struct why *why)
{
	if (json_error_code(error) == json_error_out_of_memory)
		return why_say(why, -ENOMEM, "%s", strerror(ENOMEM));
	why_say(why, -EINVAL, "not JSON: byte %d: %s", error->position, error->text);
	for (char *c = why->text; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
	return -EINVAL;
}

int request_parse(const char *line, size_t length, struct request *ret, struct why *why)
{
	_cleanup_(json_decrefp) json_t *root = NULL;
	struct request q = { 0 };
	json_error_t error;
	int r;

	if (length > REQUEST_BYTES_MAX)
		return why_say(why, -EMSGSIZE, "a request has at most %d bytes", REQUEST_BYTES_MAX);
	root = json_loadb(line, length, JSON_REJECT_DUPLICATES, &error);
	if (!root)
		return refuse_syntax(&error, why);
	if (!json_is_object(root))
		return why_say(why, -EINVAL,
			       "a request is an object, such as {\"do\": \"status\"}");
	r = verb_find(root, &q.verb, why);
	if (r == 0)
		r = keys_check(&verbs[q.verb], root, why);
	if (r == 0)
		r = keys_take(&verbs[q.verb], root, &q, why);
	if (r < 0)
		return r;
	if (q.verb == REQUEST_TRACE && !(q.given & REQUEST_EVERY))
		q.filter.every = 1;
	*ret = q;
	return 0;
}

/* --- answers */

/* As a line; NULL: no memory. */
static char *line_make(const json_t *answer)
{
	_cleanup_(freep) char *text = answer ? json_dumps(answer, JSON_REAL_PRECISION(REAL_DIGITS))
					     : NULL;
	char *line;

	if (!text || asprintf(&line, "%s\n", text) < 0)
		return NULL;
	return line;
}

char *request_answer_ok(json_t *result)
{
	_cleanup_(json_decrefp) json_t *answer = NULL;
	_cleanup_(freep) char *line = NULL;

	if (!result)
		return request_answer_error(-ENOMEM, strerror(ENOMEM));
	answer = json_pack("{s:b, s:o}", "ok", 1, "result", result);
	line = line_make(answer);
	if (line && strlen(line) > REQUEST_ANSWER_BYTES_MAX + strlen("\n"))
		return request_answer_error(-EMSGSIZE, "the answer is longer than a line may be: "
						       "ask for one job or tenant by its name");
	return TAKE_PTR(line);
}

/* Names of files may be in an error, and those are any bytes. */
static json_t *text_to_json(const char *text)
{
	_cleanup_(freep) char *copy = NULL;
	json_t *json = json_string(text);

	if (json)
		return json;
	copy = strdup(text);
	for (char *c = copy; c && *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
	return copy ? json_string(copy) : NULL;
}

char *request_answer_error(int error, const char *text)
{
	const char *name = strerrorname_np(-error);
	_cleanup_(json_decrefp)
		json_t *answer = json_pack("{s:b, s:o, s:s}", "ok", 0, "error", text_to_json(text),
					   "errno", name ? name : "EIO");

	return line_make(answer);
}
