// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "shape.h"

#include <stdbool.h>

#include <stdio.h>

#include <tally/wire.h>

/* Fields of the word, from bit 0 on. */
enum field {
	FIELD_VERB,
	FIELD_DTYPE,
	FIELD_OP,
	FIELD_ROOT,
	FIELD_WINDOW, /* log2 */
	FIELD_BLOCKS, /* of a payload at most */
	FIELD_COUNT,
	FIELDS,
};

static const uint8_t bits[FIELDS] = { 3, 4, 2, 8, 4, 6, CALL_COUNT_BITS };

enum {
	SEALED_OPENING = 3, /* as an operation */
	FIXED_SUM = 3,
	FIXED_AVG = 0,
	/* Of the count of an opening: the number of workers, and behind it what roots there are. */
	OPENING_COUNT_BITS = 9,
};

_Static_assert(3 + 4 + 2 + 8 + 4 + 6 + CALL_COUNT_BITS == 64, "all of the word");

static bool has_elements(uint64_t verb) { return verb != CALL_BARRIER && verb != CALL_CLOSING; }

static bool is_fixed(const struct call_options *o)
{
	return call_reduces(o->verb) && o->dtype & TALLY_FIXED_FLAG;
}

/* With a fixed point other numbers, so that the point is one where otherwise a root is. */
static uint64_t op_of(const struct call_options *o)
{
	if (is_fixed(o))
		return o->op == TALLY_SUM ? FIXED_SUM : FIXED_AVG;
	return o->op;
}

/* So ranks with a secret and ranks without one hear at once that they disagree. */
static uint64_t opening_op(const struct call_member *member, const struct call_options *options)
{
	return options->verb == CALL_OPENING && member->sealed ? SEALED_OPENING : 0;
}

static uint64_t count_of(const struct call_member *member, const struct call_options *options)
{
	uint64_t agreement = member->agreement << OPENING_COUNT_BITS;

	if (!has_elements(options->verb))
		return 0;
	return options->count | (options->verb == CALL_OPENING ? agreement : 0);
}

static bool has_root(uint64_t verb) { return verb == CALL_REDUCE || verb == CALL_BROADCAST; }

/* Of a reduce with a fixed point, the recipient of its messages says the root. */
static uint64_t root_of(const struct call_options *o)
{
	if (is_fixed(o))
		return (uint8_t)call_point(o);
	return has_root(o->verb) ? o->root : 0;
}

static uint64_t mask_of(int field) { return (UINT64_C(1) << bits[field]) - 1; }

uint64_t shape_of(const struct call_member *member, const struct call_options *options)
{
	const uint64_t value[FIELDS] = {
		[FIELD_VERB] = options->verb,
		[FIELD_DTYPE] = has_elements(options->verb) ? options->dtype : 0,
		[FIELD_OP] = call_reduces(options->verb) ? op_of(options)
							 : opening_op(member, options),
		[FIELD_ROOT] = root_of(options),
		[FIELD_WINDOW] = __builtin_ctz(member->window),
		[FIELD_BLOCKS] = member->payload_bytes / TALLY_BLOCK_BYTES,
		[FIELD_COUNT] = count_of(member, options),
	};
	uint64_t shape = 0;

	for (int i = FIELDS - 1; i >= 0; i--)
		shape = shape << bits[i] | (value[i] & mask_of(i));
	return shape;
}

static uint64_t field(uint64_t shape, enum field which)
{
	for (int i = 0; i < (int)which; i++)
		shape >>= bits[i];
	return shape & mask_of(which);
}

static const char *name_of(const char *const *names, size_t count, uint64_t value)
{
	return value < count && names[value] ? names[value] : "?";
}

