/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reserved slots as include/tally/slot.h and docs/protocol.md have them: three workers, of whom 0
 * and 1 come through node A, and 2 to the root R; W = 1, so that chunk c + 1 follows the result of
 * c, and chunk c + 2 takes its slot. Chunk 1 goes to worker 0 alone, the others to everyone.
 *
 * The network: what was ever sent may arrive at any time, any number of times, or never. So what a
 * worker may have sent needs no memory here, and `sent` has what only node A can have sent. A node
 * may forget at any time.
 *
 * Exactly once: a sum has every worker of its set once, at all times. Progress: from every state, a
 * few rounds in which every message arrives finish all chunks (CALM): each worker sends what it
 * waits for, flushed.
 *
 * Each -D... below breaks one rule: tests/model/check.
 */
#define WORKERS 3
#ifndef CHUNKS
#define CHUNKS 3
#endif
#define BELOW 3
#define EVERYONE 7
#define ROUNDS (3 * CHUNKS)

#define HAS(set, w) (((set) >> (w)) & 1)
#define VALUE(c, w) (1 << ((c) * 6 + (w) * 2))
#define SUM(c, set) \
	(HAS(set, 0) * VALUE(c, 0) + HAS(set, 1) * VALUE(c, 1) + HAS(set, 2) * VALUE(c, 2))
#define FOREIGN (1 << 20) /* the value of any contribution of an earlier run */

#ifdef NO_DISJOINTNESS_TEST
#define DISJOINT(a, b) (1)
#else
#define DISJOINT(a, b) (((a) & (b)) == 0)
#endif

#define IS_NEWER(slot, c) (slot.seq < (c) + 1)

#ifdef NO_LAST_RANK
#define IS_WHOLE(set) (((set) | 1) == EVERYONE)
#else
#define IS_WHOLE(set) ((set) == EVERYONE)
#endif

/* A worker may have sent chunk c if it holds the result of the one before. */
#define STARTED(w, c) ((c) == 0 || HAS(got[w], (c) - 1))
/* It keeps what it has of c until c + 2 is sent: the result, or its own where it got none. */
#define KEEPS(w, c) (HAS(got[w], c) && ((c) + 2 >= CHUNKS || !HAS(got[w], (c) + 1)))
#define HAS_PAYLOAD(w, c) ((c) != 1 || (w) == 0)

typedef slot_t {
	byte seq; /* chunk + 1; 0: fresh */
	byte set;
	bit done;
	int sum
};

slot_t a[2], r[2];
byte got[WORKERS]; /* chunks */
byte sent; /* chunks whose sum over BELOW has left A */
byte results; /* chunks whose result has left R */
byte n;
hidden byte w, c, v, set, k;
hidden int sum;

inline slot_empty(slot, chunk) {
	slot.seq = chunk + 1; slot.set = 0; slot.done = 0; slot.sum = 0
}

/* An offer of set and sum, not flushed. */
inline slot_merge(slot) {
	slot.set = slot.set | set;
	slot.sum = slot.sum + sum;
	assert(slot.sum == SUM(c, slot.set))
}

#ifdef NO_NEW_BEGINNING
#define SLOT_BEGIN(slot) slot.seq = c + 1
#else
#define SLOT_BEGIN(slot) slot_empty(slot, c)
#endif

inline at_a() {
	if
	:: IS_NEWER(a[c % 2], c) -> SLOT_BEGIN(a[c % 2])
	:: else
	fi;
	if
	:: a[c % 2].seq == c + 1 && DISJOINT(a[c % 2].set, set) -> slot_merge(a[c % 2])
	:: else
	fi;
	if
	:: a[c % 2].seq == c + 1 && a[c % 2].set == BELOW -> sent = sent | (1 << c)
	:: else
	fi
}

/* A flushed contribution: the partial sum leaves, or it goes on alone: `set` and `sum`. */
inline flush_a() {
	if
	:: a[c % 2].seq == c + 1 && (a[c % 2].set & set) == set ->
		set = a[c % 2].set;
#ifdef FREE_BEFORE_FLUSH
		slot_empty(a[c % 2], c);
		sum = a[c % 2].sum;
#else
		sum = a[c % 2].sum;
#ifndef KEEP_AFTER_FLUSH
		slot_empty(a[c % 2], c);
#endif
#endif
		assert(sum == SUM(c, set));
		if
		:: set == BELOW -> sent = sent | (1 << c)
		:: else
		fi
	:: else
	fi
}

inline finish_r() {
	assert(r[c % 2].set == EVERYONE && r[c % 2].sum == SUM(c, EVERYONE));
	r[c % 2].done = 1;
	results = results | (1 << c)
}

