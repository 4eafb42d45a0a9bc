// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "predict.h"

#include <string.h>

const struct predictor *const PREDICTORS[] = {
	&PREDICT_LAST, &PREDICT_EWMA, &PREDICT_HOLT, &PREDICT_SEASONAL, &PREDICT_LEARNED,
};

const unsigned int PREDICTORS_COUNT = sizeof(PREDICTORS) / sizeof(*PREDICTORS);

const struct predictor *predictor_find(const char *name)
{
	for (unsigned int i = 0; i < PREDICTORS_COUNT; i++)
		if (strcmp(PREDICTORS[i]->name, name) == 0)
			return PREDICTORS[i];
	return NULL;
}
