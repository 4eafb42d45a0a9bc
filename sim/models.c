// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "models.h"

#include <stddef.h>
#include <string.h>

/* Where a paper counts parameters, they are taken four bytes each. */
const struct model MODELS[] = {
	{ "lstm", 1627e3, "1,627 KB: InArt, WWW 2024" },
	{ "efficientnet-b0", 21.2e6, "5.3 M parameters: Tan, Le, ICML 2019" },
	{ "resnet50", 97e6, "97 MB: InArt, WWW 2024" },
	{ "alexnet", 240e6, "60 M parameters: Krizhevsky, Sutskever, Hinton, NIPS 2012" },
	{ "transformer", 260e6, "65 M parameters: Vaswani and others, NIPS 2017, table 3, base" },
	{ "vit-b16", 344e6, "86 M parameters: Dosovitskiy and others, ICLR 2021, table 1" },
	{ "bert-base", 440e6, "110 M parameters: Devlin and others, NAACL 2019" },
	{ "vgg19", 548e6, "548 MB: InArt, WWW 2024" },
	{ "bert-large", 1360e6, "340 M parameters: Devlin and others, NAACL 2019" },
	{ "gpt2-xl", 6168e6, "1,542 M parameters: Radford and others, OpenAI 2019, table 2" },
};

const unsigned int MODELS_COUNT = sizeof(MODELS) / sizeof(*MODELS);

const struct model *model_find(const char *name)
{
	for (unsigned int i = 0; i < MODELS_COUNT; i++)
		if (!strcmp(MODELS[i].name, name))
			return &MODELS[i];
	return NULL;
}
