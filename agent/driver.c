// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Actions of the core, one after the other: each is a call to an edge, and its result goes back. */
#include <assert.h>
#include <errno.h>
#include <string.h>
#include <systemd/sd-daemon.h>

#include "agent/edge/books_file.h"
#include "agent/edge/log.h"
#include "agent/edge/look.h"
#include "agent/edge/port_reach.h"
#include "agent/edge/spiller.h"
#include "common/clock.h"
#include "carrier.h"
#include "control.h"
#include "driver.h"
#include "export.h"
#include "finder.h"
#include "hops.h"
#include "node.h"
#include "peers.h"
#include "placing.h"
#include "probes.h"
#include "rights.h"
#include "sampler.h"
#include "sharing.h"
#include "steering.h"
#include "workers.h"

struct driver {
	struct config *config;
	const char *path; /* of its file */
	sd_event *loop;
	sd_event_source *deadline;
	struct core *core;
	struct netlink *netlink;
	struct node node;
	struct spiller *spiller;
	struct sampler *sampler;
	struct control *control;
	struct workers *workers;
	struct probes *probes;
	struct carrier *carrier;
	struct finder *finder;
	struct sharing *sharing;
	struct placing *placing;
	struct steering *steering;
	struct exporter *exporter;
	int error; /* of the last CORE_CONFIGURED, with its reason */
	struct why why;
};

enum {
	SLACK_US = 10000,
};

/* --- what is awaited ------------------------------------------------------------------------- */

/* What a result points to. */
struct outcome {
	struct hop hop;
	struct tables tables;
	struct why missing, state, taken, metrics_taken;
	struct why why;
};

/* The ports as they are now, for the core, and the links of these for the sampler. */
static int ports_give(struct driver *d, struct core_event *e, struct why *why)
{
	struct dataplane_port *ports = NULL;
	unsigned int count = 0;
	int r;

	r = node_ports(&d->node, &ports, &count, why);
	if (r == 0 && d->sampler)
		r = sampler_watch(d->sampler, ports, count, why);
	if (r < 0) {
		free(ports);
		return r;
	}
	e->result.adopted.ports = ports;
	e->result.adopted.count = count;
	return 0;
}

static int look(struct driver *d, const struct config *c, struct core_event *e, struct outcome *o)
{
	int r = node_look(&d->node, c, &e->result.looked.ports, &o->missing, &o->why);

	if (r < 0)
		return r;
	look_is_writable(c->state, &o->state);
	e->result.looked.missing = o->missing.text;
	e->result.looked.state = o->state.text;
	workers_listen(d->workers, &o->taken);
	e->result.looked.taken = o->taken.text;
	exporter_listen(d->exporter, &o->metrics_taken);
	e->result.looked.metrics_taken = o->metrics_taken.text;
	for (unsigned int i = 0; i < c->services; i++)
		e->result.looked.services_away |= !look_is_own(&c->service[i]) << i;
	return 0;
}

static int adopt(struct driver *d, const struct config *config, struct core_event *e,
		 struct why *why)
{
	int r = node_adopt(&d->node, config, core_books(d->core), why);

	return r < 0 ? r : ports_give(d, e, why);
}

static int mend(struct driver *d, const struct config *config, struct core_event *e,
		struct why *why)
{
	int r = node_mend(&d->node, config, why);

	return r < 0 ? r : ports_give(d, e, why);
}

static int install(struct dataplane *dataplane, const struct core_action *a, struct why *why)
{
	_cleanup_(freep) struct dataplane_port *ports = NULL;
	unsigned int count = 0;
	int r;

	r = dataplane_ports(dataplane, &ports, &count, why);
	if (r == 0)
		r = port_reach_check(ports, count, a->write.installation, why);
	if (r < 0)
		return r;
	return dataplane_job_put(dataplane, a->write.before, a->write.job, a->write.installation,
				 why);
}

static int perform(struct driver *d, const struct core_action *a, struct core_event *e,
		   struct outcome *o)
{
	struct dataplane *dataplane = d->node.dataplane;
	struct why *why = &o->why;

