// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* tally-sim: reads the network and the workload, runs each policy, and reports. */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/core/config.h"
#include "agent/policy/random.h"
#include "common/file.h"
#include "common/owned.h"
#include "graphml.h"
#include "models.h"
#include "sim_options.h"
#include "picture.h"
#include "plot.h"
#include "report.h"
#include "slots_mode.h"

enum {
	EXIT_USAGE = 2,
	EXIT_NO_GNUPLOT = 127, /* of the process that would be gnuplot */
	NETWORK_BYTES_MAX = 64 << 20,
	BAR_COLUMNS = 40,
	PLACE_BYTES = 4096, /* a path and a line */
};

struct simulation {
	struct sim_options options;
	struct topology *topology;
	struct workload *workload;
	char *agents; /* their configuration, or NULL */
	size_t agents_length;
	FILE *picture; /* while it is to be written */
	unsigned int results; /* of the policies that came to an end */
	struct play_result *result[SIM_OPTIONS_POLICIES_MAX];
	struct play_figures figures[SIM_OPTIONS_POLICIES_MAX];
	struct report report;
	struct play_options play;
	unsigned int shown; /* percent, on the bar */
};

static void simulation_close(struct simulation *s)
{
	for (unsigned int i = 0; i < s->results; i++)
		play_free(s->result[i]);
	if (s->picture)
		fclose(s->picture);
	free(s->agents);
	workload_free(s->workload);
	topology_free(s->topology);
}

/* --- what is read ---------------------------------------------------------------------------- */

static char *read_whole(const char *path, size_t bytes_max, size_t *ret_length)
{
	char *text;
	int r = file_read(path, bytes_max, &text, ret_length);

	if (r == -EFBIG)
		errx(EXIT_USAGE, "%s: larger than %zu MiB", path, bytes_max >> 20);
	if (r < 0)
		errx(EXIT_USAGE, "%s: %s", path, strerror(-r));
	return text;
}

/* "line 3: ..." of a file is "FILE:3: ...": what stands before, and what stands behind. */
static const char *place_of(const char *path, const struct why *why, char *ret, size_t size)
{
	static const char word[] = "line ";
	const char *number = why->text + sizeof(word) - 1;
	unsigned long line;
	char *end;

	*ret = '\0';
	if (!path || strncmp(why->text, word, sizeof(word) - 1) != 0)
		return why->text;
	line = strtoul(number, &end, 10);
	if (end == number || *end != ':')
		return why->text;
	snprintf(ret, size, "%s:%lu", path, line);
	return end;
}

__attribute__((noreturn)) static void refuse(const char *path, const struct why *why)
{
	char place[PLACE_BYTES];
	const char *what = place_of(path, why, place, sizeof(place));

	errx(EXIT_USAGE, "%s%s", place, what);
}

static void warn_of_ways(const struct topology *t, const char *path)
{
	struct why why = { "" };
	char place[PLACE_BYTES], more[32] = "";
	int astray = topology_astray(t, &why);
	const char *what;

	if (astray < 0)
		errx(EXIT_FAILURE, "%s", strerror(-astray));
	if (astray == 0)
		return;
	if (astray > 1)
		snprintf(more, sizeof(more), " (and %d more)", astray - 1);
	what = place_of(path, &why, place, sizeof(place));
	warnx("%s%s%s: shortest paths are taken there", place, what, more);
}

static bool is_graphml(const char *path)
{
	const char *end = strrchr(path, '.');

	return end && !strcmp(end, ".graphml");
}

/* What others send: policies see it, and jobs have the rest. */
static void load_links(struct simulation *s)
{
	const struct graph *g = s->topology->graph;
	uint64_t chance = ~s->options.seed; /* other numbers than the jobs have */

	for (uint32_t l = 0; l < g->links; l++)
		if (g->machine[g->link[l].from].kind != GRAPH_HOST &&
		    g->machine[g->link[l].to].kind != GRAPH_HOST)
			g->link[l].load = g->link[l].capacity * s->options.background *
					  random_part(&chance);
}

static void read_network(struct simulation *s)
{
	const char *network = s->options.network;
	_cleanup_(freep) char *text = NULL;
	struct why why = { "" };
	size_t length;

	if (topology_is_shape(network)) {
		if (topology_shape(network, &s->topology, &why) < 0)
			errx(EXIT_USAGE, "--network: %s", why.text);
		return;
	}
	text = read_whole(network, NETWORK_BYTES_MAX, &length);
	if ((is_graphml(network) ? topology_graphml : topology_testbed)(
		    text, length, &TOPOLOGY_DEFAULTS, &s->topology, &why) < 0)
		refuse(network, &why);
	warn_of_ways(s->topology, network);
}

