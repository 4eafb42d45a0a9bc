// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <tally/wire.h>

#include "common/joining.h"
#include "common/text.h"
#include "keys_json.h"
#include "tenant_keys.h"
#include "traffic.h"

enum {
	REAL_DIGITS = 12, /* of rates: what is printed is what was meant */
};

static const struct keys_style style = {
	.number = "a whole number",
	.no_such_key = "there is no such key",
	.missing = "%s: is needed",
	.keys_lead = true,
	.strict_lists = true,
};

/* --- keys */

#define FILTER(member) KEY_MEMBER(struct request_filter, member)
#define JOB(member) KEY_MEMBER(struct request_job, member)

static const struct key name_rows[] = {
	{ "name", &key_name, KEY_MEMBER(struct request, name), .needed = true,
	  .meaning = "Of the job." },
};

static const struct key tenant_list_rows[] = {
	{ "name", &key_name, FILTER(tenant), .meaning = "Of this tenant only." },
	{ "cluster", &key_bool, FILTER(clustered), .initial = "false",
	  .meaning = "Those of the [cluster](cluster.md#tenants-of-the-cluster)?" },
};

#define TENANT_CLUSTER_ROW                                                                        \
	{ "cluster", &key_bool, KEY_MEMBER(struct tenant, clustered), .initial = "false",         \
	  .meaning =                                                                              \
		  "Is it one of the [cluster](cluster.md#tenants-of-the-cluster), and so of all " \
		  "its nodes?" }

static int entry_take(struct reading *r, const struct place *at, void *into)
{
	struct request *q = r->root;
	struct tenant *t = &q->tenant;
	const char *text;
	struct why why;
	int error = keys_text(r, at, key_point.allowed, &text);

	if (error < 0)
		return error;
	if (tenant_is_place(text))
		error = tenant_place_parse(text, &q->place[q->places++], &why);
	else if (t->points == TENANT_POINTS_MAX)
		return keys_refuse(r, at, "one too many; there can be at most %d",
				   TENANT_POINTS_MAX);
	else
		error = tenant_point_parse(text, &t->point[t->points++], &why);
	return error < 0 ? keys_refuse(r, at, "%s", why.text) : 0;
}

/* Points of this node, and of all nodes of the cluster; which of them are meant `cluster` says. */
static int entries_take(struct reading *r, const struct place *at, void *into)
{
	return keys_each(r, at, TENANT_PLACES_MAX, entry_take, into);
}

#define TENANT_ENTRIES_ROW                                                                        \
	{ "ingress",                                                                              \
	  &key_point,                                                                             \
	  KEY_LIST(struct tenant, point, points),                                                 \
	  .take = entries_take,                                                                   \
	  .otherwise = "anywhere",                                                                \
	  .meaning = "List of up to 16 ingress points: where its messages may come in. With "     \
		     "`cluster` up to 64, each with its node: n0/eth1. A list without elements: " \
		     "anywhere." }

static const struct key tenant_rows[] = { TENANT_NAME_ROW, TENANT_LIMIT_ROWS, TENANT_ENTRIES_ROW,
					  TENANT_CLUSTER_ROW };
static const struct key tenant_del_rows[] = { TENANT_NAME_ROW, TENANT_CLUSTER_ROW };

static const struct key job_list_rows[] = {
	{ "name", &key_name, FILTER(job), .meaning = "Of this job only, with its members." },
	{ "tenant", &key_name, FILTER(tenant), .meaning = "Of this tenant only." },
};

