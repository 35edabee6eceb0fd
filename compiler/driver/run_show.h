/* run_show: what `nkx run` prints: parts of a result (frames.h) for people. */
#ifndef DRIVER_RUN_SHOW_H
#define DRIVER_RUN_SHOW_H

struct json_t; /* of jansson */

/* The member `key`; "" or 0 if there is none. */
const char *run_text_of(const struct json_t *o, const char *key);
long long run_int_of(const struct json_t *o, const char *key);

/* Print to standard output: an output of a run, a simulation, a value, a kernel of a comparison (comparison.h). */
void run_show_output(const struct json_t *output);
void run_show_simulation(const struct json_t *simulation);
void run_show_value(const struct json_t *value);
void run_show_comparison(const struct json_t *kernel);
/* The object of a frame "device"; nothing if there was no run. */
void run_show_device(const struct json_t *device);

#endif
