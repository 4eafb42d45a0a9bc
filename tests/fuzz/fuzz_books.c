// SPDX-License-Identifier: GPL-2.0-only
/* sources: agent/edge/books_file.c agent/edge/replace.c agent/core/books.c */
/* sources: agent/core/books_runs.c agent/core/books_shares.c agent/core/job.c */
/* sources: agent/core/tenant.c agent/core/tenant_keys.c agent/core/keys_json.c */
/* sources: agent/core/document.c agent/core/tree.c agent/core/installation.c */
/* sources: agent/core/port_check.c */
/* libraries: -ljansson */
/* The state file may have been anybody's. What is taken is printed, and is the same when read
 * again. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/edge/books_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool is_right)
{
	if (!is_right)
		abort();
}

static void configure(struct books *b)
{
	static const struct tenant tenants[] = { { .name = "gold", .slots = 64 } };
	struct why why;

	books_init(b, 4096);
	must(books_configure(b, tenants, 1, true, &why) == 0);
}

/* What the agent does with books that it has read must not depend on what they say. */
static void books_use(struct books *b)
{
	static struct installation_role role;
	static struct installation g;
	static struct run file;
	struct why why;
	uint16_t window;

	for (unsigned int i = 0; i < TALLY_TENANTS_MAX; i++)
		must(books_quota(b, i) <= b->slots);
	for (unsigned int i = 0; i < b->jobs; i++) {
		struct job *j = b->job[i];

		must(books_job_find(b, j->name) == j);
		must(books_run_window(b, j, &window, &why) < 0 ||
		     (window && window <= j->window && !(window & (window - 1))));
		job_this_run(j, &file);
		job_role(j, &role);
		must(!j->run_window || installation_plan(&file, &role, &g, &why) == 0);
	}
	must(books_job_id(b, 0) > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct books books, again;
	_cleanup_(freep) char *text = NULL, *same = NULL;
	struct why why = { "" };
	int r;

	configure(&books);
	r = books_parse(&books, (const char *)data, size, "state", &why);
	if (r < 0) {
		must(strlen(why.text) > strlen("state: "));
		books_clear(&books);
		return 0;
	}
	books_use(&books);
	text = books_print(&books);
	configure(&again);
	must(text && books_parse(&again, text, strlen(text), "state", &why) == 0);
	same = books_print(&again);
	must(same && !strcmp(text, same));
	books_clear(&books);
	books_clear(&again);
	return 0;
}
