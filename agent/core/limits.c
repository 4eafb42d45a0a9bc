// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "limits.h"

enum {
	BURSTS_PER_SECOND = 10, /* a tenth of a second's worth may come at once */
	BURST_PACKETS = 64, /* but at least so many packets */
	FRAME_BYTES_MAX = DATAPLANE_XDP_MTU + 18, /* with Ethernet's header and a tag */
};

static struct tally_bucket bucket_make(uint64_t rate, uint64_t burst_min,
				       const struct tally_bucket *before)
{
	uint64_t burst = rate / BURSTS_PER_SECOND;

	if (burst < burst_min)
		burst = burst_min;
	if (before->rate == rate && before->burst == burst)
		return *before;
	return (struct tally_bucket){ .rate = rate, .burst = burst, .level = burst };
}

void limits_put(const struct dataplane_limits *l, struct tally_tenant *t)
{
	t->packets = bucket_make(l->packets_per_second, BURST_PACKETS, &t->packets);
	t->bytes = bucket_make(l->bytes_per_second, BURST_PACKETS * FRAME_BYTES_MAX, &t->bytes);
	t->limited = l->packets_per_second || l->bytes_per_second;
	t->priority = l->priority;
}
