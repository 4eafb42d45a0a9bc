// SPDX-License-Identifier: GPL-2.0-only
/* sources: agent/core/request.c agent/core/tenant.c */
/* sources: agent/core/tenant_keys.c agent/core/keys_json.c */
/* sources: agent/core/document.c agent/core/tree.c */
/* libraries: -ljansson */
/* Anybody may ask anything. What is taken is written as a request again, and is the same. */
#include <stdlib.h>
#include <string.h>
#include <tally/wire.h>

#include "agent/core/keys_json.h"
#include "agent/core/request.h"
#include "common/address.h"
#include "common/jobfile.h"
#include "common/name.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool is_right)
{
	if (!is_right)
		abort();
}

static void put_number(json_t *line, const char *key, uint64_t value)
{
	must(json_object_set_new(line, key, json_integer((json_int_t)value)) == 0);
}

static void put_text(json_t *line, const char *key, const char *value)
{
	must(json_object_set_new(line, key, json_string(value)) == 0);
}

static void put_flag(json_t *line, const char *key, bool value)
{
	must(json_object_set_new(line, key, json_boolean(value)) == 0);
}

static void put_tenant(json_t *line, uint32_t given, const struct tenant *t)
{
	char text[TENANT_POINT_BYTES];
	json_t *points;

	must(name_is_valid(t->name) && t->points <= TENANT_POINTS_MAX);
	put_text(line, "name", t->name);
	put_flag(line, "cluster", t->clustered);
	if (given & REQUEST_SLOTS)
		put_number(line, "slots", t->slots);
	if (given & REQUEST_PACKETS_PER_SECOND)
		put_number(line, "packets_per_second", t->packets_per_second);
	if (given & REQUEST_BYTES_PER_SECOND)
		put_number(line, "bytes_per_second", t->bytes_per_second);
	if (given & REQUEST_PRIORITY)
		put_number(line, "priority", t->priority);
	if (given & REQUEST_GROUP)
		put_text(line, "group", *t->group ? t->group : "none");
	if (!(given & REQUEST_INGRESS))
		return;
	points = json_array();
	for (unsigned int i = 0; i < t->points; i++) {
		tenant_point_print(&t->point[i], text, sizeof(text));
		must(json_array_append_new(points, json_string(text)) == 0);
	}
	must(json_object_set_new(line, "ingress", points) == 0);
}

/* As the tables of keys write it. */
static void put_made(json_t *line, const char *key, const struct keys *keys, const void *from)
{
	must(json_object_set_new(line, key, keys_json_make(keys, from)) == 0);
}

static void put_tree(json_t *line, const struct tree *t)
{
	json_t *nodes = json_array();

	for (unsigned int i = 0; i < t->nodes; i++)
		must(json_array_append_new(nodes, keys_json_make(&tree_node_keys, &t->node[i])) ==
		     0);
	must(json_object_set_new(line, "tree", nodes) == 0);
}

static void put_job(json_t *line, uint32_t given, const struct request_job *j)
{
	char text[ADDRESS_BYTES];

	must(name_is_valid(j->name));
	must(j->workers >= 1 && j->workers <= TALLY_WORKERS_MAX);
	must(j->window <= TALLY_WINDOW_MAX && !(j->window & (j->window - 1)));
	must(j->payload_bytes <= TALLY_PAYLOAD_MAX && j->payload_bytes % TALLY_BLOCK_BYTES == 0);
	put_text(line, "name", j->name);
	put_number(line, "workers", j->workers);
	if (given & REQUEST_TENANT)
		put_text(line, "tenant", j->tenant);
	if (given & REQUEST_WINDOW)
		put_number(line, "window", j->window);
	if (given & REQUEST_PAYLOAD)
		put_number(line, "payload", j->payload_bytes);
	if (given & REQUEST_ID)
		put_number(line, "id", j->id);
	if (given & REQUEST_TAGS)
		must(json_object_set_new(line, "tags", json_boolean(j->tags)) == 0);
	if (given & REQUEST_SEALED)
		must(json_object_set_new(line, "sealed", json_boolean(j->sealed)) == 0);
	put_tree(line, &j->tree);
	if (!(given & REQUEST_SERVICE))
		return;
	address_print(&j->service, text, sizeof(text));
	put_text(line, "service", text);
}

