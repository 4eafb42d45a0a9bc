/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Borrowed slots, the design for the code to come: two jobs that share one slot on node A and one
 * on the root R; what finds no room goes up to the spill S beside R. All workers come through A.
 *
 *	release		a sum that is whole leaves, and its slot is free at once
 *	swap		a contribution takes the slot of another chunk, whose partial sum leaves in
 *			its packet; or goes up itself. Which of them depends on priorities, and here
 *			on nothing: any policy
 *	flush		a slot that holds the flushed contribution sends its partial sum up and is free;
 *			otherwise the contribution goes on alone. Nothing is installed
 *	spill		merges what comes; a result that left R's slot is its, too; asks as a root does
 *
 * Job 0 begins a second run at any moment; slots keep what they have of the first one. Network,
 * memory and progress are as in reserved.pml: what was ever sent may arrive at any time, any number
 * of times or never, also between R and S; A, R and S forget at any time; and from every state a
 * few rounds in which all arrives finish all chunks. Here W is at least CHUNKS / 2, and the last
 * chunk goes to worker 0 alone.
 */
#ifndef WORKERS
#define WORKERS 2
#endif
#ifndef CHUNKS
#define CHUNKS 2
#endif
#define JOBS 2
#define EVERYONE ((1 << WORKERS) - 1)
#define ROUNDS (3 * CHUNKS + 3)

/* A run: 0 and 2 of job 0, 1 of job 1. */
#define RUN(j) ((j) + (2 * ((j) == 0 && again)))
#define JOB(n) ((n) % 2)
#define CHUNK(j, c) ((j) * CHUNKS + (c))

#define HAS(set, w) (((set) >> (w)) & 1)
#define VALUE(n, c, w) (1 << (((n) * CHUNKS + (c)) * WORKERS + (w)))
#define SUM(n, c, set) ((set) << (((n) * CHUNKS + (c)) * WORKERS))

#ifdef NO_DISJOINTNESS_TEST
#define DISJOINT(a, b) (1)
#else
#define DISJOINT(a, b) (((a) & (b)) == 0)
#endif

#ifdef NO_EPOCH_IN_SLOT /* -DCHUNKS=1 */
#define SAME(slot) (slot.used && JOB(slot.owner) == j && slot.c == c)
#else
#define SAME(slot) (slot.used && slot.owner == RUN(j) && slot.c == c)
#endif

#define STARTED(j, w, c) ((c) == 0 || HAS(got[(j) * WORKERS + (w)], (c) - 1))
#define GOT(j, w, c) HAS(got[(j) * WORKERS + (w)], c)
#define HAS_PAYLOAD(w, c) ((c) != CHUNKS - 1 || (w) == 0)

typedef slot_t {
	bit used, done;
	byte owner, c, set;
	int sum
};
typedef sum_t {
	bit done;
	byte set;
	int sum
};

slot_t a, r;
sum_t s[JOBS * CHUNKS];
bit again; /* job 0 is in its second run */
byte got[JOBS * WORKERS]; /* chunks of the run */
byte sent[JOBS * CHUNKS]; /* bit n: the sum over set n, of several ranks, has left a slot */
byte results; /* chunks of runs: a result has left */
short n;
hidden byte j, w, c, v, set, k, out_run, out_c, out_set;
hidden int sum, out_sum;
hidden byte swap, keep;

inline slot_free(slot) {
	slot.used = 0; slot.done = 0; slot.owner = 0; slot.c = 0; slot.set = 0; slot.sum = 0
}

/* out_...: a sum leaves a slot for the place above, which refuses those of an earlier run. */
inline leave() {
#ifdef SWAP_WITHOUT_EPOCH /* -DCHUNKS=1 */
	if
	:: JOB(out_run) == 0 -> out_run = RUN(0)
	:: else
	fi;
#endif
	assert(out_sum == SUM(out_run, out_c, out_set));
	if
	:: out_run == RUN(JOB(out_run)) && (out_set & (out_set - 1)) != 0 ->
		sent[CHUNK(JOB(out_run), out_c)] = sent[CHUNK(JOB(out_run), out_c)] | (1 << out_set)
	:: else
	fi
}

