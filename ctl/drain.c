// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* drain: cordons the node, and waits for its runs. */
#include <err.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "common/clock.h"
#include "ctl.h"
#include "table.h"

enum {
	LOOK_MS = 500,
	NAMES_BYTES = 400,
};

/* How many jobs have a run that may end here, and their names; of the others, `ret_inner`. */
static int runs_read(const struct ctl *ctl, char names[NAMES_BYTES], int *ret_inner,
		     struct why *why)
{
	_cleanup_(json_decrefp) json_t *jobs = NULL;
	const json_t *job;
	size_t i, used = 0;
	int r, runs = 0;

	*names = '\0';
	*ret_inner = 0;
	r = ctl_ask(ctl, json_pack("{ss}", "do", "job-list"), &jobs, why);
	if (r < 0)
		return r;
	json_array_foreach(jobs, i, job)
	{
		if (strcmp(field_text(job, "state"), "running") != 0)
			continue;
		if (!strcmp(field_text(job, "role"), "inner")) {
			++*ret_inner;
			continue;
		}
		if (used < NAMES_BYTES)
			used += snprintf(names + used, NAMES_BYTES - used, "%s%s", runs ? ", " : "",
					 field_text(job, "name"));
		runs++;
	}
	return runs;
}

static volatile sig_atomic_t is_cordoned; /* as the daemon has answered */

static void on_signal(int which)
{
	static const char stays[] =
		"tallyctl: the node stays cordoned: no run begins until tallyctl uncordon\n";
	static const char may_be[] =
		"tallyctl: tallyd has not answered: the node may be cordoned (tallyctl status), and "
		"then no run begins until tallyctl uncordon\n";
	const char *words = is_cordoned ? stays : may_be;

	if (write(STDERR_FILENO, words, strlen(words)) > 0)
		raise(which); /* as if nobody had caught it */
	_exit(128 + which);
}

/* Who is tired of waiting has to know what stays. A signal that was ignored still is. */
static void signals_catch(void)
{
	static const int which[] = { SIGINT, SIGTERM, SIGHUP };
	const struct sigaction caught = { .sa_handler = on_signal,
					  .sa_flags = SA_RESETHAND | SA_NODEFER };
	struct sigaction before;

	for (size_t i = 0; i < sizeof(which) / sizeof(*which); i++)
		if (sigaction(which[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
			sigaction(which[i], &caught, NULL);
}

/* A run that has its root elsewhere ends there, and is here until somebody deletes it. */
static void drained_say(int inner)
{
	if (!inner)
		puts("drained: no run is on, and none begins until tallyctl uncordon");
	else
		printf("drained: no run is on whose root is here, and none begins until tallyctl "
		       "uncordon. Of runs that end elsewhere %d %s here until tallyctl job del\n",
		       inner, inner == 1 ? "is" : "are");
}

int drain(const struct ctl *ctl, struct why *why)
{
	const struct timespec pause = { .tv_nsec = LOOK_MS * 1000000l };
	const uint64_t limit_ns = ctl->number[OPTION_TIMEOUT] * 1000000000ull;
	const uint64_t began_ns = clock_now_ns();
	_cleanup_(json_decrefp) json_t *result = NULL;
	char names[NAMES_BYTES];
	int said = 0, inner = 0, runs, r;

	signals_catch();
	r = ctl_ask(ctl, request_make(ctl), &result, why);
	if (r < 0)
		return r;
	is_cordoned = true;
	while ((runs = runs_read(ctl, names, &inner, why)) > 0) {
		if (limit_ns && clock_now_ns() - began_ns >= limit_ns)
			return why_say(why, -ETIMEDOUT,
				       "after %ju s %d runs are still on: %s. The node stays "
				       "cordoned (tallyctl uncordon)",
				       (uintmax_t)ctl->number[OPTION_TIMEOUT], runs, names);
		if (runs != said)
			warnx("waiting for %d runs: %s", said = runs, names);
		nanosleep(&pause, NULL);
	}
	if (runs == 0 && ctl->json)
		ctl_dump(result);
	else if (runs == 0)
		drained_say(inner);
	return runs;
}
