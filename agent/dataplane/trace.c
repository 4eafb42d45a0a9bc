// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What running programs tell of single packets. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "dataplane.h"
#include "maps.h"

struct dataplane_trace {
	int events; /* maps */
	int tracers;
	struct ring_buffer *ring;
	uint64_t lost_before; /* before it was opened */
	void (*each)(void *context, const struct tally_event *event);
	void *context;
};

int dataplane_trace_set(struct dataplane *d, uint32_t every, bool one_job, uint32_t job,
			struct why *why)
{
	const struct tally_settings settings = { .trace_every = every,
						 .trace_one_job = one_job,
						 .trace_job = job };
	const uint32_t key = 0;
	int r = bpf_map_update_elem(d->fd[PIN_SETTINGS], &key, &settings, BPF_ANY);

	return r < 0 ? map_error(why, r, "settings") : 0;
}

static uint64_t lost_count(int tracers)
{
	const unsigned int cpus = dataplane_cpus();
	_cleanup_(freep) struct tally_tracer *of_cpu = calloc(cpus, sizeof(*of_cpu));
	const uint32_t key = 0;
	uint64_t lost = 0;

	_Static_assert(sizeof(*of_cpu) % 8 == 0, "the kernel pads per-CPU values to 8 bytes");
	if (!of_cpu || bpf_map_lookup_elem(tracers, &key, of_cpu) < 0)
		return 0;
	for (unsigned int cpu = 0; cpu < cpus; cpu++)
		lost += of_cpu[cpu].lost;
	return lost;
}

static int event_take(void *context, void *data, size_t size)
{
	struct dataplane_trace *t = context;

	if (t->each && size >= sizeof(struct tally_event))
		t->each(t->context, data);
	return 0;
}

void dataplane_trace_close(struct dataplane_trace *t)
{
	if (!t)
		return;
	ring_buffer__free(t->ring);
	closep(&t->events);
	closep(&t->tracers);
	free(t);
}

/* The file descriptors are its own: it outlives the struct dataplane that it came from. */
int dataplane_trace_open(struct dataplane *d, struct dataplane_trace **ret, struct why *why)
{
	_cleanup_(dataplane_trace_closep) struct dataplane_trace *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->events = fcntl(d->fd[PIN_TRACE], F_DUPFD_CLOEXEC, 0);
	t->tracers = fcntl(d->fd[PIN_TRACERS], F_DUPFD_CLOEXEC, 0);
	if (t->events < 0 || t->tracers < 0)
		return why_say(why, -errno, "trace: %m");
	t->ring = ring_buffer__new(t->events, event_take, t, NULL);
	if (!t->ring)
		return map_error(why, -errno, "trace");
	ring_buffer__consume(t->ring); /* what nobody has read of an earlier trace */
	t->lost_before = lost_count(t->tracers);
	*ret = TAKE_PTR(t);
	return 0;
}

int dataplane_trace_fd(const struct dataplane_trace *t) { return ring_buffer__epoll_fd(t->ring); }

int dataplane_trace_read(struct dataplane_trace *t,
			 void (*each)(void *context, const struct tally_event *event),
			 void *context)
{
	int r;

	t->each = each;
	t->context = context;
	r = ring_buffer__consume(t->ring);
	t->each = NULL;
	return r;
}

uint64_t dataplane_trace_lost(const struct dataplane_trace *t)
{
	return lost_count(t->tracers) - t->lost_before;
}