inline slot_leave(slot) {
	out_run = slot.owner; out_c = slot.c; out_set = slot.set; out_sum = slot.sum;
	leave()
}

inline slot_take(slot) {
	slot.set = slot.set | set;
	slot.sum = slot.sum + sum;
	assert(slot.sum == SUM(slot.owner, slot.c, slot.set))
}

inline result() {
	assert(sum == SUM(RUN(j), c, EVERYONE));
	results = results | (1 << CHUNK(j, c))
}

/* A contribution, not flushed, at a slot. `keep`: R does not release this result. */
inline at_slot(slot, root) {
	if
	:: SAME(slot) && !slot.done && DISJOINT(slot.set, set) -> slot_take(slot)
	:: SAME(slot) && (slot.done || !DISJOINT(slot.set, set)) /* answered, dropped or passed on */
	:: !SAME(slot) && (!slot.used || swap) ->
		if
		:: slot.used && slot.done && slot.owner == RUN(JOB(slot.owner)) /* its result goes to S */
		:: slot.used && !slot.done ->
#ifdef SWAP_WITHOUT_CHUNK
			out_run = slot.owner; out_c = c; out_set = slot.set; out_sum = slot.sum;
			leave()
#else
			slot_leave(slot)
#endif
		:: else
		fi;
		slot_free(slot);
		slot.used = 1; slot.owner = RUN(j); slot.c = c;
		slot_take(slot)
	:: else /* passed on */
	fi;
	if
	:: SAME(slot) && !slot.done && slot.set == EVERYONE ->
		if
		:: root ->
			sum = slot.sum; result();
			slot.done = 1
		:: else -> slot_leave(slot)
		fi;
		if
		:: root && keep
		:: else -> slot_free(slot)
		fi
	:: else
	fi
}

/* A flushed contribution at a slot; `set` and `sum`: what goes on. */
inline flush_at(slot) {
	if
	:: SAME(slot) && !slot.done && (slot.set & set) == set ->
		set = slot.set;
#ifdef FREE_BEFORE_FLUSH
		slot_free(slot);
		sum = slot.sum;
#else
		sum = slot.sum;
#ifndef KEEP_AFTER_FLUSH /* -DCHUNKS=1 -DWORKERS=3 */
		slot_free(slot);
#endif
#endif
		out_run = RUN(j); out_c = c; out_set = set; out_sum = sum;
		leave()
	:: else
	fi
}

inline at_spill() {
	if
	:: !s[CHUNK(j, c)].done && DISJOINT(s[CHUNK(j, c)].set, set) ->
		s[CHUNK(j, c)].set = s[CHUNK(j, c)].set | set;
		s[CHUNK(j, c)].sum = s[CHUNK(j, c)].sum + sum;
		assert(s[CHUNK(j, c)].sum == SUM(RUN(j), c, s[CHUNK(j, c)].set));
		if
		:: s[CHUNK(j, c)].set == EVERYONE ->
			sum = s[CHUNK(j, c)].sum; result();
			s[CHUNK(j, c)].done = 1
		:: else
		fi
	:: else
	fi
}

/* A repair, or the result that left R's slot. */
inline repair() {
	s[CHUNK(j, c)].done = 1;
	s[CHUNK(j, c)].set = EVERYONE;
	s[CHUNK(j, c)].sum = SUM(RUN(j), c, EVERYONE)
}

inline flush_up() {
	flush_at(a);
	if
	:: SAME(r) && r.done
	:: else ->
		flush_at(r);
		at_spill()
	fi
}

inline ask() {
	for (v : 0 .. WORKERS - 1) {
		if
#ifndef NO_REPAIR
		:: GOT(j, v, c) && HAS_PAYLOAD(v, c) -> repair()
#endif
#ifndef NO_MEMORY_OF_OWN
		:: GOT(j, v, c) && !HAS_PAYLOAD(v, c) ->
			set = 1 << v; sum = VALUE(RUN(j), c, v);
			flush_up()
#endif
		:: else
		fi
	}
}

