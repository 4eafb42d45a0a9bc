// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* doctor's check of the cluster: the store, this node's name, and who is heard at its ports. */
#include <string.h>

#include "doctor.h"
#include "table.h"

enum {
	SILENT_S = 10, /* as long as tallyd waits until it is a trouble */
};

bool doctor_is_of_cluster(const struct doctor *d, const char *trouble)
{
	const json_t *troubles = field(field(d->status, "cluster"), "troubles"), *one;
	size_t i;

	json_array_foreach(troubles, i,
			   one) if (!strcmp(json_string_value(one), trouble)) return true;
	return false;
}

/* What to do about a store that is as these say. */
static const char *advice(const json_t *cluster)
{
	const json_t *heard = field(cluster, "heard_s");

	if (!json_is_number(heard) || json_number_value(heard) >= SILENT_S)
		return "Is etcd there, and do cluster.etcd, ca and the firewall let this node "
		       "reach it? What runs goes on";
	return "Do cluster.user and its password hold at etcd, and may that user write the keys "
	       "of this cluster.name (docs/cluster.md)?";
}

static void troubles_say(struct doctor *d, const json_t *cluster)
{
	const char *apart = field_text(cluster, "apart");
	const json_t *trouble;
	size_t i;

	json_array_foreach(field(cluster, "troubles"), i, trouble)
	{
		const char *text = json_string_value(trouble);

		if (!strcmp(text, apart))
			found_warn(d,
				   "%s: nodes of one cluster have the same cluster.name. Give all "
				   "the same one, and restart tallyd",
				   text);
		else if (!strncmp(text, "the store ", strlen("the store ")))
			found_fail(d, "%s. %s", text, advice(cluster));
		else
			found_fail(d, "%s, and restart tallyd", text);
	}
}

void doctor_cluster_check(struct doctor *d, const struct doctor_port *p)
{
	const json_t *cluster = field(d->status, "cluster");

	if (!json_is_object(cluster))
		return;
	troubles_say(d, cluster);
	if (json_array_size(field(cluster, "troubles")))
		return;
	if (!field_number(cluster, "nears") && field_number(cluster, "nodes") > 1)
		found_warn(d,
			   "the cluster has %.0f nodes, and none is heard at a port of this "
			   "one: open UDP port 31250 on the links (tallyctl topology)",
			   field_number(cluster, "nodes"));
	else
		found_ok(d, "cluster %s of %.0f nodes; %.0f are heard at ports",
			 field_text(cluster, "name"), field_number(cluster, "nodes"),
			 field_number(cluster, "nears"));
}
