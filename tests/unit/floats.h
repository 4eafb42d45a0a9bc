/* SPDX-License-Identifier: GPL-2.0-only */
/* What tests of float lanes share: bits of floats, and what a process may have set. */
#ifndef TALLY_TESTS_UNIT_FLOATS_H
#define TALLY_TESTS_UNIT_FLOATS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline float float_of(uint32_t bits)
{
	float x;

	memcpy(&x, &bits, sizeof(x));
	return x;
}

static inline uint32_t bits_of(float x)
{
	uint32_t bits;

	memcpy(&bits, &x, sizeof(bits));
	return bits;
}

/* Flush subnormal results to zero, and take subnormal inputs for zero. */
static inline void flush_subnormals(bool on)
{
#if defined(__x86_64__)
	uint32_t control;

	__asm__ volatile("stmxcsr %0" : "=m"(control));
	control = on ? control | 0x8040 : control & ~0x8040u;
	__asm__ volatile("ldmxcsr %0" : : "m"(control));
#elif defined(__aarch64__)
	uint64_t control;

	__asm__ volatile("mrs %0, fpcr" : "=r"(control));
	control = on ? control | 1u << 24 : control & ~(UINT64_C(1) << 24);
	__asm__ volatile("msr fpcr, %0" : : "r"(control));
#endif
}

#endif
