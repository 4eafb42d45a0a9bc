// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "sharing.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "agent/cluster/claim.h"
#include "agent/edge/hellos.h"
#include "agent/edge/log.h"
#include "agent/edge/look.h"
#include "agent/store/store.h"
#include "common/address.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/owned.h"
#include "reporting.h"

#define REPORTS "report/" /* keys: and a node's name */

enum {
	LOOK_MS = 500,
	LOGGED_MS = 100,
	SLACK_US = 50000,
	PASSWORD_BYTES = 256, /* with its end */
	URLS_BYTES = CONFIG_ETCDS_MAX * (CONFIG_URL_BYTES + 1),
};

_Static_assert(REPORT_AGENT_BYTES == (int)LOOK_MACHINE_BYTES, "it fits");

struct sharing {
	const struct core *core;
	const struct sampler *sampler;
	struct store *store;
	struct hellos *hellos;
	sd_event_source *timer;
	uint64_t hello_ns; /* when we said it last */
	uint64_t logged_ns; /* that somebody was heard */
	struct hello_nears nears;
	struct hello_other other;
	struct picture picture;
	bool current; /* it has all reports */
	bool resets; /* what is told of reports is another store's */
	struct events events;
	struct claim claim;
	struct why apart; /* of `other`, in words */
	struct why taken; /* by whom this node's name is; "": by nobody else */
	struct report *report; /* as it was last given to the store; NULL: it has to be anew */
	uint64_t reported_ns;
	bool steers; /* what it says of that */
	bool writes; /* it is under way */
	struct sharing_state state;
	struct why trouble; /* of the last write that failed, until one is done */
	int error; /* the same */
	void (*lost)(void *context); /* or NULL */
	int (*report_more)(void *context, struct report *report); /* or NULL */
	void *context; /* of both */
};

/* --- hellos ---------------------------------------------------------------------------------- */

/* Of two names for one cluster, nobody else would tell: each part has a leader. */
static void other_heard(struct sharing *s, const char *port, const struct hello *h)
{
	if (!hello_other_heard(&s->other, port, h, clock_now_ns()))
		return;
	why_say(&s->apart, 0, "%s at port %s is of cluster %s, this one of %s", h->node, port,
		h->cluster, core_config(s->core)->cluster.name);
	log_say(LOG_LEVEL_WARNING, "another cluster heard", "reason=\"%s\"", s->apart.text);
}

static void on_hello(void *context, uint32_t ifindex, const uint8_t *bytes, size_t length)
{
	struct sharing *s = context;
	const struct config_cluster *c = &core_config(s->core)->cluster;
	const char *port = core_port_name(s->core, ifindex);
	struct hello h;

	if (!*port || hello_parse(bytes, length, &h) < 0)
		return;
	if (strcmp(h.cluster, c->name) != 0) {
		other_heard(s, port, &h);
		return;
	}
	if (!strcmp(h.node, c->node))
		return; /* our own that came back */
	if (!hello_heard(&s->nears, port, &h, clock_now_ns()))
		return;
	if (s->logged_ns && clock_now_ns() - s->logged_ns < LOGGED_MS * 1000000ull)
		return; /* whoever makes up names fills no disk */
	s->logged_ns = clock_now_ns();
	log_say(LOG_LEVEL_INFO, "node heard", "port=%s node=%s at=%s", port, h.node, h.port);
}

static void say_hello(struct sharing *s)
{
	const struct config_cluster *c = &core_config(s->core)->cluster;
	uint8_t bytes[HELLO_BYTES];
	struct hello h;
	const struct dataplane_port *p;
	unsigned int count;

	memcpy(h.cluster, c->name, sizeof(h.cluster));
	memcpy(h.node, c->node, sizeof(h.node));
	for (p = core_ports(s->core, &count); count; p++, count--) {
		if (!p->ifindex)
			continue;
		snprintf(h.port, sizeof(h.port), "%s", p->name);
		hello_print(&h, bytes);
		hellos_send(s->hellos, p->ifindex, bytes, sizeof(bytes));
	}
}

/* --- our report ------------------------------------------------------------------------------ */

/* Where nobody answers, the words have times and endpoints in them, which are no news. */
static bool is_away(int error) { return error == -ENOTCONN || error == -ETIMEDOUT; }

