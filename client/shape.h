/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The shape of a call, as every contribution carries it in one word: what all ranks must agree in
 * (docs/protocol.md, "Shape"). Pure.
 */
#ifndef TALLY_CLIENT_SHAPE_H
#define TALLY_CLIENT_SHAPE_H

#include <stddef.h>
#include <stdint.h>

#include "call.h"

enum {
	SHAPE_TEXT_BYTES = 144,
};

uint64_t shape_of(const struct call_member *member, const struct call_options *options);

/*
 * "allreduce of 100 float32, sum". `other`: the shape that it differs from; what both have alike
 * and is no part of the call itself (window, payload) is left out. Any numbers are harmless.
 */
void shape_print(uint64_t shape, uint64_t other, char *text, size_t size);

#endif
