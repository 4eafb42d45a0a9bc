// SPDX-License-Identifier: GPL-2.0-only
/* sources: agent/cluster/hello.c agent/cluster/report.c agent/cluster/wanted.c */
/* sources: agent/cluster/shared.c agent/core/keys_json.c agent/core/tenant_keys.c */
/* sources: agent/core/tenant.c agent/cluster/picture.c agent/cluster/drawing.c */
/* sources: agent/cluster/ways.c agent/cluster/wanted_ways.c */
/* libraries: -ljansson */
/* Who is on a link may say anything in a hello, and who may write to the store anything there. What
 * is taken is printed, and is the same when read again. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/cluster/hello.h"
#include "agent/cluster/report.h"
#include "agent/cluster/shared.h"
#include "agent/cluster/ways.h"
#include "common/owned.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void hello(const uint8_t *data, size_t size)
{
	uint8_t bytes[HELLO_BYTES];
	struct hello h, again;

	if (hello_parse(data, size, &h) < 0)
		return;
	hello_print(&h, bytes);
	must(hello_parse(bytes, sizeof(bytes), &again) == 0);
	must(!strcmp(h.node, again.node) && !strcmp(h.port, again.port));
}

/* What it says of the network can be drawn. */
static void draw(struct report *r)
{
	_cleanup_(picture_close) struct picture p = { 0 };
	_cleanup_(drawing_close) struct drawing d = { 0 };
	_cleanup_(freep) struct way *way = NULL;
	unsigned int ways = 0;

	must(picture_put(&p, r) == 0 && drawing_make(&p, &d) == 0);
	must(ways_make(&p, &d, &way, &ways) == 0);
	for (unsigned int i = 0; i < ways; i++)
		must(way[i].to < d.machines && d.cable[way[i].cable].end[way[i].end] == way[i].at);
}

static void report(const char *text)
{
	_cleanup_(report_freep) struct report *r = NULL, *again = NULL;
	_cleanup_(freep) char *printed = NULL;
	struct why why;

	if (report_parse(text, &r, &why) < 0)
		return;
	printed = report_print(r);
	must(printed && report_parse(printed, &again, &why) == 0);
	must(report_compare(r, again) == REPORT_SAME);
	draw(TAKE_PTR(again));
}

static void tenant(const struct wanted_tenant *t)
{
	_cleanup_(freep) char *printed = wanted_print(&wanted_tenant_keys, t), *twice = NULL;
	struct wanted_tenant again = { .places = 0 };
	struct tenant here;
	struct why why;

	must(printed && wanted_parse(&wanted_tenant_keys, printed, &again, &why) == 0);
	twice = wanted_print(&wanted_tenant_keys, &again);
	must(twice && !strcmp(printed, twice));
	must(again.is.slots == t->is.slots && !strcmp(again.is.group, t->is.group));
	must(again.places == t->places && t->places <= TENANT_PLACES_MAX);
	here = wanted_tenant_at(t, t->places ? t->place[0].node : "n0");
	must(here.gated == (t->places > 0) && !here.points == !t->places);
	free(again.place);
}

/* Key and value, a line each. */
static void shared(char *text)
{
	_cleanup_(shared_close) struct shared s = { 0 };
	struct why why;
	char *rest = text, *key;

	for (uint64_t revision = 1; (key = strsep(&rest, "\n")); revision++) {
		char *value = strsep(&rest, "\n");

		shared_take(&s, key, value && *value ? value : NULL, revision, &why);
	}
	must(s.tenants <= SHARED_TENANTS_MAX);
	for (unsigned int i = 0; i < s.tenants; i++) {
		must(name_is_valid(s.tenant[i].wanted.is.name) && s.tenant[i].revision);
		must(s.tenant[i].wanted.is.clustered && !s.tenant[i].wanted.is.points);
		must(!i || strcmp(s.tenant[i - 1].wanted.is.name, s.tenant[i].wanted.is.name) < 0);
		tenant(&s.tenant[i].wanted);
	}
	for (unsigned int i = 0; i < s.jobs; i++) {
		must(name_is_valid(s.job[i]->name));
		must(!i || strcmp(s.job[i - 1]->name, s.job[i]->name) < 0);
		must(!s.job[i]->revision || !strcmp(s.job[i]->name, s.job[i]->job.name));
		must(!shared_is_placed(s.job[i]) || name_is_valid(s.job[i]->place.root));
		must(!s.job[i]->ways || wanted_ways_check(s.job[i]->ways, &why) == 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(freep) char *text = malloc(size + 1);

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	hello(data, size);
	report(text);
	shared(text);
	return 0;
}
