// SPDX-License-Identifier: GPL-2.0-only
/* Where machines stand in a picture of the network. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "ctl/layers.h"
#include "random.h"

enum {
	SOME = 40,
};

static struct layers_machine m[LAYERS_MACHINES_MAX + 1];
static struct layers_link l[LAYERS_LINKS_MAX + 1];
static int columns, rows;

/* Links as pairs of digits: "01 12". */
static int links_of(const char *text)
{
	int count = 0;

	for (; *text; text += 2 + (text[2] == ' '))
		l[count++] = (struct layers_link){ .end = { text[0] - '0', text[1] - '0' } };
	return count;
}

static void make(int machines, const char *links, int first)
{
	assert_int_equal(layers_make(m, machines, l, links_of(links), first, &columns, &rows), 0);
}

static void columns_are_distances(void **state)
{
	static const int from_0[] = { 0, 1, 2, 2, 3 }, from_4[] = { 3, 2, 1, 1, 0 };

	make(5, "01 12 13 34 24", 0);
	assert_int_equal(columns, 4);
	for (int i = 0; i < 5; i++)
		assert_int_equal(m[i].column, from_0[i]);
	make(5, "01 12 13 34 24", 4);
	for (int i = 0; i < 5; i++)
		assert_int_equal(m[i].column, from_4[i]);
}

static void without_a_first_one_the_middle_is_it(void **state)
{
	make(5, "01 12 23 34", LAYERS_NONE);
	assert_int_equal(m[2].column, 0);
	assert_int_equal(columns, 3);
	make(4, "30 31 32", LAYERS_NONE);
	assert_int_equal(m[3].column, 0);
}

static void parts_stand_below_one_another(void **state)
{
	make(5, "01 34", LAYERS_NONE);
	assert_int_equal(columns, 2);
	assert_int_equal(rows, 3);
	assert_true(m[0].row < m[3].row && m[3].row < m[2].row);
	make(0, "", LAYERS_NONE);
	assert_int_equal(columns, 0);
	assert_int_equal(rows, 0);
}

static void each_stands_in_the_middle_of_those_behind_it(void **state)
{
	make(4, "01 02 03", 0);
	assert_true(m[0].row == 1 && m[1].row == 0 && m[2].row == 1 && m[3].row == 2);
}

/* Two cables between the same machines, and two ways to one. */
static void each_link_has_a_row_where_it_comes_in(void **state)
{
	make(3, "01 10 02 21", 0);
	assert_int_equal(m[1].rows, 2);
	assert_int_equal(l[0].near, 0);
	assert_int_equal(l[1].near, 1);
	assert_int_equal(l[0].arrives, 0);
	assert_int_equal(l[1].arrives, 1);
	assert_int_equal(m[2].rows, 2);
	assert_int_equal(l[3].near, 1);
	assert_int_equal(l[3].arrives, 1);
}

static bool overlap(const struct layers_machine *a, const struct layers_machine *b)
{
	return a->column == b->column && a->row < b->row + b->rows && b->row < a->row + a->rows;
}

/* Whatever the network is, no two machines overlap, no two links come in at the same row, and a
 * link joins columns that are neighbours or the same. */
static void nothing_overlaps(void **state)
{
	uint64_t random = 7;

	for (int round = 0; round < 300; round++) {
		const int machines = 1 + (int)(random_next(&random) % SOME);
		const int links = (int)(random_next(&random) % (2 * SOME));
		bool taken[SOME][2 * SOME] = { 0 };

		for (int i = 0; i < links; i++)
			l[i] = (struct layers_link){
				.end = { (int)(random_next(&random) % machines),
					 (int)(random_next(&random) % machines) }
			};
		assert_int_equal(layers_make(m, machines, l, links, round % 2 ? 0 : LAYERS_NONE,
					     &columns, &rows),
				 0);
		for (int i = 0; i < machines; i++) {
			assert_true(m[i].row >= 0 && m[i].row + m[i].rows <= rows);
			assert_true(m[i].column >= 0 && m[i].column < columns);
			for (int k = 0; k < i; k++)
				assert_false(overlap(&m[i], &m[k]));
		}
		for (int i = 0; i < links; i++) {
			const int near = l[i].end[l[i].near], far = l[i].end[!l[i].near];
			const int over = m[far].column - m[near].column;

			assert_true(over == 0 || over == 1);
			assert_true(l[i].arrives < m[far].rows && !taken[far][l[i].arrives]);
			taken[far][l[i].arrives] = true;
		}
	}
}

static void there_is_a_limit(void **state)
{
	memset(l, 0, sizeof(l));
	assert_int_equal(
		layers_make(m, LAYERS_MACHINES_MAX, l, LAYERS_LINKS_MAX, 0, &columns, &rows), 0);
	assert_int_equal(layers_make(m, LAYERS_MACHINES_MAX + 1, l, 0, 0, &columns, &rows), -E2BIG);
	assert_int_equal(layers_make(m, 1, l, LAYERS_LINKS_MAX + 1, 0, &columns, &rows), -E2BIG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(columns_are_distances),
		cmocka_unit_test(without_a_first_one_the_middle_is_it),
		cmocka_unit_test(parts_stand_below_one_another),
		cmocka_unit_test(each_stands_in_the_middle_of_those_behind_it),
		cmocka_unit_test(each_link_has_a_row_where_it_comes_in),
		cmocka_unit_test(nothing_overlaps),
		cmocka_unit_test(there_is_a_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
