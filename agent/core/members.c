// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Members: workers' connections, each of which waits for the next run of a job as one of its ranks,
 * or is in the run that goes on. The protocol: docs/joining.md.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "core_private.h"
#include "payload.h"
#include "common/address.h"
#include "common/secret.h"

enum {
	MEMBERS_OF_TENANT = 64, /* that nobody else gets */
	REFUSAL_LOG_S = 10, /* between two lines of the same reason */
	STAY_TRIAL_S = 10,
};

static void tell_error(struct core *c, void *connection, int error, const char *text)
{
	core_act(c, ACTION(CORE_TELL, .connection = connection, .error = error,
			   .tell = { .kind = JOINING_ERROR, .text = text }));
}

static enum core_join_refusal refusal_of(int error)
{
	switch (error) {
	case -EACCES:
		return CORE_JOIN_TOKEN;
	case -EADDRINUSE:
	case -EUSERS:
	case -ERANGE:
		return CORE_JOIN_RANK;
	case -EINVAL:
		return CORE_JOIN_ADDRESS;
	case -EHOSTUNREACH:
		return CORE_JOIN_NO_WAY;
	case -EPERM:
		return CORE_JOIN_INGRESS;
	case -EBUSY:
		return CORE_JOIN_CORDONED;
	case -EAGAIN:
		return CORE_JOIN_SLOWED;
	default:
		return CORE_JOIN_OTHER;
	}
}

/* Who comes again and again does not fill the log; of wrong tokens it has a line already. */
static enum log_level level_of(struct core *c, enum core_join_refusal refusal)
{
	if (refusal == CORE_JOIN_TOKEN || refusal == CORE_JOIN_SLOWED ||
	    c->now_ns < c->refusal_due_ns[refusal])
		return LOG_LEVEL_DEBUG;
	c->refusal_due_ns[refusal] = c->now_ns + REFUSAL_LOG_S * 1000000000ull;
	return LOG_LEVEL_INFO;
}

/* c->why says why. */
static void refuse(struct core *c, void *connection, const char *job, int error)
{
	const enum core_join_refusal refusal = refusal_of(error);

	core_log(c, level_of(c, refusal), "worker refused",
		 "job=%s times=%" PRIu64 " reason=\"%s\"", job, ++c->counts.joins_refused[refusal],
		 c->why.text);
	if (connection)
		tell_error(c, connection, error, core_reason(&c->why, error));
}

static void tell_missing(struct core *c, const struct job *j)
{
	const struct tally_set missing = job_missing(j);

	for (uint16_t rank = 0; !tally_set_is_empty(&missing) && rank < j->workers; rank++)
		if (j->rank[rank].waiting)
			core_act(c, ACTION(CORE_TELL, .connection = j->rank[rank].connection,
					   .tell = { JOINING_WAITING, missing, NULL }));
}

void members_tell_run(struct core *c, const struct job *j)
{
	for (uint16_t rank = 0; rank < j->workers; rank++)
		core_act(c, ACTION(CORE_TELL, .connection = j->rank[rank].connection, .job = j,
				   .rank = rank, .tell.kind = JOINING_RUN));
}

void members_tell_rotated(struct core *c, const struct job *j)
{
	uint8_t key[SECRET_KEY_BYTES];

	for (uint16_t rank = 0; rank < j->workers; rank++)
		if (j->rank[rank].connection && j->rank[rank].presence == JOB_RUNNING &&
		    job_place_key(j, rank, j->draw.nonce, key))
			core_act(c, ACTION(CORE_TELL, .connection = j->rank[rank].connection,
					   .tell.kind = JOINING_STAYS));
	explicit_bzero(key, sizeof(key));
}

void members_send_away(struct core *c, struct job *j, enum members_whom whom, int error,
		       const char *text)
{
	for (uint16_t rank = 0; rank < j->workers; rank++) {
		struct job_rank *r = &j->rank[rank];

		if (!r->connection || (whom == MEMBERS_WAITING && !r->waiting) ||
		    (whom == MEMBERS_RUNNING && r->waiting))
			continue;
		tell_error(c, r->connection, error, text);
		job_unjoin(j, rank);
		r->connection = NULL;
	}
}

/* --- joining --------------------------------------------------------------------------------- */

