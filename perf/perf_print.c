// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "perf_print.h"

#include <inttypes.h>
#include <stdio.h>

static double algbw(const struct perf_row *row) { return (double)row->bytes / row->p50_us / 1e3; }

static double busbw(const struct perf_row *row) { return algbw(row) * row->bus_factor; }

static const char *type_name(const struct perf_options *o)
{
	return o->verb == PERF_BARRIER ? "none" : perf_type_names[o->data.dtype - 1];
}

static const char *op_name(const struct perf_options *o)
{
	if (o->verb == PERF_BARRIER || o->verb == PERF_BROADCAST || o->verb == PERF_ALL_GATHER)
		return "none";
	return perf_op_names[o->op - 1];
}

/* As nccl-tests has it: -1 where there is none. */
static int root_rank(const struct perf_options *o)
{
	return o->verb == PERF_REDUCE || o->verb == PERF_BROADCAST ? o->root : -1;
}

static bool prints_table(const struct perf_options *o)
{
	return !o->json && (!o->rank || o->all_ranks);
}

/* --- the table */

static void print_columns(const struct perf_options *o)
{
	static const char *const place[] = { "time", "algbw", "busbw", "#wrong" };
	static const char *const unit[] = { "(us)", "(GB/s)", "(GB/s)", "" };
	const char *const *lines[] = { place, unit };

	printf("#\n#%51s %26s", "", "out-of-place");
	if (o->in_place)
		printf("%40s", "in-place");
	putchar('\n');
	for (int i = 0; i < 2; i++) {
		const char *const *w = lines[i];

		printf("#%11s %13s %9s %7s %7s", i ? "(B)" : "size", i ? "(elements)" : "count",
		       i ? "" : "type", i ? "" : "redop", i ? "" : "root");
		for (int j = 0; j < 1 + o->in_place; j++)
			printf(" %12s %8s %8s %8s", w[0], w[1], w[2], w[3]);
		printf(" %11s %11s", i ? "(us)" : "p99", i ? "(us)" : "max");
		if (!i)
			printf(" %8s %8s %8s %8s%s%s", "retrans", "flush", "repair", "corrupt",
			       o->seconds ? "     calls" : "", o->hash ? "  hash" : "");
		putchar('\n');
	}
}

void perf_print_head(const struct perf_printer *p)
{
	const struct perf_options *o = p->options;
	char length[64];

	if (o->json)
		return;
	if (!prints_table(o)) {
		printf("# rank %u of %u; rank 0 prints the table (all do with --all-ranks)\n",
		       o->rank, p->workers);
		return;
	}
	snprintf(length, sizeof(length), o->seconds ? "%u seconds" : "%u iterations",
		 o->seconds ? o->seconds : o->iterations);
	printf("# %s over %u workers, %s after %u%s; GB are 10^9 bytes, time is the median\n",
	       perf_verb_names[o->verb], p->workers, length, o->warmups,
	       o->unchecked ? ", unchecked" : "");
	print_columns(o);
}

static void print_place(const struct perf_options *o, const struct perf_row *row)
{
	printf(" %12.1f %8.4f %8.4f", row->p50_us, algbw(row), busbw(row));
	if (o->unchecked)
		printf(" %8s", "N/A");
	else
		printf(" %8zu", row->verdict.wrong);
}

static double larger(double a, double b) { return a > b ? a : b; }

/* What happened meanwhile that is not always there. `places`: as for print_line(). */
static void print_notes(const struct perf_row *const places[], int n)
{
	uint64_t spilled = 0, chunks = 0, cuts = 0, marked = 0;

	for (int i = 0; i < n; i++) {
		const struct tally_stats *a = &places[i]->after, *b = &places[i]->before;

		spilled += a->spilled - b->spilled;
		chunks += a->chunks - b->chunks;
		cuts += a->cuts - b->cuts;
		marked += a->marked - b->marked;
	}
	if (spilled)
		printf("# %" PRIu64 " of %" PRIu64 " chunks were summed in software\n", spilled,
		       chunks);
	if (cuts)
		printf("# %" PRIu64 " chunks may be in flight now; %" PRIu64
		       " cuts of that, %" PRIu64 " results with marks\n",
		       places[n - 1]->after.window, cuts, marked);
}