static void put_filter(json_t *line, const struct request *q)
{
	const struct request_filter *f = &q->filter;

	must(q->verb != REQUEST_TRACE || (f->every >= 1 && f->every <= 1U << 31));
	if (q->given & REQUEST_NAME)
		put_text(line, "name", q->verb == REQUEST_JOB_LIST ? f->job : f->tenant);
	if (q->verb == REQUEST_TENANT_LIST)
		put_flag(line, "cluster", f->clustered);
	if (q->given & REQUEST_JOB)
		put_text(line, "job", f->job);
	if (q->given & REQUEST_TENANT)
		put_text(line, "tenant", f->tenant);
	if (q->given & REQUEST_PORT)
		put_text(line, "port", f->port);
	if (q->given & REQUEST_EVERY)
		put_number(line, "every", f->every);
}

static char *line_of(const struct request *q)
{
	json_auto_t *line = json_object();

	put_text(line, "do", request_verb_name(q->verb));
	switch (q->verb) {
	case REQUEST_TENANT_ADD:
	case REQUEST_TENANT_SET:
		put_tenant(line, q->given, &q->tenant);
		break;
	case REQUEST_JOB_CREATE:
		put_job(line, q->given, &q->job);
		break;
	case REQUEST_TENANT_DEL:
		put_text(line, "name", q->tenant.name);
		put_flag(line, "cluster", q->tenant.clustered);
		break;
	case REQUEST_JOB_TOKEN:
	case REQUEST_JOB_ROTATE:
	case REQUEST_JOB_DEL:
	case REQUEST_JOB_RESTART:
		put_text(line, "name", q->name);
		break;
	case REQUEST_JOB_KICK:
		put_text(line, "name", q->kick.job);
		put_number(line, "rank", q->kick.rank);
		break;
	case REQUEST_JOB_DOCUMENTS:
		put_text(line, "name", q->documents.job);
		if (q->given & REQUEST_NODE)
			put_text(line, "node", q->documents.node);
		break;
	case REQUEST_APPLY:
		if (q->given & REQUEST_TENANT)
			put_text(line, "tenant", q->apply.tenant);
		put_made(line, "document", &document_keys, &q->apply.document);
		break;
	default:
		put_filter(line, q);
	}
	return json_dumps(line, 0);
}

/* An error's text is printable, and its answer one line of JSON with that text in it. */
static void check_error(int error, const char *text)
{
	_cleanup_(freep) char *answer = request_answer_error(error, text);
	json_auto_t *json = NULL;

	must(answer != NULL && strchr(answer, '\n') == answer + strlen(answer) - 1);
	json = json_loads(answer, 0, NULL);
	must(json != NULL && !strcmp(json_string_value(json_object_get(json, "error")), text));
	for (; *text; text++)
		must(*text >= ' ' && *text <= '~');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(freep) char *line = NULL, *line_again = NULL;
	static struct request q, again;
	struct why why = { "" };
	int r;

	memset(&q, 0, sizeof(q));
	memset(&again, 0, sizeof(again));
	r = request_parse((const char *)data, size, &q, &why);
	if (r < 0) {
		check_error(r, why.text);
		return 0;
	}
	must(q.verb < REQUEST_VERB_COUNT);
	line = line_of(&q);
	must(line != NULL);
	must(request_parse(line, strlen(line), &again, &why) == 0);
	line_again = line_of(&again);
	must(q.given == again.given && line_again && !strcmp(line, line_again));
	return 0;
}