/* Counted only where it is crowded: that takes a look at each rank of the node. */
static int share_check(struct core *c, const struct job *wanted)
{
	unsigned int held[TALLY_TENANTS_MAX] = { 0 };

	for (unsigned int i = 0; i < c->books.jobs; i++)
		for (uint16_t rank = 0; rank < c->books.job[i]->workers; rank++)
			held[c->books.job[i]->tenant] += !!c->books.job[i]->rank[rank].connection;
	if (books_may_have(&c->books, held, wanted->tenant, MEMBERS_OF_TENANT, CORE_MEMBERS_MAX))
		return 0;
	return why_say(&c->why, -ENOSPC,
		       "%u workers of tenant %s are here, and the rest of the %u that the agent "
		       "serves is for other tenants",
		       held[wanted->tenant], wanted->tenant_name, CORE_MEMBERS_MAX);
}

/* Where the worker receives. Over TCP nobody can have results sent to another machine. */
static int address_of(const struct joining_message *m, const struct sockaddr_storage *peer,
		      struct sockaddr_storage *ret, struct why *why)
{
	struct sockaddr_storage there = *peer;

	endpoint_port_set(&there, endpoint_port(&m->address));
	if (peer->ss_family != AF_UNIX && !endpoint_is_equal(&there, &m->address))
		return why_say(why, -EINVAL,
			       "address: not the one that this connection comes from: addresses "
			       "must not be translated on the way");
	*ret = m->address;
	return 0;
}

/* Its messages come in where its connection does, and in the same way. */
static int ingress_check(struct core *c, const struct job *j, const char *port,
			 const struct sockaddr_storage *address)
{
	const struct books_tenant *t = &c->books.tenant[j->tenant];
	char from[ADDRESS_BYTES], points[256];

	if (core_entry_check(c, &t->is, &c->why) < 0)
		return -EPERM;
	if (tenant_may_come(&t->is, port, address))
		return 0;
	address_print(address, from, sizeof(from));
	tenant_points_print(&t->is, points, sizeof(points));
	return why_say(&c->why, -EPERM,
		       "%s%s%s: tenant %s may not come in from there: join from where it may, or "
		       "give it all ingress points that it needs (%s%s%s). It has %s",
		       from, *port ? " without a VLAN tag at " : "", port, t->is.name,
		       t->configured ? "in " : "tallyctl tenant set ",
		       t->configured ? c->path : t->is.name,
		       t->configured ? ", then tallyctl reload"
		       : t->is.gated ? " --cluster --ingress ..."
				     : " --ingress ...",
		       points);
}

/* The tenant's points, and those that the node wants, may be others since they joined. */
bool members_may_begin(struct core *c, struct job *j)
{
	struct why *texts = NULL;
	unsigned int refused = 0;

	for (uint16_t rank = 0; rank < j->workers; rank++) {
		struct job_rank *r = &j->rank[rank];

		if (!r->waiting || ingress_check(c, j, r->port, &r->next) == 0)
			continue;
		if (!texts && !c->texts) /* which are another job's, if there are any */
			texts = c->texts = calloc(j->workers, sizeof(*texts));
		if (texts)
			texts[rank] = c->why;
		tell_error(c, r->connection, -EPERM, texts ? texts[rank].text : strerror(EPERM));
		job_unjoin(j, rank);
		r->connection = NULL;
		refused++;
	}
	if (!refused)
		return true;
	c->counts.joins_refused[CORE_JOIN_INGRESS] += refused;
	core_log(c, LOG_LEVEL_INFO, "workers refused", "job=%s workers=%u reason=\"%s\"", j->name,
		 refused, c->why.text);
	tell_missing(c, j);
	return false;
}

/* There may be no way to the worker yet, or no neighbour known: whoever waits may wait for that. */
static void on_way(struct core *c, int r)
{
	struct job *j = c->member.job;
	const uint16_t rank = c->member.rank;

	if (r < 0 && r != -EHOSTUNREACH) {
		job_unjoin(j, rank);
		refuse(c, c->member.connection, j->name, r == -ENOMEM ? r : -EHOSTUNREACH);
		return;
	}
	j->rank[rank].connection = c->member.connection;
	j->rank[rank].way = r == 0 ? *c->result->result.hop : (struct hop){ .port = 0 };
	if (job_is_ready(j))
		run_begin(c, j);
	else
		tell_missing(c, j);
}