static const struct key job_create_rows[] = {
	{ "name", &key_name, JOB(name), .needed = true, .meaning = "The job's name." },
	{ "workers", &key_number, JOB(workers), .min = 1, .max = TALLY_WORKERS_MAX, .needed = true,
	  .meaning = "How many workers take part." },
	{ "tenant", &key_name, JOB(tenant), .otherwise = "default", .meaning = "Whose job it is." },
	{ "window", &key_power, JOB(window), .min = 1, .max = TALLY_WINDOW_MAX, .otherwise = "128",
	  .meaning = "Chunks that a worker may have in flight." },
	{ "payload", &key_blocks, JOB(payload_bytes), .min = TALLY_BLOCK_BYTES,
	  .max = TALLY_PAYLOAD_MAX,
	  .otherwise = "what the ways of each run [carry](joining.md#payloads)",
	  .meaning = "Bytes of data in a full packet." },
	{ "service", &key_address, JOB(service),
	  .otherwise = "the first that the configuration names",
	  .meaning = "The address that workers send to, one of the node's own." },
	{ "id", &key_number, JOB(id), .max = UINT32_MAX, .otherwise = "a random one that is free",
	  .meaning = "The job's number in packets." },
	{ "tags", &key_bool, JOB(tags), .initial = "true",
	  .meaning = "Do packets carry tags by keys that only the node and the packet's worker "
		     "have? ([security](security.md#rank-keys))" },
	{ "sealed", &key_bool, JOB(sealed), .initial = "false",
	  .meaning =
		  "Do workers find out what a node adds wrong, by a secret that follows from the "
		  "token? ([security](security.md#sealed-jobs))" },
	{ "tree", NULL, KEY_LIST(struct request_job, tree.node, tree.nodes),
	  .keys = &tree_node_keys, .allowed = "a mapping of `name`, `address` and `ranks`",
	  .otherwise = "the job has one node", .meaning = "Its [inner nodes](trees.md)." },
	{ "cluster", &key_bool, JOB(clustered), .initial = "false",
	  .meaning = "Does the [cluster](cluster.md#jobs-of-the-cluster) decide where the job's "
		     "root is?" },
	{ "roots", &key_number, JOB(roots), .min = 1, .max = JOINING_ROOTS_MAX, .initial = "1",
	  .meaning = "How many roots the cluster finds for it "
		     "([several roots](cluster.md#several-roots))." },
	{ "find_tree", &key_bool, JOB(tree.found), .initial = "false",
	  .meaning = "Do agents find the inner nodes ([trees](trees.md#trees-that-agents-find))? "
		     "Then there is no `tree`." },
};

static const struct key cluster_rows[] = {
	{ "name", &key_name, FILTER(job),
	  .meaning = "Of this job only, with what was weighed when it was placed." },
};

static const struct key documents_rows[] = {
	{ "name", &key_name, KEY_MEMBER(struct request_documents, job), .needed = true,
	  .meaning = "Of the job." },
	{ "node", &key_name, KEY_MEMBER(struct request_documents, node),
	  .meaning = "Of this inner node only." },
};

static const struct key place_rows[] = {
	{ "name", &key_name, KEY_MEMBER(struct request_documents, job), .needed = true,
	  .meaning = "Of a job of the cluster." },
	{ "node", &key_name, KEY_MEMBER(struct request_documents, node), .needed = true,
	  .meaning = "The node that is to be its root." },
	{ "stay", &key_bool, KEY_MEMBER(struct request_documents, stay), .initial = "false",
	  .meaning = "Does the leader let it be there, whatever else costs less?" },
};

static const struct key apply_rows[] = {
	{ "tenant", &key_name, KEY_MEMBER(struct request_apply, tenant), .otherwise = "default",
	  .meaning = "Whose slots of this node it takes." },
	{ "document", NULL, KEY_MEMBER(struct request_apply, document), .keys = &document_keys,
	  .allowed = "a mapping ([trees](trees.md#the-document))", .needed = true,
	  .meaning = "What this node is to do in a run." },
};

static const struct key kick_rows[] = {
	{ "name", &key_name, KEY_MEMBER(struct request_rank, job), .needed = true,
	  .meaning = "Of the job." },
	{ "rank", &key_number, KEY_MEMBER(struct request_rank, rank), .max = TALLY_WORKERS_MAX - 1,
	  .needed = true, .meaning = "Who is to go." },
};