inline at_r() {
	if
	:: IS_NEWER(r[c % 2], c) -> SLOT_BEGIN(r[c % 2])
	:: else
	fi;
	if
	:: r[c % 2].seq == c + 1 && !r[c % 2].done && DISJOINT(r[c % 2].set, set) ->
		slot_merge(r[c % 2])
	:: else
	fi;
	if
	:: r[c % 2].seq == c + 1 && !r[c % 2].done && IS_WHOLE(r[c % 2].set) -> finish_r()
	:: else
	fi
}

/* Worker v, which has the payload of the result, gives it back. */
inline repair_r() {
	if
	:: r[c % 2].seq < c + 1 || (r[c % 2].seq == c + 1 && !r[c % 2].done) ->
#ifdef REPAIR_ADDS
		if
		:: r[c % 2].seq < c + 1 -> slot_empty(r[c % 2], c)
		:: else
		fi;
#else
		slot_empty(r[c % 2], c);
#endif
		r[c % 2].set = EVERYONE;
		r[c % 2].sum = r[c % 2].sum + SUM(c, EVERYONE);
		finish_r()
	:: else
	fi
}

/* R lacks ranks after a flush: who keeps something of the chunk answers, and it arrives. */
inline ask() {
	for (v : 0 .. WORKERS - 1) {
		if
#ifndef NO_REPAIR
		:: KEEPS(v, c) && HAS_PAYLOAD(v, c) -> repair_r()
#endif
#ifndef NO_MEMORY_OF_OWN
		:: KEEPS(v, c) && !HAS_PAYLOAD(v, c) ->
			set = 1 << v; sum = VALUE(c, v);
			if
			:: HAS(BELOW, v) -> flush_a()
			:: else
			fi;
			at_r()
#endif
		:: else
		fi
	}
}

/* Worker w flushes the first chunk that it waits for. */
inline calm_turn() {
	c = 0;
	do
	:: HAS(got[w], c) -> c++
	:: else -> break
	od;
	if
	:: c < CHUNKS ->
		set = 1 << w; sum = VALUE(c, w);
		if
		:: HAS(BELOW, w) -> flush_a()
		:: else
		fi;
		at_r();
#ifndef NO_ASK
		if
		:: !r[c % 2].done -> ask()
		:: else
		fi;
#endif
		if
		:: r[c % 2].seq == c + 1 && r[c % 2].done ->
			for (v : 0 .. WORKERS - 1) {
				if
				:: STARTED(v, c) -> got[v] = got[v] | (1 << c)
				:: else
				fi
			}
		:: else
		fi
	:: else
	fi
}

inline calm() {
	for (k : 1 .. ROUNDS) {
		for (w : 0 .. WORKERS - 1) {
			calm_turn()
		}
	}
	for (w : 0 .. WORKERS - 1) {
		assert(got[w] == (1 << CHUNKS) - 1)
	}
}

/* One thing arrives, or not: of each kind one for each worker and chunk. */
inline arrive() {
	w = n % WORKERS; c = (n / WORKERS) % CHUNKS; k = n / (WORKERS * CHUNKS);
	set = 1 << w; sum = VALUE(c, w);
	if
	:: k == 0 && STARTED(w, c) && HAS(BELOW, w) -> at_a()
	:: k == 1 && STARTED(w, c) && HAS(BELOW, w) -> flush_a()
	:: k == 2 && STARTED(w, c) -> at_r()
	:: k == 3 && HAS(sent, c) && w == 0 -> set = BELOW; sum = SUM(c, BELOW); at_r()
	:: k == 4 && HAS(got[w], c) && HAS_PAYLOAD(w, c) -> repair_r()
	:: k == 5 && HAS(results, c) && STARTED(w, c) -> got[w] = got[w] | (1 << c)
#ifdef NO_EPOCH_TEST
	:: k == 6 -> sum = FOREIGN; at_r()
#endif
	:: else
	fi
}
#define KINDS 7

inline slot_forget(slot) { slot.seq = 0; slot.set = 0; slot.done = 0; slot.sum = 0 }

inline tidy() { n = 0; w = 0; c = 0; v = 0; set = 0; sum = 0; k = 0 }

active proctype world() {
end:	do
	:: atomic { select(n : 0 .. WORKERS * CHUNKS * KINDS - 1); d_step { arrive(); tidy() } }
	:: d_step { slot_forget(a[0]); slot_forget(a[1]) }
	:: d_step { slot_forget(r[0]); slot_forget(r[1]) }
	:: d_step { calm(); tidy() } -> break
	od
}
