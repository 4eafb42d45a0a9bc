/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The only byte-order conversions. Everything behind the UDP header is little-endian;
 * Ethernet, IP and UDP headers are big-endian. sparse checks both.
 */
#ifndef TALLY_ENDIAN_H
#define TALLY_ENDIAN_H

#include <linux/types.h>
#include <tally/inline.h>

#ifdef __CHECKER__
#define tally_force __attribute__((force))
#else
#define tally_force
#endif

/* The data plane adds payload words as they lie in the packet. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "Tally runs on little-endian machines");

tally_inline __u16 tally_le16_get(__le16 v) { return (tally_force __u16)v; }
tally_inline __u32 tally_le32_get(__le32 v) { return (tally_force __u32)v; }
tally_inline __u64 tally_le64_get(__le64 v) { return (tally_force __u64)v; }
tally_inline __le16 tally_le16(__u16 v) { return (tally_force __le16)v; }
tally_inline __le32 tally_le32(__u32 v) { return (tally_force __le32)v; }
tally_inline __le64 tally_le64(__u64 v) { return (tally_force __le64)v; }

tally_inline __u16 tally_be16_get(__be16 v) { return __builtin_bswap16((tally_force __u16)v); }
tally_inline __be16 tally_be16(__u16 v) { return (tally_force __be16)__builtin_bswap16(v); }

/* For values that are in network order already, but whose type in the C library does not say so. */
tally_inline __be16 tally_be16_raw(__u16 v) { return (tally_force __be16)v; }
tally_inline __be32 tally_be32_raw(__u32 v) { return (tally_force __be32)v; }

#endif