static const struct key stats_rows[] = {
	{ "job", &key_name, FILTER(job), .meaning = "Of this job only." },
	{ "tenant", &key_name, FILTER(tenant), .meaning = "Of this tenant only." },
	{ "port", &key_port, FILTER(port), .allowed = "the name of an interface",
	  .meaning = "Of this port only." },
	{ "history", &key_number, FILTER(history), .min = 1, .max = TRAFFIC_HISTORY,
	  .otherwise = "the totals", .meaning = "The rates of so many of the newest samples." },
};

static const struct key trace_rows[] = {
	{ "every", &key_number, FILTER(every), .min = 1, .max = 1U << 31, .initial = "1",
	  .meaning = "One packet in so many is sampled." },
	{ "job", &key_name, FILTER(job), .meaning = "Of this job only." },
};

/* The bits of enum request_key, by the names of their keys. */
static const char *const given_names[] = { "name",
					   "tenant",
					   "job",
					   "port",
					   "slots",
					   "packets_per_second",
					   "bytes_per_second",
					   "priority",
					   "ingress",
					   "workers",
					   "window",
					   "payload",
					   "service",
					   "id",
					   "every",
					   "history",
					   "rank",
					   "group",
					   "tags",
					   "sealed",
					   "node" };

/* --- verbs */

#define INTO(member) offsetof(struct request, member)

static const struct key no_rows[1];
static const struct keys no_keys = { no_rows, 0 };

const struct request_kind request_kinds[REQUEST_VERB_COUNT] = {
	[REQUEST_STATUS] = { "status", REQUEST_ANYONE, &no_keys, 0, "an object, see below" },
	[REQUEST_RELOAD] = { "reload", REQUEST_OPERATOR, &no_keys, 0,
			     "`{}`; or an error, and all is as it was, or `troubles` says what not yet" },
	[REQUEST_CORDON] = { "cordon", REQUEST_OPERATOR, &no_keys, 0,
			     "`{}`; from now on no run begins" },
	[REQUEST_UNCORDON] = { "uncordon", REQUEST_OPERATOR, &no_keys, 0, "`{}`" },
	[REQUEST_TENANT_LIST] = { "tenant-list", REQUEST_ANYONE, KEYS_OF(tenant_list_rows),
				  INTO(filter),
				  "an array of tenants; of those of the cluster, see below" },
	[REQUEST_TENANT_ADD] = { "tenant-add", REQUEST_OPERATOR, KEYS_OF(tenant_rows), INTO(tenant),
				 "the tenant" },
	[REQUEST_TENANT_SET] = { "tenant-set", REQUEST_OPERATOR, KEYS_OF(tenant_rows), INTO(tenant),
				 "the tenant; what is not named stays as it is" },
	[REQUEST_TENANT_DEL] = { "tenant-del", REQUEST_OPERATOR, KEYS_OF(tenant_del_rows),
				 INTO(tenant),
				 "`{}`; or the configuration's tenant that was hidden by it" },
	[REQUEST_JOB_LIST] = { "job-list", REQUEST_ANYONE, KEYS_OF(job_list_rows), INTO(filter),
			       "an array of jobs" },
	[REQUEST_JOB_CREATE] = { "job-create", REQUEST_OF_JOB, KEYS_OF(job_create_rows), INTO(job),
				 "`{\"name\", \"id\", \"token\"}`" },
	[REQUEST_JOB_TOKEN] = { "job-token", REQUEST_OF_JOB, KEYS_OF(name_rows), 0,
				"`{\"token\"}`" },
	[REQUEST_JOB_ROTATE] = { "job-rotate", REQUEST_OF_JOB, KEYS_OF(name_rows), 0,
				 "`{\"name\", \"id\", \"token\"}`: a new token; nobody joins with the "
				 "old one" },
	[REQUEST_JOB_DEL] = { "job-del", REQUEST_OF_JOB, KEYS_OF(name_rows), 0, "`{}`" },
	[REQUEST_JOB_RESTART] = { "job-restart", REQUEST_OF_JOB, KEYS_OF(name_rows), 0,
				  "`{}`; the job's run is over, its workers may join again" },
	[REQUEST_JOB_KICK] = { "job-kick", REQUEST_OF_JOB, KEYS_OF(kick_rows), INTO(kick), "`{}`" },
	[REQUEST_JOB_DOCUMENTS] = { "job-documents", REQUEST_OF_JOB, KEYS_OF(documents_rows),
				    INTO(documents),
				    "an array of documents, of the run that is on" },
	[REQUEST_JOB_PLACE] = { "job-place", REQUEST_OPERATOR, KEYS_OF(place_rows), INTO(documents),
				"`{}`; the job moves there, with its run" },
	[REQUEST_APPLY] = { "apply", REQUEST_OPERATOR, KEYS_OF(apply_rows), INTO(apply),
			    "`{\"name\", \"id\", \"epoch\", \"running\", \"trouble\"}`" },
	[REQUEST_STATS] = { "stats", REQUEST_ANYONE, KEYS_OF(stats_rows), INTO(filter),
			    "`{OUTCOME: {\"packets\", \"bytes\"}, ...}`, all outcomes; with "
			    "`history` an array, see below" },
	[REQUEST_LINKS] = { "links", REQUEST_ANYONE, &no_keys, 0, "an array of links" },
	[REQUEST_TOP] = { "top", REQUEST_ANYONE, &no_keys, 0,
			  "an object: one frame of `tallyctl top`" },
	[REQUEST_CLUSTER] = { "cluster-jobs", REQUEST_ANYONE, KEYS_OF(cluster_rows), INTO(filter),
			      "an object: jobs of the cluster, see below" },
	[REQUEST_EVENTS] = { "events", REQUEST_ANYONE, &no_keys, 0,
			     "an object: what has happened in the cluster, see below" },
	[REQUEST_TOPOLOGY] = { "topology", REQUEST_ANYONE, &no_keys, 0,
			       "an object: the picture of the network, see below" },
	[REQUEST_TRACE] = { "trace", REQUEST_OPERATOR, KEYS_OF(trace_rows), INTO(filter),
			    "`{}`, and then one line for each sampled packet until the connection "
			    "ends" },
};