#define FINISHED ((SAME(r) && r.done) || s[CHUNK(j, c)].done)

inline calm_turn() {
	c = 0;
	do
	:: GOT(j, w, c) -> c++
	:: else -> break
	od;
	if
	:: c < CHUNKS ->
		set = 1 << w; sum = VALUE(RUN(j), c, w);
		flush_up();
		if
		:: !FINISHED -> ask()
		:: else
		fi;
		if
		:: FINISHED ->
			for (v : 0 .. WORKERS - 1) {
				if
				:: STARTED(j, v, c) ->
					got[j * WORKERS + v] = got[j * WORKERS + v] | (1 << c)
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
		for (j : 0 .. JOBS - 1) {
			for (w : 0 .. WORKERS - 1) {
				calm_turn()
			}
		}
	}
	for (w : 0 .. JOBS * WORKERS - 1) {
		assert(got[w] == (1 << CHUNKS) - 1)
	}
}

inline run_again() {
	again = 1;
	for (v : 0 .. WORKERS - 1) { got[v] = 0 }
	for (v : 0 .. CHUNKS - 1) {
		sent[v] = 0; s[v].done = 0; s[v].set = 0; s[v].sum = 0
	}
	results = results & ~((1 << CHUNKS) - 1);
	v = 0
}

inline spill_forgets() {
	for (v : 0 .. JOBS * CHUNKS - 1) {
		s[v].done = 0; s[v].set = 0; s[v].sum = 0
	}
	v = 0
}

/* One thing arrives, or not: kinds are the same for all jobs, workers and chunks. */
inline arrive() {
	j = n % JOBS; w = (n / JOBS) % WORKERS; c = (n / (JOBS * WORKERS)) % CHUNKS;
	k = n / (JOBS * WORKERS * CHUNKS);
	swap = k & 1; keep = (k >> 1) & 1;
	set = 1 << w; sum = VALUE(RUN(j), c, w);
	if
	:: k < 2 && STARTED(j, w, c) -> at_slot(a, 0)
	:: k == 2 && STARTED(j, w, c) -> flush_at(a)
	:: k == 3 && STARTED(j, w, c) -> flush_at(r)
	:: k >= 4 && k < 8 && STARTED(j, w, c) -> at_slot(r, 1)
	:: k == 8 && STARTED(j, w, c) -> at_spill()
	:: k == 9 && HAS(results, CHUNK(j, c)) && STARTED(j, w, c) ->
		got[j * WORKERS + w] = got[j * WORKERS + w] | (1 << c)
	:: k == 10 && w == 0 && HAS(results, CHUNK(j, c)) -> repair()
	:: k >= 12 ->
		set = (k - 12) / 6; sum = SUM(RUN(j), c, set);
		if
		:: w || !HAS(sent[CHUNK(j, c)], set)
		:: else ->
			if
			:: k % 6 < 4 -> swap = k & 1; keep = (k % 6) / 2; at_slot(r, 1)
			:: k % 6 == 4 -> flush_at(r)
			:: else -> at_spill()
			fi
		fi
	:: else
	fi
}
#define KINDS (12 + 6 * (EVERYONE + 1))

inline tidy() {
	n = 0; j = 0; w = 0; c = 0; v = 0; set = 0; sum = 0; k = 0; swap = 0; keep = 0;
	out_run = 0; out_c = 0; out_set = 0; out_sum = 0
}

active proctype world() {
end:	do
	:: atomic { select(n : 0 .. JOBS * WORKERS * CHUNKS * KINDS - 1); d_step { arrive(); tidy() } }
	:: d_step { slot_free(a) }
	:: d_step { slot_free(r) }
	:: d_step { spill_forgets() }
	:: d_step { !again -> run_again() }
	:: d_step { calm(); tidy() } -> break
	od
}
