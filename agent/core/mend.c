// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The kernel as it is, against what is wanted: every few seconds, and soon after a link has
 * changed. What others have taken away is put back, what comes is taken, what is missing is said.
 */
#include <string.h>

#include "core_private.h"
#include "common/address.h"
#include "common/ranks.h"

enum {
	LOOK_MS = 3000,
	SOON_MS = 100, /* from the first word of a change: many may come at once */
	RETRY_MS = 30000, /* of a port that was refused */
};

void mend_due(struct core *c) { core_due(c, CORE_DUE_LOOK, SOON_MS); }

/* --- what is said ---------------------------------------------------------------------------- */

void trouble_note(struct core *c, enum core_trouble what, const char *text)
{
	static const char *const words[CORE_TROUBLES][2] = {
		[CORE_TROUBLE_LOOK] = { "cannot look at the data plane", "data plane is seen" },
		[CORE_TROUBLE_PINS] = { "data plane is not whole", "data plane is whole again" },
		[CORE_TROUBLE_STATE] = { "state file cannot be written",
					 "state file can be written again" },
		[CORE_TROUBLE_SERVICE] = { "service address missing",
					   "service addresses are there" },
		[CORE_TROUBLE_TENANTS] = { "jobs are suspended", "no job is suspended any more" },
		[CORE_TROUBLE_RUNS] = { "workers of a run are behind no port",
					"all workers of runs are behind ports" },
		[CORE_TROUBLE_HIDDEN] = { "tenant of the configuration does not count",
					  "all tenants of the configuration count" },
		[CORE_TROUBLE_LISTEN] = { "workers cannot join everywhere",
					  "workers can join everywhere" },
		[CORE_TROUBLE_METRICS] = { "metrics cannot be read", "metrics can be read again" },
		[CORE_TROUBLE_ROLLCALL] = { "cannot ask for detached workers",
					    "detached workers are asked for" },
		[CORE_TROUBLE_RESTORE] = { "old configuration not restored",
					   "configuration is in force" },
	};
	struct why *now = &c->trouble[what];

	if (!strcmp(now->text, text))
		return;
	snprintf(now->text, sizeof(now->text), "%s", text);
	if (*text)
		core_log(c, LOG_LEVEL_WARNING, words[what][0], "reason=\"%s\"", now->text);
	else
		core_log(c, LOG_LEVEL_INFO, words[what][1], "%s", "");
}

static void services_note(struct core *c, uint32_t away)
{
	struct why text = { "" };
	size_t used = 0;

	for (unsigned int i = 0; i < c->config->services; i++) {
		char address[ADDRESS_BYTES];

		if (!(away & 1u << i))
			continue;
		address_print(&c->config->service[i], address, sizeof(address));
		used += snprintf(text.text + used, sizeof(text.text) - used, "%s%s",
				 used ? ", " : "", address);
	}
	if (used && used < sizeof(text.text))
		snprintf(text.text + used, sizeof(text.text) - used,
			 ": not on this machine, so workers do not reach it (ip address add)");
	trouble_note(c, CORE_TROUBLE_SERVICE, text.text);
}

static void port_note(struct core *c, const struct dataplane_port *p)
{
	if (p->ifindex)
		core_log(c, LOG_LEVEL_INFO, "port attached", "name=%s mode=%s", p->name,
			 config_modes[p->mode]);
	else
		core_log(c, LOG_LEVEL_WARNING, "port not attached", "name=%s reason=\"%s\"",
			 p->name, p->refused.text);
}

/* Looked at as seldom as the rest: nobody worries for minutes. */
static void jobs_note(struct core *c)
{
	for (unsigned int i = 0; i < c->books.jobs; i++) {
		struct job *j = c->books.job[i];
		const bool is_incomplete = j->run_window ? !job_is_whole(j) : job_joined(j) > 0;

		if (!is_incomplete)
			j->incomplete_ns = 0;
		else if (!j->incomplete_ns)
			j->incomplete_ns = c->now_ns;
	}
}

static bool is_seen(uint64_t seen, const struct job *j) { return seen >> j->tenant & 1; }

static void suspended_say(const struct core *c, uint64_t seen, struct why *ret)
{
	const struct job *first = NULL;
	unsigned int count = 0;

	for (unsigned int i = c->books.jobs; i-- > 0;)
		if (job_is_suspended(c->books.job[i]) && is_seen(seen, c->books.job[i])) {
			first = c->books.job[i];
			count++;
		}
	if (first)
		why_say(ret, 0,
			"%u suspended, such as %s: nobody can join until %s has tenant %s again "
			"(then tallyctl reload); a job that is to go: tallyctl job del",
			count, first->name, c->path, first->tenant_name);
}

static void tenants_note(struct core *c)
{
	struct why suspended = { "" }, hidden = { "" };

	suspended_say(c, UINT64_MAX, &suspended);
	trouble_note(c, CORE_TROUBLE_TENANTS, suspended.text);
	core_tenant_is_hidden(&c->books, c->config, c->path, UINT64_MAX, &hidden);
	trouble_note(c, CORE_TROUBLE_HIDDEN, hidden.text);
}

