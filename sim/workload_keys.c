// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The keys of a workload's lines. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/text.h"
#include "models.h"
#include "workload_private.h"

/* --- numbers --------------------------------------------------------------------------------- */

static bool within(const struct key *key, double n)
{
	return n >= (double)key->min && n <= (double)key->max;
}

static bool real_parse(const struct key *key, const char *text, void *member)
{
	double n;

	if (!draw_number(text, &n) || !within(key, n))
		return false;
	memcpy(member, &n, sizeof(n));
	return true;
}

static void real_print(const struct key *key, const void *member, char *text, size_t size)
{
	double n;

	memcpy(&n, member, sizeof(n));
	snprintf(text, size, "%g", n);
}

/* What is said of k, M and G behind the range of a key, where they can be of use. */
static const char *units_of(const struct key *key)
{
	return key->max >= 1000000000 ? "; k, M and G multiply"
	       : key->max >= 1000000  ? "; k and M multiply"
	       : key->max > 1000      ? "; k multiplies"
				      : "";
}

static void real_describe(const struct key *key, const char *number, char *text, size_t size)
{
	snprintf(text, size, "%s from %ju to %ju, such as 1.5%s", number, (uintmax_t)key->min,
		 (uintmax_t)key->max, units_of(key));
}

/* 1.001k is whole, though 1.001 times 1000 is not in binary. */
static bool is_whole(double n) { return fabs(n - round(n)) <= n * 1e-12; }

static bool whole_parse(const struct key *key, const char *text, void *member)
{
	double n;

	if (!draw_number(text, &n) || !is_whole(n) || !within(key, round(n)))
		return false;
	key_number_store((uint64_t)round(n), member, key->size);
	return true;
}

static void whole_print(const struct key *key, const void *member, char *text, size_t size)
{
	snprintf(text, size, "%ju", (uintmax_t)key_number_load(member, key->size));
}

static void whole_describe(const struct key *key, const char *number, char *text, size_t size)
{
	(void)number;
	snprintf(text, size, "a whole number from %ju to %ju%s", (uintmax_t)key->min,
		 (uintmax_t)key->max, units_of(key));
}

static bool draw_take(const struct key *key, const char *text, void *member)
{
	struct draw d;

	if (!draw_parse(text, &d) || !within(key, d.low) || !within(key, d.high))
		return false;
	memcpy(member, &d, sizeof(d));
	return true;
}

static void draw_print(const struct key *key, const void *member, char *text, size_t size)
{
	const struct draw *d = member;

	snprintf(text, size, d->low == d->high ? "%g" : "%g..%g", d->low, d->high);
}

static void draw_describe(const struct key *key, const char *number, char *text, size_t size)
{
	snprintf(text, size, "%s from %ju to %ju, a range such as 3..6, or zipf:3..6:1.5%s", number,
		 (uintmax_t)key->min, (uintmax_t)key->max, units_of(key));
}

static bool draw_whole_take(const struct key *key, const char *text, void *member)
{
	struct draw d;

	if (!draw_parse(text, &d) || !is_whole(d.low) || !is_whole(d.high))
		return false;
	return draw_take(key, text, member);
}

static void draw_whole_describe(const struct key *key, const char *number, char *text, size_t size)
{
	(void)number;
	draw_describe(key, "a whole number", text, size);
}

static const struct key_type real = { .parse = real_parse,
				      .print = real_print,
				      .describe = real_describe };
static const struct key_type whole = { .parse = whole_parse,
				       .print = whole_print,
				       .describe = whole_describe };
static const struct key_type drawn = { .parse = draw_take,
				       .print = draw_print,
				       .describe = draw_describe };
static const struct key_type drawn_whole = { .parse = draw_whole_take,
					     .print = draw_print,
					     .describe = draw_whole_describe };

/* --- models ---------------------------------------------------------------------------------- */

static bool mix_add(char *item, struct workload_mix *mix)
{
	char *weight = strchr(item, ':');
	const struct model *m;

	if (weight)
		*weight++ = '\0';
	m = model_find(item);
	if (!m || mix->models == WORKLOAD_MIX_MAX)
		return false;
	mix->model[mix->models] = (uint8_t)(m - MODELS);
	mix->weight[mix->models] = 1;
	if (weight &&
	    (!draw_number(weight, &mix->weight[mix->models]) || mix->weight[mix->models] <= 0))
		return false;
	mix->models++;
	return true;
}