static void read_workload(struct simulation *s)
{
	const char *path = s->options.workload;
	_cleanup_(freep) char *text = NULL;
	struct why why = { "" };
	size_t length;

	text = read_whole(path, WORKLOAD_BYTES_MAX, &length);
	if (workload_parse(path, text, length, s->topology, s->options.seed, &s->workload, &why) <
	    0)
		refuse(NULL, &why);
}

/* New ones, with what all of them are to have. */
static struct agents *agents_new(const struct simulation *s)
{
	struct agents *a = NULL;
	struct why why = { "" };
	int r;

	if (!s->agents)
		return NULL;
	r = agents_open(s->topology, s->workload, s->options.agents, s->agents, s->agents_length,
			s->options.seed, &a, &why);
	if (r < 0)
		errx(EXIT_USAGE, "%s", *why.text ? why.text : strerror(-r));
	return a;
}

static uint32_t find_job(const struct simulation *s)
{
	const char *name = s->options.explain;

	for (unsigned int i = 0; name && i < s->workload->jobs; i++)
		if (!strcmp(s->workload->job[i].name, name))
			return i;
	if (name)
		errx(EXIT_USAGE,
		     "--explain %s: the workload has no job of that name; of `jobs NAME` "
		     "they are NAME.0, NAME.1 and so on",
		     name);
	return UINT32_MAX;
}

/* --- what is run ----------------------------------------------------------------------------- */

static void show_progress(void *context, unsigned int ended, double now_s)
{
	struct simulation *s = context;
	unsigned int percent = (unsigned int)(100.0 * ended / s->workload->jobs);
	char bar[BAR_COLUMNS + 1];

	if (percent == s->shown && ended < s->workload->jobs)
		return;
	s->shown = percent;
	for (unsigned int i = 0; i < BAR_COLUMNS; i++)
		bar[i] = i * 100 < percent * BAR_COLUMNS ? '#' : '.';
	bar[BAR_COLUMNS] = '\0';
	fprintf(stderr, "\r%-16s [%s] %3u %%  %u of %u jobs, %.0f s%s", s->play.policy->name, bar,
		percent, ended, s->workload->jobs, now_s,
		ended == s->workload->jobs ? "\r\033[K" : "");
}

/* A policy that fails is said, and takes nothing along of the others. */
static void run_policy(struct simulation *s, const struct place_policy *policy)
{
	_cleanup_(agents_freep) struct agents *agents = agents_new(s);
	struct play_result **result = &s->result[s->results];
	struct why why = { "" };

	s->play.policy = policy;
	s->play.agents = agents;
	s->shown = 0;
	if (play(s->topology, s->workload, &s->play, result, &why) < 0) {
		warnx("%s", why.text);
		return;
	}
	if (play_figures(s->topology, s->workload, *result, &s->figures[s->results]) < 0)
		errx(EXIT_FAILURE, "out of memory");
	s->results++;
}

static void run(struct simulation *s)
{
	s->play = (struct play_options){ .place = s->options.place,
					 .near = s->options.near,
					 .moves = s->options.moves,
					 .explain = find_job(s),
					 .context = s };
	if (s->options.progress || isatty(STDERR_FILENO))
		s->play.progress = show_progress;
	for (unsigned int p = 0; p < s->options.policies; p++)
		run_policy(s, s->options.policy[p]);
	s->report = (struct report){ .network = s->options.network,
				     .workload = s->options.workload,
				     .topology = s->topology,
				     .jobs = s->workload,
				     .seed = s->options.seed,
				     .agents = s->options.agents,
				     .result = s->result,
				     .figures = s->figures,
				     .results = s->results };
}

static void report(const struct simulation *s)
{
	if (s->options.json)
		report_json(&s->report, stdout);
	else if (s->options.csv)
		report_csv(&s->report, stdout);
	else
		report_text(&s->report, stdout);
	/* What programs read has no place for it. */
	if (s->options.explain)
		report_explain(&s->report, s->play.explain,
			       s->options.json || s->options.csv ? stderr : stdout);
}

/* What is to be written is opened first: a simulation may take minutes. */
static void open_outputs(struct simulation *s)
{
	const char *path = s->options.picture;
	struct why why = { "" };
	int fd;

	if (s->options.plot && plot_folder(s->options.plot, &why) < 0)
		errx(EXIT_USAGE, "--plot: %s", why.text);
	if (!path)
		return;
	if (s->topology->graph->machines > PICTURE_MACHINES_MAX)
		errx(EXIT_USAGE, "--picture: the network has %u machines, and a picture at most %d",
		     s->topology->graph->machines, PICTURE_MACHINES_MAX);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666); /* what it has stays until then */
	s->picture = fd < 0 ? NULL : fdopen(fd, "w");
	if (!s->picture)
		err(EXIT_USAGE, "--picture: %s", path);
}

