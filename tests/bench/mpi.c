// SPDX-License-Identifier: GPL-2.0-only
/*
 * Times allreduces of float32 by MPI (peer.h). The Makefile builds it where Open MPI is.
 *
 *	mpi FILE BYTES:WARMUPS:CALLS...
 *
 * Each rank writes to FILE and its number an object for each size.
 */
#include <mpi.h>

#include "tests/bench/peer.h"

/* MPI's constants are such casts. NOLINTBEGIN(bugprone-casting-through-void) */

struct vectors {
	float *in, *out;
	size_t count;
	int rank;
};

static void fill(void *what)
{
	struct vectors *v = what;

	for (size_t i = 0; i < v->count; i++)
		v->in[i] = peer_element(v->rank, i);
}

static void reduce(void *what)
{
	struct vectors *v = what;

	MPI_Allreduce(v->in, v->out, (int)v->count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void size_do(FILE *f, struct peer_size size, int rank, int workers)
{
	static struct peer_times times;
	struct vectors v = { .count = size.count, .rank = rank };
	const struct peer_work work = { fill, reduce, &v };

	v.in = calloc(size.count, sizeof(*v.in));
	v.out = calloc(size.count, sizeof(*v.out));
	if (!v.in || !v.out)
		errx(EXIT_FAILURE, "no memory for %zu elements", size.count);
	fill(&v);
	for (int i = 0; i < size.warmups; i++)
		reduce(&v);
	MPI_Barrier(MPI_COMM_WORLD);
	peer_measure(&work, size.calls, &times);
	memset(v.out, 0xff, size.count * sizeof(*v.out));
	reduce(&v);
	peer_print(f, &times, rank, workers, size.count,
		   peer_count_wrong(v.out, size.count, workers));
	free(v.in);
	free(v.out);
}

int main(int argc, char **argv)
{
	int rank, workers;
	char *path;
	FILE *f;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &workers);
	if (argc < 3)
		errx(EXIT_FAILURE, "usage: mpi FILE BYTES:WARMUPS:CALLS...");
	if (asprintf(&path, "%s%d", argv[1], rank) < 0)
		errx(EXIT_FAILURE, "no memory");
	f = fopen(path, "we");
	if (!f)
		err(EXIT_FAILURE, "%s", path);
	for (int i = 2; i < argc; i++)
		size_do(f, peer_size_read(argv[i]), rank, workers);
	if (fclose(f))
		err(EXIT_FAILURE, "%s", path);
	free(path);
	MPI_Finalize();
	return EXIT_SUCCESS;
}

/* NOLINTEND(bugprone-casting-through-void) */
