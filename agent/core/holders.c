// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <stdarg.h>
#include <stdio.h>

#include "holders.h"

enum {
	NAMED_MAX = 4,
};

struct text {
	char *at;
	size_t left;
};

__attribute__((format(printf, 2, 3))) static void add(struct text *t, const char *format, ...)
{
	va_list values;
	size_t n;
	int r;

	va_start(values, format);
	r = vsnprintf(t->at, t->left, format, values);
	va_end(values);
	n = r < 0 ? 0 : (size_t)r;
	n = n < t->left ? n : t->left - 1;
	t->at += n;
	t->left -= n;
}

void holders_print(const struct books *b, unsigned int tenant, char *text, size_t size)
{
	struct text t = { text, size };
	uint32_t others = 0, more = 0;
	unsigned int named = 0, jobs = 0;

	add(&t, "in use:");
	for (unsigned int i = 0; i < b->jobs; i++) {
		const struct job *j = b->job[i];
		uint32_t slots = job_slots(j);

		if (slots && j->tenant != tenant)
			others += slots;
		else if (slots && named++ < NAMED_MAX)
			add(&t, " %u by %s,", slots, j->name);
		else if (slots)
			more += slots, jobs++;
	}
	if (jobs)
		add(&t, " %u by %u other jobs of tenant %s,", more, jobs,
		    b->tenant[tenant].is.name);
	if (others)
		add(&t, " %u by other tenants,", others);
	add(&t, "%s of %u", named || others ? "" : " none", b->slots);
}

void holders_explain(const struct books *b, const struct job *j, struct why *ret)
{
	char in_use[256];

	*ret->text = '\0';
	if (!j->run_window || job_is_suspended(j) || job_slots(j))
		return;
	holders_print(b, j->tenant, in_use, sizeof(in_use));
	why_say(ret, 0, "no slots of its own: it wants %u, and tenant %s has a quota of %u; %s",
		2u * j->window, j->tenant_name, books_quota(b, j->tenant), in_use);
}
