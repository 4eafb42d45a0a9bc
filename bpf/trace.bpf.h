/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One packet in so many becomes an event for user space: the packet as it came in, and its outcome.
 * It is read at the beginning, since a reply overwrites the frame. trace_choose() and trace_tell()
 * are global functions (see offsets_find); neither is called while nobody traces.
 */
#ifndef TALLY_TRACE_BPF_H
#define TALLY_TRACE_BPF_H

#include "maps.bpf.h"
#include "parse.bpf.h"

static __always_inline struct tally_settings *trace_settings(void)
{
	__u32 key = 0;
	struct tally_settings *s = bpf_map_lookup_elem(&settings, &key);

	return s && s->trace_every ? s : NULL;
}

static __always_inline void event_read(struct tally_event *e, const struct tally_header *h,
				       const void *end)
{
	const struct tally_more *more = (const void *)(h + 1);

	e->job = tally_le32_get(h->job);
	e->seq = tally_le32_get(h->seq);
	e->epoch = tally_le16_get(h->epoch);
	e->kind = h->kind;
	e->set.word[0] = tally_le64_get(h->set);
	for (int i = 1;
	     h->flags & TALLY_LARGE && (const void *)(more + 1) <= end && i < TALLY_SET_WORDS; i++)
		e->set.word[i] = tally_le64_get(more->set[i - 1]);
}

/* Does this packet become an event? If so, keeps its header. */
__noinline int trace_choose(struct hook_context *ctx)
{
	struct offsets offsets = offsets_unpack(offsets_find(ctx));
	const void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	const struct tally_settings *s = trace_settings();
	__u8 udp = offsets.udp; /* the verifier forgets bounds of what lies on the stack */
	const struct tally_header *h = data + udp + sizeof(struct udphdr);
	const __u8 *magic = (const void *)h;
	__u32 key = 0;
	struct tally_tracer *t = bpf_map_lookup_elem(&tracers, &key);

	if (!t)
		return 0;
	t->chosen = 0;
	if (!s || !offsets.found || (const void *)(magic + 1) > end || *magic != TALLY_MAGIC)
		return 0;
	t->event = (struct tally_event){ .time_ns = bpf_ktime_get_ns(),
					 .ifindex = hook_port(ctx),
					 .bytes = hook_bytes(ctx, data, end) };
	if ((const void *)(h + 1) <= end && h->version == TALLY_VERSION)
		event_read(&t->event, h, end);
	if (s->trace_one_job && t->event.job != s->trace_job)
		return 0;
	if (++t->passed < s->trace_every)
		return 0;
	t->passed = 0;
	t->chosen = 1;
	return 0;
}

__noinline int trace_tell(__u32 outcome)
{
	__u32 key = 0;
	struct tally_tracer *t = bpf_map_lookup_elem(&tracers, &key);

	if (!t || !t->chosen)
		return 0;
	t->chosen = 0;
	t->event.outcome = outcome;
	if (bpf_ringbuf_output(&trace, &t->event, sizeof(t->event), 0))
		t->lost++;
	return 0;
}

/*
 * Does anybody trace? Kept where the verifier forgets the answer: otherwise it walks all that
 * follows once for each. (A byte of the stack is forgotten, but not that a byte is 0.)
 */
struct tracing {
	volatile __u8 kept[8];
};

enum {
	TRACING_NO = 1,
	TRACING_YES = 2
};

/* Before the frame is changed. */
static __always_inline void trace_begin(struct hook_context *ctx, struct tracing *ret)
{
	const struct tally_settings *s = trace_settings();

	ret->kept[1] = s ? TRACING_YES : TRACING_NO;
	if (s)
		trace_choose(ctx);
}

static __always_inline void trace_end(const struct tracing *t, enum tally_outcome outcome)
{
	if (t->kept[1] == TRACING_YES)
		trace_tell(outcome);
}

#endif