const char *request_verb_name(enum request_verb verb) { return request_kinds[verb].name; }

/* --- the whole */

static int verb_find(const json_t *root, enum request_verb *ret, struct why *why)
{
	const json_t *value = json_object_get(root, "do");
	const char *word = json_string_value(value);
	_cleanup_(freep) char *dumped = NULL;
	char list[TEXT_LIST_BYTES], quoted[TEXT_QUOTED_BYTES];

	for (unsigned int i = 0; word && i < REQUEST_VERB_COUNT; i++)
		if (!strcmp(word, request_kinds[i].name)) {
			*ret = i;
			return 0;
		}
	text_list(request_kinds, REQUEST_VERB_COUNT, sizeof(*request_kinds), list);
	if (!value)
		return why_say(why, -EINVAL, "key 'do' is missing; one of %s", list);
	if (!word) {
		dumped = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
		word = dumped;
	}
	return why_say(why, -EINVAL, "do: %s: there is no such request; there are %s",
		       text_quote(word ? word : "?", word ? strlen(word) : 1, quoted), list);
}

static uint32_t given_of(const struct keys *keys, uint32_t seen)
{
	uint32_t given = 0;

	for (size_t i = 0; i < keys->count; i++)
		for (size_t bit = 0; bit < sizeof(given_names) / sizeof(*given_names); bit++)
			if (seen & 1u << i && !strcmp(keys->key[i].name, given_names[bit]))
				given |= 1u << bit;
	return given;
}

/* `root` is left without "do". */
static int keys_read(json_t *root, struct request *q, struct why *why)
{
	const struct request_kind *kind = &request_kinds[q->verb];
	struct reading reading = { &style, kind->name, q, why->text, sizeof(why->text) };
	_cleanup_(value_freep) struct value *tree = NULL;
	uint32_t seen = 0;
	int r;

	json_object_del(root, "do");
	r = keys_json_tree(root, &tree);
	if (r < 0)
		return why_say(why, r, "%s: %s", kind->name,
			       r == -ENOMEM ? strerror(ENOMEM) : "nested too deeply");
	keys_default(kind->keys, (char *)q + kind->offset);
	r = keys_take_root(&reading, tree, kind->keys, (char *)q + kind->offset, &seen);
	q->given = given_of(kind->keys, seen);
	return r;
}

