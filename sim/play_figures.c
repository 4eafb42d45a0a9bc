// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "common/owned.h"
#include "play.h"

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Of sorted numbers: the smallest that is not below `share` of them. */
static double quantile(const double *sorted, unsigned int n, double share)
{
	unsigned int at = (unsigned int)ceil(share * n);

	return n ? sorted[at ? at - 1 : 0] : 0;
}

static double jain(const double *x, unsigned int n)
{
	double sum = 0, squares = 0;

	for (unsigned int i = 0; i < n; i++) {
		sum += x[i];
		squares += x[i] * x[i];
	}
	return squares > 0 ? sum * sum / (n * squares) : 1;
}

/* Mean speed of each tenant that has jobs; *ret_n of them. */
static double *speeds_of_tenants(const struct workload *w, const double *speed, unsigned int *ret_n)
{
	_cleanup_(freep) double *sum = calloc(WORKLOAD_TENANTS_MAX, sizeof(*sum));
	_cleanup_(freep) uint32_t *jobs = calloc(WORKLOAD_TENANTS_MAX, sizeof(*jobs));
	unsigned int n = 0;

	if (!sum || !jobs)
		return NULL;
	for (unsigned int i = 0; i < w->jobs; i++) {
		sum[w->job[i].tenant] += speed[i];
		jobs[w->job[i].tenant]++;
	}
	for (unsigned int t = 0; t < WORKLOAD_TENANTS_MAX; t++)
		if (jobs[t])
			sum[n++] = sum[t] / jobs[t];
	*ret_n = n;
	return TAKE_PTR(sum);
}

static void count_links(const struct topology *t, const struct play_result *r,
			struct play_figures *f)
{
	f->busiest_link = GRAPH_NONE;
	for (uint32_t l = 0; l < t->graph->links; l++) {
		double could = t->graph->link[l].capacity * r->ended_s;
		double share = could > 0 ? fmin(r->link_bytes[l] / could, 1) : 0; /* rounded */

		f->bytes += r->link_bytes[l];
		if (share > f->busiest) {
			f->busiest = share;
			f->busiest_link = l;
		}
	}
}

int play_figures(const struct topology *t, const struct workload *w, const struct play_result *r,
		 struct play_figures *ret)
{
	_cleanup_(freep) double *took = calloc(w->jobs + 1, sizeof(*took));
	_cleanup_(freep) double *speed = calloc(w->jobs + 1, sizeof(*speed));
	_cleanup_(freep) double *of_tenants = NULL;
	struct play_figures f = { .nodes = r->nodes, .ended_s = r->ended_s };
	const struct agents_counts *a = &r->agents;
	unsigned int tenants;

	f.whole = a->whole;
	f.smaller = a->smaller;
	f.borrowed = a->borrowed;
	f.none = a->none;
	f.refused = a->refused;
	f.rings_moved = (double)a->rings_moved;
	f.loans = (double)a->loans;
	f.recalled = (double)a->recalled;
	f.refilled = (double)a->refilled;
	if (!took || !speed)
		return -ENOMEM;
	for (unsigned int i = 0; i < w->jobs; i++) {
		took[i] = r->job[i].ended_s - w->job[i].arrives_s;
		speed[i] = took[i] > 0 ? r->job[i].ideal_s / took[i] : 1;
		f.mean_s += took[i] / w->jobs;
		if (r->job[i].ideal_s > 0)
			f.slowdown += took[i] / r->job[i].ideal_s / w->jobs;
		else
			f.slowdown += 1.0 / w->jobs;
		f.without += r->job[i].without;
		f.moved += r->job[i].moved > 0;
	}
	of_tenants = speeds_of_tenants(w, speed, &tenants);
	if (!of_tenants)
		return -ENOMEM;
	f.fairness = tenants > 1 ? jain(of_tenants, tenants) : jain(speed, w->jobs);
	qsort(took, w->jobs, sizeof(*took), by_size);
	f.median_s = quantile(took, w->jobs, 0.5);
	f.p95_s = quantile(took, w->jobs, 0.95);
	count_links(t, r, &f);
	*ret = f;
	return 0;
}
