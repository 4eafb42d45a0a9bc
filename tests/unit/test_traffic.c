// SPDX-License-Identifier: GPL-2.0-only
/* What the agent knows of traffic, from samples of counters. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/core/traffic.h"

enum {
	ROWS = 2048,
	FIRST = 2 /* behind the rows that are apart */
};

static const uint64_t S = 1000 * 1000 * 1000;

static struct traffic *t;
static struct traffic_row row[ROWS];
static size_t rows;
static struct traffic_link lines[TALLY_PORTS_MAX + 8];
static size_t links;
static uint64_t now;

static int prepare(void **state)
{
	memset(row, 0, sizeof(row));
	memset(lines, 0, sizeof(lines));
	rows = FIRST;
	links = 0;
	now = 1000 * S;
	return traffic_new(&t);
}

static int clean_up(void **state)
{
	traffic_free(t);
	return 0;
}

static struct traffic_row *add_row(uint32_t job, uint32_t ifindex, uint16_t tenant)
{
	assert_true(rows < ROWS);
	row[rows] = (struct traffic_row){ .job = job, .ifindex = ifindex, .tenant = tenant };
	return &row[rows++];
}

static struct traffic_link *add_link(uint32_t ifindex)
{
	lines[links] = (struct traffic_link){ .ifindex = ifindex, .mtu = 1500 };
	return &lines[links++];
}

static void count(struct traffic_row *r, enum tally_outcome outcome, uint64_t packets)
{
	r->outcome[outcome].packet += packets;
	r->outcome[outcome].byte += packets * 1000;
}

/* What the data plane does with the counters of a job that goes. */
static void move(struct traffic_row *from, struct traffic_row *to)
{
	for (unsigned int i = 0; i < TALLY_OUTCOME_COUNT; i++) {
		to->outcome[i].packet += from->outcome[i].packet;
		to->outcome[i].byte += from->outcome[i].byte;
	}
	memset(from->outcome, 0, sizeof(from->outcome));
}

static void sample(void) { traffic_sample(t, now, row, rows, lines, links); }

static void a_second_passes(void)
{
	now += S;
	sample();
}

static void assert_near(double is, double wanted)
{
	if (!(fabs(is - wanted) <= 1e-6 * fmax(1, fabs(wanted))))
		fail_msg("%.17g is not %.17g", is, wanted);
}

static void nothing_is_known_of_strangers(void **state)
{
	struct traffic_moment moment;
	struct traffic_moment link_moment;

	add_row(7, 3, 1);
	add_link(3);
	sample();
	assert_null(traffic_job(t, 6));
	assert_null(traffic_tenant(t, 2));
	assert_null(traffic_port(t, 4));
	assert_null(traffic_link_flow(t, 4));
	assert_null(traffic_job(t, 0));
	assert_int_equal(traffic_job_history(t, 6, &moment, 1), 0);
	assert_int_equal(traffic_link_history(t, 4, &link_moment, 1), 0);
}

static void rows_add_up_by_job_tenant_port_and_node(void **state)
{
	count(&row[0], TALLY_FOREIGN, 1000);
	count(add_row(7, 3, 1), TALLY_ABSORBED, 1);
	count(add_row(7, 4, 1), TALLY_ABSORBED, 10);
	count(add_row(8, 3, 1), TALLY_ABSORBED, 100);
	sample();
	assert_int_equal(traffic_job(t, 7)->total[TALLY_ABSORBED].packet, 11);
	assert_int_equal(traffic_job(t, 7)->total[TALLY_ABSORBED].byte, 11000);
	assert_int_equal(traffic_job(t, 8)->total[TALLY_ABSORBED].packet, 100);
	assert_int_equal(traffic_tenant(t, 1)->total[TALLY_ABSORBED].packet, 111);
	assert_int_equal(traffic_port(t, 3)->total[TALLY_ABSORBED].packet, 101);
	assert_int_equal(traffic_port(t, 4)->total[TALLY_ABSORBED].packet, 10);
	assert_int_equal(traffic_node(t)->total[TALLY_ABSORBED].packet, 111);
	assert_int_equal(traffic_node(t)->total[TALLY_FOREIGN].packet, 1000);
	assert_int_equal(traffic_job(t, 7)->total[TALLY_FOREIGN].packet, 0);
}