/* What the library says may show bytes of the line; the answer is to be plain text. */
static int refuse_syntax(const json_error_t *error, struct why *why)
{
	why_say(why, -EINVAL, "not JSON: byte %d: %s", error->position, error->text);
	for (char *c = why->text; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
	return -EINVAL;
}

static int entries_check(const struct request *q, struct why *why)
{
	const char *name = request_kinds[q->verb].name;
	char text[TENANT_PLACE_BYTES];

	if (q->verb != REQUEST_TENANT_ADD && q->verb != REQUEST_TENANT_SET)
		return 0;
	if (q->tenant.clustered && q->tenant.points) {
		tenant_point_print(&q->tenant.point[0], text, sizeof(text));
		return why_say(why, -EINVAL,
			       "%s: ingress: %s: in the cluster ports are those of each node, so "
			       "name that, too: NODE/%s",
			       name, text, text);
	}
	if (!q->tenant.clustered && q->places) {
		tenant_place_print(&q->place[0], text, sizeof(text));
		return why_say(why, -EINVAL,
			       "%s: ingress: %s: points of nodes are for a tenant of the cluster: "
			       "say cluster, too, or leave the node out",
			       name, text);
	}
	return 0;
}

int request_parse(const char *line, size_t length, struct request *ret, struct why *why)
{
	_cleanup_(json_decrefp) json_t *root = NULL;
	struct request q = { 0 };
	json_error_t error;
	int r;

	if (length > REQUEST_BYTES_MAX)
		return why_say(why, -EMSGSIZE, "a request has at most %d bytes", REQUEST_BYTES_MAX);
	r = keys_json_parse(line, length, &root, &error);
	if (r < 0)
		return r == -ENOMEM ? why_say(why, r, "%s", strerror(ENOMEM))
				    : refuse_syntax(&error, why);
	if (!json_is_object(root))
		return why_say(why, -EINVAL,
			       "a request is an object, such as {\"do\": \"status\"}");
	r = verb_find(root, &q.verb, why);
	if (r == 0)
		r = keys_read(root, &q, why);
	if (r == 0)
		r = entries_check(&q, why);
	if (r < 0)
		return r;
	*ret = q;
	return 0;
}

struct tenant request_tenant(const struct request *q, const struct tenant *now)
{
	struct tenant t = *now;

	if (q->given & REQUEST_SLOTS)
		t.slots = q->tenant.slots;
	if (q->given & REQUEST_PACKETS_PER_SECOND)
		t.packets_per_second = q->tenant.packets_per_second;
	if (q->given & REQUEST_BYTES_PER_SECOND)
		t.bytes_per_second = q->tenant.bytes_per_second;
	if (q->given & REQUEST_PRIORITY)
		t.priority = q->tenant.priority;
	if (q->given & REQUEST_GROUP)
		memcpy(t.group, q->tenant.group, sizeof(t.group));
	if (q->given & REQUEST_INGRESS) {
		t.points = q->tenant.points;
		memcpy(t.point, q->tenant.point, sizeof(t.point));
		t.gated = q->tenant.gated;
	}
	return t;
}

char *request_print(const char *line, size_t length)
{
	_cleanup_(json_decrefp) json_t *root = NULL;
	_cleanup_(json_decrefp) json_t *sorted = json_object();
	json_t *name;

	if (keys_json_parse(line, length, &root, NULL) < 0)
		return NULL;
	name = json_object_get(root, "name");
	json_object_del(json_object_get(root, "document"), "keys");
	json_object_set(sorted, "do", json_object_get(root, "do"));
	if (name)
		json_object_set(sorted, "name", name);
	if (json_object_update(sorted, root) < 0)
		return NULL;
	return json_dumps(sorted, JSON_COMPACT | JSON_ENSURE_ASCII);
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
