// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "plot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/owned.h"

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* A block of a policy: a line for each number, with the share of numbers that are not above it. */
static void write_sorted(FILE *to, const char *policy, double *number, unsigned int n)
{
	qsort(number, n, sizeof(*number), by_size);
	fprintf(to, "\"%s\"\n", policy);
	for (unsigned int i = 0; i < n; i++)
		fprintf(to, "%.9g %.9g\n", number[i], (i + 1.0) / n);
	fputs("\n\n", to);
}

static int write_completion(const struct report *r, FILE *to)
{
	_cleanup_(freep) double *took = calloc(r->jobs->jobs + 1, sizeof(*took));

	for (unsigned int p = 0; took && p < r->results; p++) {
		for (unsigned int i = 0; i < r->jobs->jobs; i++)
			took[i] = r->result[p]->job[i].ended_s - r->jobs->job[i].arrives_s;
		write_sorted(to, r->result[p]->policy->name, took, r->jobs->jobs);
	}
	return took ? 0 : -ENOMEM;
}

/* Links that carried nothing say nothing of a policy. */
static int write_links(const struct report *r, FILE *to)
{
	const struct graph *g = r->topology->graph;
	_cleanup_(freep) double *use = calloc(g->links + 1, sizeof(*use));

	for (unsigned int p = 0; use && p < r->results; p++) {
		const struct play_result *result = r->result[p];
		unsigned int n = 0;

		for (uint32_t l = 0; l < g->links; l++)
			if (result->link_bytes[l] > 0)
				use[n++] = 100 * result->link_bytes[l] /
					   (g->link[l].capacity * result->ended_s);
		write_sorted(to, result->policy->name, use, n);
	}
	return use ? 0 : -ENOMEM;
}

static int write_figures(const struct report *r, FILE *to)
{
	fputs("# policy, mean completion time (s), bytes on links, fairness, busiest link (%)\n",
	      to);
	for (unsigned int p = 0; p < r->results; p++)
		fprintf(to, "\"%s\" %.9g %.9g %.9g %.9g\n", r->result[p]->policy->name,
			r->figures[p].mean_s, r->figures[p].bytes, r->figures[p].fairness,
			100 * r->figures[p].busiest);
	return 0;
}

static int write_script(const struct report *r, FILE *to)
{
	fprintf(to,
		"set terminal svg size 720,480\nset key bottom right\nset grid\n"
		"set output 'completion.svg'\nset xlabel 'completion time, seconds'\n"
		"set ylabel 'share of jobs'\nset xrange [0:*]\nset yrange [0:1]\n"
		"plot for [i=0:%u] 'completion.dat' index i using 1:2 with steps title columnheader(1)\n"
		"set output 'links.svg'\nset xlabel 'use of a link, percent'\n"
		"set ylabel 'share of links'\n"
		"plot for [i=0:%u] 'links.dat' index i using 1:2 with steps title columnheader(1)\n"
		"set style data histograms\nset style fill solid 0.6\nset key off\nunset xlabel\n"
		"set autoscale x\nset yrange [0:*]\n"
		"set output 'traffic.svg'\nset ylabel 'on all links'\nset format y '%%.1s %%cB'\n"
		"plot 'figures.dat' using 3:xtic(1)\n"
		"set output 'fairness.svg'\nset ylabel 'fairness (Jain)'\nset format y '%%g'\n"
		"set yrange [0:1]\n"
		"plot 'figures.dat' using 4:xtic(1)\n",
		r->results - 1, r->results - 1);
	return 0;
}

static int write_file(const struct report *r, const char *folder, const char *name,
		      int (*write)(const struct report *r, FILE *to), struct why *why)
{
	char path[4096];
	FILE *to;
	int error;

	if (snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path))
		return why_say(why, -ENAMETOOLONG, "--plot: the folder's name is too long");
	to = fopen(path, "we");
	if (!to)
		return why_say(why, -errno, "%s: %s", path, strerror(errno));
	error = write(r, to);
	if (ferror(to) && error == 0)
		error = -EIO;
	if (fclose(to) != 0 && error == 0)
		error = -errno;
	return error < 0 ? why_say(why, error, "%s: %s", path, strerror(-error)) : 0;
}

int plot_folder(const char *folder, struct why *why)
{
	struct stat is;
	int error = 0;

	if ((mkdir(folder, 0777) < 0 && errno != EEXIST) || stat(folder, &is) < 0)
		error = -errno;
	else if (!S_ISDIR(is.st_mode))
		error = -ENOTDIR;
	else if (access(folder, W_OK | X_OK) < 0)
		error = -errno;
	return error < 0 ? why_say(why, error, "%s: %s", folder, strerror(-error)) : 0;
}

int plot_write(const struct report *r, const char *folder, struct why *why)
{
	int error = write_file(r, folder, "completion.dat", write_completion, why);

	if (error == 0)
		error = write_file(r, folder, "links.dat", write_links, why);
	if (error == 0)
		error = write_file(r, folder, "figures.dat", write_figures, why);
	return error == 0 ? write_file(r, folder, "plots.gp", write_script, why) : error;
}