/* What an agent finds when it starts was not counted within a second. */
static void the_first_sample_is_no_rate(void **state)
{
	count(add_row(7, 3, 1), TALLY_ABSORBED, 1000000);
	sample();
	assert_near(traffic_job(t, 7)->rates.packets_per_second, 0);
	count(&row[FIRST], TALLY_ABSORBED, 300);
	a_second_passes();
	assert_near(traffic_job(t, 7)->rates.packets_per_second, 300);
	assert_near(traffic_node(t)->rates.packets_per_second, 300);
	assert_near(traffic_tenant(t, 1)->rates.packets_per_second, 300);
	assert_near(traffic_port(t, 3)->rates.packets_per_second, 300);
}

/* Each outcome by itself. */
/* Which anybody may have sent: refused before key and place of the sender are looked at, or there.
 */
static bool is_anybodys(enum tally_outcome outcome)
{
	static const enum tally_outcome list[] = { TALLY_OVERSIZED,   TALLY_BAD_KIND,
						   TALLY_CORRUPT,     TALLY_UNKNOWN_FLAG,
						   TALLY_WRONG_EPOCH, TALLY_BAD_SET,
						   TALLY_BAD_RANK,    TALLY_FORGED,
						   TALLY_OTHER_RUN };

	for (size_t i = 0; i < sizeof(list) / sizeof(*list); i++)
		if (list[i] == outcome)
			return true;
	return false;
}

/* Of a job, what its workers sent; of a port, all. */
static void rates_are_of_packets_that_came_in(void **state)
{
	for (unsigned int i = 0; i < TALLY_OUTCOME_COUNT; i++) {
		const bool came_in = i != TALLY_FANNED_OUT && i != TALLY_NO_CHILD;
		const bool own = came_in && !is_anybodys(i);
		struct traffic_row *r = add_row(100 + i, 3, 1);

		sample();
		count(r, i, 40);
		a_second_passes();
		assert_near(traffic_job(t, 100 + i)->rates.packets_per_second, 40 * own);
		assert_near(traffic_job(t, 100 + i)->rates.bytes_per_second, 40000 * own);
	}
}

static void chunks_are_sums_that_became_whole(void **state)
{
	struct traffic_row *r = add_row(7, 3, 1);

	sample();
	count(r, TALLY_ABSORBED, 70);
	count(r, TALLY_COMPLETED, 30);
	count(r, TALLY_ANSWERED, 5);
	a_second_passes();
	assert_near(traffic_job(t, 7)->rates.chunks_per_second, 30);
}

static void duplicates_are_a_share_of_what_came_in(void **state)
{
	static const enum tally_outcome again[] = { TALLY_DUPLICATE, TALLY_STALE, TALLY_ANSWERED,
						    TALLY_ANSWERED_ALL };
	struct traffic_row *r = add_row(7, 3, 1);

	sample();
	a_second_passes();
	assert_near(traffic_job(t, 7)->rates.duplicate_percent, 0);
	for (unsigned int i = 0; i < 4; i++) {
		count(r, again[i], 10);
		count(r, TALLY_ABSORBED, 30);
		count(r, TALLY_FANNED_OUT, 1000);
		a_second_passes();
		assert_near(traffic_job(t, 7)->rates.duplicate_percent, 25);
	}
}

static void refused_packets_have_a_rate_of_their_own(void **state)
{
	for (unsigned int i = 0; i < TALLY_OUTCOME_COUNT; i++) {
		bool refused = i == TALLY_OVER_RATE;
		struct traffic_row *r = add_row(100 + i, 3, 1);

		sample();
		count(r, i, 20);
		a_second_passes();
		assert_near(traffic_job(t, 100 + i)->rates.refused_per_second, 20 * refused);
	}
}

static void what_was_added_to_sums_has_a_rate_of_its_own(void **state)
{
	for (unsigned int i = 0; i < TALLY_OUTCOME_COUNT; i++) {
		bool added = i == TALLY_ABSORBED || i == TALLY_COMPLETED;
		struct traffic_row *r = add_row(100 + i, 3, 1);

		sample();
		count(r, i, 20);
		a_second_passes();
		assert_near(traffic_job(t, 100 + i)->rates.added_bytes_per_second,
			    20.0 * 1000 * added);
	}
}

static void a_forecast_follows_a_ramp(void **state)
{
	struct traffic_row *r = add_row(7, 3, 1);
	unsigned int i;

	sample();
	for (i = 1; i <= 200; i++) {
		count(r, TALLY_ABSORBED, 10ul * i);
		a_second_passes();
	}
	assert_near(traffic_job(t, 7)->rates.forecast_bytes_per_second, 10000.0 * (200 + 5));
}