static bool mix_parse(const struct key *key, const char *text, void *member)
{
	char copy[256], *rest = copy, *item;
	struct workload_mix mix = { 0 };

	if (strlen(text) >= sizeof(copy))
		return false;
	memcpy(copy, text, strlen(text) + 1);
	while ((item = strsep(&rest, ",")))
		if (!mix_add(item, &mix))
			return false;
	if (key->max == 1 && mix.models > 1)
		return false;
	memcpy(member, &mix, sizeof(mix));
	return true;
}

static void mix_print(const struct key *key, const void *member, char *text, size_t size)
{
	const struct workload_mix *mix = member;

	snprintf(text, size, "%s", mix->models ? MODELS[mix->model[0]].name : "");
}

static void mix_describe(const struct key *key, const char *number, char *text, size_t size)
{
	char names[TEXT_LIST_BYTES];

	snprintf(text, size, "%s%s", text_list(MODELS, MODELS_COUNT, sizeof(*MODELS), names),
		 key->max == 1 ? " are there" : " are there; several as vgg19:1,resnet50:3");
}

static const struct key_type mix = { .parse = mix_parse,
				     .print = mix_print,
				     .describe = mix_describe };

/* --- machines -------------------------------------------------------------------------------- */

static int take_worker(struct reading *r, const struct place *at, const char *name,
		       struct workload_line *line)
{
	const struct workload_reader *reader = r->root;
	uint32_t m = workload_machine(reader, name);
	char quoted[TEXT_QUOTED_BYTES];

	if (m == GRAPH_NONE || reader->topology->graph->machine[m].kind != GRAPH_HOST)
		return keys_refuse(r, at, "%s: the network has no host of that name",
				   text_quote(name, strlen(name), quoted));
	if (line->named == WORKLOAD_WORKERS_MAX)
		return keys_refuse(r, at, "a job has at most %d workers", WORKLOAD_WORKERS_MAX);
	line->worker[line->named++] = m;
	return 0;
}

/* HOST,HOST... */
static int take_workers(struct reading *r, const struct place *at, void *into)
{
	char copy[WORKLOAD_LINE_MAX + 1], *rest = copy, *name;
	struct workload_line *line = into;
	int error = 0;

	snprintf(copy, sizeof(copy), "%s", at->value->text);
	while (error == 0 && (name = strsep(&rest, ",")))
		error = take_worker(r, at, name, line);
	return error;
}

static int take_root(struct reading *r, const struct place *at, void *into)
{
	struct workload_line *line = into;
	const struct workload_reader *reader = r->root;

	line->any_root = value_is(at->value, "any");
	line->root = GRAPH_NONE;
	if (line->any_root || value_is(at->value, "none"))
		return 0;
	line->root = workload_machine(reader, at->value->text);
	if (line->root == GRAPH_NONE)
		return keys_refuse_value(r, at,
					 "any, none, or a machine of the network: it has no such");
	return 0;
}

/* --- tables ---------------------------------------------------------------------------------- */

#define SECONDS_MAX (366ull * 24 * 3600)
#define BYTES_MAX 1000000000000ull
#define ITERATIONS_MAX 4000000000ull

#define LINE(member) KEY_MEMBER(struct workload_line, member)
#define FAILURE(member) KEY_MEMBER(struct workload_failure_line, member)

#define ROOT                                                                                  \
	{ .name = "root",                                                                     \
	  .take = take_root,                                                                  \
	  .allowed = "any, none or a machine",                                                \
	  .otherwise = "any",                                                                 \
	  .meaning = "Who makes the results where no node does: a host by chance that is no " \
		     "worker, nobody (the top of the job's tree does), or this machine." }