/* The rank is the worker's, if its way carries what it is in the midst of. */
static int take_rank(struct core *c, struct job *j, const struct joining_message *m,
		     const struct sockaddr_storage *address, uint16_t *ret)
{
	uint16_t rank = 0;
	int r = job_join(j, m->rank, address, &rank, &c->why);

	if (r < 0)
		return r;
	j->rank[rank].mtu = m->mtu;
	j->rank[rank].payload_bytes = m->payload_bytes;
	r = payload_check(j, rank, &c->why);
	if (r < 0) {
		job_unjoin(j, rank);
		payload_unfit(j, &c->why, c->now_ns);
		return r;
	}
	*ret = rank;
	return 0;
}

/* If there is a way, the neighbour is asked for now, and its answer is there when a run begins. */
static int join(struct core *c, const struct core_event *e, struct job *j)
{
	const struct joining_message *m = e->joining.message;
	const char *port = e->joining.port ? core_port_name(c, e->joining.port) : "";
	struct sockaddr_storage address = { 0 };
	uint16_t rank = 0;
	int r;

	if (job_is_suspended(j))
		return why_say(
			&c->why, -EBUSY,
			"job %s is suspended: the configuration of tallyd has no tenant %s now",
			j->name, j->tenant_name);
	if (m->from && j->run_window && j->draw.nonce == m->from)
		return why_say(
			&c->why, -EADDRINUSE,
			"the run that this worker is in goes on at this node: its packets do "
			"not come in, or results do not reach it");
	r = core_cordon_check(c, &c->why);
	if (r == 0 && e->joining.crowded)
		r = share_check(c, j);
	if (r == 0)
		r = address_of(m, e->joining.peer, &address, &c->why);
	if (r == 0)
		r = ingress_check(c, j, port, &address);
	if (r == 0)
		r = take_rank(c, j, m, &address, &rank);
	if (r < 0)
		return r == -EAFNOSUPPORT ? -EINVAL : r; /* the wire has no name for it */
	snprintf(j->rank[rank].port, sizeof(j->rank[rank].port), "%s", port);
	c->member.job = j;
	c->member.rank = rank;
	c->member.connection = e->connection;
	c->member.draw = *e->joining.draw;
	core_await(c,
		   ACTION(CORE_RESOLVE,
			  .resolve = { .address = &j->rank[rank].next, .from = &j->service }),
		   NULL, on_way);
	return 0;
}

/* --- leaving --------------------------------------------------------------------------------- */

static void leave_done(struct core *c, int r)
{
	if (c->member.connection)
		core_act(c, ACTION(CORE_TELL, .connection = c->member.connection,
				   .tell.kind = JOINING_LEFT));
}

/* Their calls cannot end without it, but for what it has contributed already. */
static void tell_ending(struct core *c, const struct job *j, uint16_t gone, const char *how)
{
	for (uint16_t rank = 0; rank < j->workers; rank++)
		if (rank != gone && j->rank[rank].presence == JOB_RUNNING)
			core_act(c, ACTION(CORE_TELL, .connection = j->rank[rank].connection,
					   .rank = gone,
					   .tell = { .kind = JOINING_ENDING, .text = how }));
}

void members_leave(struct core *c, struct job *j, uint16_t rank, uint16_t epoch, const char *how,
		   void *connection)
{
	c->member.connection = connection;
	if (job_is_at(j, rank, epoch)) {
		core_save_soon(c);
		if (job_is_whole(j))
			tell_ending(c, j, rank, how);
		if (job_leave(j, rank, epoch)) {
			core_log(c, LOG_LEVEL_INFO, "run is over", "job=%s epoch=%u", j->name,
				 epoch);
			run_end(c, j, leave_done);
			return;
		}
	}
	leave_done(c, 0);
}

/* Who is connected leaves by that connection, and nobody else does it in that one's name. */
static void leave(struct core *c, void *connection, struct job *j, const struct joining_message *m)
{
	struct job_rank *r = m->rank < j->workers ? &j->rank[m->rank] : NULL;
	bool is_at = r && job_is_at(j, m->rank, m->epoch);
	bool is_own = is_at && r->presence == JOB_RUNNING && r->connection == connection;

	bool may = is_own || (is_at && r->presence == JOB_DETACHED);

	if (is_own)
		r->connection = NULL; /* its end means nothing any more */
	members_leave(c, j, may ? m->rank : UINT16_MAX, m->epoch, "left", connection);
}

/* --- staying --------------------------------------------------------------------------------- */