static void a_job_stays_between_its_runs_until_it_is_forgotten(void **state)
{
	struct traffic_moment moment[4];

	count(add_row(7, 3, 1), TALLY_ABSORBED, 50);
	sample();
	a_second_passes();
	assert_int_equal(traffic_job_history(t, 7, moment, 4), 1);
	rows = FIRST;
	a_second_passes();
	assert_int_equal(traffic_job(t, 7)->total[TALLY_ABSORBED].packet, 50);
	count(add_row(7, 3, 1), TALLY_ABSORBED, 3);
	a_second_passes();
	assert_int_equal(traffic_job(t, 7)->total[TALLY_ABSORBED].packet, 53);
	assert_int_equal(traffic_job_history(t, 7, moment, 4), 3);
	traffic_job_forget(t, 7);
	assert_null(traffic_job(t, 7));
	assert_int_equal(traffic_job_history(t, 7, moment, 4), 0);
	assert_int_equal(traffic_tenant(t, 1)->total[TALLY_ABSORBED].packet, 53);
	assert_int_equal(traffic_port(t, 3)->total[TALLY_ABSORBED].packet, 53);
}

/* The data plane moves a job's counters to row 1: only its last moments are news. */
static void a_job_that_goes_is_not_counted_twice(void **state)
{
	count(add_row(7, 3, 1), TALLY_ABSORBED, 1000000);
	sample();
	a_second_passes();
	rows = FIRST;
	count(&row[1], TALLY_ABSORBED, 1000000 + 60);
	a_second_passes();
	assert_int_equal(traffic_node(t)->total[TALLY_ABSORBED].packet, 1000060);
	assert_true(traffic_node(t)->rates.packets_per_second <= 60);
	count(&row[1], TALLY_ABSORBED, 5); /* came and went between two samples */
	a_second_passes();
	assert_int_equal(traffic_node(t)->total[TALLY_ABSORBED].packet, 1000065);
}

static void a_job_whose_counters_move_late_is_not_counted_twice(void **state)
{
	count(add_row(7, 3, 1), TALLY_ABSORBED, 1000);
	sample();
	rows = FIRST;
	a_second_passes();
	count(&row[1], TALLY_ABSORBED, 1010);
	a_second_passes();
	assert_int_equal(traffic_node(t)->total[TALLY_ABSORBED].packet, 1010);
}

/* A new epoch: the old row moves to row 1, and any one counter shows that all are new. */
static void a_row_that_begins_anew_has_counted_what_it_reads(void **state)
{
	struct traffic_row *r = add_row(7, 3, 1);

	count(r, TALLY_ABSORBED, 100);
	count(r, TALLY_COMPLETED, 10);
	sample();
	memset(r->outcome, 0, sizeof(r->outcome));
	count(r, TALLY_ABSORBED, 30);
	count(r, TALLY_COMPLETED, 15);
	count(&row[1], TALLY_ABSORBED, 100);
	count(&row[1], TALLY_COMPLETED, 10);
	a_second_passes();
	assert_near(traffic_job(t, 7)->rates.packets_per_second, 45);
	assert_int_equal(traffic_job(t, 7)->total[TALLY_ABSORBED].packet, 130);
	assert_int_equal(traffic_job(t, 7)->total[TALLY_COMPLETED].packet, 25);
	assert_int_equal(traffic_node(t)->total[TALLY_COMPLETED].packet, 25);
}

static void a_row_named_twice_counts_once(void **state)
{
	count(add_row(7, 3, 1), TALLY_ABSORBED, 100);
	count(add_row(8, 3, 1), TALLY_ABSORBED, 100);
	count(add_row(7, 3, 1), TALLY_ABSORBED, 100);
	add_link(5);
	add_link(5);
	sample();
	assert_int_equal(traffic_job(t, 7)->total[TALLY_ABSORBED].packet, 100);
	assert_int_equal(traffic_stats(t).rows_ignored, 1);
	assert_int_equal(traffic_stats(t).links_ignored, 1);
	assert_int_equal(traffic_stats(t).links, 1);
}

