// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* tallyctl doctor: asks tallyd, if it runs, and the kernel, and runs two tables of checks. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "agent/dataplane/dataplane.h"
#include "common/clock.h"
#include "doctor.h"
#include "table.h"

enum {
	DAEMON_TIMEOUT_MS = 3000,
	LINE_BYTES = 64,
};

int doctor_read_line(const char *path, char *text, size_t size)
{
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

	if (n < 0)
		return -errno;
	text[n] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return 0;
}

long doctor_read_number(const char *path, long otherwise)
{
	char text[LINE_BYTES], *end;
	long number;

	if (doctor_read_line(path, text, sizeof(text)) < 0)
		return otherwise;
	number = strtol(text, &end, 10);
	return end == text ? otherwise : number;
}

/* --- the daemon ------------------------------------------------------------------------------ */

static int daemon_ask(struct connection *c, const char *verb, json_t **ret, struct why *why)
{
	_cleanup_(json_decrefp) json_t *request = json_pack("{ss}", "do", verb);
	int r = connection_ask(c, request, ret, why);

	if (r == 0)
		ctl_disarm(*ret);
	return r;
}

/* The process that listens, also if it does not answer. */
static pid_t daemon_find(const struct connection *c)
{
	struct ucred peer = { 0 };
	socklen_t length = sizeof(peer);

	getsockopt(connection_fd(c), SOL_SOCKET, SO_PEERCRED, &peer, &length);
	return peer.pid;
}

static void daemon_read(struct doctor *d, struct why *why)
{
	_cleanup_(connection_closep) struct connection *c = NULL;
	uint64_t began_ns = clock_now_ns();
	int r = connection_open(d->socket, DAEMON_TIMEOUT_MS, &c, why);

	d->no_daemon = why->text;
	if (r == 0) {
		d->daemon = daemon_find(c);
		r = daemon_ask(c, "status", &d->status, why);
	}
	d->daemon_error = r;
	d->answer_ms = (double)(clock_now_ns() - began_ns) / 1e6;
	if (r == 0)
		r = daemon_ask(c, "job-list", &d->jobs, why);
	if (r == 0)
		r = daemon_ask(c, "tenant-list", &d->tenants, why);
	if (r == 0)
		r = daemon_ask(c, "top", &d->top, why);
	if (r == 0)
		d->connection = TAKE_PTR(c);
}

/* --- ports ----------------------------------------------------------------------------------- */

static void checks_run(struct doctor *d, const struct doctor_check *check,
		       const struct doctor_port *p)
{
	for (; check->name; check++) {
		d->findings->check = check->name;
		check->run(d, p);
	}
}

static void port_examine(struct doctor *d, const char *name)
{
	_cleanup_(netlink_closep) struct netlink *n = NULL;
	struct doctor_port p = { .status = row_named(field(d->status, "ports"), name) };
	struct why why = { "" };
	int r = netlink_open(&n);

	d->findings->subject = name;
	d->findings->check = "port";
	if (r == 0)
		r = netlink_port_read(n, name, &p.port, &why);
	if (r == 0)
		r = netlink_facts_read(name, p.port.ifindex, &p.facts, &why);
	if (r < 0) {
		found_fail(d, "%s", *why.text ? why.text : strerror(-r));
		return;
	}
	p.native = p.status ? !strcmp(field_text(p.status, "mode"), "native")
			    : dataplane_is_native(p.port.ifindex) || p.facts.native != NETLINK_NO;
	p.tc = p.status && !strcmp(field_text(p.status, "mode"), "tc");
	checks_run(d, doctor_port_checks, &p);
}

static void ports_examine(struct doctor *d, const struct ctl *ctl)
{
	const json_t *ports = field(d->status, "ports"), *port;
	size_t i;

	if (!d->ports) {
		d->findings->subject = "";
		d->findings->check = "ports";
		found_unknown(d, "tallyd does not answer, so name the ports to check");
		found_mend(d, "tallyctl doctor eth1 eth2");
	}
	for (int n = 0; n < ctl->count; n++)
		port_examine(d, ctl->arguments[n]);
	if (!ctl->count)
		json_array_foreach(ports, i, port) port_examine(d, field_text(port, "name"));
}

static void doctor_close(struct doctor *d)
{
	connection_close(d->connection);
	json_decref(d->status);
	json_decref(d->jobs);
	json_decref(d->tenants);
	json_decref(d->top);
	free(d->neighbours);
}

int doctor(const struct ctl *ctl, struct why *why)
{
	_cleanup_(freep) struct findings *findings = calloc(1, sizeof(*findings));
	_cleanup_(doctor_close) struct doctor d = { .socket = ctl->socket,
						    .root = geteuid() == 0,
						    .cpus = dataplane_cpus(),
						    .findings = findings };
	struct why no_daemon = { "" };

	if (!findings)
		return -ENOMEM;
	daemon_read(&d, &no_daemon);
	ctl_disarm_text(no_daemon.text);
	d.ports = ctl->count ? (unsigned int)ctl->count : json_array_size(field(d.status, "ports"));
	checks_run(&d, doctor_node_checks, NULL);
	checks_run(&d, doctor_daemon_checks, NULL);
	ports_examine(&d, ctl);
	if (ctl->json)
		findings_dump(findings);
	else
		findings_print(stdout, &ctl->style, findings);
	return findings->of_level[FINDING_FAIL] > 0;
}
