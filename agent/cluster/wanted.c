// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "wanted.h"

#include <errno.h>
#include <string.h>
#include <tally/wire.h>

#include "agent/core/keys_json.h"
#include "agent/core/tenant_keys.h"
#include "common/joining.h"
#include "common/owned.h"

#define JOB(member) KEY_MEMBER(struct wanted_job, member)
#define PLACE(member) KEY_MEMBER(struct wanted_place, member)
#define WEIGHED(member) KEY_MEMBER(struct wanted_weighed, member)
#define WORKER(member) KEY_MEMBER(struct wanted_worker, member)

static bool words_parse(const struct key *key, const char *text, void *member)
{
	for (const char *c = text; *c; c++)
		if (*c < ' ' || *c > '~')
			return false;
	return snprintf(member, key->size, "%s", text) < (int)key->size;
}

static void words_print(const struct key *key, const void *member, char *text, size_t size)
{
	snprintf(text, size, "%s", (const char *)member);
}

const struct key_type wanted_words = { words_parse, words_print, .allowed = "a short text" };

static const struct key job_rows[] = {
	{ "name", &key_name, JOB(name), .needed = true, .meaning = "The job's name." },
	{ "tenant", &key_name, JOB(tenant), .needed = true, .meaning = "Whose job it is." },
	{ "token", &key_token, JOB(token), .needed = true,
	  .meaning = "By which workers join: a secret." },
	{ "id", &key_number, JOB(id), .min = 1, .max = UINT32_MAX, .needed = true,
	  .meaning = "The job's number in packets." },
	{ "birth", &key_hex, JOB(birth), .needed = true,
	  .meaning = "Random: a later job of that name has another." },
	{ "workers", &key_number, JOB(workers), .min = 1, .max = TALLY_WORKERS_MAX, .needed = true,
	  .meaning = "How many workers take part." },
	{ "window", &key_power, JOB(window), .min = 1, .max = TALLY_WINDOW_MAX, .needed = true,
	  .meaning = "Chunks that a worker may have in flight." },
	{ "payload", &key_number, JOB(payload_bytes), .max = TALLY_PAYLOAD_MAX,
	  .meaning = "Bytes of data in a full packet; 0: what the ways of each run "
		     "[carry](joining.md#payloads)." },
	{ "tags", &key_bool, JOB(tags), .initial = "true", .meaning = "Do packets carry tags?" },
	{ "sealed", &key_bool, JOB(sealed), .initial = "false", .meaning = "Is the job sealed?" },
	{ "roots", &key_number, JOB(roots), .max = JOINING_ROOTS_MAX,
	  .meaning = "How many roots it has, each with a job of its own; 0: one." },
	{ "which", &key_number, JOB(which), .max = JOINING_ROOTS_MAX,
	  .meaning = "Of several: which of them this job is for." },
};

static const struct key weighed_rows[] = {
	{ "node", &key_name, WEIGHED(node), .needed = true, .meaning = "A node." },
	{ "total", &wanted_words, WEIGHED(total),
	  .meaning = "What the decision costs with the root there." },
	{ "bytes", &wanted_words, WEIGHED(bytes), .meaning = "Of that: bytes times links." },
	{ "use", &wanted_words, WEIGHED(use), .meaning = "Of that: the fullest link." },
	{ "time", &wanted_words, WEIGHED(time), .meaning = "Of that: how jobs are slowed down." },
};

static const struct key place_rows[] = {
	{ "birth", &key_hex, PLACE(birth), .needed = true, .meaning = "Of the job." },
	{ "root", &key_name, PLACE(root), .needed = true, .meaning = "The node that is its root." },
	{ "address", &key_address, PLACE(address), .needed = true,
	  .meaning = "Where workers join, and send to." },
	{ "why", &wanted_words, PLACE(why), .meaning = "Why there, in words." },
	{ "share", &key_number, PLACE(share), .max = JOINING_SHARE_MAX,
	  .meaning = "Of several roots: this one's share of each call." },
	{ "stays", &key_bool, PLACE(stays), .initial = "false",
	  .meaning = "Is it to stay there, whatever else costs less?" },
	{ "workers", &key_endpoint, KEY_LIST(struct wanted_place, worker, workers),
	  .meaning = "Where workers were when it was decided." },
	{ "weighed", NULL, KEY_LIST(struct wanted_place, weighed, weighs),
	  .keys = KEYS_OF(weighed_rows), .allowed = "a mapping",
	  .meaning = "What was weighed: that node, and the next best ones." },
};

static const struct key worker_rows[] = {
	{ "node", &key_name, WORKER(node), .needed = true,
	  .meaning = "Whose agent the worker waits at." },
	{ "address", &key_endpoint, WORKER(address), .needed = true,
	  .meaning = "Where the worker receives." },
};

_Static_assert(offsetof(struct wanted_tenant, is) == 0, "rows of a tenant fit");

static const struct key tenant_rows[] = {
	TENANT_NAME_ROW,
	TENANT_LIMIT_ROWS,
	{ "ingress", &key_tenant_place,
	  KEY_ROWS(struct wanted_tenant, place, places, TENANT_PLACES_MAX), .brief = true,
	  .otherwise = "as each node says",
	  .meaning = "Ingress points at nodes: where its messages may come in, and nowhere else." },
};

const struct keys wanted_tenant_keys = KEYS(tenant_rows);
const struct keys wanted_job_keys = KEYS(job_rows), wanted_place_keys = KEYS(place_rows),
		  wanted_worker_keys = KEYS(worker_rows);

struct tenant wanted_tenant_at(const struct wanted_tenant *t, const char *node)
{
	struct tenant here = t->is;

	here.gated = t->places > 0;
	here.points = 0;
	for (unsigned int i = 0; i < t->places && here.points < TENANT_POINTS_MAX; i++)
		if (!strcmp(t->place[i].node, node))
			here.point[here.points++] = t->place[i].point;
	return here;
}

int wanted_places_check(const struct tenant_place *place, unsigned int places, struct why *why)
{
	for (unsigned int i = 0; i < places; i++) {
		unsigned int same = 0;

		for (unsigned int k = 0; k < places; k++)
			same += !strcmp(place[k].node, place[i].node);
		if (same > TENANT_POINTS_MAX)
			return why_say(why, -EINVAL,
				       "ingress: %u points at %s; one node can have %d at most",
				       same, place[i].node, TENANT_POINTS_MAX);
	}
	return 0;
}

char *wanted_print(const struct keys *keys, const void *from)
{
	_cleanup_(json_freep) json_t *all = keys_json_make(keys, from);

	return all ? json_dumps(all, JSON_COMPACT) : NULL;
}

int wanted_parse(const struct keys *keys, const char *text, void *ret, struct why *why)
{
	static const struct keys_style style = { .number = "a whole number",
						 .missing = "the key '%s' is needed",
						 .shown = KEYS_HIDDEN,
						 .tolerant = true };
	struct reading reading = { &style, "value", NULL, why->text, sizeof(why->text) };
	_cleanup_(json_freep) json_t *all = NULL;
	_cleanup_(value_freep) struct value *tree = NULL;
	json_error_t error;
	int r = keys_json_parse(text, strlen(text), &all, &error);

	if (r == -EINVAL)
		return why_say(why, r, "%s", error.text);
	if (r == 0)
		r = keys_json_tree(all, &tree);
	if (r < 0)
		return r;
	keys_default(keys, ret);
	return keys_take_root(&reading, tree, keys, ret, NULL);
}