	switch (a->kind) {
	case CORE_RESOLVE:
		e->result.hop = &o->hop;
		return hops_resolve(d->netlink, d->steering, a, &o->hop, why);
	case CORE_READ:
		e->result.tables = &o->tables;
		return dataplane_tables_read(dataplane, &o->tables, why);
	case CORE_INSTALL:
		return install(dataplane, a, why);
	case CORE_REMOVE:
		return dataplane_job_remove(dataplane, a->write.before, why);
	case CORE_SPILL:
		return spiller_put(d->spiller, a->write.installation, why);
	case CORE_UNSPILL:
		spiller_remove(d->spiller, a->id);
		return 0;
	case CORE_GATES:
		return dataplane_job_regate(dataplane, a->write.before, a->write.job, why);
	case CORE_MOVE:
		return dataplane_jobs_move(dataplane, a->move.tables, a->move.move, a->move.count,
					   why);
	case CORE_FOLLOW:
		return dataplane_job_follow(dataplane, a->id, a->follow.hops, a->follow.count,
					    &e->result.followed.changed,
					    &e->result.followed.elsewhere, why);
	case CORE_PUT_TENANT:
		spiller_tenant_put(d->spiller, a->id, &a->tenant.limits, a->tenant.anywhere,
				   a->tenant.points, a->tenant.points_count);
		return dataplane_tenant_put(dataplane, a->id, &a->tenant.limits, a->tenant.sources,
					    a->tenant.count, why);
	case CORE_DROP_TENANT:
		return dataplane_tenant_del(dataplane, a->id, why);
	case CORE_SAVE:
		return books_write(core_books(d->core), core_config(d->core)->state, why);
	case CORE_SAMPLE:
		return sampler_sample(d->sampler, why);
	case CORE_PROBE:
		return probes_ask(d->probes, a->job, a->rank);
	case CORE_FIND_PORTS:
		return node_find_ports(&d->node, a->config, why);
	case CORE_ADOPT:
		return adopt(d, a->config, e, why);
	case CORE_LOOK:
		return look(d, a->config, e, o);
	case CORE_MEND:
		return mend(d, a->config, e, why);
	default:
		return -EINVAL;
	}
}

/* --- what is not ----------------------------------------------------------------------------- */

static void configured(struct driver *d, const struct core_action *a)
{
	d->error = a->error;
	snprintf(d->why.text, sizeof(d->why.text), "%s", a->error < 0 ? a->text : "");
	if (a->error == 0)
		node_report(d->core);
}

static void answer(struct driver *d, const struct core_action *a)
{
	_cleanup_(freep) char *line = NULL;

	if (placing_asked(d->placing, a->connection)) {
		placing_answer(d->placing, a);
		return;
	}
	if (!workers_asked(d->workers, a->connection)) {
		control_answer(d->control, a);
		return;
	}
	line = control_line(d->core, a);
	workers_answer(a, line);
}

/* False: its result is awaited. */
static bool is_done(struct driver *d, const struct core_action *a)
{
	switch (a->kind) {
	case CORE_TELL:
		workers_tell(a);
		return true;
	case CORE_DROP:
		workers_drop(a->connection);
		return true;
	case CORE_ANSWER:
		answer(d, a);
		return true;
	case CORE_LOG:
		log_say(a->log.level, a->log.what, "%s", a->log.facts);
		return true;
	case CORE_CONFIGURED:
		configured(d, a);
		return true;
	case CORE_FORGET_JOB:
		traffic_job_forget(d->sampler->traffic, a->id);
		return true;
	case CORE_FORGET_TENANT:
		traffic_tenant_forget(d->sampler->traffic, a->id);
		return true;
	case CORE_FORGET_PROBES:
		probes_forget(d->probes);
		return true;
	default:
		return false;
	}
}

