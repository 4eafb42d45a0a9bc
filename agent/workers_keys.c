// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* By which key a worker proves what it says: that of the job's token, or of its place in a run. */
#include <errno.h>

#include "agent/core/job.h"
#include "common/secret.h"
#include "placing.h"
#include "workers_private.h"

const struct shared_job *workers_shared_job(const struct workers *workers, const char *job)
{
	const struct placing *p = driver_placing(workers->driver);
	const struct job *j = books_job_find(core_books(driver_core(workers->driver)), job);

	if (!p || (j && !j->document))
		return NULL;
	return shared_find(placing_shared(p), job);
}

/* Which jobs there are a stranger does not learn: where there is none, any key is as wrong. */
int workers_token_key(const struct workers *workers, const char *job, uint8_t *ret)
{
	const struct books *books = core_books(driver_core(workers->driver));
	const struct job *j = books_job_find(books, job);
	const struct shared_job *shared = workers_shared_job(workers, job);

	if (!j && !shared)
		return workers_draw(ret, SECRET_KEY_BYTES);
	secret_token_key(shared ? shared->job.token : j->token, ret);
	return 0;
}

/* A run that is not there is no guess: who was in it asks in good faith. */
int workers_place_key(const struct workers *workers, const struct joining_greeting *g, uint8_t *ret,
		      struct why *why)
{
	const struct books *books = core_books(driver_core(workers->driver));
	const struct job *j = books_job_find(books, g->job);

	if (j && job_place_key(j, g->rank, g->run, ret))
		return 0;
	return why_say(why, -ECANCELED, "rank %u is in no such run of job %s here, or has no key",
		       g->rank, g->job);
}