/* The maps have lost its run, for which there is no way to all workers yet. */
static void lost_say(const struct core *c, uint64_t seen, struct why *ret)
{
	for (unsigned int i = 0; !core_is_agreed(c) && i < c->books.jobs; i++) {
		const struct job *j = c->books.job[i];

		if (!job_slots(j) || j->document || tables_find(&c->mirror.is, j->id) ||
		    !is_seen(seen, j))
			continue;
		why_say(ret, 0,
			"job %s: its run is not in the data plane, since there is no way to all of "
			"its workers (ip route get). It goes on when there is one, which tallyd "
			"looks for %u s after the last time, and when a link changes; or end it "
			"by tallyctl job restart %s",
			j->name, c->retry_ms[CORE_RETRY_WAY] / 1000, j->name);
		return;
	}
}

/* The copy of a run that leaves by a port that is none of ours any more; -1: there is none. */
static int torn_copy(const struct core *c, const struct tables_job *is)
{
	for (unsigned int i = 0; i < is->copies; i++)
		if (!*core_port_name(c, is->copy[i].port))
			return (int)i;
	return -1;
}

/* Who gets a copy: a rank, or all that come through another node. */
static struct tally_set ranks_of(const struct job *j, unsigned int copy)
{
	_cleanup_(freep) struct installation_role *role = malloc(sizeof(*role));

	if (!role)
		return (struct tally_set){ { 0 } };
	job_role(j, role);
	return installation_ranks(role, j->workers, copy);
}

/* The copy of its run that is behind no port; -1: there is none. */
static int torn_of(const struct core *c, const struct job *j)
{
	const struct tables_job *is = tables_find(&c->mirror.is, j->id);

	return j->run_window && is && is->job.epoch == j->epoch ? torn_copy(c, is) : -1;
}

static void torn_say(const struct core *c, uint64_t seen, struct why *ret)
{
	for (unsigned int i = 0; i < c->books.jobs; i++) {
		const struct job *j = c->books.job[i];

		if (torn_of(c, j) < 0 || !is_seen(seen, j))
			continue;
		why_say(ret, 0, "job %s: %s", j->name, j->trouble.text);
		return;
	}
}

/* What is said of a run that has ended stays with its job. */
static void torn_learn(const struct core *c, struct job *j)
{
	const struct tables_job *is = tables_find(&c->mirror.is, j->id);
	const int copy = torn_of(c, j);
	struct tally_set ranks;
	char text[RANKS_BYTES];
	bool one;

	if (!j->run_window || !is || is->job.epoch != j->epoch)
		return;
	*j->trouble.text = '\0';
	if (copy < 0)
		return;
	ranks = ranks_of(j, (unsigned int)copy);
	one = tally_set_is_single(&ranks);
	ranks_print(&ranks, text, sizeof(text));
	why_say(&j->trouble, 0,
		"%s %.100s of its run %s behind an interface that is none of tallyd's ports, so "
		"nothing is summed for %s: add it to ports: in %s, then tallyctl reload",
		one ? "rank" : "ranks", text, one ? "is" : "are", one ? "it" : "them", c->path);
}

void torn_note(struct core *c)
{
	struct why text = { "" };

	for (unsigned int i = 0; i < c->ports_count; i++)
		if (!c->ports[i].ifindex) /* is said itself */
			return;
	for (unsigned int i = 0; i < c->books.jobs; i++)
		torn_learn(c, c->books.job[i]);
	torn_say(c, UINT64_MAX, &text);
	if (*text.text || c->look.torn)
		trouble_note(c, CORE_TROUBLE_RUNS, text.text);
	c->look.torn = *text.text;
}

/* While the maps are in doubt, what was said holds; torn runs are said when the maps are known. */
static void runs_note(struct core *c)
{
	struct why text = { "" };

	if (c->mirror.doubted || c->look.torn)
		return;
	lost_say(c, UINT64_MAX, &text);
	trouble_note(c, CORE_TROUBLE_RUNS, text.text);
}

bool core_trouble_seen(const struct core *c, enum core_trouble what, uint64_t seen, struct why *ret)
{
	*ret = c->trouble[what];
	if (!*ret->text || seen == UINT64_MAX)
		return *ret->text;
	if (what == CORE_TROUBLE_TENANTS || what == CORE_TROUBLE_HIDDEN ||
	    what == CORE_TROUBLE_RUNS)
		*ret->text = '\0';
	if (what == CORE_TROUBLE_TENANTS)
		suspended_say(c, seen, ret);
	else if (what == CORE_TROUBLE_HIDDEN)
		core_tenant_is_hidden(&c->books, c->config, c->path, seen, ret);
	else if (what == CORE_TROUBLE_RUNS)
		(c->look.torn ? torn_say : lost_say)(c, seen, ret);
	return *ret->text;
}

