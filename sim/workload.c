// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "workload.h"

#include <errno.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/policy/random.h"
#include "common/owned.h"
#include "common/text.h"
#include "workload_private.h"

static const char BLANKS[] = " \t\r\v\f";

static const struct keys_style style = {
	.number = "a number",
	.no_such_key = "no such key",
	.missing = "no %s=..., which is needed",
	.shown = KEYS_QUOTED,
};

struct workload_name {
	const char *name; /* the topology's */
	uint32_t machine;
};

void workload_free(struct workload *w)
{
	if (!w)
		return;
	for (unsigned int i = 0; i < w->jobs; i++)
		free(w->job[i].worker);
	free(w->job);
	free(w->failure);
	free(w);
}

/* --- names of machines ----------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct workload_name *)a)->name,
		      ((const struct workload_name *)b)->name);
}

static void names_index(const struct topology *t, struct workload_name *name)
{
	for (uint32_t m = 0; m < t->graph->machines; m++)
		name[m] = (struct workload_name){ .name = t->name[m], .machine = m };
	qsort(name, t->graph->machines, sizeof(*name), by_name);
}

uint32_t workload_machine(const struct workload_reader *r, const char *name)
{
	const struct workload_name key = { .name = name }, *found;

	found = bsearch(&key, r->names, r->topology->graph->machines, sizeof(key), by_name);
	return found ? found->machine : GRAPH_NONE;
}

/* --- lines ----------------------------------------------------------------------------------- */

struct line {
	struct workload_reader *r;
	struct key word; /* the line's first word leads in errors */
	struct value value; /* a mapping */
	struct place root, at;
	char *rest;
};

static int refuse(struct line *l, const char *word, const char *what)
{
	char quoted[TEXT_QUOTED_BYTES];

	return keys_refuse(&l->r->reading, &l->at, "%s: %s", text_quote(word, strlen(word), quoted),
			   what);
}

struct claim {
	char name[WORKLOAD_NAME_BYTES]; /* of a job, or of a line `jobs` */
	unsigned int line;
};

static int by_claim(const void *a, const void *b)
{
	return strcmp(((const struct claim *)a)->name, ((const struct claim *)b)->name);
}

static int claim(struct line *l, const char *name)
{
	_cleanup_(freep) struct claim *c = calloc(1, sizeof(*c));
	struct claim **found;

	if (!c)
		return -ENOMEM;
	snprintf(c->name, sizeof(c->name), "%s", name);
	c->line = l->value.at.line;
	found = tsearch(c, &l->r->claims, by_claim);
	if (!found)
		return -ENOMEM;
	if (*found != c)
		return keys_refuse(&l->r->reading, &l->at, "there is a job %s since line %u", name,
				   (*found)->line);
	TAKE_PTR(c);
	return 0;
}

/* The name of the line, which seeds chance, and the names of its jobs. */
static int claim_all(struct line *l, const struct workload_line *line, bool is_one)
{
	char name[WORKLOAD_NAME_BYTES];
	int error = claim(l, line->name);

	for (uint32_t i = 0; i < line->count && !is_one && error == 0; i++) {
		workload_job_name(line, is_one, i, name);
		error = claim(l, name);
	}
	return error;
}

static const char *next_word(struct line *l)
{
	const char *word = strtok_r(NULL, BLANKS, &l->rest);

	return word ? word : "";
}

/* Names seed the chance of what they name. */
static uint64_t seed_of(const struct workload_reader *r, const char *name)
{
	uint64_t hash = 0xcbf29ce484222325; /* FNV-1a */

	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * 0x100000001b3;
	return hash ^ random_bits(&(uint64_t){ r->seed });
}

static int add_key(struct line *l, char *word)
{
	struct position at = l->value.at;
	char *text = strchr(word, '=');
	struct value *v;

	if (!text)
		return refuse(l, word, "KEY=VALUE is needed here");
	*text++ = '\0';
	v = value_new(VALUE_TEXT, text, strlen(text), at);
	if (!v)
		return -ENOMEM;
	value_add(&l->value, v);
	v->key = value_new(VALUE_TEXT, word, strlen(word), at);
	return v->key ? 0 : -ENOMEM;
}

/* All that is left of the line. */
static int take_keys(struct line *l, const struct keys *keys, void *into, uint32_t *ret_seen)
{
	int error = 0;
	char *word;

	keys_default(keys, into);
	while (error == 0 && (word = strtok_r(NULL, BLANKS, &l->rest)))
		error = add_key(l, word);
	if (error == 0)
		error = keys_take(&l->r->reading, &l->at, keys, into, ret_seen);
	value_free(l->value.first);
	l->value.first = l->value.last = NULL;
	return error;
}

