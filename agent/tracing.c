// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "agent/edge/log.h"
#include "common/ranks.h"
#include "tracing.h"

/* A connection that is told what becomes of packets. */
struct tracer {
	struct tracer *next;
	struct stream *stream;
	uint32_t every;
	uint64_t lost; /* events that it was told were lost */
	bool one_job;
	uint32_t job;
};

static const char *kind_name(uint8_t kind)
{
	static const char *const name[] = { [TALLY_CONTRIBUTION] = "contribution",
					    [TALLY_RESULT] = "result",
					    [TALLY_ASK] = "ask",
					    [TALLY_REPAIR] = "repair" };

	return kind >= TALLY_CONTRIBUTION && kind <= TALLY_REPAIR ? name[kind] : "";
}

static char *event_line(const struct tracing *g, const struct tally_event *e)
{
	const struct job *job = books_job_numbered(core_books(g->core), e->job);
	char ranks[RANKS_BYTES];
	char *line = NULL;
	json_t *j;

	ranks_print(&e->set, ranks, sizeof(ranks));
	j = json_pack("{sI ss sI ss si sI ss ss ss si}", "time_ns", (json_int_t)e->time_ns,
		      "outcome", tally_outcome_name(e->outcome), "job", (json_int_t)e->job, "name",
		      job ? job->name : "", "epoch", e->epoch, "seq", (json_int_t)e->seq, "ranks",
		      ranks, "port", core_port_name(g->core, e->ifindex), "kind",
		      kind_name(e->kind), "bytes", e->bytes);
	if (j)
		line = json_dumps(j, JSON_COMPACT);
	json_decref(j);
	return line;
}

static void on_event(void *context, const struct tally_event *e)
{
	struct tracing *g = context;
	_cleanup_(freep) char *line = NULL;

	for (struct tracer *t = g->tracers; t; t = t->next) {
		if (t->one_job && t->job != e->job)
			continue;
		if (!line)
			line = event_line(g, e);
		if (!line)
			return;
		stream_send(t->stream, line, strlen(line));
		stream_send(t->stream, "\n", 1);
	}
}

static int on_trace(sd_event_source *source, int fd, uint32_t events, void *data)
{
	struct tracing *g = data;
	uint64_t lost;

	dataplane_trace_read(g->trace, on_event, g);
	lost = dataplane_trace_lost(g->trace);
	for (struct tracer *t = g->tracers; t; t = t->next) {
		char text[64];

		if (lost == t->lost)
			continue;
		snprintf(text, sizeof(text), "{\"lost\": %llu}\n",
			 (unsigned long long)(lost - t->lost));
		t->lost = lost;
		stream_send(t->stream, text, strlen(text));
	}
	return 0;
}

/* The data plane samples as often as the most curious wants it, and not at all for nobody. */
static int trace_adjust(struct tracing *g, struct why *why)
{
	uint32_t every = g->tracers ? UINT32_MAX : 0;
	bool one_job = g->tracers;

	for (struct tracer *t = g->tracers; t; t = t->next) {
		every = t->every < every ? t->every : every;
		one_job = one_job && t->one_job && t->job == g->tracers->job;
	}
	return dataplane_trace_set(g->node->dataplane, every, one_job,
				   one_job ? g->tracers->job : 0, why);
}

static int trace_open(struct tracing *g, struct why *why)
{
	int r;

	if (g->trace)
		return 0;
	r = dataplane_trace_open(g->node->dataplane, &g->trace, why);
	if (r < 0)
		return r;
	return sd_event_add_io(g->loop, &g->io, dataplane_trace_fd(g->trace), EPOLLIN, on_trace, g);
}

static void trace_close(struct tracing *g)
{
	g->io = sd_event_source_disable_unref(g->io);
	dataplane_trace_close(g->trace);
	g->trace = NULL;
}

void tracing_end(struct tracing *g, struct stream *s)
{
	struct why why = { "" };

	for (struct tracer **at = &g->tracers; *at; at = &(*at)->next) {
		struct tracer *t = *at;

		if (t->stream != s)
			continue;
		*at = t->next;
		free(t);
		if (trace_adjust(g, &why) < 0)
			log_say(LOG_LEVEL_ERROR, "cannot switch tracing off", "reason=\"%s\"",
				why.text);
		if (!g->tracers)
			trace_close(g);
		return;
	}
}

int tracing_begin(struct tracing *g, struct stream *s, const struct request_filter *q,
		  struct why *why)
{
	const struct job *j = *q->job ? books_job_find(core_books(g->core), q->job) : NULL;
	struct tracer *t;
	int r;

	if (*q->job && !j)
		return why_say(why, -ENOENT, "there is no job %s (tallyctl job list)", q->job);
	r = trace_open(g, why);
	if (r < 0)
		return r;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	*t = (struct tracer){
		.next = g->tracers,
		.stream = s,
		.every = q->every ? q->every : 1,
		.lost = dataplane_trace_lost(g->trace),
		.one_job = j,
		.job = j ? j->id : 0,
	};
	g->tracers = t;
	r = trace_adjust(g, why);
	if (r < 0) {
		tracing_end(g, s);
		return r;
	}
	stream_context_set(s, t);
	stream_keep(s);
	return 0;
}