/* `places`: the one or two rows of a size. What is not a place's own column is of both. */
static void print_line(const struct perf_options *o, const struct perf_row *const places[], int n)
{
	uint64_t retransmitted = 0, flushed = 0, repaired = 0, corrupt = 0;
	const struct perf_row *first = places[0];
	double p99 = 0, max = 0;

	printf("%12zu %13zu %9s %7s %7d", first->bytes, first->count, type_name(o), op_name(o),
	       root_rank(o));
	for (int i = 0; i < n; i++) {
		const struct tally_stats *a = &places[i]->after, *b = &places[i]->before;

		print_place(o, places[i]);
		p99 = larger(p99, places[i]->p99_us);
		max = larger(max, places[i]->max_us);
		retransmitted += a->retransmitted - b->retransmitted;
		flushed += a->flushed - b->flushed;
		repaired += a->repaired - b->repaired;
		corrupt += a->corrupt - b->corrupt;
	}
	printf(" %11.1f %11.1f %8" PRIu64 " %8" PRIu64 " %8" PRIu64 " %8" PRIu64, p99, max,
	       retransmitted, flushed, repaired, corrupt);
	if (o->seconds)
		printf(" %9u", first->calls);
	for (int i = 0; i < n && o->hash; i++)
		printf("  %016" PRIx64, places[i]->hash);
	putchar('\n');
	print_notes(places, n);
}

/* --- JSON */

static void print_json(const struct perf_printer *p, const struct perf_row *row)
{
	const struct tally_stats *a = &row->after, *b = &row->before;
	const struct perf_options *o = p->options;

	printf("{\"verb\":\"%s\",\"rank\":%u,\"workers\":%u,\"bytes\":%zu,\"count\":%zu,"
	       "\"type\":\"%s\",\"op\":\"%s\",\"in_place\":%s,\"iterations\":%u,",
	       perf_verb_names[o->verb], o->rank, p->workers, row->bytes, row->count, type_name(o),
	       op_name(o), row->in_place ? "true" : "false", row->calls);
	printf("\"time_us\":%.3f,\"min_us\":%.3f,\"p50_us\":%.3f,\"p99_us\":%.3f,\"max_us\":%.3f,"
	       "\"slow_calls\":%u,\"algbw\":%.6f,\"busbw\":%.6f,",
	       row->p50_us, row->min_us, row->p50_us, row->p99_us, row->max_us, row->slow_calls,
	       algbw(row), busbw(row));
	printf("\"began_s\":%.6f,\"ended_s\":%.6f,\"cpu_s\":%.6f,", row->began_s, row->ended_s,
	       row->cpu_s);
	printf("\"sent\":%" PRIu64 ",\"received\":%" PRIu64 ",\"retransmitted\":%" PRIu64
	       ",\"flushed\":%" PRIu64 ",\"repaired\":%" PRIu64 ",\"redone\":%" PRIu64
	       ",\"corrupt\":%" PRIu64 ",\"ignored\":%" PRIu64 ",\"chunks\":%" PRIu64
	       ",\"spilled\":%" PRIu64 ",\"node_reloads\":%" PRIu64 ",\"rtt_ns\":%" PRIu64
	       ",\"window\":%" PRIu64 ",\"marked\":%" PRIu64 ",\"cuts\":%" PRIu64,
	       a->sent - b->sent, a->received - b->received, a->retransmitted - b->retransmitted,
	       a->flushed - b->flushed, a->repaired - b->repaired, a->redone - b->redone,
	       a->corrupt - b->corrupt, a->ignored - b->ignored, a->chunks - b->chunks,
	       a->spilled - b->spilled, a->node_reloads - b->node_reloads, a->rtt_ns, a->window,
	       a->marked - b->marked, a->cuts - b->cuts);
	if (!o->unchecked)
		printf(",\"wrong\":%zu", row->verdict.wrong);
	if (o->hash)
		printf(",\"hash\":\"%016" PRIx64 "\"", row->hash);
	puts("}");
}

void perf_print_size(struct perf_printer *p, const struct perf_row *out_of_place,
		     const struct perf_row *in_place)
{
	const struct perf_row *const places[] = { out_of_place, in_place };
	const struct perf_options *o = p->options;
	int n = in_place ? 2 : 1;

	for (int i = 0; i < n; i++) {
		p->wrong += places[i]->verdict.wrong;
		p->busbw += busbw(places[i]);
		p->rows++;
		if (o->json)
			print_json(p, places[i]);
		else if (!prints_table(o) && o->hash)
			printf("rank %u  %zu bytes  %016" PRIx64 "\n", o->rank, places[i]->bytes,
			       places[i]->hash);
	}
	if (prints_table(o))
		print_line(o, places, n);
}

void perf_print_tail(const struct perf_printer *p)
{
	if (!prints_table(p->options))
		return;
	if (!p->options->unchecked)
		printf("# Out of bounds values : %zu %s\n", p->wrong, p->wrong ? "FAILED" : "OK");
	printf("# Avg bus bandwidth    : %.4f\n", p->rows ? p->busbw / p->rows : 0);
}