static void on_written(void *context, int error, uint64_t revision, const char *why)
{
	struct sharing *s = context;

	s->writes = false;
	s->state.is_reported = error == 0;
	if (error == 0) {
		claim_written(&s->claim, revision);
		*s->trouble.text = '\0';
		return;
	}
	report_free(TAKE_PTR(s->report)); /* once more, a little later */
	if (error == -ESTALE) {
		claim_refused(&s->claim);
		return; /* followers are told why */
	}
	if (!*s->trouble.text || is_away(error) != is_away(s->error))
		log_say(LOG_LEVEL_WARNING, "report not stored", "reason=\"%s\"", why);
	snprintf(s->trouble.text, sizeof(s->trouble.text), "%s", why);
	s->error = error;
}

static int report_write(struct sharing *s, const struct report *r)
{
	_cleanup_(freep) char *text = report_print(r);
	char key[STORE_KEY_BYTES];
	const struct store_seen seen = { key, s->claim.revision };
	const struct store_change change = { key, text, true };
	int error;

	if (!text)
		return -ENOMEM;
	snprintf(key, sizeof(key), REPORTS "%s", r->node);
	error = store_write(s->store, &(struct store_write){ &seen, 1, &change, 1 }, on_written, s);
	if (error < 0)
		return error;
	s->writes = true;
	s->state.reports++;
	s->state.bytes += strlen(key) + strlen(text);
	return 0;
}

static bool is_due(const struct sharing *s, const struct report *now)
{
	if (!s->report)
		return true;
	switch (report_compare(s->report, now)) {
	case REPORT_MORE:
		return true;
	case REPORT_LOADS:
		return clock_now_ns() - s->reported_ns >= REPORT_LOADS_MS * 1000000ull;
	case REPORT_SAME:
		break;
	}
	return false;
}

static void tell(struct sharing *s)
{
	_cleanup_(report_freep) struct report *now = NULL;

	if (s->claim.is_others)
		return; /* it would take another agent's place */
	if (s->writes || clock_now_ns() - s->reported_ns < REPORT_EVERY_MS * 1000000ull)
		return;
	now = reporting_make(s->core, s->sampler, &s->nears);
	if (now) {
		memcpy(now->agent, s->claim.agent, sizeof(now->agent));
		now->steers = s->steers;
	}
	if (!now || (s->report_more && s->report_more(s->context, now) < 0) || !is_due(s, now))
		return;
	s->reported_ns = clock_now_ns();
	if (report_write(s, now) < 0)
		return;
	report_free(s->report);
	s->report = TAKE_PTR(now);
}

/* The lease has gone, and with it the report. */
static void on_lost(void *context)
{
	struct sharing *s = context;

	s->state.is_reported = false;
	report_free(TAKE_PTR(s->report));
	if (s->lost)
		s->lost(s->context);
}

void sharing_tell(struct sharing *s, void (*lost)(void *context),
		  int (*report_more)(void *context, struct report *report), void *context)
{
	s->lost = lost;
	s->report_more = report_more;
	s->context = context;
}

static int on_time(sd_event_source *timer, uint64_t us, void *data)
{
	const uint64_t now_ns = clock_now_ns();
	struct sharing *s = data;

	if (!s->hello_ns || now_ns - s->hello_ns >= HELLO_EVERY_MS * 1000000ull) {
		s->hello_ns = now_ns;
		say_hello(s);
	}
	hello_forget(&s->nears, now_ns);
	tell(s);
	sd_event_source_set_time_relative(timer, LOOK_MS * 1000ull);
	sd_event_source_set_enabled(timer, SD_EVENT_ONESHOT);
	return 0;
}

/* --- what all have told ---------------------------------------------------------------------- */

/* False: it is not understood, so nobody knows what has happened there. */
static bool report_take(struct sharing *s, const char *node, const char *text)
{
	struct report *r = NULL;
	struct why why = { "" };
	int error = report_parse(text, &r, &why);

	if (error == 0 && strcmp(r->node, node) != 0)
		error = why_say(&why, -EINVAL, "it says that it is of node %s", r->node);
	if (error < 0) {
		report_free(r);
		picture_drop(&s->picture, node);
		log_say(LOG_LEVEL_WARNING, "report not understood", "node=%s reason=\"%s\"", node,
			*why.text ? why.text : strerror(-error));
		return false;
	}
	if (picture_put(&s->picture, r) < 0)
		log_say(LOG_LEVEL_WARNING, "report not kept", "node=%s", node);
	return true;
}

