// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* doctor's check of packets that are refused: of jobs, and at ports by no job's gate. */
#include <string.h>
#include <tally/outcome.h>
#include <time.h>

#include "common/clock.h"
#include "doctor.h"
#include "table.h"

enum {
	READING_MS = 100,
	READINGS_MS_MAX = 3000,
};

/* Of messages that no job's gate lets in: the port alone counts these. */
static const enum tally_outcome of_no_job[] = {
	TALLY_OTHER_PORT, TALLY_OTHER_SOURCE, TALLY_TRUNCATED, TALLY_BAD_LENGTH, TALLY_FORGED,
};

enum {
	OUTCOMES = sizeof(of_no_job) / sizeof(*of_no_job),
};

static void jobs_check(struct doctor *d)
{
	const json_t *job;
	size_t i;

	json_array_foreach(field(d->top, "jobs"), i, job)
	{
		double rate = field_number(job, "refused_per_second");

		if (rate >= 1)
			found_warn(d,
				   "job %s: %.0f packets a second are refused: tallyctl stats "
				   "--job %s says why",
				   field_text(job, "name"), rate, field_text(job, "name"));
	}
}

static double counted(const json_t *readings, const char *port, enum tally_outcome outcome)
{
	const json_t *stats = json_object_get(readings, port);

	return field_number(json_object_get(stats, tally_outcome_name(outcome)), "packets");
}

/* The counters of each port, by its name; NULL: tallyd does not say. To be put back. */
static json_t *ports_read(struct doctor *d)
{
	_cleanup_(json_decrefp) json_t *all = json_object();
	const json_t *port;
	size_t i;

	json_array_foreach(field(d->status, "ports"), i, port)
	{
		const char *name = field_text(port, "name");
		_cleanup_(json_decrefp)
			json_t *request = json_pack("{ss ss}", "do", "stats", "port", name);
		struct why why;
		json_t *stats;

		if (connection_ask(d->connection, request, &stats, &why) < 0)
			return NULL;
		json_object_set_new(all, name, stats);
	}
	return TAKE_PTR(all);
}

/* Is any of them more than `before`? With no `before`: has any been counted at all? */
static bool has_risen(struct doctor *d, const json_t *before, const json_t *now)
{
	const json_t *port;
	size_t i;

	json_array_foreach(field(d->status, "ports"), i, port)
	{
		const char *name = field_text(port, "name");

		for (unsigned int k = 0; k < OUTCOMES; k++)
			if (counted(now, name, of_no_job[k]) > counted(before, name, of_no_job[k]))
				return true;
	}
	return false;
}

static void port_report(struct doctor *d, const char *port, const json_t *before, const json_t *now)
{
	char text[256] = "";

	for (unsigned int k = 0; k < OUTCOMES; k++) {
		double more = counted(now, port, of_no_job[k]) -
			      counted(before, port, of_no_job[k]);
		size_t n = strlen(text);

		if (more > 0)
			snprintf(text + n, sizeof(text) - n, "%s%.0f %s", n ? ", " : "", more,
				 tally_outcome_name(of_no_job[k]));
	}
	if (*text)
		found_warn(d,
			   "port %s: %s packets were refused while doctor looked, whichever job "
			   "they name: tallyctl stats --port %s says what that means",
			   port, text, port);
}

/*
 * tallyd reads the counters now and then, so whatever rises takes a while to be seen. Where nothing
 * was ever counted, nobody waits.
 */
static json_t *rise_await(struct doctor *d, const json_t *before)
{
	const struct timespec pause = { .tv_nsec = READING_MS * 1000000L };
	double wait_ms = 1500 * field_number(d->top, "interval_s");
	uint64_t now_ns = clock_now_ns();
	uint64_t end_ns = now_ns +
			  (uint64_t)(wait_ms < READINGS_MS_MAX ? wait_ms : READINGS_MS_MAX) *
				  1000000;

	for (; now_ns < end_ns; now_ns = clock_now_ns()) {
		_cleanup_(json_decrefp) json_t *now = NULL;

		nanosleep(&pause, NULL);
		now = ports_read(d);
		if (!now || has_risen(d, before, now))
			return now ? ports_read(d) : NULL; /* of one sample */
	}
	return NULL;
}

void doctor_refused_check(struct doctor *d, const struct doctor_port *p)
{
	_cleanup_(json_decrefp) json_t *before = NULL, *now = NULL;
	const json_t *port;
	size_t i;

	jobs_check(d);
	if (!d->connection)
		return;
	before = ports_read(d);
	if (before && has_risen(d, NULL, before))
		now = rise_await(d, before);
	json_array_foreach(now ? field(d->status, "ports") : NULL, i, port)
		port_report(d, field_text(port, "name"), before, now);
}
