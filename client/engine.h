/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Read this file first: then call.h (chunks), window.h (loss), lanes.h (numbers),
 * transport.h, progress.h.
 *
 * A worker without its sockets, pure: calls are started, datagrams come in and go out, time
 * is an argument in nanoseconds. Calls run one after another; within a call, chunk e + W is
 * sent when the result of chunk e is there, so the window clocks itself.
 */
#ifndef TALLY_CLIENT_ENGINE_H
#define TALLY_CLIENT_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "call.h"
#include "window.h"

enum {
	ENGINE_CALLS_MAX = 65 /* 64 of the program's, and one of the library's own */
}; /* started and not waited for */

#define ENGINE_LATE_NS (1800ull * 1000000000)
#define ENGINE_SILENT_NS (3ull * 1000000000)

struct engine_options {
	struct window_options window;
	uint64_t timeout_ns; /* a call without any result for so long, while looked after, has
				failed */
	uint64_t late_timeout_ns; /* the same, while the node says that other ranks are missing. 0:
				     timeout_ns, or half an hour while engine_watch() says so */
	const char *service; /* for error texts; outlives the engine */
	uint64_t random; /* a random number; used where there is an opening */
	uint64_t agreement; /* what ranks must agree in before their first call (shards.h); 0:
			     * nothing, and they have an opening only where window.nonce is 0 */
};

struct engine;
struct engine_call;

int engine_new(const struct engine_options *options, struct engine **ret);
void engine_free(struct engine *e);

/*
 * Queues a call; what it has to send, engine_output() gives from now on. -EBUSY: ENGINE_CALLS_MAX;
 * -ECONNABORTED: an earlier one has failed, or the run is over.
 */
int engine_start(struct engine *e, const struct call_options *options, uint64_t now_ns,
		 struct engine_call **ret);

bool engine_is_over(const struct engine_call *call);

/* No call is queued or running. */
bool engine_is_idle(const struct engine *e);

/* How many calls are over, those included whose handles were given back. */
uint64_t engine_ended(const struct engine *e);

/* How long calls that are over have run. */
uint64_t engine_busy_ns(const struct engine *e);

/* Has an ended call failed by a value of this rank's own? Then its words name it. */
bool engine_has_misfit(const struct engine_call *call);

/*
 * Gives an ended call's handle back; sets the error text if it failed. Returns its result. `ret`
 * may be NULL; its `way` is not said.
 */
int engine_collect(struct engine_call *call, struct tally_call_info *ret);

/* Would somebody tell us if a rank had gone? Then a rank that is missing is only late. */
void engine_watch(struct engine *e, bool watched);

/* A call runs, and nothing at all has come from the root for ENGINE_SILENT_NS, or for half of the
 * call's timeout where that is shorter. */
bool engine_is_silent(const struct engine *e);

/* Another root is looked for: a call may be without any result for so long at least. 0: it is not.
 */
void engine_wait_for(struct engine *e, uint64_t patience_ns);

/* Ends all calls with -ECANCELED, and touches their buffers no more. None can follow. */
void engine_abort(struct engine *e);

/*
 * The run is over, for a reason that the engine cannot know: all calls end with `result` and these
 * words, and none can follow.
 */
void engine_fail(struct engine *e, int result, const char *why);

/* What ended the run, and in *ret the words, which stay until engine_free(); 0: it goes on. */
int engine_failure(const struct engine *e, const char **ret);

size_t engine_output(struct engine *e, uint64_t now_ns, struct datagram *ret, size_t max);

/* There was no room for these, the last ones of engine_output(): it will give them again. */
void engine_unsent(struct engine *e, const struct datagram *d, size_t n);

void engine_input(struct engine *e, const void *bytes, size_t length, uint64_t now_ns);

/* A datagram came that met congestion on its way, and engine_input() is next: window_marked(). */
void engine_marked(struct engine *e, const void *bytes, size_t length);

/* The network said that nobody listens at the service address. */
void engine_unreachable(struct engine *e);

/* The network said that the way there takes no larger packets, and ours are; 0: it did not. */
void engine_way_mtu(struct engine *e, uint32_t mtu);

/* When engine_output() is to be called again if nothing comes in; UINT64_MAX: never. */
uint64_t engine_wakeup(const struct engine *e);

/* How many chunks the call that runs has; 0: none runs. */
uint32_t engine_chunks(const struct engine *e);

const struct window *engine_window(const struct engine *e);

/* --- to another root ------------------------------------------------------------------------- */

/*
 * All ranks have a place in this run, too, at another root: with the same ranks, window and
 * payload, and with a nonce. From a chunk on in which the ranks agree, all that follows goes there;
 * what is to go there and comes from there is given by these, which are as those above. 0; -EINVAL:
 * the runs are not alike; -EBUSY: a move is under way; -ECONNABORTED; -ENOMEM. Sets the error text.
 */
int engine_move(struct engine *e, const struct window_options *next);

/*
 * The same where this rank hears no more of the first run's root, in the midst of calls: nothing is
 * sent there any more, and all ranks go on at the first chunk whose result some rank lacks, also
 * those that were told by engine_move(). Windows must keep contributions (window.h). Sums are those
 * that the first run would have had.
 */
int engine_rescue(struct engine *e, const struct window_options *next);
size_t engine_next_output(struct engine *e, uint64_t now_ns, struct datagram *ret, size_t max);
void engine_next_unsent(struct engine *e, const struct datagram *d, size_t n);
void engine_next_input(struct engine *e, const void *bytes, size_t length, uint64_t now_ns);

/* Do all ranks know where chunks go? From then on no rank is missed in the first run. */
bool engine_has_agreed(const struct engine *e);

/* Some rank has not come to the next run, so nothing has changed: nobody goes there. False: all are
 * there, or as good as that. */
bool engine_move_cancel(struct engine *e);

/* Nobody needs the first run any more: engine_move_end() makes the next one that of the engine. */
bool engine_has_moved(const struct engine *e);
void engine_move_end(struct engine *e);

/* All but what was sent and received. */
struct tally_stats engine_stats(const struct engine *e);

#endif