/* --- what is done ---------------------------------------------------------------------------- */

static void agree(struct core *c)
{
	c->mirror.doubted = true;
	runs_agree(c, core_agreed);
}

/* While the maps are in doubt, what was known last holds. */
static bool is_torn(const struct core *c)
{
	if (c->mirror.doubted)
		return c->look.torn;
	for (unsigned int i = 0; i < c->mirror.is.jobs; i++)
		if (torn_copy(c, &c->mirror.is.job[i]) >= 0)
			return true;
	return false;
}

/* Each time costs a look-up of every worker. */
static void torn_follow(struct core *c)
{
	if (!is_torn(c)) {
		c->retry_ms[CORE_RETRY_TORN] = 0;
	} else if (c->now_ns >= c->look.torn_ns) {
		follow_due(c);
		c->look.torn_ns = c->now_ns + core_retry(c, CORE_RETRY_TORN) * 1000000ull;
	}
}

static bool is_same_port(const struct dataplane_port *a, const struct dataplane_port *b)
{
	return a->ifindex == b->ifindex && !strcmp(a->refused.text, b->refused.text);
}

static void mended(struct core *c, int r)
{
	_cleanup_(freep) struct dataplane_port *before = NULL;
	const unsigned int count = c->ports_count;

	if (r < 0) {
		trouble_note(c, CORE_TROUBLE_PINS, c->why.text);
		if (c->mirror.doubted)
			agree(c);
		return;
	}
	trouble_note(c, CORE_TROUBLE_PINS, "");
	if (*c->look.missing.text)
		core_log(c, LOG_LEVEL_WARNING, "pins put back", "reason=\"%s\"",
			 c->look.missing.text);
	before = TAKE_PTR(c->ports);
	c->ports_count = 0;
	ports_keep(c);
	for (unsigned int i = 0; i < count && i < c->ports_count; i++)
		if (!is_same_port(&before[i], &c->ports[i]))
			port_note(c, &c->ports[i]);
	agree(c);
	follow_due(c);
}

/* --- what is seen ---------------------------------------------------------------------------- */

/* Is it as we knew it? If not, from now on nothing relies on it any more. */
static bool port_is_known(struct core *c, unsigned int i, const struct dataplane_port *now)
{
	struct dataplane_port *known = &c->ports[i];

	if (known->ifindex == (now->attached ? now->ifindex : 0))
		return true;
	c->mirror.doubted = true;
	c->look.seen[i] = 0; /* to be mended at once */
	known->ifindex = now->attached ? now->ifindex : 0;
	known->refused = now->refused;
	if (now->ifindex && !now->attached)
		why_say(&known->refused, 0, "Tally's program is not on it any more");
	port_note(c, known);
	return false;
}

/* An interface that has come; or one without our program, again when some time has passed. */
static bool port_is_to_mend(struct core *c, unsigned int i, const struct dataplane_port *now)
{
	const bool is_new = now->ifindex != c->look.seen[i];

	c->look.seen[i] = now->ifindex;
	return now->ifindex && !now->attached && (is_new || c->now_ns >= c->look.retry_ns);
}

static void looked(struct core *c, int r)
{
	const struct core_event *e = c->result;
	_cleanup_(freep) struct dataplane_port *ports = NULL;
	bool known = true, mend, mend_pins;

	jobs_note(c);
	trouble_note(c, CORE_TROUBLE_LOOK, c->why.text);
	if (r < 0)
		return;
	ports = e->result.looked.ports;
	tenants_note(c);
	trouble_note(c, CORE_TROUBLE_LISTEN, e->result.looked.taken);
	trouble_note(c, CORE_TROUBLE_METRICS, e->result.looked.metrics_taken);
	runs_note(c);
	mend = mend_pins = *e->result.looked.missing;
	why_say(&c->look.missing, 0, "%s", e->result.looked.missing);
	if (!mend_pins)
		trouble_note(c, CORE_TROUBLE_PINS, "");
	services_note(c, e->result.looked.services_away);
	if (core_is_saved(c))
		trouble_note(c, CORE_TROUBLE_STATE, e->result.looked.state);
	/* what is on a port the pins say */
	for (unsigned int i = 0; !mend_pins && i < c->ports_count && i < c->config->ports; i++) {
		known &= port_is_known(c, i, &ports[i]);
		mend |= port_is_to_mend(c, i, &ports[i]);
	}
	if (mend || !known)
		c->look.retry_ns = c->now_ns + RETRY_MS * 1000000ull;
	if (mend)
		core_await(c, ACTION(CORE_MEND, .config = c->config), NULL, mended);
	else if (!known)
		agree(c);
	else
		torn_follow(c);
}

void mend_begin(struct core *c)
{
	core_due(c, CORE_DUE_LOOK, LOOK_MS);
	if (c->unrestored)
		restore(c); /* and if that fails, says when it is due */
	else
		core_await(c, ACTION(CORE_LOOK, .config = c->config), NULL, looked);
}