static void give_result(struct driver *d, const struct core_action *a)
{
	struct core_event e = { .kind = CORE_RESULT, .result.number = a->number };
	struct outcome o = { 0 };
	int r;

	e.result.error = perform(d, a, &e, &o);
	e.result.why = o.why.text;
	r = core_handle(d->core, &e, clock_now_ns());
	assert(r == 0);
	(void)r;
	tables_close(&o.tables);
}

/* --- events ---------------------------------------------------------------------------------- */

static int on_deadline(sd_event_source *timer, uint64_t us, void *data)
{
	const struct core_event e = { .kind = CORE_DEADLINE };

	driver_handle(data, &e);
	return 0;
}

static void deadline_set(struct driver *d)
{
	const uint64_t at_ns = core_deadline_ns(d->core);

	if (at_ns != UINT64_MAX)
		sd_event_source_set_time(d->deadline, at_ns / 1000 + 1);
	sd_event_source_set_enabled(d->deadline,
				    at_ns == UINT64_MAX ? SD_EVENT_OFF : SD_EVENT_ONESHOT);
}

void driver_handle(struct driver *d, const struct core_event *e)
{
	struct core_action action;
	int r;

	r = core_handle(d->core, e, clock_now_ns());
	assert(r == 0); /* all results are there: nothing is awaited */
	(void)r;
	while (core_next_action(d->core, &action))
		if (!is_done(d, &action))
			give_result(d, &action);
	deadline_set(d);
	carrier_look(d->carrier);
	finder_look(d->finder);
	placing_wake(d->placing);
}

static int configure(struct driver *d, const struct config *config, struct why *why)
{
	const struct core_event e = { .kind = CORE_CONFIG, .config = config };

	driver_handle(d, &e);
	*why = d->why;
	return d->error;
}

int driver_config_read(const char *path, struct config **ret, struct why *why)
{
	_cleanup_(config_freep) struct config *c = NULL;
	int r = config_read(path, &c, why);

	if (r == 0)
		r = books_resolve(c->state, sizeof(c->state), why);
	if (r == 0)
		*ret = TAKE_PTR(c);
	return r;
}

/* Whoever starts and stops us hears how long it takes. */
int driver_reload(struct driver *d, struct why *why)
{
	struct config *config = NULL;
	struct why wrong = { "" };
	int r;

	sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%llu",
		   (unsigned long long)(clock_now_ns() / 1000));
	r = driver_config_read(d->path, &config, &wrong);
	if (r == 0)
		r = rights_check_groups(config, &wrong);
	if (r == 0)
		r = configure(d, config, &wrong);
	if (r < 0) {
		why_say(why, r, "not reloaded, and %s: %s",
			*core_trouble(d->core, CORE_TROUBLE_RESTORE)
				? "tallyd is still putting back what was before (tallyctl status)"
				: "all is as it was",
			wrong.text);
		log_say(LOG_LEVEL_ERROR, "configuration not reloaded", "reason=\"%s\"", wrong.text);
		config_free(config);
	} else {
		config_free(d->config);
		d->config = config;
		log_level_set(config->log_level);
		log_say(LOG_LEVEL_INFO, "configuration reloaded", "file=%s", d->path);
		peers_report(config);
	}
	sd_notify(0, "READY=1");
	return r;
}

const struct core *driver_core(const struct driver *d) { return d->core; }

void driver_measured(struct driver *d, unsigned int tenant, const struct quota_use *rates)
{
	core_measured(d->core, tenant, rates);
}

const struct carry *driver_carry(const struct driver *d) { return carrier_carry(d->carrier); }
struct spiller *driver_spiller(const struct driver *d) { return d->spiller; }
void driver_say_elsewhere(void *connection, const struct sockaddr_storage *root, bool ends)
{
	workers_say_elsewhere(connection, root, ends);
}

void driver_say_shares(void *connection, const uint16_t *share, unsigned int roots)
{
	workers_say_shares(connection, share, roots);
}

struct placing *driver_placing(const struct driver *d) { return d->placing; }
const struct sharing *driver_sharing(const struct driver *d) { return d->sharing; }
const struct steering *driver_steering(const struct driver *d) { return d->steering; }
struct netlink *driver_netlink(const struct driver *d) { return d->netlink; }