static int read_jobs(struct line *l, bool is_one)
{
	static const char allowed[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";
	_cleanup_(freep) struct workload_line *line = calloc(1, sizeof(*line));
	const char *name = next_word(l);
	uint64_t random = seed_of(l->r, name);
	int error;

	if (!line)
		return -ENOMEM;
	if (!*name || strlen(name) + (is_one ? 0 : 6) >= sizeof(line->name) ||
	    name[strspn(name, allowed)])
		return refuse(
			l, name,
			is_one ? "a job has a name of at most 31 letters, digits, dots, - or _"
			       : "jobs have a name of at most 25 letters, digits, dots, - or _");
	memcpy(line->name, name, strlen(name) + 1);
	line->any_root = true;
	line->root = GRAPH_NONE;
	line->count = line->tenants = 1;
	error = take_keys(l, is_one ? &workload_job_keys : &workload_jobs_keys, line, NULL);
	if (error < 0)
		return error;
	if (!line->mix.models == (line->bytes.high == 0))
		return keys_refuse(&l->r->reading, &l->at,
				   line->mix.models ? "model=... or bytes=..., not both"
						    : "either model=... or bytes=... is needed");
	error = claim_all(l, line, is_one);
	if (error < 0)
		return error;
	error = workload_make_jobs(l->r, line, is_one, &random);
	if (error == -ENOENT)
		return keys_refuse(&l->r->reading, &l->at,
				   "the network has %u hosts: too few for workers and root",
				   l->r->topology->hosts);
	if (error == -E2BIG)
		return keys_refuse(&l->r->reading, &l->at, "more than %d jobs", WORKLOAD_JOBS_MAX);
	return error;
}

/* The machine, or all cables between two. */
static int fail_between(struct line *l, uint32_t a, uint32_t b, struct workload_failure failure)
{
	const struct graph *g = l->r->topology->graph;
	bool found = b == GRAPH_NONE;
	int error = 0;

	failure.link = GRAPH_NONE;
	failure.machine = b == GRAPH_NONE ? a : GRAPH_NONE;
	if (found)
		return workload_add_failure(l->r, &failure);
	for (uint32_t i = g->leaving_at[a]; i < g->leaving_at[a + 1] && error == 0; i++) {
		failure.link = g->leaving[i];
		if (g->link[failure.link].to != b)
			continue;
		found = true;
		error = workload_add_failure(l->r, &failure);
	}
	return found ? error
		     : keys_refuse(&l->r->reading, &l->at, "no cable joins these two machines");
}

/* What fails, and when, seeds the chance of how long. */
static uint64_t seed_of_fail(const struct workload_reader *r, const uint32_t machine[2],
			     double at_s)
{
	char words[2 * TOPOLOGY_NAME_BYTES + 32];

	snprintf(words, sizeof(words), "%s %s %a", r->topology->name[machine[0]],
		 machine[1] == GRAPH_NONE ? "" : r->topology->name[machine[1]], at_s);
	return seed_of(r, words);
}

static int read_fail(struct line *l)
{
	struct workload_failure_line line = { 0 };
	struct workload_failure failure;
	uint32_t machine[2] = { GRAPH_NONE, GRAPH_NONE };
	unsigned int n = 0;
	int error;

	for (; n < 2; n++) {
		size_t blanks = strspn(l->rest, BLANKS), word = strcspn(l->rest + blanks, BLANKS);
		const char *name;

		if (memchr(l->rest + blanks, '=', word) || word == 0)
			break;
		name = next_word(l);
		machine[n] = workload_machine(l->r, name);
		if (machine[n] == GRAPH_NONE)
			return refuse(l, name, "the network has no machine of that name");
	}
	if (n == 0)
		return keys_refuse(&l->r->reading, &l->at, "a machine is needed, or two");
	error = take_keys(l, &workload_fail_keys, &line, NULL);
	if (error < 0)
		return error;
	failure.at_s = line.at_s;
	failure.for_s = draw_real(&line.for_s,
				  &(uint64_t){ seed_of_fail(l->r, machine, line.at_s) });
	return fail_between(l, machine[0], machine[1], failure);
}

static int read_failures(struct line *l)
{
	struct workload_failure_line line = { 0 };
	const char *what = next_word(l);
	bool of_links = !strcmp(what, "links");
	uint64_t random = seed_of(l->r, what) + l->r->failures_lines++;
	int error;

	if (!of_links && strcmp(what, "nodes") != 0)
		return refuse(l, what, "links or nodes");
	error = take_keys(l, &workload_failures_keys, &line, NULL);
	if (error == 0)
		error = workload_make_failures(l->r, &line, of_links, &random);
	if (error == -E2BIG)
		return keys_refuse(&l->r->reading, &l->at, "more than %d failures",
				   WORKLOAD_FAILURES_MAX);
	return error;
}

static int read_line(struct workload_reader *r, char *text, unsigned int number)
{
	struct line l = { .r = r, .value = { .kind = VALUE_MAPPING, .text = "" } };

	text[strcspn(text, "#")] = '\0';
	l.word.name = strtok_r(text, BLANKS, &l.rest);
	if (!l.word.name)
		return 0;
	l.value.at.line = number;
	l.root = (struct place){ .index = -1, .value = &l.value };
	l.at = (struct place){ &l.root, &l.word, -1, &l.value };
	if (!strcmp(l.word.name, "job") || !strcmp(l.word.name, "jobs"))
		return read_jobs(&l, !l.word.name[3]);
	if (!strcmp(l.word.name, "fail"))
		return read_fail(&l);
	if (!strcmp(l.word.name, "failures"))
		return read_failures(&l);
	l.at = l.root;
	return refuse(&l, l.word.name, "a line begins with job, jobs, fail or failures");
}

/* --- all ------------------------------------------------------------------------------------- */

static int refuse_line(struct workload_reader *r, unsigned int line, const char *what)
{
	const struct value v = { .kind = VALUE_TEXT, .text = "", .at.line = line };

	return keys_refuse(&r->reading, &(const struct place){ .index = -1, .value = &v }, "%s",
			   what);
}

static int read_all(struct workload_reader *r, const char *text, size_t length)
{
	_cleanup_(freep) char *line = malloc(WORKLOAD_LINE_MAX + 1);
	unsigned int number = 0;
	int error = line ? 0 : -ENOMEM;

	for (size_t at = 0, bytes; error == 0 && at < length; at += bytes + 1) {
		const char *end = memchr(text + at, '\n', length - at);

		bytes = end ? (size_t)(end - text) - at : length - at;
		number++;
		if (bytes > WORKLOAD_LINE_MAX)
			return refuse_line(r, number, "longer than 8192 bytes");
		if (memchr(text + at, '\0', bytes))
			return refuse_line(r, number, "a byte 0: this is no text");
		memcpy(line, text + at, bytes);
		line[bytes] = '\0';
		error = read_line(r, line, number);
	}
	if (error == 0 && !length)
		return refuse_line(r, 0,
				   "the file is empty: a line such as `job NAME ...` is needed");
	if (error == 0 && !r->workload->jobs)
		return refuse_line(r, number, "the text ends, and no job was in it");
	return error;
}

static int by_arrival(const void *a, const void *b)
{
	const struct workload_job *x = a, *y = b;

	return x->arrives_s < y->arrives_s   ? -1
	       : x->arrives_s > y->arrives_s ? 1
					     : (x->number > y->number) - (x->number < y->number);
}

static int by_time(const void *a, const void *b)
{
	const struct workload_failure *x = a, *y = b;

	return x->at_s < y->at_s   ? -1
	       : x->at_s > y->at_s ? 1
				   : (x->number > y->number) - (x->number < y->number);
}

static void put_in_order(struct workload *w)
{
	qsort(w->job, w->jobs, sizeof(*w->job), by_arrival);
	if (w->failures)
		qsort(w->failure, w->failures, sizeof(*w->failure), by_time);
}

int workload_parse(const char *name, const char *text, size_t length, const struct topology *t,
		   uint64_t seed, struct workload **ret, struct why *why)
{
	_cleanup_(freep) struct workload_name *names = calloc(t->graph->machines + 1,
							      sizeof(*names));
	_cleanup_(workload_freep) struct workload *w = calloc(1, sizeof(*w));
	struct workload_reader r = { .topology = t, .names = names, .workload = w, .seed = seed };
	int error = w && names ? 0 : -ENOMEM;

	why->text[0] = '\0';
	r.reading = (struct reading){ &style, name, &r, why->text, sizeof(why->text) };
	if (error == 0) {
		names_index(t, names);
		error = read_all(&r, text, length);
		tdestroy(r.claims, free);
	}
	if (error == -ENOMEM)
		return why_say(why, error, "%s: out of memory", name);
	if (error < 0)
		return error;
	put_in_order(w);
	*ret = TAKE_PTR(w);
	return 0;
}