static void a_row_of_no_job_and_port_stands_at_the_front(void **state)
{
	count(add_row(0, 0, 1), TALLY_FOREIGN, 100);
	sample();
	assert_int_equal(traffic_stats(t).rows_ignored, 1);
	assert_int_equal(traffic_node(t)->total[TALLY_FOREIGN].packet, 0);
	assert_int_equal(traffic_stats(t).ports, 0);
}

static struct traffic_row *add_port(uint32_t ifindex, bool again)
{
	struct traffic_row *r = add_row(0, ifindex, 0);

	r->again = again;
	return r;
}

/* Forged messages of job 7 at port 3 are none of its tenant's, nor of its forecast. */
static void what_a_port_refuses_is_the_ports_and_the_nodes(void **state)
{
	struct traffic_row *job = add_row(7, 3, 1), *port = add_port(3, false);

	sample();
	for (int second = 0; second < 5; second++) {
		count(job, TALLY_ABSORBED, 10);
		count(port, TALLY_OTHER_PORT, 20000);
		a_second_passes();
	}
	assert_int_equal(traffic_job(t, 7)->total[TALLY_OTHER_PORT].packet, 0);
	assert_near(traffic_job(t, 7)->rates.packets_per_second, 10);
	assert_near(traffic_tenant(t, 1)->rates.packets_per_second, 10);
	assert_near(traffic_tenant(t, 1)->rates.forecast_bytes_per_second, 10000);
	assert_int_equal(traffic_port(t, 3)->total[TALLY_OTHER_PORT].packet, 100000);
	assert_int_equal(traffic_port(t, 3)->total[TALLY_ABSORBED].packet, 50);
	assert_int_equal(traffic_node(t)->total[TALLY_OTHER_PORT].packet, 100000);
	assert_null(traffic_tenant(t, 0));
	assert_int_equal(traffic_stats(t).rows_ignored, 0);
}

/* Job 7 has no row of its own at port 3. */
static void what_is_in_a_jobs_row_counts_once_for_the_node(void **state)
{
	count(add_row(7, 0, 1), TALLY_ABSORBED, 5);
	count(add_port(3, false), TALLY_FOREIGN, 1);
	count(add_port(3, true), TALLY_ABSORBED, 5);
	sample();
	assert_int_equal(traffic_job(t, 7)->total[TALLY_ABSORBED].packet, 5);
	assert_int_equal(traffic_tenant(t, 1)->total[TALLY_ABSORBED].packet, 5);
	assert_int_equal(traffic_node(t)->total[TALLY_ABSORBED].packet, 5);
	assert_int_equal(traffic_port(t, 3)->total[TALLY_ABSORBED].packet, 5);
	assert_int_equal(traffic_port(t, 3)->total[TALLY_FOREIGN].packet, 1);
	assert_int_equal(traffic_stats(t).ports, 1);
}

/* What a port had counted for itself moves to row 1; what was counted again does not. */
static void a_port_that_goes_leaves_its_counts_to_the_node(void **state)
{
	count(add_row(7, 0, 1), TALLY_ABSORBED, 5);
	count(add_port(3, false), TALLY_FOREIGN, 8);
	count(add_port(3, true), TALLY_ABSORBED, 5);
	sample();
	rows = FIRST + 1;
	count(&row[1], TALLY_FOREIGN, 9); /* one more since the sample */
	a_second_passes();
	assert_int_equal(traffic_node(t)->total[TALLY_FOREIGN].packet, 9);
	count(&row[1], TALLY_ABSORBED, 5);
	rows = FIRST;
	a_second_passes();
	assert_int_equal(traffic_node(t)->total[TALLY_ABSORBED].packet, 5);
	assert_int_equal(traffic_node(t)->total[TALLY_FOREIGN].packet, 9);
}

static void without_elapsed_time_totals_move_and_rates_wait(void **state)
{
	struct traffic_moment moment[4];
	struct traffic_row *r = add_row(7, 3, 1);

	sample();
	count(r, TALLY_ABSORBED, 10);
	sample();
	now -= S;
	count(r, TALLY_ABSORBED, 10);
	sample();
	now += S;
	assert_int_equal(traffic_job(t, 7)->total[TALLY_ABSORBED].packet, 20);
	assert_near(traffic_job(t, 7)->rates.packets_per_second, 0);
	assert_int_equal(traffic_job_history(t, 7, moment, 4), 0);
	count(r, TALLY_ABSORBED, 10);
	a_second_passes();
	assert_near(traffic_job(t, 7)->rates.packets_per_second, 30);
}

