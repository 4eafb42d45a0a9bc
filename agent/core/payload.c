// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "payload.h"

#include <errno.h>

#include "port_check.h"

enum {
	MTU_ORDINARY = 1500, /* of who does not say it */
};

static uint32_t smaller(uint32_t a, uint32_t b) { return a < b ? a : b; }

/* Of the ways from the workers, as these say. */
static uint32_t mtu_said(const struct job *j)
{
	uint32_t mtu = UINT16_MAX;

	for (unsigned int rank = 0; rank < j->workers; rank++)
		mtu = smaller(mtu, j->rank[rank].mtu ? j->rank[rank].mtu : MTU_ORDINARY);
	return mtu;
}

/* Of the ways to them, as the next hops were when they joined, and `unknown` where there was none.
 */
static uint32_t mtu_back(const struct job *j, uint32_t unknown)
{
	uint32_t mtu = UINT16_MAX;

	for (unsigned int rank = 0; rank < j->workers; rank++)
		mtu = smaller(mtu, j->rank[rank].way.port ? j->rank[rank].way.mtu : unknown);
	return mtu;
}

static uint32_t mtu_needed(const struct job *j, uint16_t payload_bytes)
{
	return port_mtu_needed(payload_bytes, j->service.ss_family == AF_INET6, j->workers);
}

static uint16_t payload_of(const struct job *j, uint32_t mtu)
{
	const sa_family_t family = j->service.ss_family;
	const uint32_t least = run_payload_default(family, j->workers);
	const uint32_t most = port_payload_max(mtu, family == AF_INET6, j->workers);

	return (uint16_t)(most > least ? most : least);
}

/* 0: they do not all come from one. */
static uint16_t payload_carried(const struct job *j)
{
	for (unsigned int rank = 1; rank < j->workers; rank++)
		if (j->rank[rank].payload_bytes != j->rank[0].payload_bytes)
			return 0;
	return j->rank[0].payload_bytes;
}

int payload_find(const struct job *j, uint16_t *ret, struct why *why)
{
	const uint16_t carried = payload_carried(j);
	const uint32_t back = mtu_back(j, UINT16_MAX);

	if (!j->fits) {
		*ret = j->payload_bytes;
		return 0;
	}
	if (carried && mtu_needed(j, carried) > back)
		return why_say(why, -EMSGSIZE,
			       "payload %u: the run that the workers are in makes packets of %u "
			       "bytes, and a port that leads to them has an MTU of %u: the run "
			       "cannot go on here",
			       carried, mtu_needed(j, carried), back);
	*ret = carried ? carried : payload_of(j, smaller(mtu_said(j), mtu_back(j, MTU_ORDINARY)));
	return 0;
}

void payload_follow_hops(struct job *j, struct installation *g)
{
	uint32_t mtu = mtu_said(j);

	if (!j->fits || payload_carried(j))
		return;
	for (unsigned int i = 0; i < g->copies; i++)
		mtu = smaller(mtu, g->copy[i].hop.mtu);
	j->begin_payload = payload_of(j, mtu);
	g->job.blocks_max = (uint8_t)(j->begin_payload / TALLY_BLOCK_BYTES);
}

int payload_check(const struct job *j, uint16_t rank, struct why *why)
{
	const struct job_rank *r = &j->rank[rank];
	const uint32_t needed = mtu_needed(j, r->payload_bytes);

	if (!r->payload_bytes || !r->mtu || needed <= r->mtu)
		return 0;
	return why_say(why, -EMSGSIZE,
		       "payload %u: the run that rank %u is in makes packets of %u bytes, and its "
		       "way to this node carries %u: the run cannot go on here",
		       r->payload_bytes, rank, needed, r->mtu);
}

void payload_unfit(struct job *j, const struct why *why, uint64_t now_ns)
{
	bool is_in_run = false;

	for (unsigned int rank = 0; rank < j->workers; rank++)
		is_in_run |= j->rank[rank].payload_bytes != 0;
	if (!is_in_run)
		return;
	j->unfit = *why;
	j->unfit_ns = now_ns;
}
