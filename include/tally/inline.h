/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Functions of these headers are always inlined: BPF forbids calls while a lock is held. */
#ifndef TALLY_INLINE_H
#define TALLY_INLINE_H

#define tally_inline static inline __attribute__((always_inline))

#endif