static void history_is_oldest_first_and_keeps_the_newest(void **state)
{
	static struct traffic_moment moment[TRAFFIC_HISTORY + 10];
	struct traffic_row *r = add_row(7, 3, 1);
	struct traffic_link *l = add_link(3);

	sample();
	for (unsigned int i = 1; i <= TRAFFIC_HISTORY + 50; i++) {
		struct traffic_moment last;

		count(r, TALLY_COMPLETED, i);
		count(r, TALLY_STALE, 2);
		l->receive.bytes += 10 * i;
		l->transmit.packets += 3;
		l->backlog_bytes = i;
		a_second_passes();
		assert_int_equal(traffic_job_history(t, 7, moment, TRAFFIC_HISTORY + 10),
				 i < TRAFFIC_HISTORY ? i : TRAFFIC_HISTORY);
		assert_int_equal(traffic_link_history(t, 3, &last, 1), 1);
		assert_true(last.at_ns == now && last.value[TRAFFIC_LINK_RECEIVE_BYTES] == 10 * i);
		assert_true(last.value[TRAFFIC_LINK_TRANSMIT_PACKETS] == 3 &&
			    last.value[TRAFFIC_LINK_BACKLOG_BYTES] == i);
	}
	for (unsigned int i = 0; i < TRAFFIC_HISTORY; i++) {
		assert_int_equal(moment[i].at_ns, now - (TRAFFIC_HISTORY - 1 - i) * S);
		assert_true(moment[i].value[TRAFFIC_JOB_CHUNKS] == 51 + i);
		assert_true(moment[i].value[TRAFFIC_JOB_PACKETS] == 53 + i);
		assert_true(moment[i].value[TRAFFIC_JOB_BYTES] == 1000 * (53 + i));
		assert_true(moment[i].value[TRAFFIC_JOB_DUPLICATES] == 2);
	}
	assert_int_equal(traffic_job_history(t, 7, moment, 3), 3);
	assert_true(moment[0].at_ns == now - 2 * S && moment[2].at_ns == now);
}

static void more_jobs_than_there_may_be_are_ignored_and_counted(void **state)
{
	for (unsigned int i = 1; i <= TALLY_JOBS_MAX + 3; i++)
		count(add_row(i, 3, 1), TALLY_ABSORBED, 1);
	sample();
	assert_int_equal(traffic_stats(t).jobs, TALLY_JOBS_MAX);
	assert_int_equal(traffic_stats(t).rows_ignored, 3);
	assert_non_null(traffic_job(t, TALLY_JOBS_MAX));
	assert_null(traffic_job(t, TALLY_JOBS_MAX + 1));
	/* One that goes makes room for one that comes, in the same sample. */
	row[FIRST] = row[--rows];
	a_second_passes();
	assert_int_equal(traffic_stats(t).jobs, TALLY_JOBS_MAX);
	assert_null(traffic_job(t, 1));
	assert_non_null(traffic_job(t, TALLY_JOBS_MAX + 3) ?: traffic_job(t, TALLY_JOBS_MAX + 1));
}

static void the_tenant_silent_for_longest_gives_way(void **state)
{
	for (unsigned int i = 0; i < TALLY_TENANTS_MAX; i++) {
		rows = FIRST;
		count(add_row(1 + i % 2, 3, i), TALLY_ABSORBED, 1);
		a_second_passes();
	}
	rows = FIRST;
	count(add_row(9, 3, 0), TALLY_ABSORBED, 1); /* the oldest speaks once more */
	a_second_passes();
	assert_int_equal(traffic_stats(t).evicted, 0);
	rows = FIRST;
	add_row(9, 3, 60000);
	a_second_passes();
	assert_int_equal(traffic_stats(t).evicted, 1);
	assert_non_null(traffic_tenant(t, 0));
	assert_null(traffic_tenant(t, 1));
	assert_non_null(traffic_tenant(t, 2));
	assert_non_null(traffic_tenant(t, 60000));
}

static void tenants_beyond_the_limit_in_one_sample_count_for_their_jobs_only(void **state)
{
	for (unsigned int i = 0; i <= TALLY_TENANTS_MAX; i++)
		count(add_row(1 + i % 200, 1 + i / 200, i), TALLY_ABSORBED, 1);
	sample();
	assert_int_equal(traffic_stats(t).tenants, TALLY_TENANTS_MAX);
	assert_int_equal(traffic_stats(t).rows_ignored, 1);
	assert_int_equal(traffic_node(t)->total[TALLY_ABSORBED].packet, TALLY_TENANTS_MAX + 1);
}

