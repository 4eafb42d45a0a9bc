// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What has happened in the cluster: a table, the last thing at its end. */
#include <time.h>

#include "show.h"

/* It may have been days ago. */
static void cell_date(const json_t *row, const char *key, struct cell *ret)
{
	const time_t time_s = (time_t)field_number(row, key);
	struct tm broken;

	if (localtime_r(&time_s, &broken))
		strftime(ret->text, sizeof(ret->text), "%Y-%m-%d %H:%M:%S", &broken);
}

int show_events(const struct ctl *ctl, const json_t *result, FILE *out, struct why *why)
{
	static const struct column columns[] = {
		{ "TIME", "time_s", cell_date, TABLE_LEFT },
		{ "EVENT", "kind", cell_text, TABLE_LEFT },
		{ "JOB", "job", cell_text, TABLE_LEFT },
		{ "NODE", "node", cell_text, TABLE_LEFT },
		{ "BEFORE", "from", cell_text, TABLE_LEFT },
		{ "WHY", "why", cell_text, TABLE_ELASTIC },
	};

	fputs("cluster ", out);
	show_cluster(field(result, "cluster"), out);
	show_cluster_troubles(field(result, "cluster"), out);
	return table_print(out, &ctl->style, COLUMNS(columns), field(result, "events"), 0);
}
