/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An agent without a machine: its core (agent/core/core.h) as it is, and memory in the place of
 * maps, disk and software sums. What the core wants done is done at once, and goes well. Pure.
 *
 * Times are seconds of the simulation; they never go back.
 */
#ifndef TALLY_SIM_AGENT_H
#define TALLY_SIM_AGENT_H

#include <stdint.h>
#include <sys/socket.h>

#include "agent/core/core.h"
#include "common/owned.h"
#include "common/why.h"

struct sim_agent;

/*
 * One that has just been started, with empty books. Its only port leads everywhere. `config` is the
 * caller's, and stays as it is as long as the agent; `seed`: of all that is random. *ret is the
 * caller's to sim_agent_free(). -ENOMEM, and what the core says of a configuration that does not
 * fit.
 */
int sim_agent_open(const struct config *config, uint64_t seed, struct sim_agent **ret,
		   struct why *why);
void sim_agent_free(struct sim_agent *a); /* or NULL */
static inline void sim_agent_freep(struct sim_agent **a) { sim_agent_free(*a); }

/* A request of an operator. 0, or the error that the agent answers, and `why`. */
int sim_agent_ask(struct sim_agent *a, const struct request *q, double now_s, struct why *why);

/*
 * The worker of `rank` joins a job that the agent has; all are there: the run begins. `connection`
 * is compared only. 0, or the error that workers are told, and `why`.
 */
int sim_agent_join(struct sim_agent *a, const struct job *j, uint16_t rank,
		   const struct sockaddr_storage *address, void *connection, double now_s,
		   struct why *why);

/* What the agent wants to do by itself until now is done. */
void sim_agent_wait(struct sim_agent *a, double now_s);

/* When that is next. INFINITY: never. */
double sim_agent_deadline_s(const struct sim_agent *a);

const struct core *sim_agent_core(const struct sim_agent *a);

#endif