/* Of this node. */
static void own_told(struct sharing *s, const struct report *r, uint64_t revision)
{
	if (!claim_told(&s->claim, r, revision, s->resets))
		return;
	*s->taken.text = '\0';
	if (s->claim.is_others) {
		claim_say(r, &s->taken);
		s->state.is_reported = false;
		report_free(TAKE_PTR(s->report)); /* when that has gone: at once */
		log_say(LOG_LEVEL_ERROR, "name taken", "reason=\"%s\"", s->taken.text);
	} else {
		log_say(LOG_LEVEL_INFO, "name free again", "node=%s",
			core_config(s->core)->cluster.node);
	}
}

static void on_changed(void *context, const struct store_item *item)
{
	const char *node = item->key + strlen(REPORTS);
	struct sharing *s = context;
	const struct report *r;
	bool understood;
	int at;

	understood = !item->value || report_take(s, node, item->value);
	if (!item->value)
		picture_drop(&s->picture, node);
	at = picture_place(&s->picture, node);
	r = at < 0 ? NULL : s->picture.report[at];
	if (!strcmp(node, core_config(s->core)->cluster.node))
		own_told(s, understood ? r : NULL, item->revision);
	if (!understood)
		return;
	s->events.resets = s->resets;
	events_report(&s->events, node, r, s->current, clock_unix_ms());
}

static void on_current(void *context, uint64_t revision)
{
	struct sharing *s = context;

	s->current = true;
	s->resets = false;
}

static void on_reset(void *context) { ((struct sharing *)context)->resets = true; }

struct store *sharing_store(struct sharing *s) { return s->store; }
const struct picture *sharing_picture(const struct sharing *s) { return &s->picture; }
bool sharing_has_name(const struct sharing *s) { return s->claim.is_ours; }
bool sharing_is_current(const struct sharing *s) { return s->current; }
void sharing_steers(struct sharing *s, bool steers) { s->steers = steers; }
const struct events *sharing_events(const struct sharing *s) { return &s->events; }
struct events *sharing_happens(struct sharing *s) { return &s->events; }

static void peer_add(const struct report *r, int family, struct config_peer *ret,
		     unsigned int *count)
{
	for (unsigned int i = 0; i < r->services && *count < CONFIG_PEERS_MAX; i++) {
		struct config_peer *p = &ret[*count];

		if (r->service[i].ss_family != family)
			continue;
		*p = (struct config_peer){ .address = r->service[i] };
		memcpy(p->name, r->node, sizeof(p->name));
		++*count;
		return;
	}
}

unsigned int sharing_peers(const struct sharing *s, const struct config *c, struct config_peer *ret)
{
	const char *own = c->cluster.node;
	unsigned int count = 0;

	if (c->peers.nodes || !s) {
		memcpy(ret, c->peers.node, c->peers.nodes * sizeof(*ret));
		return c->peers.nodes;
	}
	for (unsigned int i = 0; i < s->picture.nodes; i++) {
		const struct report *r = s->picture.report[i];

		if (!strcmp(r->node, own))
			continue;
		peer_add(r, AF_INET, ret, &count);
		peer_add(r, AF_INET6, ret, &count);
	}
	return count;
}

bool sharing_has_root(const struct sharing *s, const struct sockaddr_storage *address)
{
	const char *own = core_config(s->core)->cluster.node;

	for (unsigned int i = 0; i < s->picture.nodes; i++) {
		const struct report *r = s->picture.report[i];

		for (unsigned int k = 0; strcmp(r->node, own) != 0 && k < r->services; k++)
			if (endpoint_is_equal(&r->service[k], address))
				return true;
	}
	return false;
}

struct sharing_state sharing_state(const struct sharing *s)
{
	struct sharing_state state = s->state;

	state.kind = s->store->kind->name;
	state.heard_ns = store_heard_ns(s->store);
	state.trouble = s->trouble.text;
	state.taken = s->taken.text;
	state.apart = hello_other_is_there(&s->other, clock_now_ns()) ? s->apart.text : "";
	state.nears = s->nears.count;
	return state;
}

