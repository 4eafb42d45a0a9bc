// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "lateness.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/edge/log.h"
#include "agent/policy/random.h"
#include "common/clock.h"
#include "common/ranks.h"
#include "common/rows.h"

enum {
	SLACK_US = 10000,
	IDLE_MS = 1000, /* where there is no run */
	FORGET_EVERY = 16, /* of ticks: it takes a while where there are a thousand runs */
};

/* A run that is looked at. */
struct watched {
	uint32_t id; /* the job's */
	uint16_t epoch;
	struct late late;
};

struct lateness {
	const struct driver *driver;
	const struct node *node;
	sd_event_source *timer;
	struct watched **run; /* each ours to free */
	unsigned int runs, turn; /* whose is the next look */
	unsigned int ticks;
	uint64_t seed;
	uint64_t cpu_ns; /* that looks took so far */
	struct tally_slot slot; /* that was read last */
};

/* Has it slots of its own here? */
static bool has_slots(const struct job *j)
{
	return job_is_running(j) && job_slots(j) && !j->spilled && !j->borrows;
}

static struct watched *find(const struct lateness *l, const struct job *j)
{
	for (unsigned int i = 0; i < l->runs; i++)
		if (l->run[i]->id == j->id && l->run[i]->epoch == j->epoch)
			return l->run[i];
	return NULL;
}

/* Those that are over. Until then nobody finds them. */
static void forget(struct lateness *l)
{
	const struct books *b = core_books(driver_core(l->driver));
	unsigned int kept = 0;

	for (unsigned int i = 0; i < l->runs; i++) {
		const struct job *j = books_job_numbered(b, l->run[i]->id);

		if (j && has_slots(j) && j->epoch == l->run[i]->epoch)
			l->run[kept++] = l->run[i];
		else
			free(l->run[i]);
	}
	l->runs = kept;
}

/* Without memory one is not looked at: nothing depends on it. */
static struct watched *watched_of(struct lateness *l, const struct job *j)
{
	struct watched *w = find(l, j), **at;

	if (w)
		return w;
	w = calloc(1, sizeof(*w));
	at = w ? ROWS_ADD(l->run, l->runs) : NULL;
	if (!at) {
		free(w);
		return NULL;
	}
	w->id = j->id;
	w->epoch = j->epoch;
	return *at = w;
}

/* --- looks ----------------------------------------------------------------------------------- */

struct ring {
	struct lateness *lateness;
	uint32_t base;
};

static int slot_read(void *context, uint32_t index, struct tally_slot_state *ret)
{
	const struct ring *r = context;
	struct tally_slot *slot = &r->lateness->slot;
	int error = dataplane_slot_read(r->lateness->node->dataplane, r->base + index, slot);

	if (error == 0)
		*ret = slot->state;
	return error;
}

static void say_late(const struct job *j, const struct tally_set *late)
{
	char text[RANKS_BYTES];

	ranks_print(late, text, sizeof(text));
	if (*text)
		log_say(LOG_LEVEL_WARNING, "others wait for ranks of a job", "job=%s ranks=%s",
			j->name, text);
}

static void look(struct lateness *l, const struct job *j, const struct tables *t)
{
	const struct tables_job *there = tables_find(t, j->id);
	struct watched *w = watched_of(l, j);
	struct installation_role role;
	struct tally_set late = { 0 };
	uint64_t draw[LATE_SLOTS];
	struct ring ring;

	if (!w || !there || there->broken || there->job.borrows || there->job.epoch != j->epoch)
		return;
	ring = (struct ring){ l, there->job.slot_base };
	for (unsigned int i = 0; i < LATE_SLOTS; i++)
		draw[i] = random_bits(&l->seed);
	job_role(j, &role);
	if (late_look(&w->late, &there->job, &role, draw, slot_read, &ring, &late) == 0)
		say_late(j, &late);
}

/* Maps that were replaced, or that the core is in doubt about, are looked at later. */
static void looks(struct lateness *l)
{
	const struct core *c = driver_core(l->driver);
	const struct books *b = core_books(c);
	const struct tables *t = core_tables(c);
	unsigned int looked = 0;

	if (l->ticks++ % FORGET_EVERY == 0)
		forget(l);
	if (!t || !l->node->dataplane || l->node->stale)
		return;
	for (unsigned int i = 0; i < b->jobs && looked < LATENESS_RUNS_MAX; i++) {
		const struct job *j = b->job[l->turn++ % b->jobs];

		if (!has_slots(j))
			continue;
		look(l, j, t);
		looked++;
	}
}

static int on_time(sd_event_source *timer, uint64_t us, void *data)
{
	const uint64_t began_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
	struct lateness *l = data;

	looks(l);
	l->cpu_ns += clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns;
	sd_event_source_set_time_relative(timer, (l->runs ? LATE_EVERY_MS : IDLE_MS) * 1000ull);
	sd_event_source_set_enabled(timer, SD_EVENT_ONESHOT);
	return 0;
}

unsigned int lateness_of(const struct lateness *l, const struct job *j,
			 struct late_rank ret[LATE_RANKS_MAX])
{
	const struct watched *w = has_slots(j) ? find(l, j) : NULL;

	return w ? late_ranks(&w->late, ret) : 0;
}

uint64_t lateness_cpu_ns(const struct lateness *l) { return l->cpu_ns; }

/* --- open and close -------------------------------------------------------------------------- */

int lateness_open(sd_event *loop, const struct driver *d, const struct node *n,
		  struct lateness **ret)
{
	struct lateness *l = *ret = calloc(1, sizeof(*l));
	int r;

	if (!l)
		return -ENOMEM;
	l->driver = d;
	l->node = n;
	l->seed = clock_now_ns();
	r = sd_event_add_time_relative(loop, &l->timer, CLOCK_MONOTONIC, LATE_EVERY_MS * 1000ull,
				       SLACK_US, on_time, l);
	return r < 0 ? r : 0;
}

void lateness_close(struct lateness *l)
{
	if (!l)
		return;
	sd_event_source_disable_unref(l->timer);
	for (unsigned int i = 0; i < l->runs; i++)
		free(l->run[i]);
	free(l->run);
	free(l);
}