/* One connection a rank: others would stay for ever, and take everybody's room. */
static void connect_anew(struct core *c, struct job_rank *r, void *connection)
{
	if (r->connection && r->connection != connection)
		core_act(c, ACTION(CORE_DROP, .connection = r->connection));
	r->connection = connection;
}

/* It hears again of ranks that go and of a root elsewhere, and is missed when it goes itself. */
static int stay(struct core *c, const struct core_event *e, struct job *j)
{
	const struct joining_message *m = e->joining.message;
	const bool is_back = m->rank < j->workers && j->rank[m->rank].presence == JOB_DETACHED;
	const bool was_outdated = m->rank < j->workers && j->rank[m->rank].outdated;
	const bool hears = e->joining.by_place && job_is_rotated(j);
	int r = job_attach(j, (uint16_t)m->rank, m->epoch, m->nonce, e->joining.by_place,
			   e->joining.peer, &c->why);

	if (r < 0)
		return r;
	connect_anew(c, &j->rank[m->rank], e->connection);
	j->rank[m->rank].stays_ns = c->now_ns;
	j->rank[m->rank].outdated = false;
	core_save_soon(c);
	if (is_back)
		core_log(c, LOG_LEVEL_INFO, "worker has come back", "job=%s rank=%d", j->name,
			 m->rank);
	if (hears)
		core_act(c, ACTION(CORE_TELL, .connection = e->connection, .job = j,
				   .tell.kind = JOINING_TOKEN));
	core_act(c, ACTION(CORE_TELL, .connection = e->connection, .tell.kind = JOINING_STAYS));
	if (hears && was_outdated)
		core_log(c, LOG_LEVEL_INFO, "worker was told the new token", "job=%s rank=%d",
			 j->name, m->rank);
	for (uint16_t rank = 0; rank < j->workers; rank++)
		if (j->rank[rank].presence == JOB_LEFT) { /* nobody could tell this one */
			core_act(c, ACTION(CORE_TELL, .connection = e->connection, .rank = rank,
					   .tell = { .kind = JOINING_ENDING, .text = "has gone" }));
			break;
		}
	return 0;
}

void members_kick(struct core *c, struct job *j, uint16_t rank)
{
	struct job_rank *r = &j->rank[rank];

	if (r->connection)
		tell_error(c, r->connection, -ECANCELED, "the operator has sent this rank away");
	r->connection = NULL;
	if (r->waiting) {
		job_unjoin(j, rank);
		tell_missing(c, j);
	}
	members_leave(c, j, rank, j->epoch, "was sent away", NULL); /* if it is at the run */
}

/* --- what they say --------------------------------------------------------------------------- */

void members_joining(struct core *c, const struct core_event *e)
{
	struct job *j = books_job_find(&c->books, e->joining.job);
	int r = members_may_speak(c, e, j);

	if (r == 0 && e->joining.message->what == JOINING_LEAVE)
		leave(c, e->connection, j, e->joining.message);
	else if (r == 0)
		r = (e->joining.message->what == JOINING_STAY ? stay : join)(c, e, j);
	if (r < 0)
		refuse(c, e->connection, e->joining.job, r);
}

/* --- the end of a connection ------------------------------------------------------------------ */

/* It may have waited in vain for an answer, which it soon asks for again. If it has gone, its
 * machine says so. */
static bool has_tried_to_stay(const struct core *c, const struct job_rank *r)
{
	return r->stays_ns && c->now_ns - r->stays_ns < STAY_TRIAL_S * 1000000000ull;
}

void members_ended(struct core *c, const struct core_event *e)
{
	struct job *j = c->stopped ? NULL : books_job_find(&c->books, e->ended);

	for (uint16_t rank = 0; j && rank < j->workers; rank++) {
		struct job_rank *r = &j->rank[rank];

		if (r->connection != e->connection)
			continue;
		r->connection = NULL;
		if (r->waiting) {
			job_unjoin(j, rank);
			tell_missing(c, j);
			return;
		}
		if (has_tried_to_stay(c, r)) {
			r->presence = JOB_DETACHED;
			core_save_soon(c);
			rollcall_due(c);
			return;
		}
		core_log(c, LOG_LEVEL_INFO, "worker has gone", "job=%s rank=%u", j->name, rank);
		members_leave(c, j, rank, j->epoch, "is gone: its connection ended", NULL);
		return;
	}
}