static void a_forgotten_tenant_starts_anew(void **state)
{
	count(add_row(7, 3, 1), TALLY_ABSORBED, 100);
	sample();
	traffic_tenant_forget(t, 1);
	traffic_tenant_forget(t, 2);
	assert_null(traffic_tenant(t, 1));
	count(&row[FIRST], TALLY_ABSORBED, 5);
	a_second_passes();
	assert_int_equal(traffic_tenant(t, 1)->total[TALLY_ABSORBED].packet, 5);
}

static void links_have_rates_both_ways(void **state)
{
	struct traffic_link *l = add_link(3);

	l->receive.bytes = 1000000000;
	sample();
	for (unsigned int i = 0; i < 3; i++) {
		l->receive.packets += 10;
		l->receive.bytes += 1000;
		l->transmit.packets += 20;
		l->transmit.bytes += 2000;
		a_second_passes();
	}
	assert_near(traffic_link_flow(t, 3)->receive.packets_per_second, 10);
	assert_near(traffic_link_flow(t, 3)->receive.bytes_per_second, 1000);
	assert_near(traffic_link_flow(t, 3)->transmit.packets_per_second, 20);
	assert_near(traffic_link_flow(t, 3)->transmit.bytes_per_second, 2000);
	assert_near(traffic_link_flow(t, 3)->transmit.forecast_bytes_per_second, 2000);
	assert_int_equal(traffic_link_flow(t, 3)->link.receive.bytes, 1000003000);
	links = 0;
	a_second_passes();
	assert_null(traffic_link_flow(t, 3));
}

static void more_links_than_there_may_be_are_ignored_and_counted(void **state)
{
	for (unsigned int i = 1; i <= TALLY_PORTS_MAX + 5; i++)
		add_link(i);
	sample();
	assert_int_equal(traffic_stats(t).links, TALLY_PORTS_MAX);
	assert_int_equal(traffic_stats(t).links_ignored, 5);
	memmove(lines, lines + 5, TALLY_PORTS_MAX * sizeof(*lines));
	links = TALLY_PORTS_MAX;
	a_second_passes();
	assert_int_equal(traffic_stats(t).links_ignored, 5);
	assert_null(traffic_link_flow(t, 5));
	assert_non_null(traffic_link_flow(t, TALLY_PORTS_MAX + 5));
}

/*
 * qsort() takes and returns memory in each sample. AddressSanitizer keeps what is returned for
 * a while; a small while here, or this would look like growth.
 */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "quarantine_size_mb=1:thread_local_quarantine_size_kb=64";
}

static unsigned long resident_bytes(void)
{
	char text[128] = "", *resident = text;
	FILE *f = fopen("/proc/self/statm", "r");

	if (!f || !fgets(text, sizeof(text), f))
		fail_msg("cannot read /proc/self/statm");
	if (f)
		fclose(f);
	strtoul(text, &resident, 10); /* the first number is the address space */
	return strtoul(resident, NULL, 10) * sysconf(_SC_PAGESIZE);
}

static void a_hundred_thousand_job_changes_take_no_more_memory(void **state)
{
	unsigned long before;
	uint32_t id = 1;

	for (unsigned int i = 0; i < TALLY_JOBS_MAX; i++)
		add_row(id++, 1 + i % 4, i % TALLY_TENANTS_MAX);
	for (unsigned int i = 0; i < TRAFFIC_HISTORY + 2; i++) /* all histories are full */
		a_second_passes();
	before = resident_bytes();
	for (unsigned int i = 0; i < 250; i++) {
		for (unsigned int k = 0; k < 400; k++) {
			struct traffic_row *r = &row[FIRST + rand() % TALLY_JOBS_MAX];

			move(r, &row[1]);
			r->job = id++;
			count(r, TALLY_ABSORBED, 1 + rand() % 100);
		}
		a_second_passes();
	}
	assert_true(id > 100000);
	assert_int_equal(traffic_stats(t).jobs, TALLY_JOBS_MAX);
	assert_int_equal(traffic_stats(t).rows_ignored, 0);
	if (resident_bytes() > before + (1 << 19))
		fail_msg("from %lu to %lu bytes", before, resident_bytes());
}

