/* JSON: one object, and nothing else where it goes. */
#ifndef TRAIN_GPT_REPORT_H
#define TRAIN_GPT_REPORT_H

#include <stdio.h>

#include "train.h"

/* Where people read: standard output, or standard error where JSON has that. */
FILE *report_people(const struct options *options);

/* Where JSON goes; NULL after a complaint. */
FILE *report_open(const struct options *options);
int report_close(const struct options *options, FILE *file);

/* A string with quotes; a number, or null where it is not finite. */
void report_string(FILE *file, const char *text);
void report_number(FILE *file, double number);
/* , "name": [...] */
void report_numbers(FILE *file, const char *name, const double *values, uint64_t count);

/* "config": {...} */
void report_config(FILE *file, const struct model *model);

/* NaN where there is no memory for a sorted copy. */
double median(const double *values, size_t count);

#endif
