// SPDX-License-Identifier: GPL-2.0-only
/*
 * Times allreduces of float32 by algorithms of Gloo that PyTorch does not choose (peer.h). The
 * Makefile builds it where libgloo-dev is.
 *
 *	gloo ring|halving FOLDER RANK WORKERS INTERFACE BYTES:WARMUPS:CALLS...
 *
 * Ranks find each other by FOLDER, which is empty at first. Prints an object for each size.
 */
#include <memory>
#include <string>
#include <vector>

#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/barrier.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include "tests/bench/peer.h"

namespace
{

struct rank {
	std::shared_ptr<gloo::rendezvous::Context> context;
	std::unique_ptr<gloo::Algorithm> algorithm;
	std::vector<float> values; // in place: what goes in, and the sums
};

void fill(void *what)
{
	struct rank *r = static_cast<struct rank *>(what);

	for (size_t i = 0; i < r->values.size(); i++)
		r->values[i] = peer_element(r->context->rank, i);
}

void reduce(void *what) { static_cast<struct rank *>(what)->algorithm->run(); }

void size_do(struct rank *r, struct peer_size size, bool halving)
{
	static struct peer_times times;
	const struct peer_work work = { fill, reduce, r };
	gloo::BarrierOptions all(r->context);
	std::vector<float *> where;

	r->values.resize(size.count);
	where.push_back(r->values.data());
	if (halving)
		r->algorithm.reset(new gloo::AllreduceHalvingDoubling<float>(r->context, where,
									     (int)size.count));
	else
		r->algorithm.reset(
			new gloo::AllreduceRingChunked<float>(r->context, where, (int)size.count));
	fill(r);
	for (int i = 0; i < size.warmups; i++)
		reduce(r);
	gloo::barrier(all);
	peer_measure(&work, size.calls, &times);
	fill(r);
	reduce(r);
	peer_print(stdout, &times, r->context->rank, r->context->size, size.count,
		   peer_count_wrong(r->values.data(), size.count, r->context->size));
	gloo::barrier(all);
	r->algorithm.reset();
}

} // namespace

int main(int argc, char **argv)
{
	struct rank r;

	if (argc < 7)
		errx(EXIT_FAILURE,
		     "usage: gloo ring|halving FOLDER RANK WORKERS INTERFACE BYTES:WARMUPS:CALLS...");

	gloo::transport::tcp::attr where;
	where.iface = argv[5];
	gloo::rendezvous::FileStore store(argv[2]);
	auto device = gloo::transport::tcp::CreateDevice(where);
	r.context = std::make_shared<gloo::rendezvous::Context>(std::stoi(argv[3]),
								std::stoi(argv[4]));
	r.context->connectFullMesh(store, device);
	for (int i = 6; i < argc; i++)
		size_do(&r, peer_size_read(argv[i]), std::string(argv[1]) == "halving");
	return EXIT_SUCCESS;
}
