/* The same steps under many strategies and budgets. */
#ifndef TRAIN_GPT_COMPARE_H
#define TRAIN_GPT_COMPARE_H

#include "train.h"

/* Prints the table, writes JSON and timelines as the options say. 0; EXIT_BAD_INPUT where a row is not bitwise equal to
 * store_all or a measured peak is not the predicted one; EXIT_INFEASIBLE. */
int compare(struct model *model);

#endif
