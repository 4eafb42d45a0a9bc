// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* doctor's checks of what tallyd was told to do: by its configuration, and by operators. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "agent/core/config.h"
#include "agent/dataplane/dataplane.h"
#include "common/address.h"
#include "doctor.h"
#include "table.h"

/* Of the daemon that answers, or else of one that is installed as usual. */
static const char *config_path(const struct doctor *d)
{
	const char *path = field_text(d->status, "config");

	return *path ? path : CONFIG_FILE;
}

/* What the next tallyd, or the next reload, will read. */
static void check_configuration(struct doctor *d, const struct doctor_port *p)
{
	_cleanup_(config_freep) struct config *config = NULL;
	const char *path = config_path(d);
	struct why why = { "" };
	int r;

	if (*path != '/' || (!*field_text(d->status, "config") && access(path, F_OK) < 0))
		return;
	r = config_read(path, &config, &why);
	if (r == -EACCES && !d->root)
		found_unknown(d, "%s", why.text);
	else if (r < 0)
		found_warn(d,
			   "%s. The next start and the next reload fail; tallyd goes on meanwhile",
			   why.text);
}

static void check_cordon(struct doctor *d, const struct doctor_port *p)
{
	if (!json_is_true(field(d->status, "cordoned")))
		return;
	found_warn(d, "the node is cordoned: no run begins");
	found_mend(d, "tallyctl uncordon");
}

static void check_software(struct doctor *d, const struct doctor_port *p)
{
	const json_t *job;
	size_t i;

	json_array_foreach(d->jobs, i, job)
	{
		const char *tenant = field_text(job, "tenant");

		if (json_is_true(field(job, "borrows")))
			found_warn(d, "job %s has no slots of its own: %s", field_text(job, "name"),
				   field_text(job, "no_slots"));
		else if (json_is_true(field(job, "in_software")))
			found_warn(d,
				   "job %s is summed in software, and slowly: there were no slots "
				   "for it. Its next run gets slots if tenant %s has more "
				   "(tallyctl quota %s)",
				   field_text(job, "name"), tenant, tenant);
	}
}

static void check_loopback(struct doctor *d, const struct doctor_port *p)
{
	const json_t *service;
	size_t i;

	json_array_foreach(field(d->status, "services"), i, service)
	{
		const char *text = json_string_value(service);

		if (text && (!strncmp(text, "127.", 4) || !strcmp(text, "::1")))
			found_warn(d,
				   "service address %s is this machine's own: workers on other "
				   "machines cannot send to it. Name another one at service: in %s",
				   text, config_path(d));
	}
}

/* "192.0.2.1:9464", "[::]:9464" */
static void check_metrics(struct doctor *d, const struct doctor_port *p)
{
	char text[ADDRESS_BYTES];
	char *address = text, *end;

	snprintf(text, sizeof(text), "%s", field_text(d->status, "metrics"));
	end = strrchr(text, ':');
	if (!end)
		return;
	*end = '\0';
	if (*text == '[') {
		address++;
		address[strcspn(address, "]")] = '\0';
	}
	if (strcmp(address, "0.0.0.0") != 0 && strcmp(address, "::") != 0 &&
	    !doctor_is_own_address(address))
		found_fail(d,
			   "metrics: %s is not an address of this machine: nobody can read them. "
			   "Name another one at metrics: in %s",
			   address, config_path(d));
}

/* Unless the configuration says that the port is shared. */
bool doctor_port_is_taken(struct doctor *d, const struct doctor_port *p)
{
	_cleanup_(config_freep) struct config *config = NULL;
	const uint32_t other = dataplane_other_program(p->port.ifindex);
	const struct config_port *wanted = NULL;
	struct why ignored;

	if (!other)
		return false;
	config_read(config_path(d), &config, &ignored);
	for (unsigned int i = 0; config && i < config->ports; i++)
		if (!strcmp(config->port[i].name, p->port.name))
			wanted = &config->port[i];
	if (wanted && (wanted->share || wanted->mode == DATAPLANE_TC))
		return false;
	finding_add(
		d->findings, config && !wanted ? FINDING_WARN : FINDING_FAIL,
		"XDP program %u is there, and not Tally's (bpftool prog show id %u): tallyd does "
		"not start with this port. Take the program away, or share the port: {name: %s, "
		"share: true} at ports: in %s",
		other, other, p->port.name, config_path(d));
	return true;
}

const struct doctor_check doctor_daemon_checks[] = {
	{ "config", check_configuration }, { "cordon", check_cordon },
	{ "software", check_software },	   { "service", check_loopback },
	{ "metrics", check_metrics },	   { NULL, NULL },
};