void driver_routes_changed(struct driver *d)
{
	const struct core_event e = { .kind = CORE_ROUTE };

	driver_handle(d, &e);
	finder_hurry(d->finder);
	steering_hurry(d->steering);
}

void driver_ways_changed(struct driver *d)
{
	const struct core_event e = { .kind = CORE_ROUTE };

	driver_handle(d, &e);
	finder_hurry(d->finder);
}

/* --- open and close -------------------------------------------------------------------------- */

static int start(struct driver *d, struct why *why)
{
	struct books books;
	struct core_event e = { .kind = CORE_START,
				.start = { d->config, d->path, &books, NULL, 0 } };
	int r;

	books_init(&books, 0);
	r = node_open(&d->node, d->netlink, d->config, &books, why);
	if (r == 0)
		r = node_ports(&d->node, &e.start.ports, &e.start.ports_count, why);
	if (r == 0) {
		driver_handle(d, &e);
		*why = d->why;
		r = d->error;
	}
	if (r < 0)
		node_abandon(&d->node, d->config);
	books_clear(&books);
	return r;
}

int driver_open(sd_event *loop, struct config *config, const char *path, struct driver **ret,
		struct why *why)
{
	struct driver *d = calloc(1, sizeof(*d));
	int r;

	*ret = d;
	if (!d) {
		config_free(config);
		return -ENOMEM;
	}
	d->config = config;
	d->path = path;
	d->loop = loop;
	d->core = core_new();
	r = d->core ? netlink_open(&d->netlink) : -ENOMEM;
	if (r == 0)
		r = sd_event_add_time(loop, &d->deadline, CLOCK_MONOTONIC, 0, SLACK_US, on_deadline,
				      d);
	if (r >= 0)
		r = spiller_open((size_t)config->spill_mib << 20, config->spill_threads, false,
				 &d->spiller);
	if (r >= 0)
		r = start(d, why);
	if (r == 0)
		r = sampler_open(loop, d, &d->node, &d->sampler, why);
	if (r == 0)
		r = control_open(loop, d, &d->node, d->sampler, &d->control, why);
	if (r == 0)
		r = workers_open(loop, d, &d->workers, why);
	if (r == 0)
		r = probes_open(loop, d, &d->probes);
	if (r == 0)
		r = carrier_open(loop, d->core, &d->carrier);
	if (r == 0)
		r = finder_open(loop, d, &d->finder);
	if (r == 0)
		r = sharing_open(loop, d->core, d->sampler, &d->sharing, why);
	if (r == 0)
		r = placing_open(loop, d, d->sharing, &d->placing);
	if (r == 0)
		r = steering_open(loop, d, d->sharing, d->placing, &d->steering);
	if (r == 0)
		r = exporter_open(loop, d->core, d->carrier, d->sampler, d->sharing, d->placing,
				  &d->exporter, why);
	if (r == 0) {
		node_peers_report(d->core);
		peers_report(config);
	}
	return r;
}

void driver_close(struct driver *d, bool detach)
{
	const struct core_event stop = { .kind = CORE_STOP };

	if (!d)
		return;
	exporter_close(d->exporter);
	carrier_close(TAKE_PTR(d->carrier));
	finder_close(TAKE_PTR(d->finder));
	steering_close(TAKE_PTR(d->steering));
	probes_close(d->probes);
	if (d->core && core_config(d->core))
		driver_handle(d, &stop);
	workers_close(d->workers);
	control_close(d->control);
	sharing_close(d->sharing);
	placing_close(d->placing);
	sampler_close(d->sampler);
	spiller_close(d->spiller);
	node_close(&d->node, detach);
	sd_event_source_disable_unref(d->deadline);
	netlink_close(d->netlink);
	core_free(d->core);
	config_free(d->config);
	free(d);
}

void driver_abandon(struct driver *d) { driver_close(d, d && d->node.fresh); }