/* Where gnuplot is not installed, data and script are all that is written, and that is said. */
static void plot(const struct simulation *s)
{
	struct why why = { "" };
	int code;
	pid_t pid;

	if (plot_write(&s->report, s->options.plot, &why) < 0)
		errx(EXIT_FAILURE, "%s", why.text);
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		if (chdir(s->options.plot) == 0)
			execlp("gnuplot", "gnuplot", "plots.gp", (char *)NULL);
		_exit(errno == ENOENT ? EXIT_NO_GNUPLOT : EXIT_FAILURE);
	}
	if (pid < 0 || waitpid(pid, &code, 0) < 0)
		err(EXIT_FAILURE, "gnuplot");
	if (WIFEXITED(code) && WEXITSTATUS(code) == EXIT_NO_GNUPLOT)
		warnx("gnuplot is not installed: %s has data and plots.gp, and no plots",
		      s->options.plot);
	else if (code != 0)
		errx(EXIT_FAILURE, "gnuplot failed with %s/plots.gp", s->options.plot);
}

static void draw(struct simulation *s)
{
	FILE *to = TAKE_PTR(s->picture);

	if (ftruncate(fileno(to), 0) < 0 || picture_draw(s->topology, s->result[0], to) < 0 ||
	    ferror(to) || fclose(to) != 0)
		errx(EXIT_FAILURE, "%s: could not be written", s->options.picture);
}

static int simulate_slots(struct simulation *s)
{
	struct why why = { "" };
	int r;

	read_network(s);
	read_workload(s);
	r = slots_mode(&s->options, s->topology, s->workload, stdout, &why);
	if (r < 0)
		errx(r == -EINVAL ? EXIT_USAGE : EXIT_FAILURE, "%s",
		     *why.text ? why.text : strerror(-r));
	return r ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int simulate(struct simulation *s)
{
	read_network(s);
	load_links(s);
	read_workload(s);
	if (s->options.agents)
		s->agents = read_whole(s->options.agents, CONFIG_BYTES_MAX, &s->agents_length);
	open_outputs(s);
	run(s);
	if (s->results) {
		report(s);
		if (s->options.plot)
			plot(s);
		if (s->picture)
			draw(s);
	}
	return s->results == s->options.policies ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* --- lists ----------------------------------------------------------------------------------- */

static void list_policies(void)
{
	for (unsigned int i = 0; i < PLACE_POLICIES_COUNT; i++)
		printf("%-12s %s (looks at: %s)\n", PLACE_POLICIES[i].name, PLACE_POLICIES[i].what,
		       PLACE_POLICIES[i].knows);
	puts("\nslots:");
	for (unsigned int i = 0; i < SLOTS_POLICIES_COUNT; i++)
		printf("%-12s %s\n", SLOTS_POLICIES[i].name, SLOTS_POLICIES[i].what);
}

static void list_networks(void)
{
	char text[2048];

	printf("%srate (10gbit) and slots (65536) are keys of all of them.\n",
	       topology_help(text, sizeof(text)));
}

static void list_models(void)
{
	for (unsigned int i = 0; i < MODELS_COUNT; i++)
		printf("%-16s %8.1f MB  %s\n", MODELS[i].name, MODELS[i].bytes / 1e6,
		       MODELS[i].source);
}

int main(int argc, char **argv)
{
	_cleanup_(simulation_close) struct simulation s = { 0 };
	struct why why = { "" };

	file_watch_output();
	if (sim_options_parse(argc, (const char *const *)argv, &s.options, &why) < 0) {
		warnx("%s", why.text);
		fputs("Run 'tally-sim --help' for the usage.\n", stderr);
		return EXIT_USAGE;
	}
	switch (s.options.verb) {
	case SIM_OPTIONS_HELP:
		fputs(SIM_OPTIONS_HELP_TEXT, stdout);
		break;
	case SIM_OPTIONS_VERSION:
		puts("tally-sim " TALLY_VERSION_TEXT);
		break;
	case SIM_OPTIONS_POLICIES:
		list_policies();
		break;
	case SIM_OPTIONS_NETWORKS:
		list_networks();
		break;
	case SIM_OPTIONS_MODELS:
		list_models();
		break;
	case SIM_OPTIONS_SLOTS:
		return simulate_slots(&s);
	case SIM_OPTIONS_RUN:
		return simulate(&s);
	}
	return EXIT_SUCCESS;
}