/* What an opening says, where the other one says something else. */
static size_t print_opening(uint64_t count, uint64_t other, char *text, size_t size)
{
	const uint64_t workers = (1 << OPENING_COUNT_BITS) - 1;
	uint64_t roots = count >> OPENING_COUNT_BITS;
	size_t used = 0;

	if ((count ^ other) & workers)
		used += snprintf(text, size, " of a job of %llu workers",
				 (unsigned long long)(count & workers));
	if (roots == other >> OPENING_COUNT_BITS)
		return used;
	if (!roots)
		return used + snprintf(text + used, size - used, " with one root");
	return used + snprintf(text + used, size - used,
			       " as root %llu of %llu, with roots and shares %05llx",
			       (unsigned long long)(roots & 15) + 1,
			       (unsigned long long)(roots >> 4 & 15) + 1,
			       (unsigned long long)(roots >> 8));
}

static const char *const dtype_names[1 << 4] = {
	[TALLY_INT32] = "int32",
	[TALLY_INT64] = "int64",
	[TALLY_FLOAT32] = "float32",
	[TALLY_INT8] = "int8",
	[TALLY_INT16] = "int16",
	[TALLY_UINT8] = "uint8",
	[TALLY_UINT16] = "uint16",
	[TALLY_UINT32] = "uint32",
	[TALLY_UINT64] = "uint64",
	[TALLY_BFLOAT16] = "bfloat16",
	[TALLY_FLOAT16] = "float16",
	[TALLY_FLOAT64] = "float64",
	[TALLY_FLOAT32_HALVED] = "halved float32",
};

void shape_print(uint64_t shape, uint64_t other, char *text, size_t size)
{
	static const char *const verbs[] = {
		[CALL_ALLREDUCE] = "allreduce",	   [CALL_REDUCE] = "reduce",
		[CALL_BROADCAST] = "broadcast",	   [CALL_REDUCE_SCATTER] = "reduce_scatter",
		[CALL_ALL_GATHER] = "all_gather",  [CALL_BARRIER] = "barrier",
		[CALL_OPENING] = "the first call", [CALL_CLOSING] = "tally_close",
	};
	uint64_t verb = field(shape, FIELD_VERB), op = field(shape, FIELD_OP);
	bool fixed = op == FIXED_SUM || op == FIXED_AVG;
	size_t used = snprintf(text, size, "%s", name_of(verbs, 8, verb));

	if (has_elements(verb) && verb != CALL_OPENING)
		used += snprintf(text + used, size - used, " of %llu %s",
				 (unsigned long long)field(shape, FIELD_COUNT),
				 name_of(dtype_names, 1 << 4, field(shape, FIELD_DTYPE)));
	if (call_reduces(verb) && fixed)
		used += snprintf(text + used, size - used, " with point %d",
				 (int8_t)(uint8_t)field(shape, FIELD_ROOT));
	else if (has_root(verb))
		used += snprintf(text + used, size - used, " %s rank %llu",
				 verb == CALL_REDUCE ? "to" : "from",
				 (unsigned long long)field(shape, FIELD_ROOT));
	if (call_reduces(verb))
		used += snprintf(text + used, size - used, ", %s",
				 op == TALLY_AVG || op == FIXED_AVG ? "average" : "sum");
	if (verb == CALL_OPENING)
		used += print_opening(field(shape, FIELD_COUNT), field(other, FIELD_COUNT),
				      text + used, size - used);
	if (verb == CALL_OPENING && field(shape, FIELD_OP) != field(other, FIELD_OP))
		used += snprintf(text + used, size - used, " %s a secret",
				 field(shape, FIELD_OP) ? "with" : "without");
	if (field(shape, FIELD_WINDOW) != field(other, FIELD_WINDOW))
		used += snprintf(text + used, size - used, ", with window %u",
				 1u << field(shape, FIELD_WINDOW));
	if (field(shape, FIELD_BLOCKS) != field(other, FIELD_BLOCKS))
		snprintf(text + used, size - used, ", with payload %llu",
			 (unsigned long long)field(shape, FIELD_BLOCKS) * TALLY_BLOCK_BYTES);
}
