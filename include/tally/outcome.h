/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Every way in which a packet can leave the data plane. One line is one counter: the XDP action,
 * the statistics and the tests all expand this list. A packet that may be meant for another node
 * passes on untouched; a packet that is meant for this node and is wrong is dropped.
 */
#ifndef TALLY_OUTCOME_H
#define TALLY_OUTCOME_H

/*        name            action        meaning */
/* clang-format off */
#define TALLY_OUTCOMES(X)                                                                          \
	X(FOREIGN,        XDP_PASS,     "not a Tally message")                                     \
	X(OTHER_VERSION,  XDP_PASS,     "of a version this node does not speak")                   \
	X(OLD_VERSION,    XDP_TX,       "of another version, of a job here; its sender hears ours")\
	X(UNKNOWN_JOB,    XDP_PASS,     "of a job this node does not serve")                       \
	X(OTHER_ADDRESS,  XDP_PASS,     "of a job of this number, with another service address")   \
	X(OTHER_PORT,     XDP_DROP,     "this port is not allowed for the job")                    \
	X(OTHER_SOURCE,   XDP_DROP,     "from a VLAN or address that its tenant may not use")      \
	X(COALESCED,      XDP_PASS,     "several messages in one frame (an offload joined them)")  \
	X(TRUNCATED,      XDP_DROP,     "the frame ends before the message does")                  \
	X(BAD_LENGTH,     XDP_DROP,     "the header's length contradicts the datagram's")          \
	X(OVERSIZED,      XDP_DROP,     "more payload than the job may send")                      \
	X(BAD_KIND,       XDP_DROP,     "a kind of message that this node does not take")          \
	X(CORRUPT,        XDP_DROP,     "its header and its tag disagree: a bit has flipped")      \
	X(UNKNOWN_FLAG,   XDP_DROP,     "flags or reserved bytes that this version does not know") \
	X(WRONG_EPOCH,    XDP_DROP,     "of another epoch of the job")                             \
	X(BAD_SET,        XDP_DROP,     "a set that is empty, incomplete or not of the job")       \
	X(BAD_RANK,       XDP_DROP,     "a recipient that is no rank of the job")                  \
	X(FORGED,         XDP_DROP,     "not from the rank that it names: another key or place")   \
	X(OVER_RATE,      XDP_DROP,     "more packets or bytes a second than its tenant may send") \
	X(CONFLICT,       XDP_REDIRECT, "disagrees with its chunk; all ranks hear who calls what") \
	X(CONFLICT_AGAIN, XDP_DROP,     "disagrees with its chunk, and all ranks heard so before") \
	X(STALE,          XDP_DROP,     "too late: its slot serves a newer chunk")                 \
	X(BEHIND,         XDP_TX,       "its slot serves a later chunk, and its sender hears so")  \
	X(EXPIRED,        XDP_DROP,     "its time to live is over: do nodes name each other?")     \
	X(DUPLICATE,      XDP_DROP,     "already in the sum; other contributions are missing")     \
	X(OVERLAP,        XDP_DROP,     "overlaps the sum; its workers retransmit one by one")     \
	X(ABSORBED,       XDP_DROP,     "added to its slot; other contributions are missing")      \
	X(COMPLETED,      XDP_REDIRECT, "the last contribution; the sum goes to everyone")         \
	X(ANSWERED,       XDP_TX,       "its chunk is finished; its sender gets the result")       \
	X(ANSWERED_ALL,   XDP_REDIRECT, "of several workers, chunk finished; all get the result")  \
	X(ASKED,          XDP_REDIRECT, "flushed while ranks are missing; everyone is asked")      \
	X(SPOILED,        XDP_REDIRECT, "a worker rejects the finished sum; everyone is asked")    \
	X(REPAIRED,       XDP_REDIRECT, "a worker gave a lost result back; all get it")            \
	X(SENT_UP,        XDP_PASS,     "the sum of all workers below goes on to the root")        \
	X(FLUSHED_UP,     XDP_PASS,     "flushed: the slot's partial sum goes on to the root")     \
	X(PASSED_UP,      XDP_PASS,     "goes on to the root as it came")                          \
	X(SENT_DOWN,      XDP_REDIRECT, "from the root; goes to everyone below")                   \
	X(NO_SLOT,        XDP_DROP,     "no slots (broken set-up: remove and add the job)")        \
	X(NO_MEMORY,      XDP_DROP,     "no memory for its sum in software; its worker sends again")\
	X(NO_GROUP,       XDP_DROP,     "no group (broken set-up: remove and add the job)")        \
	X(NO_ROOM,        XDP_REDIRECT, "frame too short for the sum; longer frames are asked for")\
	X(FANNED_OUT,     XDP_PASS,     "egress: one copy, addressed to its child")                \
	X(NO_CHILD,       XDP_DROP,     "egress: no child (broken set-up: remove and add the job)")\
	X(SWAPPED,        XDP_PASS,     "takes the slot of another chunk, whose sum goes on instead")\
	X(REFUSED,        XDP_PASS,     "another chunk keeps the slot; goes on to the root as it came") \
	X(PASSED_DOWN,    XDP_PASS,     "from the root to one worker; goes on as it came")         \
	X(OTHER_RUN,      XDP_PASS,     "of a run that this inner node was not told of; goes on as it came")
/* clang-format on */

enum tally_outcome {
#define TALLY_OUTCOME_NAME(name, action, meaning) TALLY_##name,
	TALLY_OUTCOMES(TALLY_OUTCOME_NAME)
#undef TALLY_OUTCOME_NAME
	TALLY_OUTCOME_COUNT,
	TALLY_OUTCOMES_MAX = 48, /* room in a row of counters: more would need other maps */
	TALLY_GO_ON = TALLY_OUTCOME_COUNT, /* no outcome yet: the next stage decides */
};

/* For people; "" if there is no such outcome. */
static inline const char *tally_outcome_name(enum tally_outcome outcome)
{
	static const char *const name[] = {
#define TALLY_OUTCOME_TEXT(name, action, meaning) #name,
		TALLY_OUTCOMES(TALLY_OUTCOME_TEXT)
#undef TALLY_OUTCOME_TEXT
	};

	return outcome < TALLY_OUTCOME_COUNT ? name[outcome] : "";
}

static inline const char *tally_outcome_meaning(enum tally_outcome outcome)
{
	static const char *const meaning_of[] = {
#define TALLY_OUTCOME_TEXT(name, action, meaning) meaning,
		TALLY_OUTCOMES(TALLY_OUTCOME_TEXT)
#undef TALLY_OUTCOME_TEXT
	};

	return outcome < TALLY_OUTCOME_COUNT ? meaning_of[outcome] : "";
}

#endif