enum {
	JOBS = 12,
	TENANTS = 4,
	PORTS = 5
};

static struct {
	uint64_t node, job[1 + JOBS], tenant[TENANTS], port[1 + PORTS];
	bool there[1 + JOBS];
} slow;

static void job_comes(uint32_t id)
{
	unsigned int first = 1 + rand() % PORTS;

	for (unsigned int i = first; i <= PORTS; i++)
		add_row(id, i, rand() % TENANTS);
	slow.there[id] = true;
}

static void job_goes(uint32_t id)
{
	for (size_t i = FIRST; i < rows;) {
		if (row[i].job == id) {
			move(&row[i], &row[1]);
			row[i] = row[--rows];
		} else {
			i++;
		}
	}
	slow.there[id] = false;
}

static void rows_count_at_random(void)
{
	for (size_t i = FIRST; i < rows; i++) {
		uint64_t n = rand() % 5;

		/* Whoever begins anew counts nothing else, so that it cannot catch up unseen. */
		if (rand() % 50 == 0 && row[i].outcome[TALLY_ABSORBED].packet) {
			move(&row[i], &row[1]);
			continue;
		}
		count(&row[i], TALLY_ABSORBED, n);
		slow.node += n;
		slow.job[row[i].job] += n;
		slow.tenant[row[i].tenant] += n;
		slow.port[row[i].ifindex] += n;
	}
}

static uint64_t absorbed(const struct traffic_flow *f)
{
	return f ? f->total[TALLY_ABSORBED].packet : 0;
}

static void totals_are_those_of_the_slow_version(void **state)
{
	srand(3);
	memset(&slow, 0, sizeof(slow));
	for (unsigned int step = 0; step < 3000; step++) {
		uint32_t id = 1 + rand() % JOBS;

		if (slow.there[id])
			job_goes(id);
		else
			job_comes(id);
		rows_count_at_random();
		a_second_passes();
		assert_int_equal(absorbed(traffic_node(t)), slow.node);
		for (unsigned int i = 1; i <= JOBS; i++) {
			assert_int_equal(absorbed(traffic_job(t, i)), slow.job[i]);
		}
		for (unsigned int i = 0; i < TENANTS; i++)
			assert_int_equal(absorbed(traffic_tenant(t, i)), slow.tenant[i]);
		for (unsigned int i = 1; i <= PORTS; i++)
			assert_int_equal(absorbed(traffic_port(t, i)), slow.port[i]);
	}
}

#define FACT(name) cmocka_unit_test_setup_teardown(name, prepare, clean_up)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FACT(nothing_is_known_of_strangers),
		FACT(rows_add_up_by_job_tenant_port_and_node),
		FACT(the_first_sample_is_no_rate),
		FACT(rates_are_of_packets_that_came_in),
		FACT(chunks_are_sums_that_became_whole),
		FACT(duplicates_are_a_share_of_what_came_in),
		FACT(refused_packets_have_a_rate_of_their_own),
		FACT(what_was_added_to_sums_has_a_rate_of_its_own),
		FACT(a_forecast_follows_a_ramp),
		FACT(a_job_stays_between_its_runs_until_it_is_forgotten),
		FACT(a_job_that_goes_is_not_counted_twice),
		FACT(a_job_whose_counters_move_late_is_not_counted_twice),
		FACT(a_row_that_begins_anew_has_counted_what_it_reads),
		FACT(a_row_named_twice_counts_once),
		FACT(a_row_of_no_job_and_port_stands_at_the_front),
		FACT(what_a_port_refuses_is_the_ports_and_the_nodes),
		FACT(what_is_in_a_jobs_row_counts_once_for_the_node),
		FACT(a_port_that_goes_leaves_its_counts_to_the_node),
		FACT(without_elapsed_time_totals_move_and_rates_wait),
		FACT(history_is_oldest_first_and_keeps_the_newest),
		FACT(more_jobs_than_there_may_be_are_ignored_and_counted),
		FACT(the_tenant_silent_for_longest_gives_way),
		FACT(tenants_beyond_the_limit_in_one_sample_count_for_their_jobs_only),
		FACT(a_forgotten_tenant_starts_anew),
		FACT(links_have_rates_both_ways),
		FACT(more_links_than_there_may_be_are_ignored_and_counted),
		FACT(a_hundred_thousand_job_changes_take_no_more_memory),
		FACT(totals_are_those_of_the_slow_version),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
