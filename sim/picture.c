// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "picture.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "common/owned.h"

enum {
	STEP_X = 34,
	STEP_Y = 130,
	MARGIN = 40,
	LEGEND_Y = 60,
	LEGEND_X = 620,
};

struct spot {
	uint32_t row; /* links to the nearest host; GRAPH_NONE: none is there */
	double x, y;
};

struct picture {
	const struct topology *t;
	struct spot *spot; /* [machines] */
	uint32_t *queue; /* [machines] */
	uint32_t rows, widest;
};

static void picture_close(struct picture *p)
{
	free(p->spot);
	free(p->queue);
}

/* Breadth first, from all hosts at once. */
static void find_rows(struct picture *p)
{
	const struct graph *g = p->t->graph;
	uint32_t end = 0;

	for (uint32_t m = 0; m < g->machines; m++) {
		p->spot[m].row = g->machine[m].kind == GRAPH_HOST ? 0 : GRAPH_NONE;
		if (p->spot[m].row == 0)
			p->queue[end++] = m;
	}
	for (uint32_t at = 0; at < end; at++) {
		uint32_t m = p->queue[at];

		for (uint32_t i = g->leaving_at[m]; i < g->leaving_at[m + 1]; i++) {
			uint32_t next = g->link[g->leaving[i]].to;

			if (p->spot[next].row != GRAPH_NONE)
				continue;
			p->spot[next].row = p->spot[m].row + 1;
			p->queue[end++] = next;
		}
	}
}

static uint32_t row_of(const struct spot *s) { return s->row == GRAPH_NONE ? 0 : s->row; }

/* All machines of a row, at equal distances over the whole width. */
static int place_spots(struct picture *p)
{
	const uint32_t machines = p->t->graph->machines;
	_cleanup_(freep) uint32_t *count = calloc(machines + 1, sizeof(*count));
	_cleanup_(freep) uint32_t *seen = calloc(machines + 1, sizeof(*seen));

	if (!count || !seen)
		return -ENOMEM;
	for (uint32_t m = 0; m < machines; m++) {
		uint32_t row = row_of(&p->spot[m]);

		count[row]++;
		p->rows = row >= p->rows ? row + 1 : p->rows;
		p->widest = count[row] > p->widest ? count[row] : p->widest;
	}
	for (uint32_t m = 0; m < machines; m++) {
		uint32_t row = row_of(&p->spot[m]);

		p->spot[m].x = MARGIN + (seen[row]++ + 0.5) * STEP_X * p->widest / count[row];
		p->spot[m].y = MARGIN + (double)(p->rows - 1 - row) * STEP_Y;
	}
	return 0;
}

static double use_of(const struct picture *p, const struct play_result *r, uint32_t link)
{
	double could = p->t->graph->link[link].capacity * r->ended_s;

	return could > 0 ? fmin(r->link_bytes[link] / could, 1) : 0;
}

/* From grey and thin to red and wide. */
static void draw_cable(double x1, double y1, double x2, double y2, double use, FILE *to)
{
	fprintf(to,
		"<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" "
		"stroke=\"rgb(%.0f,%.0f,%.0f)\" stroke-width=\"%.2f\">",
		x1, y1, x2, y2, 190 + 20 * use, 190 * (1 - use), 190 * (1 - use), 0.5 + 5 * use);
}

static void draw_cables(const struct picture *p, const struct play_result *r, FILE *to)
{
	for (uint32_t l = 0; l < p->t->graph->links; l += 2) {
		const struct graph_link *link = &p->t->graph->link[l];
		const struct spot *a = &p->spot[link->from], *b = &p->spot[link->to];
		double use = fmax(use_of(p, r, l), use_of(p, r, l + 1));

		draw_cable(a->x, a->y, b->x, b->y, use, to);
		fprintf(to, "<title>%s - %s: %.1f %%</title></line>\n", p->t->name[link->from],
			p->t->name[link->to], 100 * use);
	}
}

/* `share`: of the trees that the node in most of them was in; 0: none. */
static void draw_machine(double x, double y, bool is_host, double share, FILE *to)
{
	fprintf(to,
		"<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%d\" fill=\"%s\" fill-opacity=\"%.2f\" "
		"stroke=\"#333\">",
		x, y, is_host ? 5 : 9, share > 0 ? "#2a7" : "#fff",
		share > 0 ? 0.2 + 0.8 * share : 1);
}

static void draw_machines(const struct picture *p, const struct play_result *r, FILE *to)
{
	const uint32_t machines = p->t->graph->machines;
	uint32_t most = 1;

	for (uint32_t m = 0; m < machines; m++)
		most = r->summed[m] > most ? r->summed[m] : most;
	for (uint32_t m = 0; m < machines; m++) {
		const struct spot *s = &p->spot[m];
		bool is_host = p->t->graph->machine[m].kind == GRAPH_HOST;

		draw_machine(s->x, s->y, is_host, (double)r->summed[m] / most, to);
		fprintf(to,
			"<title>%s: in %u trees</title></circle>\n<text x=\"%.1f\" y=\"%.1f\" "
			"font-size=\"9\" text-anchor=\"middle\">%s</text>\n",
			p->t->name[m], r->summed[m], s->x, s->y + (is_host ? 16 : -12),
			p->t->name[m]);
	}
}

static void draw_words(double x, double y, const char *words, FILE *to)
{
	fprintf(to, "<text x=\"%.1f\" y=\"%.1f\" font-size=\"11\">%s</text>\n", x, y, words);
}

static void draw_legend(double y, const char *policy, FILE *to)
{
	static const double shares[] = { 0, 0.5, 1 };
	static const char *const uses[] = { "0", "50", "100 % of a cable used" };
	static const char *const sums[] = { "sums nothing", "in half as many trees",
					    "in most trees" };
	char words[80];

	snprintf(words, sizeof(words), "policy %s", policy);
	draw_words(MARGIN, y, words, to);
	for (int i = 0; i < 3; i++) {
		double x = MARGIN + 120 + 70 * i, right = MARGIN + 120 + 150 * i;

		draw_cable(x, y - 4, x + 30, y - 4, shares[i], to);
		fputs("</line>\n", to);
		draw_words(x + 36, y, uses[i], to);
		draw_machine(right, y + 21, false, shares[i], to);
		fputs("</circle>\n", to);
		draw_words(right + 14, y + 25, sums[i], to);
	}
}

int picture_draw(const struct topology *t, const struct play_result *r, FILE *to)
{
	_cleanup_(picture_close) struct picture p = { .t = t };
	unsigned int width, height;
	int error;

	if (t->graph->machines > PICTURE_MACHINES_MAX)
		return -E2BIG;
	p.spot = calloc(t->graph->machines + 1, sizeof(*p.spot));
	p.queue = calloc(t->graph->machines + 1, sizeof(*p.queue));
	if (!p.spot || !p.queue)
		return -ENOMEM;
	find_rows(&p);
	error = place_spots(&p);
	if (error < 0)
		return error;
	width = 2 * MARGIN + STEP_X * p.widest;
	height = 2 * MARGIN + STEP_Y * (p.rows - 1);
	fprintf(to,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%u\" "
		"font-family=\"sans-serif\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
		width > LEGEND_X ? width : LEGEND_X, height + LEGEND_Y);
	draw_cables(&p, r, to);
	draw_machines(&p, r, to);
	draw_legend(height + 15, r->policy->name, to);
	fputs("</svg>\n", to);
	return 0;
}