static const struct key job_rows[] = {
	{ "model", &mix, LINE(mix), .max = 1, .otherwise = "`bytes` says how many",
	  .meaning = "Network that is trained: its gradient has so many bytes." },
	{ "bytes", &drawn, LINE(bytes), .min = 1, .max = BYTES_MAX, .otherwise = "those of `model`",
	  .meaning = "Bytes of a gradient." },
	{ "workers", .take = take_workers, .needed = true, .allowed = "hosts: HOST,HOST...",
	  .meaning = "Where they are." },
	ROOT,
	{ "arrives", &real, LINE(arrives_s), .max = SECONDS_MAX, .initial = "0",
	  .meaning = "Seconds from the beginning on." },
	{ "compute", &drawn, LINE(compute), .max = SECONDS_MAX, .initial = "0.38",
	  .meaning = "Seconds that a worker computes in an iteration (0.38: VGG19 in InArt's "
		     "testbed)." },
	{ "iterations", &drawn_whole, LINE(iterations), .min = 1, .max = ITERATIONS_MAX,
	  .initial = "100", .meaning = "How many." },
	{ "tenant", &whole, LINE(tenant), .max = WORKLOAD_TENANTS_MAX - 1, .initial = "0",
	  .meaning = "Whose job it is." },
	{ "weight", &real, LINE(weight), .min = 1, .max = 1000, .initial = "1",
	  .meaning = "How much of a link it gets beside others." },
	{ "slots", &drawn_whole, LINE(slots), .max = UINT32_MAX, .initial = "256",
	  .meaning = "That it takes of each of its nodes." },
};

static const char *const hosts_words[] = { "any", "near", NULL };

static const struct key jobs_rows[] = {
	{ "count", &whole, LINE(count), .min = 1, .max = WORKLOAD_JOBS_MAX, .needed = true,
	  .meaning = "How many jobs." },
	{ "model", &mix, LINE(mix), .max = WORKLOAD_MIX_MAX, .otherwise = "`bytes` says how many",
	  .meaning = "Networks that are trained; each job draws one of the mix." },
	{ "bytes", &drawn, LINE(bytes), .min = 1, .max = BYTES_MAX, .otherwise = "those of `model`",
	  .meaning = "Bytes of a gradient." },
	{ "workers", &drawn_whole, LINE(workers), .min = 1, .max = WORKLOAD_WORKERS_MAX,
	  .initial = "3..6", .meaning = "Of a job (3..6: as TAPINA's generator)." },
	{ "hosts", &key_choice, LINE(hosts), .words = hosts_words, .initial = "any",
	  .meaning = "Which hosts: any, each at most once a job; or hosts that follow one another "
		     "in the network." },
	ROOT,
	{ "begins", &real, LINE(arrives_s), .max = SECONDS_MAX, .initial = "0",
	  .meaning = "Seconds from the beginning on, after which the first job can come." },
	{ "every", &real, LINE(every_s), .max = SECONDS_MAX, .initial = "0",
	  .meaning =
		  "Seconds from job to job on average (Poisson arrivals); 0: all come at once." },
	{ "compute", &drawn, LINE(compute), .max = SECONDS_MAX, .initial = "0.38",
	  .meaning = "Seconds that a worker computes in an iteration." },
	{ "iterations", &drawn_whole, LINE(iterations), .min = 1, .max = ITERATIONS_MAX,
	  .initial = "100", .meaning = "Of a job." },
	{ "tenants", &whole, LINE(tenants), .min = 1, .max = WORKLOAD_TENANTS_MAX, .initial = "1",
	  .meaning = "Jobs go to so many tenants by turns." },
	{ "weight", &real, LINE(weight), .min = 1, .max = 1000, .initial = "1",
	  .meaning = "How much of a link a job gets beside others." },
	{ "slots", &drawn_whole, LINE(slots), .max = UINT32_MAX, .initial = "256",
	  .meaning = "That a job takes of each of its nodes." },
};

static const struct key fail_rows[] = {
	{ "at", &real, FAILURE(at_s), .max = SECONDS_MAX, .needed = true,
	  .meaning = "Seconds from the beginning on." },
	{ "for", &drawn, FAILURE(for_s), .max = SECONDS_MAX, .needed = true,
	  .meaning = "Seconds that it lasts." },
};

static const struct key failures_rows[] = {
	{ "every", &real, FAILURE(every_s), .min = 1, .max = SECONDS_MAX, .needed = true,
	  .meaning = "Seconds from one to the next on average, in the whole network (Poisson)." },
	{ "for", &drawn, FAILURE(for_s), .max = SECONDS_MAX, .needed = true,
	  .meaning = "Seconds that one lasts." },
	{ "until", &real, FAILURE(until_s), .max = SECONDS_MAX, .initial = "86400",
	  .meaning = "Seconds from the beginning on; none begins later." },
};

const struct keys workload_job_keys = KEYS(job_rows), workload_jobs_keys = KEYS(jobs_rows),
		  workload_fail_keys = KEYS(fail_rows),
		  workload_failures_keys = KEYS(failures_rows);