/* --- open and close -------------------------------------------------------------------------- */

static int password_read(const char *path, char ret[PASSWORD_BYTES], struct why *why)
{
	_cleanup_(freep) char *text = NULL;
	size_t length = 0;
	int r = file_read(path, PASSWORD_BYTES, &text, &length);

	if (r < 0)
		return why_say(why, r, "cluster.password: %s: %s", path, strerror(-r));
	length = strcspn(text, "\n");
	if (length && length < PASSWORD_BYTES)
		snprintf(ret, PASSWORD_BYTES, "%.*s", (int)length, text);
	explicit_bzero(text, strlen(text));
	if (!length || length >= PASSWORD_BYTES)
		return why_say(why, -EINVAL,
			       "cluster.password: %s: its first line has to be the password, of 1 "
			       "to %d bytes",
			       path, PASSWORD_BYTES - 1);
	return 0;
}

static const char *or_null(const char *text) { return *text ? text : NULL; }

static int etcd_open(sd_event *loop, const struct config_cluster *c, struct store **ret,
		     struct why *why)
{
	char urls[URLS_BYTES] = "", password[PASSWORD_BYTES] = "";
	char prefix[NAME_BYTES + 16];
	struct store_etcd_options o = { .endpoints = urls,
					.ca = or_null(c->ca),
					.certificate = or_null(c->certificate),
					.key = or_null(c->key),
					.user = or_null(c->user),
					.prefix = prefix };
	size_t used = 0;
	int r = 0;

	for (unsigned int i = 0; i < c->etcds; i++)
		used += snprintf(urls + used, sizeof(urls) - used, "%s%s", i ? " " : "",
				 c->etcd[i]);
	snprintf(prefix, sizeof(prefix), "/tally/%s/", c->name);
	if (*c->user) {
		r = password_read(c->password, password, why);
		o.password = password;
	}
	if (r == 0)
		r = store_open_etcd_module(loop, &o, ret, why);
	explicit_bzero(password, sizeof(password));
	return r;
}

static int file_check(const char *key, const char *path, struct why *why)
{
	if (*path && access(path, R_OK) < 0)
		return why_say(why, -errno, "cluster.%s: %s: %m", key, path);
	return 0;
}

int sharing_check(const struct config *c, struct why *why)
{
	char password[PASSWORD_BYTES];
	int r = 0;

	if (!*c->cluster.node || !c->cluster.etcds)
		return 0;
	r = file_check("ca", c->cluster.ca, why);
	if (r == 0)
		r = file_check("certificate", c->cluster.certificate, why);
	if (r == 0)
		r = file_check("key", c->cluster.key, why);
	if (r == 0 && *c->cluster.user)
		r = password_read(c->cluster.password, password, why);
	explicit_bzero(password, sizeof(password));
	return r;
}

int sharing_open(sd_event *loop, const struct core *core, const struct sampler *sampler,
		 struct sharing **ret, struct why *why)
{
	static const struct store_follower follower = { on_changed, on_current, NULL, on_reset };
	const struct config_cluster *c = &core_config(core)->cluster;
	struct store_follower mine = follower;
	struct sharing *s;
	int r;

	if (!*c->node)
		return 0;
	s = *ret = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->core = core;
	s->sampler = sampler;
	mine.context = s;
	r = look_machine(s->claim.agent, why);
	if (r < 0)
		return r;
	r = c->etcds ? etcd_open(loop, c, &s->store, why)
		     : store_open_local(loop, c->file, &s->store, why);
	if (r < 0)
		return r;
	s->store->lost = on_lost;
	s->store->lost_context = s;
	r = store_follow(s->store, REPORTS, &mine);
	if (r == 0)
		r = hellos_open(loop, on_hello, s, &s->hellos, why);
	if (r == 0)
		r = sd_event_add_time_relative(loop, &s->timer, CLOCK_MONOTONIC, 0, SLACK_US,
					       on_time, s);
	return r < 0 ? r : 0;
}

void sharing_close(struct sharing *s)
{
	if (!s)
		return;
	sd_event_source_disable_unref(s->timer);
	hellos_close(s->hellos);
	store_close(s->store);
	picture_close(&s->picture);
	events_close(&s->events);
	report_free(s->report);
	free(s);
}
